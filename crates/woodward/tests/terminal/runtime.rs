//! `runtime: tmux` and `attach --takeover` with a real daemon and the real programs.

use rustix::process::{Pid, Signal, kill_process};
use woodward_testkit::TestRepo;
use woodward_testkit::patience::until;

use crate::office::{Agent, CLAUDE, CODEX, Office};
use crate::person::long_text;

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

/// A dialog before the program starts is shown as a question; a person settles it in the terminal.
fn a_startup_dialog_is_settled_in_the_terminal(
    agent: &'static Agent,
    sees: &str,
    key: &str,
    chosen: &str,
) {
    let office = Office::unsettled(agent, "tmux");
    office.ok(&["create", "one", "-p", "stand-in: write a.txt=x; say First."]);
    office.reaches("one", "waiting");
    // What is said meanwhile is refused: it could answer the dialog.
    let refused = office.run(&["prompt", "one", "Hurry up."]);
    assert_ne!(refused.code, 0, "{refused:?}");
    refused.hinted("answer");
    let ada = office.person("ada", "attach one");
    ada.until_sees(sees);
    ada.chooses(key, chosen);
    ada.presses("Enter");
    let file = office.worktree("one").join("a.txt");
    until("it works", || file.exists());
    ada.presses("C-q");
    ada.until_sees("LEFT 0");
    office.reaches("one", "review");
}

#[test]
fn a_startup_dialog_of_claude_code_is_settled_in_the_terminal() {
    let (sees, chosen) = ("Yes, I trust this folder", "❯ Yes, I trust");
    a_startup_dialog_is_settled_in_the_terminal(&CLAUDE, sees, "Down", chosen);
}

#[test]
fn a_startup_dialog_of_codex_is_settled_in_the_terminal() {
    let (sees, chosen) = ("Trust this folder?", "› 1. Trust and continue");
    a_startup_dialog_is_settled_in_the_terminal(&CODEX, sees, "Up", chosen);
}

