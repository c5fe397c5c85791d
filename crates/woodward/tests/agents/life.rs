//! Each agent under Woodward, from `create` to landed, and through bad luck.

use std::path::Path;

use woodward_agents::Kind;
use woodward_agents::catalog::Facts;
use woodward_api::CostView;
use woodward_testkit::agents::Programs;
use woodward_testkit::patience::{until, within};

use crate::place::{AGENT_PATIENCE, Place, named};
use crate::table::Table;

/// A gate that looks at the file which the first run writes.
const GATED: &str = "gates: [{ name: written, command: [test, -f, one.txt] }]\n";

fn facts(agent: &str) -> &'static Facts {
    Facts::by_name(named(agent)).unwrap_or_else(|| panic!("{agent} is not known"))
}

/// A step that touches a file where the agent may not without asking.
fn asking(kind: Kind, file: &Path) -> String {
    let touch = format!("touch {}", file.display());
    match kind {
        // Its sandbox simply refuses, unless the model asks for more.
        Kind::Codex => format!(
            r#"call exec_command {{"cmd":"{touch}","sandbox_permissions":"require_escalated","justification":"It must be there."}}"#
        ),
        _ => format!("shell {touch}"),
    }
}

/// Written and committed; asked and answered, the daemon killed meanwhile; told more in the same
/// conversation; landed; paid.
pub(crate) fn lands(programs: &Programs, agent: &str, table: &Table) {
    let place = Place::new(programs, &[agent], GATED);
    let facts = facts(agent);
    let asks = facts.asks_permission;
    // Outside of the worktree, and outside of where temporary files may be.
    let asked = place.daemon.home().join("asked");
    let prompt = if asks {
        let asking = asking(facts.kind, &asked);
        format!("Please.\nstand-in: write one.txt=one; {asking}; commit add one")
    } else {
        String::from("Please.\nstand-in: write one.txt=one; slow 3; commit add one")
    };
    place.ok(&["create", "life", "-p", &prompt]);
    if asks {
        place.reaches("life", &["waiting"]);
        let question = place.show("life").question.expect("a question");
        assert!(question.text.contains("touch /"), "{question:?}");
        table.note(agent, "asks", true);
    } else {
        place.reaches("life", &["working", "verifying", "review"]);
    }
    place.kill_daemon();
    if asks {
        place.reaches("life", &["waiting"]);
        place.ok(&["answer", "life", "allow"]);
    }
    place.reaches("life", &["review"]);
    assert_eq!(asked.exists(), asks, "{}", place.story("life"));
    let detail = place.show("life");
    assert_eq!(detail.runs.len(), 1, "one run: {}", place.story("life"));
    table.note(agent, "kill -9", true);
    table.note(
        agent,
        "write",
        place.worktree("life").join("one.txt").is_file(),
    );
    let subject = |place: &Place| {
        let tree = place.worktree("life");
        place
            .repo
            .git(&["-C", tree.to_str().unwrap(), "log", "-1", "--format=%s"])
    };
    let story = place.story("life");
    if facts.kind == Kind::Aider {
        // It commits by itself, with a message of its own.
        assert_ne!(subject(&place), "a shop", "{story}");
    } else {
        assert_eq!(subject(&place), "add one", "{story}");
    }
    table.note(agent, "commit", true);
    let session = detail.runs[0].session.clone();
    assert!(session.is_some(), "no conversation on record: {story}");

    place.ok(&[
        "prompt",
        "life",
        "And now.\nstand-in: write two.txt=two; commit add two",
    ]);
    let twice =
        || place.show("life").runs.len() == 2 && place.task("life").state.as_str() == "review";
    let over = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        within(AGENT_PATIENCE, "the second run is over", || {
            twice().then_some(())
        });
    }));
    assert!(over.is_ok(), "it never is: {}", place.story("life"));
    assert!(
        place.worktree("life").join("two.txt").is_file(),
        "{}",
        place.story("life")
    );
    let detail = place.show("life");
    assert_eq!(detail.runs[1].session, session, "the same conversation");
    // The program itself remembers: the model gets the first words again with the second ones.
    let both = |request: &woodward_testkit::model_api::Recorded| {
        request.user_says("And now.") && request.user_says("write one.txt=one")
    };
    let remembers = place.api.requests().iter().any(both);
    table.note(agent, "resume", remembers);
    assert!(
        remembers,
        "the conversation was not resumed: {}",
        place.story("life")
    );

    // What the program leaves behind is in no commit, and nobody takes it for work.
    let tree = place.worktree("life");
    let tree = tree.to_str().unwrap();
    let committed = place
        .repo
        .git(&["-C", tree, "ls-tree", "-r", "--name-only", "HEAD"]);
    assert_eq!(committed, "README.md\none.txt\ntwo.txt\nwoodward.yaml");
    assert_eq!(place.repo.git(&["-C", tree, "status", "--short"]), "");

    place.ok(&["merge", "life"]);
    place.reaches("life", &["landed"]);
    assert_eq!(place.repo.read("one.txt").trim_end(), "one");
    assert_eq!(place.repo.read("two.txt").trim_end(), "two");
    let cost: CostView = place.json(&["cost"]);
    table.note(agent, "cost", cost.total.tokens > 0);
    assert!(cost.total.tokens > 0, "nothing used? {cost:?}");
    place.ok(&["down"]);
    until("nothing is left", || place.daemon.processes().is_empty());
}

