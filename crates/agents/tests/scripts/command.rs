//! Programs that only a row describes, played by small shell scripts.

use anyhow::ensure;
use woodward_agents::adapters::command::{PromptBy, Row, UsageAt};
use woodward_agents::{Ending, Event, Kind, Letter, SessionId, Spec};
use woodward_testkit::agent_run::new_message_id;

use crate::stage::{Fact, Stage};

pub(crate) const FACTS: &[Fact] = &[
    ("command::a_prompt_comes_by_input_file_or_argument", prompts),
    (
        "command::its_conversation_and_model_are_named_by_its_row",
        named,
    ),
    ("command::what_is_said_meanwhile_resumes_it", follow_up),
    ("command::an_answer_reaches_it_while_it_waits", answered),
    (
        "command::an_answer_resumes_it_when_it_has_ended",
        asked_and_ended,
    ),
    ("command::figures_are_found_where_its_row_says", figures),
    ("command::an_interrupt_ends_what_ignores_it", interrupted),
    (
        "command::a_daemon_that_it_leaves_does_not_hold_the_turn",
        left_over,
    ),
    ("command::an_exit_and_last_words_are_its_ending", failed),
    (
        "command::what_can_t_be_talked_to_in_a_terminal_runs_without_one",
        headless,
    ),
    (
        "command::what_can_t_go_on_in_a_terminal_is_not_taken_over",
        not_taken_over,
    ),
];

