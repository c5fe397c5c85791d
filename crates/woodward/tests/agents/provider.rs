//! Money, limits and logins of a real Claude Code: what its provider does and says.

use std::path::Path;

use woodward_core::provider::ProviderWaitReason;
use woodward_testkit::agents::Programs;
use woodward_testkit::patience::within;

use crate::place::{AGENT_PATIENCE, KEY, Place};

/// What the provider does well once it answers again.
const GOOD: &str = "stand-in: write one.txt=one; commit add one";

/// One turn of eleven requests, each of which costs about $0.014 with the program's own model.
fn long_turn() -> String {
    let step = "usage input=1000 output=500; shell sleep 1; ";
    format!("Please.\nstand-in: {}say done", step.repeat(10))
}

fn requests(place: &Place) -> usize {
    let all = place.api.requests();
    let asked = all.iter().filter(|request| request.user_says("stand-in:"));
    asked.count()
}

fn stops_within_a_turn(place: &Place) {
    place.ok(&["create", "long", "--yolo", "-p", &long_turn()]);
    place.reaches("long", &["paused"]);
    let task = place.task("long");
    let why = &task.attention.reason;
    assert!(why.contains("of $0.030 used"), "{why}");
    let spent = task.spent.and_then(|spent| spent.usd_micros).unwrap();
    assert!(spent < 75_000, "{spent}\n{}", place.story("long"));
    assert!(requests(place) < 7, "{}", place.story("long"));
}

/// A budget acts at every request, not at the end of the turn.
pub(crate) fn a_budget_stops_a_turn(programs: &Programs) {
    let rules = "budget: { usd: 0.03 }\n";
    let place = Place::new(programs, &["claude-code"], rules);
    stops_within_a_turn(&place);
    // The program reports the cost of the turn that was stopped once more: it counts once.
    place.ok(&["resume", "long", "--budget", "usd=5"]);
    place.reaches("long", &["review", "failed"]);
    let spent = place.task("long").spent.and_then(|spent| spent.usd_micros);
    let most = 14_040 * u64::try_from(place.api.requests().len()).unwrap();
    let spent = spent.unwrap();
    assert!(spent <= most, "{spent} > {most}\n{}", place.story("long"));
}

/// The same in a terminal, where only the transcript reports usage.
pub(crate) fn a_budget_stops_a_turn_in_a_terminal(programs: &Programs) {
    let rules = "  own: { kind: claude-code, ownConfig: true }\nbudget: { usd: 0.03 }\n";
    let place = Place::with(programs, &["claude-code"], "tmux", rules, |_| {});
    let turn = long_turn();
    let create = ["create", "long", "--yolo", "--agent", "own", "-p", &turn];
    place.ok(&create);
    place.reaches("long", &["paused"]);
    let task = place.task("long");
    let why = &task.attention.reason;
    assert!(why.contains("of $0.030 used"), "{why}");
    assert!(requests(&place) < 7, "{}", place.story("long"));
}

/// An overload is no attempt, and a person need not wait for it to pass.
pub(crate) fn an_overload_fails_no_task(programs: &Programs) {
    let place = Place::new(programs, &["claude-code"], "limits: { attempts: 1 }\n");
    place.ok(&["create", "one", "-p", "Please.\nstand-in: fault 529"]);
    for nth in 0..3 {
        let waits = within(AGENT_PATIENCE, "it waits for its provider", || {
            let task = place.task("one");
            assert_ne!(task.state.as_str(), "failed", "{}", place.story("one"));
            let wait = task.provider_wait?;
            (task.state.as_str() == "queued").then_some((wait, task.attention.reason))
        });
        assert_eq!(waits.0.reason, ProviderWaitReason::Overloaded);
        let text = "waiting for the provider (overloaded, retries in ";
        assert!(waits.1.starts_with(text), "{}", waits.1);
        if nth == 2 {
            place.ok(&["prompt", "one", GOOD]);
        }
        place.ok(&["retry", "one"]);
    }
    place.reaches("one", &["review"]);
}

/// A program that retries by itself is not taken for one that works.
pub(crate) fn a_wait_is_shown(programs: &Programs) {
    let rules = "  patient: { kind: claude-code, env: { CLAUDE_CODE_MAX_RETRIES: \"10\" } }\n";
    let place = Place::new(programs, &["claude-code"], rules);
    let prompt = "Please.\nstand-in: fault 529";
    place.ok(&["create", "one", "--agent", "patient", "-p", prompt]);
    let shown = within(AGENT_PATIENCE, "the wait is shown", || {
        let task = place.task("one");
        let waits = task.state.as_str() == "working" && task.provider_wait.is_some();
        waits.then_some(task.attention.reason)
    });
    let text = "waiting for the provider (overloaded";
    assert!(shown.starts_with(text), "{shown}");
    assert!(place.run(&["status"]).stdout.contains(text));
    place.ok(&["cancel", "one"]);
}

/// A person's retry wins over what a provider said.
pub(crate) fn a_retry_overrides_a_rate_limit(programs: &Programs) {
    let place = Place::new(programs, &["claude-code"], "");
    let prompt = "Please.\nstand-in: fault 429 reset=7200 retry=no";
    place.ok(&["create", "one", "-p", prompt]);
    let shown = within(AGENT_PATIENCE, "it waits for its provider", || {
        let task = place.task("one");
        let waits = task.state.as_str() == "queued" && task.provider_wait.is_some();
        waits.then_some(task.attention.reason)
    });
    let text = "waiting for the provider (rate limit, resets ";
    assert!(shown.starts_with(text), "{shown}");
    place.ok(&["prompt", "one", GOOD]);
    place.ok(&["retry", "one"]);
    place.reaches("one", &["review"]);
}

/// A key that was exported after the daemon had started reaches the agent, and no disk.
pub(crate) fn a_retry_hands_over_the_key(programs: &Programs) {
    let without_key = |daemon: &mut woodward_testkit::TestDaemon| {
        daemon.set("ANTHROPIC_API_KEY", "");
    };
    let mut place = Place::with(programs, &["claude-code"], "process", "", without_key);
    let prompt = "Please.\nstand-in: write one.txt=one; commit add one";
    place.ok(&["create", "one", "-p", prompt]);
    place.reaches("one", &["failed"]);
    let why = place.task("one").attention.reason;
    assert!(why.contains("not logged in"), "{why}");
    place.daemon.set("ANTHROPIC_API_KEY", KEY);
    place.ok(&["retry", "one"]);
    place.reaches("one", &["review"]);
    let found = files_with(&place.daemon.state(), KEY);
    assert!(found.is_empty(), "the key is in {found:?}");
    // A daemon that was started without it names it.
    place.kill_daemon();
    place.daemon.set("ANTHROPIC_API_KEY", "");
    place.ok(&[
        "prompt",
        "one",
        "stand-in: write two.txt=two; commit add two",
    ]);
    place.reaches("one", &["failed"]);
    let why = place.task("one").attention.reason;
    assert!(
        why.contains("ANTHROPIC_API_KEY is not set: export it"),
        "{why}"
    );
    place.daemon.set("ANTHROPIC_API_KEY", KEY);
    place.ok(&["retry", "one"]);
    place.reaches("one", &["review"]);
    let found = files_with(&place.daemon.state(), KEY);
    assert!(found.is_empty(), "the key is in {found:?}");
}

/// The files below a directory that contain a text.
fn files_with(directory: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                let bytes = std::fs::read(&path).unwrap_or_default();
                let is_in = bytes
                    .windows(text.len())
                    .any(|part| part == text.as_bytes());
                found.extend(is_in.then_some(path));
            }
        }
    }
    found
}
