//! `runtime: tmux` and `attach --takeover` with a real daemon and the real programs.

use rustix::process::{Pid, Signal, kill_process};
use woodward_testkit::patience::until;

use crate::office::{Agent, CLAUDE, CODEX, Office};
use crate::scene::long_text;

/// Whether the task's last message has come so far.
fn delivered(office: &Office, task: &str, delivery: &str) {
    office.comes_true(task, delivery, |detail| {
        detail
            .messages
            .last()
            .is_some_and(|last| last.delivery == delivery)
    });
}

/// A person joins, types and leaves; meanwhile 600 lines arrive although she is in copy mode.
fn a_person_joins(agent: &'static Agent) {
    let office = Office::with(agent, "tmux");
    let worktree = office.worktree("one");
    // It waits for a person, however long she takes.
    office.ok(&["create", "one", "-p", &office.asking("say First.")]);
    office.reaches("one", "waiting");
    let ada = office.person("ada", "attach one");
    ada.until_sees(agent.dialog);
    ada.types(agent.yes);
    office.turns("one", 1);
    assert!(office.outside().exists());
    ada.types("stand-in: write a.txt=by hand; say By hand.");
    ada.until_sees("say By hand.");
    ada.presses("Enter");
    office.turns("one", 2);
    assert!(worktree.join("a.txt").exists(), "what she typed is done");
    // Its session is on a server of our own.
    let session = office.session();
    assert!(session.starts_with("=one-"), "{session}");
    office.tmux(&["copy-mode", "-t", &session]);
    let mode = office.tmux(&["display-message", "-p", "-t", &session, "#{pane_in_mode}"]);
    assert_eq!(mode.trim(), "1");
    let text = long_text("stand-in: write b.txt=second; say Second.");
    office.ok(&["prompt", "one", &text]);
    delivered(&office, "one", "accepted");
    office
        .api
        .expect("every word", |request| request.user_says(text.trim()));
    until("it did it", || worktree.join("b.txt").exists());
    ada.presses("C-q");
    ada.until_sees("LEFT 0");
    office.reaches("one", "review");
    assert_eq!(office.show("one").runs.len(), 1, "one run did it all");
}

#[test]
fn a_person_joins_claude_code_and_a_long_message_arrives_in_copy_mode() {
    a_person_joins(&CLAUDE);
}

#[test]
fn a_person_joins_codex_and_a_long_message_arrives_in_copy_mode() {
    a_person_joins(&CODEX);
}

/// A dialog at the start is for a person; what is said meanwhile waits until it is gone.
fn a_dialog_swallows_nothing(agent: &'static Agent, sees: &str, key: &str, chosen: &str) {
    let office = Office::unsettled(agent, "tmux");
    office.ok(&["create", "one", "-p", "stand-in: say First."]);
    office.reaches("one", "working");
    let ada = office.person("ada", "attach one");
    ada.until_sees(sees);
    let text = long_text("stand-in: write b.txt=second; say Second.");
    office.ok(&["prompt", "one", &text]);
    delivered(&office, "one", "stored");
    ada.chooses(key, chosen);
    assert_eq!(office.show("one").messages[0].delivery, "stored");
    ada.presses("Enter");
    delivered(&office, "one", "accepted");
    office
        .api
        .expect("every word", |request| request.user_says(text.trim()));
    let file = office.worktree("one").join("b.txt");
    until("it did it", || file.exists());
    ada.presses("C-q");
    ada.until_sees("LEFT 0");
    office.reaches("one", "review");
}

#[test]
fn a_dialog_at_the_start_of_claude_code_swallows_nothing() {
    let (sees, chosen) = ("Yes, I trust this folder", "❯ Yes, I trust");
    a_dialog_swallows_nothing(&CLAUDE, sees, "Down", chosen);
}

#[test]
fn a_dialog_at_the_start_of_codex_swallows_nothing() {
    let (sees, chosen) = ("Trust this folder?", "› 1. Trust and continue");
    a_dialog_swallows_nothing(&CODEX, sees, "Up", chosen);
}

#[test]
fn a_message_that_was_typed_and_not_taken_is_injected() {
    let office = Office::with(&CLAUDE, "tmux");
    office.ok(&["create", "one", "-p", &office.asking("say First.")]);
    office.reaches("one", "waiting");
    let ada = office.person("ada", "attach one");
    ada.until_sees(CLAUDE.dialog);
    ada.types(CLAUDE.yes);
    office.turns("one", 1);
    // A program that does not read: what is typed waits in its terminal.
    let session = office.show("one").runs[0].session.clone().unwrap();
    let program = program_of(&office, &session);
    kill_process(program, Signal::STOP).unwrap();
    let text = "stand-in: write b.txt=second; say Second.";
    office.ok(&["prompt", "one", text]);
    delivered(&office, "one", "injected");
    let shown = office.ok(&["show", "one"]).stdout;
    kill_process(program, Signal::CONT).unwrap();
    assert!(shown.contains("(injected): stand-in"), "{shown}");
    delivered(&office, "one", "accepted");
    let logs = office.ok(&["logs", "one"]).stdout;
    let typed = logs.find("your message was typed");
    let taken = logs.rfind("it has your message");
    assert!(typed.is_some() && typed < taken, "{logs}");
    ada.presses("C-q");
    office.reaches("one", "review");
}

/// The agent program of a conversation.
fn program_of(office: &Office, session: &str) -> Pid {
    let of_session = |pid: &Pid| {
        let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
        let line = String::from_utf8_lossy(&line.unwrap_or_default()).into_owned();
        line.contains(session) && line.contains("--settings")
    };
    let all = office.daemon.processes();
    all.into_iter().find(of_session).expect("it runs")
}

/// An agent without a terminal is interrupted, and goes on in one, in the same conversation.
fn a_person_takes_over(agent: &'static Agent) {
    let office = Office::with(agent, "process");
    let prompt = "Remember the word walnut.\nstand-in: slow 600; say Late.";
    office.ok(&["create", "one", "-p", prompt]);
    office
        .api
        .expect("it works", |request| request.user_says("walnut"));
    office.comes_true("one", "it has a conversation", |detail| {
        detail.runs.last().is_some_and(|run| run.session.is_some())
    });
    let session = office.show("one").runs[0].session.clone();
    let ada = office.person("ada", "attach one --takeover");
    ada.until_sees("walnut");
    ada.types("stand-in: write b.txt=second; say By hand.");
    ada.until_sees("say By hand.");
    ada.presses("Enter");
    let file = office.worktree("one").join("b.txt");
    until("it did it", || file.exists());
    // The program itself remembers what was said before.
    office.api.expect("one conversation", |request| {
        request.user_says("By hand.") && request.user_says("walnut")
    });
    ada.presses("C-q");
    ada.until_sees("LEFT 0");
    office.reaches("one", "review");
    let detail = office.show("one");
    assert_eq!(detail.runs.len(), 1, "{detail:?}");
    assert_eq!(detail.runs[0].session, session);
}

#[test]
fn a_headless_claude_code_is_taken_over() {
    a_person_takes_over(&CLAUDE);
}

#[test]
fn a_headless_codex_is_taken_over() {
    a_person_takes_over(&CODEX);
}