/// A refused login, a limit and a failure each have their own outcome and sentence.
pub(crate) fn is_unlucky(programs: &Programs, agent: &str, table: &Table) {
    let rules = "limits: { attempts: 1 }\n";
    let place = Place::new(programs, &[agent], rules);
    let title = facts(agent).title;
    // These try a failing server again for minutes.
    let failure = match facts(agent).kind {
        Kind::Qwen | Kind::OpenCode | Kind::Aider => "fault 400",
        _ => "fault 500 retry=no",
    };
    place.ok(&["create", "login", "-p", "Please.\nstand-in: fault 401"]);
    place.ok(&[
        "create",
        "broken",
        "-p",
        &format!("Please.\nstand-in: {failure}"),
    ]);
    place.reaches("login", &["failed"]);
    let why = place.task("login").attention.reason;
    assert!(
        why.contains(title) && why.contains("not logged in"),
        "{why}\n{}",
        place.story("login")
    );
    table.note(agent, "401", true);
    place.reaches("broken", &["failed"]);
    let why = place.task("broken").attention.reason;
    assert!(why.contains(title), "{why}\n{}", place.story("broken"));
    table.note(agent, "failure", true);
    // Goose waits by itself for as long as it is told to.
    let fault = match facts(agent).kind {
        Kind::Goose => "fault 429",
        _ => "fault 429 reset=7200 retry=no",
    };
    let prompt = format!("Please.\nstand-in: {fault}");
    place.ok(&["create", "later", "-p", &prompt]);
    let is_told_to_wait =
        |task: &str| place.count_in_timeline(task, "the provider said to wait") > 0;
    let limited = || place.task("later").state.as_str() == "queued" && is_told_to_wait("later");
    let waits = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        place.until("it waits for its provider", limited);
    }));
    table.note(agent, "429", waits.is_ok());
    assert!(waits.is_ok(), "{}", place.story("later"));
    // Who was told to wait is not started for others either; another agent would be.
    place.ok(&["create", "next", "-p", "Please."]);
    place.until("the next task waits too", || is_told_to_wait("next"));
    assert!(place.show("next").runs.is_empty(), "it was not started");
}

/// Three at once on a machine where the program never ran: what it makes at its first start is made
/// by several.
pub(crate) fn begin_together(programs: &Programs, agent: &str, _: &Table) {
    let place = Place::before_first_start(programs, &[agent], "limits: { attempts: 1 }\n");
    let names = ["one", "two", "three"];
    for name in names {
        let prompt = format!("Please.\nstand-in: write {name}.txt={name}; commit add {name}");
        place.ok(&["create", name, "-p", &prompt]);
    }
    for name in names {
        place.reaches(name, &["review"]);
    }
}

