//! Claude Code, for real.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use woodward_agents::permission::{Mode, Request};
use woodward_agents::{Ending, Event, Kind, QuickGate, SessionId, Spec, StopCheck};
use woodward_testkit::agent_run::{new_message_id, now};

use crate::real::Real;
use crate::stage::Fact;

pub(crate) const FACTS: &[Fact] = &[
    ("claude::it_writes_commits_and_says_what_that_cost", writes),
    ("claude::a_follow_up_is_steered_into_the_turn", steered),
    ("claude::a_conversation_is_resumed_and_paid_once", resumed),
    ("claude::an_id_that_is_in_use_is_resumed", taken),
    ("claude::an_unknown_conversation_is_said_to_be_so", unknown),
    ("claude::an_allowed_permission_is_used", allowed),
    ("claude::a_denied_permission_is_not", denied),
    ("claude::settings_in_the_worktree_allow_nothing", settings),
    ("claude::two_questions_are_open_at_once", two),
    ("claude::an_answer_reaches_the_agent", answered),
    ("claude::an_interrupt_ends_the_turn_only", interrupted),
    ("claude::an_interrupt_withdraws_what_was_asked", withdrawn),
    ("claude::each_failure_is_its_own_ending", failures),
    ("claude::a_limit_says_when_it_is_lifted", limited),
    ("claude::a_missing_login_is_said_to_be_so", logged_out),
    ("claude::its_own_limits_are_endings", limits),
    (
        "claude::it_commits_what_it_would_have_left_behind",
        leaves_nothing,
    ),
    ("claude::it_is_told_of_a_quick_gate_once", told_once),
    ("claude::an_odd_worktree_stops_as_ever", odd_stops),
    ("claude::an_option_it_does_not_have_makes_it_unfit", unfit),
];

fn stage() -> anyhow::Result<(Real, Spec)> {
    let mut stage = Real::new(Kind::ClaudeCode, "claude-code")?;
    let url = stage.api.url();
    stage.set("ANTHROPIC_BASE_URL", url);
    stage.set("ANTHROPIC_API_KEY", "sk-ant-stand-in-0123456789-0123456789");
    stage.set("CLAUDE_CODE_MAX_RETRIES", "0");
    let spec = stage.spec(stage.program.clone());
    Ok((stage, spec))
}

fn writes() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let ended = stage
        .run(&spec, "stand-in: write a.txt=hello; commit add a")?
        .completed();
    ensure!(stage.git(&["log", "-1", "--format=%s"]) == "add a");
    ensure!(
        stage.git(&["status", "--porcelain"]).is_empty(),
        "it leaves nothing"
    );
    ensure!(stage.read("a.txt")?.trim_end() == "hello");
    let SessionId::New(id) = &spec.session else {
        anyhow::bail!("a new conversation")
    };
    ensure!(ended.conversation.session.as_ref() == Some(id));
    ensure!(
        ended.was_delivered(spec.messages[0]),
        "the prompt settles its messages"
    );
    ensure!(
        ended.conversation.tools == 2,
        "{}",
        ended.conversation.tools
    );
    ensure!(ended.conversation.used.output > 0 && ended.conversation.used.micro_usd > Some(0));
    ensure!(ended.has_event(|event| matches!(event, Event::ToolEnded { ok: true, .. })));
    ensure!(
        !stage.home().join(".claude.json").exists() && !stage.home().join(".claude").exists(),
        "its configuration is ours"
    );
    Ok(())
}

fn steered() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    spec.rules.mode = Mode::Yolo;
    let go = stage.tree().join("go");
    let wait = format!(
        "while [ ! -e {} ]\\; do read -t 0.1 x < /dev/zero || true\\; done",
        go.display()
    );
    let run = stage.start(&spec, &format!("stand-in: shell {wait}; say waited"))?;
    run.wait_for_event("tool", |event| matches!(event, Event::Tool { .. }));
    let message = run.say("stand-in: write b.txt=more");
    // The program has it, the agent has not: nothing is accepted yet.
    stage
        .api
        .expect("the first turn", |request| request.user_says("go"));
    std::fs::write(&go, "")?;
    let ended = run.finish().completed();
    ensure!(
        ended.was_delivered(message),
        "{:?}",
        ended.conversation.delivered
    );
    ensure!(stage.read("b.txt")?.trim_end() == "more");
    Ok(())
}