fn stage(script: &str, row: Row) -> anyhow::Result<(Stage, Spec)> {
    let stage = Stage::new(Kind::Command)?;
    let mut spec = stage.spec(["sh", "-c", script, "agent"].map(String::from).to_vec());
    spec.command = row;
    Ok((stage, spec))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn prompts() -> anyhow::Result<()> {
    for (prompt, script) in [
        (PromptBy::Stdin, "cat > got"),
        (PromptBy::File, "cat \"$WOODWARD_PROMPT_FILE\" > got"),
        (PromptBy::Argument, "printf %s \"$1\" > got"),
    ] {
        let (stage, spec) = stage(
            script,
            Row {
                prompt,
                ..Row::default()
            },
        )?;
        let text = format!("do \"this\"\nand 'that' {}", "x".repeat(100_000));
        let ended = stage.run(&spec, &text)?.completed();
        ensure!(stage.read("got")? == text, "{prompt:?}");
        ensure!(ended.was_delivered(spec.messages[0]));
    }
    Ok(())
}

fn named() -> anyhow::Result<()> {
    let row = Row {
        session: words(&["--id={session}"]),
        resume: words(&["--again", "{session}"]),
        model: words(&["--model", "{model}"]),
        ..Row::default()
    };
    let (stage, mut spec) = stage("cat > /dev/null; echo \"$@\" > got", row)?;
    spec.model = Some(String::from("big"));
    spec.session = SessionId::New(String::from("s-1"));
    let ended = stage.run(&spec, "hello")?.completed();
    ensure!(stage.read("got")? == "--id=s-1 --model big\n");
    ensure!(ended.conversation.session.as_deref() == Some("s-1"));
    spec.session = SessionId::Resume(String::from("s-1"));
    let ended = stage.run(&spec, "hello")?.completed();
    ensure!(ended.conversation.session.as_deref() == Some("s-1"));
    ensure!(stage.read("got")? == "--again s-1 --model big\n");
    spec.command.resume.clear();
    let ended = stage.run(&spec, "hello")?;
    ensure!(matches!(ended.ending(), Ending::NoSuchSession { .. }));
    Ok(())
}

fn follow_up() -> anyhow::Result<()> {
    let row = Row {
        resume: words(&["--again", "{session}"]),
        session_line: Some(String::from("session ")),
        ..Row::default()
    };
    let script = "echo session s-7; while [ ! -e go ]; do sleep 0.1; done; echo \"$@\" $(cat)";
    let (stage, spec) = stage(script, row)?;
    let run = stage.start(&spec, "one")?;
    run.wait_for_event("session", |event| matches!(event, Event::Started { .. }));
    let (two, three) = (run.say("two"), run.say("three"));
    std::fs::write(stage.tree().join("go"), "")?;
    let ended = run.finish().completed();
    ensure!(ended.was_delivered(two) && ended.was_delivered(three));
    ensure!(ended.conversation.session.as_deref() == Some("s-7"));
    let last = &ended.conversation.last_text;
    ensure!(
        last.starts_with("--again s-7") && last.contains("three"),
        "{last}"
    );
    Ok(())
}

fn answered() -> anyhow::Result<()> {
    let row = Row {
        prompt: PromptBy::File,
        waiting_line: Some(String::from("QUESTION ")),
        ..Row::default()
    };
    let (stage, spec) = stage("echo QUESTION which; read answer; echo \"so $answer\"", row)?;
    let run = stage.start(&spec, "hello")?;
    let question = run.wait_for_questions(1).remove(0);
    ensure!(question.text == "which");
    let message = run.answer(&question, "that one");
    let ended = run.finish().completed();
    ensure!(ended.was_delivered(message) && ended.conversation.last_text == "so that one");
    Ok(())
}

fn asked_and_ended() -> anyhow::Result<()> {
    let row = Row {
        session: words(&["{session}"]),
        resume: words(&["again", "{session}"]),
        waiting_line: Some(String::from("QUESTION ")),
        ..Row::default()
    };
    let script = "case $1 in again) echo \"so $(cat)\";; *) echo QUESTION which; exit 3;; esac";
    let (stage, spec) = stage(script, row)?;
    let run = stage.start(&spec, "hello")?;
    let question = run.wait_for_questions(1).remove(0);
    let message = run.answer(&question, "that one");
    let ended = run.finish().completed();
    ensure!(
        ended.was_delivered(message) && ended.conversation.last_text == "so that one",
        "{:?}",
        ended.events
    );
    Ok(())
}

fn figures() -> anyhow::Result<()> {
    let usage = UsageAt {
        input: Some(String::from("/usage/in")),
        output: Some(String::from("/usage/out")),
        usd: Some(String::from("/usd")),
        per_step: true,
    };
    let row = Row {
        usage: Some(usage),
        ..Row::default()
    };
    let script = r#"cat > /dev/null; echo 'Welcome'; echo '{"usage":{"in":5,"out":2},"usd":0.25}'; echo '{"usage":{"in":1}}'; printf '{"usage":{"in":'"#;
    let (stage, spec) = stage(script, row)?;
    let used = stage.run(&spec, "hello")?.completed().conversation.used;
    ensure!(
        (used.input, used.output, used.micro_usd) == (6, 2, Some(250_000)),
        "{used:?}"
    );
    Ok(())
}

fn interrupted() -> anyhow::Result<()> {
    let script = "trap '' INT TERM; echo ready; while :; do sleep 1; done";
    let (stage, spec) = stage(script, Row::default())?;
    let run = stage.start(&spec, "hello")?;
    run.wait_for_event("word", |event| matches!(event, Event::Text { .. }));
    run.interrupt();
    let ended = run.finish();
    ensure!(
        *ended.ending() == Ending::Interrupted,
        "{:?}",
        ended.ending()
    );
    Ok(())
}

fn left_over() -> anyhow::Result<()> {
    // What it leaves keeps its output open, until the test removes the worktree.
    let script =
        "cat > /dev/null; (while [ -d \"$PWD\" ] && [ ! -e stop ]; do sleep 0.2; done) & echo done";
    let (stage, spec) = stage(script, Row::default())?;
    let ended = stage.run(&spec, "hello")?.completed();
    std::fs::write(stage.tree().join("stop"), "")?;
    ensure!(ended.conversation.last_text == "done");
    Ok(())
}

fn failed() -> anyhow::Result<()> {
    for (script, is) in [
        (
            "echo 'Error: 429 Too Many Requests' >&2; exit 1",
            (|e| matches!(e, Ending::RateLimited { .. })) as fn(&Ending) -> bool,
        ),
        ("echo 'error: unexpected argument --x' >&2; exit 2", |e| {
            matches!(e, Ending::Unfit { .. })
        }),
        ("exit 3", |e| matches!(e, Ending::Crashed { .. })),
        ("kill -9 $$", |e| matches!(e, Ending::Crashed { .. })),
    ] {
        let (stage, spec) = stage(script, Row::default())?;
        let ended = stage.run(&spec, "hello")?;
        ensure!(is(ended.ending()), "{script}: {:?}", ended.ending());
    }
    Ok(())
}

fn headless() -> anyhow::Result<()> {
    // Played by a script: a row that reads its prompt, and a program that Woodward knows.
    for kind in [Kind::Command, Kind::Amp] {
        let stage = Stage::new(kind)?;
        let line = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done"}"#;
        let script = format!("cat > got; echo '{line}'");
        let mut spec = stage.spec(["sh", "-c", &script, "agent"].map(String::from).to_vec());
        spec.terminal = true;
        let ended = stage.run(&spec, "the whole prompt")?.completed();
        ensure!(stage.read("got")? == "the whole prompt", "{kind:?}");
        ensure!(ended.was_delivered(spec.messages[0]) && !ended.conversation.terminal);
        ensure!(
            ended.has_event(
                |event| matches!(event, Event::Note { text } if text.contains("without a terminal"))
            ),
            "{:?}",
            ended.events
        );
    }
    Ok(())
}

fn not_taken_over() -> anyhow::Result<()> {
    let rows = [
        (
            Row {
                session: words(&["{session}"]),
                resume: words(&["again", "{session}"]),
                ..Row::default()
            },
            "from its input",
        ),
        (
            Row {
                prompt: PromptBy::File,
                session: words(&["{session}"]),
                ..Row::default()
            },
            "no `resume`",
        ),
    ];
    for (row, why) in rows {
        let script = "echo ready; while [ ! -e go ]; do sleep 0.1; done; echo done";
        let (stage, spec) = stage(script, row)?;
        let run = stage.start(&spec, "hello")?;
        run.wait_for_event("word", |event| matches!(event, Event::Text { .. }));
        let id = new_message_id();
        run.post(&Letter::Takeover { id });
        run.wait_for_event(
            "refusal",
            |event| matches!(event, Event::Rejected { message, note } if *message == id && note.contains(why)),
        );
        std::fs::write(stage.tree().join("go"), "")?;
        let ended = run.finish().completed();
        ensure!(
            ended.conversation.last_text.ends_with("done"),
            "it was left alone"
        );
    }
    Ok(())
}