/// Cancelled in the middle of a tool call: nothing of it lives.
pub(crate) fn ends(programs: &Programs, agent: &str, table: &Table) {
    let place = Place::new(programs, &[agent], "");
    // Tools are put into sessions of their own by most programs.
    let mark = place.repo.around().join("tool-runs");
    let tool = format!(
        "sh -c 'touch {}\\; exec python3 -c \"import time\\; time.sleep(600)\"'",
        mark.display()
    );
    if facts(agent).kind == Kind::Aider {
        // It has no tools; its model takes its time.
        place.ok(&[
            "create",
            "long",
            "-p",
            "Please.\nstand-in: slow 600; write a=a",
        ]);
        place
            .api
            .expect("the task", |request| request.user_says("slow 600"));
    } else {
        let prompt = format!("Please.\nstand-in: shell {tool}");
        place.ok(&["create", "long", "--yolo", "-p", &prompt]);
        within(AGENT_PATIENCE, "the tool runs", || {
            mark.exists().then_some(())
        });
    }
    place.ok(&["cancel", "long"]);
    let begun = std::time::Instant::now();
    until("only the daemon is left", || {
        place.daemon.processes().len() == 1
    });
    let took = begun.elapsed();
    table.note(agent, "cancel", took.as_secs() < 5);
    // The tool would go on for ten minutes.
    assert!(took.as_secs() < 30, "it took {took:?}");
}

/// An agent that is missing, or whose provider said to wait, is stood in for by the next one.
pub(crate) fn falls_back(programs: &Programs) {
    let rules = "  gone: { kind: claude-code, command: [/nonexistent/claude] }\nreview: never\n";
    let gated = format!("{rules}gates: [{{ name: ok, command: [test, -f, README.md] }}]\n");
    let place = Place::new(programs, &["claude-code", "codex"], &gated);
    let write = |file: &str| format!("Please.\nstand-in: write {file}={file}; commit add {file}");
    let ran_by = |task: &str| place.show(task).runs[0].agent.clone();

    place.ok(&[
        "create",
        "one",
        "--agent",
        "gone,claude-code",
        "-p",
        &write("one"),
    ]);
    place.reaches("one", &["landed"]);
    assert_eq!(ran_by("one"), "claude-code");

    // An account's limit is told with the moment of its end only to subscribers; some moment is taken.
    let limited = "Please.\nstand-in: fault 429 reset=7200 retry=no";
    place.ok(&["create", "limited", "-p", limited]);
    place.until("it waits for its provider", || {
        place.count_in_timeline("limited", "said to wait") > 0
    });
    place.ok(&[
        "create",
        "two",
        "--agent",
        "claude-code,codex",
        "-p",
        &write("two"),
    ]);
    place.reaches("two", &["landed"]);
    assert_eq!(ran_by("two"), "codex");
}

/// What a day may cost is spent by the first task, which is stopped if it goes on then; the second is
/// paused, and says why.
pub(crate) fn a_day_is_spent(programs: &Programs) {
    let place = Place::new(
        programs,
        &["claude-code"],
        "budget: { day: { usd: 0.01 } }\n",
    );
    let write = |file: &str| format!("Please.\nstand-in: write {file}={file}; commit add {file}");
    place.ok(&["create", "first", "-p", &write("first")]);
    place.reaches("first", &["review", "paused"]);
    place.ok(&["create", "second", "-p", &write("second")]);
    place.reaches("second", &["paused"]);
    let why = place.task("second").attention.reason;
    assert!(why.contains("of $0.010 used"), "{why}");
    assert!(place.show("second").runs.is_empty(), "it was not started");
}