/// A dialog before the program starts is answered with `woodward answer`.
fn a_startup_dialog_is_answered(agent: &'static Agent, text: &str, choices: &[&str], yes: &str) {
    let office = Office::unsettled(agent, "tmux");
    office.ok(&["create", "one", "-p", "stand-in: write a.txt=x; say First."]);
    office.reaches("one", "waiting");
    let question = office.show("one").question.expect("a question");
    assert!(question.text.contains(text), "{question:?}");
    assert_eq!(question.choices, choices);
    let status = office.ok(&["status"]).stdout;
    assert!(status.contains("woodward answer one"), "{status}");
    let refused = office.run(&["answer", "one", "perhaps"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    office.ok(&["answer", "one", yes]);
    office.reaches("one", "review");
    assert!(office.worktree("one").join("a.txt").exists());
    let logs = office.ok(&["logs", "one"]).stdout;
    assert!(logs.contains(&format!("! answered: {yes}")), "{logs}");
}

#[test]
fn a_startup_dialog_of_claude_code_is_answered() {
    let choices = ["No, exit", "Yes, I trust this folder"];
    a_startup_dialog_is_answered(&CLAUDE, "Quick safety check", &choices, "yes");
}

#[test]
fn a_startup_dialog_of_codex_is_answered() {
    let choices = ["Trust and continue", "Quit"];
    a_startup_dialog_is_answered(&CODEX, "Trust this folder?", &choices, "Trust and continue");
}

#[test]
fn a_task_whose_startup_dialog_is_declined_needs_a_person() {
    let office = Office::unsettled(&CLAUDE, "tmux");
    office.ok(&["create", "one", "-p", "stand-in: say First."]);
    office.reaches("one", "waiting");
    let answered = office.ok(&["answer", "one", "No, exit"]).stdout;
    assert!(answered.contains("one has its answer"), "{answered}");
    office.reaches("one", "failed");
    let shown = office.ok(&["show", "one"]).stdout;
    assert!(shown.contains("`No, exit` was chosen"), "{shown}");
}

/// How far a task gets whose agent's program asks whether to trust its worktree.
fn create_untrusted(office: &Office, name: &str, reaches: &str) {
    let prompt = format!("stand-in: write {name}.txt=x; say Done.");
    office.ok(&["create", name, "-p", &prompt]);
    office.reaches(name, reaches);
}

#[test]
fn an_agreement_at_init_settles_the_trust_dialog_of_claude_code_until_it_is_taken_back() {
    let office = Office::unsettled(&CLAUDE, "tmux");
    let agreed = office.ok(&["init", "--trust-worktrees"]).stdout;
    assert!(
        agreed.contains("trust: Woodward confirms that agents trust"),
        "{agreed}"
    );
    create_untrusted(&office, "one", "review");
    assert!(office.worktree("one").join("one.txt").exists());
    let logs = office.ok(&["logs", "one"]).stdout;
    let chose = "Woodward chose `Yes, I trust this folder`, as agreed";
    assert!(logs.contains(chose), "{logs}");
    let timeline = office.ok(&["timeline", "one"]).stdout;
    assert!(!timeline.contains("asks"), "{timeline}");
    let taken_back = office.ok(&["init", "--no-trust-worktrees"]).stdout;
    assert!(taken_back.contains("a task waits for you"), "{taken_back}");
    // Claude Code remembers for the whole repository what was chosen.
    office.forget_trust();
    create_untrusted(&office, "two", "waiting");
    let question = office.show("two").question.expect("a question");
    assert!(question.text.contains("Quick safety check"), "{question:?}");
    office.ok(&["cancel", "two"]);
}

#[test]
fn an_agreement_for_one_repository_does_not_count_for_another() {
    let office = Office::unsettled(&CLAUDE, "tmux");
    let other = TestRepo::with(&[("README.md", "Another.\n")]);
    let agreed = office
        .daemon
        .run(other.root(), &["init", "--no-run", "--trust-worktrees"]);
    assert_eq!(agreed.code, 0, "{agreed:?}");
    create_untrusted(&office, "one", "waiting");
    office.ok(&["cancel", "one"]);
}

#[test]
fn a_theme_dialog_of_claude_code_keeps_the_default_and_its_notice_waits() {
    let office = Office::first_start_of_claude();
    office.ok(&["create", "one", "-p", "stand-in: say First."]);
    office.reaches("one", "waiting");
    let question = office.show("one").question.expect("a question");
    assert!(question.text.contains("Security notes"), "{question:?}");
    assert_eq!(question.choices, ["continue"]);
    office.ok(&["answer", "one", "continue"]);
    // Trust was not agreed to: it is the next question.
    office.comes_true("one", "it asks for trust", |detail| {
        let question = detail.question.as_ref();
        question.is_some_and(|question| question.text.contains("Quick safety check"))
    });
    let logs = office.ok(&["logs", "one"]).stdout;
    assert!(logs.contains("Woodward kept `Dark mode`"), "{logs}");
    office.ok(&["cancel", "one"]);
}

#[test]
fn a_question_in_a_terminal_is_answered() {
    let office = Office::with(&CLAUDE, "tmux");
    let prompt = "stand-in: ask Which colour?|Red|Blue; write a.txt=x; say Done.";
    office.ok(&["create", "one", "-p", prompt]);
    office.reaches("one", "waiting");
    office.ok(&["answer", "one", "2"]);
    office
        .api
        .expect("the answer", |request| request.tool_says("Blue"));
    office.reaches("one", "review");
    assert!(office.worktree("one").join("a.txt").exists());
}

/// A question that can be answered only in the terminal: `answer` is refused, and nothing of it
/// reaches the agent later.
fn an_answer_is_refused(agent: &'static Agent, ask: &str) {
    let office = Office::with(agent, "tmux");
    let prompt = format!("stand-in: {ask}; say Done.");
    office.ok(&["create", "one", "-p", &prompt]);
    office.reaches("one", "waiting");
    let refused = office.run(&["answer", "one", "Blue"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    refused.hinted("attach one");
    let status = office.ok(&["status"]).stdout;
    assert!(status.contains("woodward attach one"), "{status}");
    let detail = office.show("one");
    assert_eq!(detail.task.state.as_str(), "waiting");
    assert!(detail.messages.is_empty(), "{:?}", detail.messages);
    office.ok(&["cancel", "one"]);
}

#[test]
fn several_questions_at_once_are_answered_in_the_terminal_of_claude_code() {
    let question = |text: &str| {
        format!(
            "{{\"question\":\"{text}\",\"header\":\"H\",\"multiSelect\":false,\"options\":[\
             {{\"label\":\"Red\",\"description\":\"r\"}},{{\"label\":\"Blue\",\"description\":\"b\"}}]}}"
        )
    };
    let ask = format!(
        "call AskUserQuestion {{\"questions\":[{},{}]}}",
        question("Which colour?"),
        question("Which other colour?")
    );
    an_answer_is_refused(&CLAUDE, &ask);
}

#[test]
fn a_question_of_codex_is_answered_in_its_terminal() {
    an_answer_is_refused(&CODEX, "ask Which colour?|Red|Blue");
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