fn resumed() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    let first = stage.run(&spec, "stand-in: write a.txt=one")?.completed();
    spec.session = SessionId::Resume(first.conversation.session.clone().context("a session")?);
    spec.used_before = first.conversation.used_in_all().clone();
    spec.messages = vec![new_message_id()];
    let second = stage.run(&spec, "stand-in: write b.txt=two")?.completed();
    ensure!(second.conversation.session == first.conversation.session);
    ensure!(second.was_delivered(spec.messages[0]));
    ensure!(
        stage
            .api
            .find(|request| request.user_says("write a.txt=one")
                && request.user_says("write b.txt=two"))
            .is_some(),
        "the agent remembers"
    );
    let (before, after) = (&first.conversation.used, &second.conversation.used);
    ensure!(
        before.micro_usd == after.micro_usd && before.output == after.output,
        "two equal runs cost the same: {before:?} {after:?}"
    );
    Ok(())
}

fn taken() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    stage.run(&spec, "stand-in: say one")?.completed();
    spec.messages = vec![new_message_id()];
    let again = stage.run(&spec, "stand-in: write b.txt=two")?.completed();
    ensure!(again.was_delivered(spec.messages[0]));
    ensure!(stage.read("b.txt").is_ok());
    Ok(())
}

fn unknown() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    spec.session = SessionId::Resume(new_message_id().to_string());
    let ended = stage.run(&spec, "stand-in: say hello")?;
    ensure!(
        matches!(ended.ending(), Ending::NoSuchSession { .. }),
        "{:?}",
        ended.ending()
    );
    ensure!(
        !ended.was_delivered(spec.messages[0]),
        "nobody has read the prompt"
    );
    Ok(())
}

fn allowed() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let run = stage.start(&spec, "stand-in: shell touch ../outside")?;
    let question = run.wait_for_questions(1).remove(0);
    ensure!(
        matches!(&question.permission, Some(Request::Run { command, .. }) if command == "touch ../outside"),
        "{question:?}"
    );
    let outside = stage.tree().join("../outside");
    ensure!(!outside.exists());
    let message = run.answer(&question, "allow");
    let ended = run.finish().completed();
    ensure!(outside.exists());
    ensure!(ended.was_delivered(message) && ended.conversation.pending.is_empty());
    Ok(())
}

fn denied() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let run = stage.start(&spec, "stand-in: shell touch ../outside")?;
    let question = run.wait_for_questions(1).remove(0);
    let message = run.answer(&question, "use another place");
    let ended = run.finish().completed();
    ensure!(!stage.tree().join("../outside").exists());
    ensure!(ended.was_delivered(message));
    let told =
        |request: &woodward_testkit::model_api::Recorded| request.tool_says("use another place");
    ensure!(stage.api.find(told).is_some(), "the agent knows why");
    Ok(())
}

fn settings() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let own = stage.tree().join(".claude");
    std::fs::create_dir(&own)?;
    std::fs::write(
        own.join("settings.json"),
        r#"{"permissions":{"allow":["Bash","Bash(touch *)"],"additionalDirectories":["/"]}}"#,
    )?;
    let run = stage.start(&spec, "stand-in: shell touch ../outside")?;
    let question = run.wait_for_questions(1).remove(0);
    run.answer(&question, "deny");
    run.finish().completed();
    ensure!(!stage.tree().join("../outside").exists());
    Ok(())
}

fn two() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let fetch =
        |page: &str| format!(r#"call WebFetch {{"url":"http://127.0.0.1:1/{page}","prompt":"x"}}"#);
    let prompt = format!("stand-in: {}; with {}", fetch("one"), fetch("two"));
    let run = stage.start(&spec, &prompt)?;
    let open = run.wait_for_questions(2);
    let second = run.answer(&open[1], "not two");
    run.wait_for_event(
        "answer",
        |event| matches!(event, Event::Answered { question, .. } if *question == open[1].id),
    );
    ensure!(run.conversation().pending == open[..1]);
    let first = run.answer(&open[0], "not one");
    let ended = run.finish().completed();
    ensure!(ended.was_delivered(first) && ended.was_delivered(second));
    let told = |request: &woodward_testkit::model_api::Recorded| {
        request.tool_says("not one") && request.tool_says("not two")
    };
    ensure!(stage.api.find(told).is_some());
    Ok(())
}