/// What is reserved for a run must fit into what is left of the day, before it is started.
pub(crate) fn a_reserve_must_fit(programs: &Programs) {
    let rules = "budget: { day: { tokens: 1000000 }, reserve: { tokens: 600000 } }\n";
    let place = Place::new(programs, &["claude-code"], rules);
    let outside = place.daemon.home().join("outside");
    let prompt = format!(
        "Please.\nstand-in: shell touch {}; write first=first; usage input=500000 output=10; commit add first",
        outside.display()
    );
    // One runs: what it may still use is not there for another.
    place.ok(&["create", "first", "-p", &prompt]);
    place.reaches("first", &["waiting"]);
    let small = "Please.\nstand-in: write second=second; commit add second";
    place.ok(&["create", "second", "-p", small]);
    place.reaches("second", &["paused"]);
    let why = place.task("second").attention.reason;
    let wanted = "of 1000000 tokens used or reserved, and a run may use 600000";
    assert!(why.contains(wanted), "{why}");
    assert!(place.show("second").runs.is_empty(), "it was not started");
    // It is over: what it used leaves too little.
    place.ok(&["answer", "first", "allow"]);
    place.reaches("first", &["review"]);
    place.ok(&["resume", "second"]);
    place.until("it is not started again", || {
        place.count_in_timeline("second", wanted) > 1
    });
    place.reaches("second", &["paused"]);
    assert!(place.show("second").runs.is_empty(), "it was not started");
}

/// A conversation that became too long has an ending of its own, and the next run begins a new one.
pub(crate) fn overflows(programs: &Programs, agent: &str) {
    let place = Place::new(programs, &[agent], "limits: { attempts: 1 }\n");
    // Once is not enough: some make room and try again.
    let prompt = "Please.\nstand-in: fault overflow";
    place.ok(&["create", "long", "-p", prompt]);
    place.reaches("long", &["failed"]);
    let why = place.task("long").attention.reason;
    assert!(
        why.contains("became too long"),
        "{why}\n{}",
        place.story("long")
    );
    let first = place.show("long").runs[0].clone();
    assert!(!first.resumable, "{first:?}");
    let shorter = "Now.\nstand-in: write one.txt=one; commit add one";
    place.ok(&["prompt", "long", shorter]);
    place.reaches("long", &["review"]);
    let second = place.show("long").runs[1].clone();
    assert_ne!(second.session, first.session, "{}", place.story("long"));
}

/// A program that is too old to be talked to: `doctor` and the failure both say which version it is.
pub(crate) fn is_too_old(programs: &Programs) {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("claude");
    // What a version from before an option says of it.
    let script = "#!/bin/sh\ncase $1 in --version) echo '1.0.3 (Claude Code)';; \
        *) echo \"error: unknown option '--replay-user-messages'\" >&2; exit 1;; esac\n";
    std::fs::write(&old, script).unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).unwrap();
    let row = format!(
        "  old: {{ kind: claude-code, command: [\"{}\"] }}\n",
        old.display()
    );
    let place = Place::new(programs, &["codex"], &row);
    let sentence = "version 1.0.3 is older than";
    let doctor = place.run(&["doctor"]).stdout;
    assert!(doctor.contains(sentence), "{doctor}");
    place.ok(&["create", "task", "--agent", "old", "-p", "Please."]);
    place.reaches("task", &["failed"]);
    let why = place.task("task").attention.reason;
    assert!(
        why.contains("unknown option") && why.contains(sentence),
        "{why}"
    );
    assert!(why.contains("npm install"), "{why}");
    assert_eq!(place.show("task").runs.len(), 1, "it is not tried again");
}

/// The machine is restarted in the middle of a run: it is listed as resumable, and goes on in the
/// same conversation.
pub(crate) fn survives_a_restart(programs: &Programs, agent: &str) {
    let rules = "limits: { attempts: 1 }\n";
    let place = Place::new(programs, &[agent], rules);
    let prompt = "Please.\nstand-in: write one.txt=one; fault stall times=1; commit add one";
    place.ok(&["create", "cut", "-p", prompt]);
    let session = in_the_middle(&place, "cut");
    // Everything goes at once, and what the run's files name is of another boot.
    kill_all(&place);
    let runs = place.daemon.state().join("runs");
    let named = find_file(&runs, "supervisor.json").expect("the run's identity");
    let text = std::fs::read_to_string(&named).unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(text.contains(boot.trim()), "{text}");
    let other = "11111111-2222-4333-8444-555555555555";
    std::fs::write(&named, text.replace(boot.trim(), other)).unwrap();

    // Whoever looks starts the daemon.
    place.reaches("cut", &["failed"]);
    let attention = place.task("cut").attention;
    let sentence = "the machine was restarted while";
    assert!(attention.reason.contains(sentence), "{attention:?}");
    assert!(attention.reason.contains("can be resumed"), "{attention:?}");
    assert_eq!(attention.command.as_deref(), Some("woodward retry cut"));
    let run = &place.show("cut").runs[0];
    assert!(run.resumable, "{run:?}");
    assert_eq!(run.session.as_ref(), Some(&session));
    let doctor = place.run(&["doctor"]).stdout;
    assert!(doctor.contains(sentence), "{doctor}");
    assert!(doctor.contains(&session), "{doctor}");
    assert!(doctor.contains("woodward retry cut"), "{doctor}");

    place.ok(&["retry", "cut"]);
    place.reaches("cut", &["review"]);
    let detail = place.show("cut");
    assert_eq!(detail.runs.len(), 2, "{}", place.story("cut"));
    assert_eq!(detail.runs[1].session.as_ref(), Some(&session));
    let doctor = place.run(&["doctor"]).stdout;
    assert!(!doctor.contains(sentence), "it went on: {doctor}");
}

/// Waits until the model stalls in the middle of a task, and says in which conversation.
fn in_the_middle(place: &Place, task: &str) -> String {
    within(AGENT_PATIENCE, "it is in the middle of its work", || {
        let run = place.show(task).runs.pop()?;
        let stalls = place.api.find(|request| request.answer == "fault stall");
        run.session.filter(|_| stalls.is_some())
    })
}

/// The end of everything at once: daemon, supervisors, hosts and programs.
fn kill_all(place: &Place) {
    until("nothing is left", || {
        let left = place.daemon.processes();
        for pid in &left {
            let _ = rustix::process::kill_process(*pid, rustix::process::Signal::KILL);
        }
        left.is_empty()
    });
}

/// The first file with this name below a directory.
fn find_file(dir: &Path, name: &str) -> Option<std::path::PathBuf> {
    let entries: Vec<_> = std::fs::read_dir(dir).ok()?.flatten().collect();
    let here = entries.iter().find(|entry| entry.file_name() == name);
    here.map(|entry| entry.path()).or_else(|| {
        entries
            .iter()
            .find_map(|entry| find_file(&entry.path(), name))
    })
}

/// Everything is killed, but the machine was not restarted: it goes on by itself.
pub(crate) fn goes_on_by_itself(programs: &Programs) {
    let place = Place::new(programs, &["claude-code"], "");
    let prompt = "Please.\nstand-in: write one.txt=one; fault stall times=1; commit add one";
    place.ok(&["create", "cut", "-p", prompt]);
    let session = in_the_middle(&place, "cut");
    kill_all(&place);
    place.reaches("cut", &["review"]);
    let detail = place.show("cut");
    let runs = detail.runs.iter();
    let sessions: Vec<_> = runs.map(|run| run.session.clone()).collect();
    assert_eq!(sessions, [Some(session.clone()), Some(session)]);
    assert!(place.ok(&["timeline", "cut"]).stdout.contains("was killed"));
}