fn answered() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let run = stage.start(&spec, "stand-in: ask Which colour?|Red|Blue; say thanks")?;
    let question = run.wait_for_questions(1).remove(0);
    ensure!(question.text == "Which colour?", "{question:?}");
    ensure!(question.choices == ["Red", "Blue"] && question.permission.is_none());
    let message = run.answer(&question, "Blue");
    let ended = run.finish().completed();
    ensure!(ended.was_delivered(message));
    ensure!(ended.conversation.last_text == "thanks");
    ensure!(
        stage
            .api
            .find(|request| request.tool_says("Blue"))
            .is_some()
    );
    Ok(())
}

fn interrupted() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    spec.rules.mode = Mode::Yolo;
    let run = stage.start(
        &spec,
        "stand-in: shell tail -f /dev/null; write a.txt=never",
    )?;
    run.wait_for_event("tool", |event| matches!(event, Event::Tool { .. }));
    run.interrupt();
    let ended = run.finish();
    ensure!(
        *ended.ending() == Ending::Interrupted,
        "{:?}",
        ended.ending()
    );
    ensure!(stage.read("a.txt").is_err());
    spec.session = SessionId::Resume(ended.conversation.session.context("a session")?);
    stage.run(&spec, "stand-in: write a.txt=later")?.completed();
    ensure!(stage.read("a.txt")?.trim_end() == "later");
    Ok(())
}

fn withdrawn() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let run = stage.start(&spec, "stand-in: shell touch ../outside")?;
    let question = run.wait_for_questions(1).remove(0);
    run.interrupt();
    let ended = run.finish();
    ensure!(
        *ended.ending() == Ending::Interrupted,
        "{:?}",
        ended.ending()
    );
    let place = |is: &dyn Fn(&Event) -> bool| ended.events.iter().position(is);
    let withdrawn = place(&|event| {
        *event
            == Event::Withdrawn {
                question: question.id,
            }
    });
    let over = place(&|event| matches!(event, Event::TurnEnded(_)));
    ensure!(
        withdrawn.is_some() && withdrawn < over,
        "{:?}",
        ended.events
    );
    ensure!(ended.conversation.pending.is_empty());
    Ok(())
}

fn failures() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    for (fault, is) in [
        (
            "401",
            (|e| matches!(e, Ending::LoggedOut { .. })) as fn(&Ending) -> bool,
        ),
        ("429", |e| matches!(e, Ending::RateLimited { .. })),
        ("500", |e| {
            matches!(
                e,
                Ending::ApiFailed {
                    status: Some(500),
                    ..
                }
            )
        }),
        ("529", |e| {
            matches!(
                e,
                Ending::ApiFailed {
                    status: Some(529),
                    ..
                }
            )
        }),
        ("overflow", |e| *e == Ending::ContextFull),
    ] {
        spec.session = SessionId::New(new_message_id().to_string());
        let ended = stage.run(&spec, &format!("stand-in: fault {fault}"))?;
        ensure!(is(ended.ending()), "{fault}: {:?}", ended.ending());
    }
    Ok(())
}

fn limited() -> anyhow::Result<()> {
    let (mut stage, spec) = stage()?;
    // Only people with a subscription are told when.
    stage.unset("ANTHROPIC_API_KEY");
    stage.set(
        "CLAUDE_CODE_OAUTH_TOKEN",
        format!("sk-ant-oat01-{}", "stand-in-".repeat(9)),
    );
    let from = now().0;
    let ended = stage.run(&spec, "stand-in: fault 429 reset=3600 retry=no")?;
    let Ending::RateLimited {
        until: Some(until), ..
    } = ended.ending()
    else {
        anyhow::bail!("{:?}\n{:?}", ended.ending(), ended.events)
    };
    let hour = Duration::from_secs(3_600).as_millis() as i64;
    ensure!(
        (from + hour - 2_000..=now().0 + hour).contains(&until.0),
        "{until:?}"
    );
    Ok(())
}

fn logged_out() -> anyhow::Result<()> {
    let (mut stage, spec) = stage()?;
    stage.unset("ANTHROPIC_API_KEY");
    let ended = stage.run(&spec, "stand-in: say hello")?;
    ensure!(
        matches!(ended.ending(), Ending::LoggedOut { note } if note.contains("Not logged in")),
        "{:?}",
        ended.ending()
    );
    Ok(())
}

fn limits() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    for (args, ending) in [
        (["--max-turns", "1"], Ending::TurnsSpent),
        (["--max-budget-usd", "0.0000001"], Ending::BudgetSpent),
    ] {
        spec.session = SessionId::New(new_message_id().to_string());
        spec.args = args.map(String::from).to_vec();
        let ended = stage.run(&spec, "stand-in: shell true; shell pwd")?;
        ensure!(*ended.ending() == ending, "{:?}", ended.ending());
        ensure!(ended.conversation.used.output > 0, "what was used is known");
    }
    Ok(())
}

fn unfit() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    spec.args = vec![String::from("--no-such-option")];
    let ended = stage.run(&spec, "stand-in: say hello")?;
    ensure!(
        matches!(ended.ending(), Ending::Unfit { note } if note.contains("--no-such-option")),
        "{:?}",
        ended.ending()
    );
    Ok(())
}

/// What is looked at before it stops.
fn checked(stage: &Real, spec: &mut Spec, gates: &[(&str, &str)]) {
    let gate = |&(name, command): &(&str, &str)| QuickGate {
        name: name.to_owned(),
        command: ["sh", "-c", command].map(str::to_owned).into(),
        shown: command.to_owned(),
        paths: Vec::new(),
        needs: Vec::new(),
        env: Vec::new(),
        timeout_ms: 60_000,
    };
    spec.stop = Some(StopCheck {
        worktree: stage.tree(),
        base: stage.git(&["rev-parse", "HEAD"]),
        gates: gates.iter().map(gate).collect(),
        env: vec!["PATH".into(), "HOME".into()],
    });
}

/// How often the model was told something before it stopped. The program says it in two ways each time.
fn times_told(stage: &Real) -> usize {
    let requests = stage.api.requests();
    let said = |text: &&str| text.starts_with("Stop hook feedback:");
    let times = requests
        .iter()
        .map(|one| one.conversation.user_texts().filter(said).count());
    times.max().unwrap_or(0)
}

fn is_note(event: &Event, words: &str) -> bool {
    matches!(event, Event::Note { text } if text.contains(words))
}

fn leaves_nothing() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    checked(&stage, &mut spec, &[]);
    stage
        .api
        .set_script("when has uncommitted work\ncommit told to");
    let ended = stage
        .run(&spec, "stand-in: write a.txt=hello; say All done")?
        .completed();
    ensure!(stage.git(&["log", "-1", "--format=%s"]) == "told to");
    ensure!(stage.git(&["status", "--porcelain"]).is_empty());
    ensure!(times_told(&stage) == 1);
    ensure!(
        ended.has_event(|event| is_note(event, "was told: uncommitted work in 1 file")),
        "{:?}",
        ended.events
    );
    // One that leaves nothing hears nothing.
    let (stage, mut spec) = self::stage()?;
    checked(&stage, &mut spec, &[]);
    let ended = stage
        .run(&spec, "stand-in: write a.txt=hello; commit add a")?
        .completed();
    ensure!(times_told(&stage) == 0);
    ensure!(!ended.has_event(|event| is_note(event, "was told")));
    Ok(())
}

fn told_once() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    let gates = [
        ("good", "test ! -e bad || { echo 'found: bad'; exit 1; }"),
        ("never", "echo 'never passes'; exit 1"),
    ];
    checked(&stage, &mut spec, &gates);
    spec.rules.mode = Mode::Yolo;
    stage
        .api
        .set_script("when found: bad\nshell git rm -q bad && git commit -qm repaired");
    let ended = stage
        .run(&spec, "stand-in: write bad=x; commit add it")?
        .completed();
    ensure!(
        stage.git(&["log", "-1", "--format=%s"]) == "repaired",
        "{:?}",
        ended.events
    );
    ensure!(!stage.tree().join("bad").exists());
    // Told once, and let go although one still fails.
    ensure!(times_told(&stage) == 1);
    let notes = ended
        .events
        .iter()
        .filter(|event| is_note(event, "`good` fails, `never` fails"));
    ensure!(notes.count() == 1, "{:?}", ended.events);
    Ok(())
}

fn odd_stops() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    spec.rules.mode = Mode::Yolo;
    checked(&stage, &mut spec, &[("never", "exit 1")]);
    let ended = stage
        .run(&spec, "stand-in: write a.txt=x; shell rm .git")?
        .completed();
    ensure!(times_told(&stage) == 0);
    ensure!(
        ended.has_event(|event| is_note(event, "not looked at")),
        "{:?}",
        ended.events
    );
    Ok(())
}