/// Claude Code asks a question with choices; the answer is in its own transcript.
pub(crate) fn asks_a_question(programs: &Programs) {
    let place = Place::new(programs, &["claude-code"], "");
    let prompt = "Please.\nstand-in: ask Which colour?|Blue|Green; write c.txt=c; commit add c";
    place.ok(&["create", "asker", "-p", prompt]);
    place.reaches("asker", &["waiting"]);
    let question = place.show("asker").question.expect("a question");
    assert_eq!(question.text, "Which colour?");
    assert_eq!(question.choices, ["Blue", "Green"]);
    place.ok(&["answer", "asker", "2"]);
    place.reaches("asker", &["review"]);
    let session = place.show("asker").runs[0]
        .session
        .clone()
        .expect("a conversation");
    let projects = place.daemon.home().join(".claude/projects");
    let transcript = std::fs::read_dir(projects)
        .unwrap()
        .map(|project| project.unwrap().path().join(format!("{session}.jsonl")))
        .find_map(|file| std::fs::read_to_string(file).ok())
        .expect("a transcript");
    assert!(
        transcript.contains(r#""Which colour?":"Green""#),
        "{}",
        place.story("asker")
    );
}

/// One task for each agent, in one repository, at once.
pub(crate) fn all_at_once(programs: &Programs) {
    let agents: Vec<&str> = programs
        .all()
        .iter()
        .map(|program| program.name.as_str())
        .collect();
    let place = Place::new(
        programs,
        &agents,
        "review: never\ngates: [{ name: ok, command: [test, -f, README.md] }]\n",
    );
    for agent in &agents {
        let name = named(agent);
        let prompt = format!("Please.\nstand-in: write {name}.txt={name}; commit add {name}");
        place.ok(&["create", name, "--agent", name, "-p", &prompt]);
    }
    for agent in &agents {
        place.reaches(named(agent), &["landed"]);
        let file = format!("{}.txt", named(agent));
        assert_eq!(place.repo.read(&file).trim_end(), named(agent));
    }
    let by_agent = place.ok(&["cost", "--by", "agent"]).stdout;
    for agent in &agents {
        assert!(by_agent.contains(named(agent)), "{by_agent}");
    }
}

/// Claude Code is told of a quick gate that fails while it still works, by the trusted base's rules:
/// no fix cycle is needed. A project that does not want that is not told.
pub(crate) fn told_before_it_stops(programs: &Programs) {
    let gate = "gates: [{ name: tidy, quick: true, command: \"test ! -e mess || { echo untidy-$WOODWARD_TASK; exit 1; }\" }]\n";
    let place = Place::new(programs, &["claude-code"], gate);
    place.api.set_script(
        "when untidy-neat\nshell git rm -q -f mess && git commit -qm tidied; write more.txt=more",
    );
    // What the agent makes of the rules in its own worktree is nobody's business.
    let prompt = "Please.\nstand-in: write mess=x; write woodward.yaml={}; commit add mess";
    place.ok(&["create", "neat", "-p", prompt, "--yolo"]);
    place.reaches("neat", &["review"]);
    let story = place.story("neat");
    let detail = place.show("neat");
    assert_eq!(detail.runs.len(), 1, "{story}");
    assert!(!place.worktree("neat").join("mess").exists(), "{story}");
    let logs = place.ok(&["logs", "neat"]).stdout;
    assert!(logs.contains("`tidy` fails"), "{logs}");
    // It was told once: what it left the second time was committed for it.
    assert_eq!(logs.matches("wanted to stop").count(), 1, "{logs}");
    assert!(place.worktree("neat").join("more.txt").is_file(), "{story}");

    let off = place.repo.read("woodward.yaml");
    let off = off.replace("passEnv:", "stopCheck: false, passEnv:");
    place
        .repo
        .commit("not before it stops", &[("woodward.yaml", &off)]);
    let prompt = "Please.\nstand-in: write a.txt=a";
    place.ok(&["create", "left", "-p", prompt]);
    place.reaches("left", &["review"]);
    let logs = place.ok(&["logs", "left"]).stdout;
    assert!(!logs.contains("wanted to stop"), "{logs}");
}
