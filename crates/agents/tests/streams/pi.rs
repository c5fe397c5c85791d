//! Pi, for real.

use anyhow::{Context as _, ensure};
use woodward_agents::{Ending, Event, Kind, SessionId, Spec};
use woodward_testkit::agent_run::new_message_id;

use crate::real::Real;
use crate::stage::Fact;

pub(crate) const FACTS: &[Fact] = &[
    ("pi::it_writes_commits_and_says_what_that_cost", writes),
    ("pi::what_is_said_meanwhile_is_the_next_turn", follow_up),
    ("pi::a_conversation_is_resumed", resumed),
    ("pi::an_unknown_conversation_is_said_to_be_so", unknown),
    ("pi::an_interrupt_ends_the_turn", interrupted),
    (
        "pi::a_failure_is_an_ending_though_it_exits_with_0",
        failures,
    ),
    ("pi::an_option_it_does_not_have_is_named", unfit),
];

fn stage() -> anyhow::Result<(Real, Spec)> {
    let stage = Real::new(Kind::Pi, "pi")?;
    let config = stage.home().join(".pi/agent");
    std::fs::create_dir_all(&config)?;
    let models = format!(
        r#"{{"providers":{{"stand-in":{{"baseUrl":"{}","apiKey":"sk-stand-in-0123456789","api":"openai-completions","models":[{{"id":"model","name":"model","reasoning":false,"input":["text"],"cost":{{"input":1,"output":2,"cacheRead":0.1,"cacheWrite":1}},"contextWindow":100000,"maxTokens":4096}}]}}}}}}"#,
        stage.api.openai_url()
    );
    std::fs::write(config.join("models.json"), models)?;
    std::fs::write(
        config.join("settings.json"),
        r#"{"retry":{"enabled":false}}"#,
    )?;
    let mut spec = stage.spec(stage.program.clone());
    spec.own_config = false;
    spec.model = Some(String::from("stand-in/model"));
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
    ensure!(ended.conversation.session.is_some() && ended.was_delivered(spec.messages[0]));
    ensure!(ended.conversation.tools == 2 && ended.conversation.used.output > 0);
    ensure!(ended.conversation.used.micro_usd > Some(0));
    Ok(())
}

fn follow_up() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let go = stage.tree().join("go");
    let wait = "while [ ! -e go ]\\; do sleep 0.1\\; done";
    let run = stage.start(&spec, &format!("stand-in: shell {wait}; say waited"))?;
    run.wait_for_event("tool", |event| matches!(event, Event::Tool { .. }));
    let message = run.say("stand-in: write b.txt=more");
    std::fs::write(&go, "")?;
    let ended = run.finish().completed();
    ensure!(
        ended.was_delivered(message),
        "{:?}",
        ended.conversation.delivered
    );
    ensure!(stage.read("b.txt")?.trim_end() == "more");
    let remembers = |request: &woodward_testkit::model_api::Recorded| {
        request.user_says("say waited") && request.user_says("write b.txt=more")
    };
    ensure!(stage.api.find(remembers).is_some(), "one conversation");
    Ok(())
}

fn resumed() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    let first = stage.run(&spec, "stand-in: write a.txt=one")?.completed();
    spec.session = SessionId::Resume(first.conversation.session.clone().context("a session")?);
    spec.messages = vec![new_message_id()];
    let second = stage.run(&spec, "stand-in: write b.txt=two")?.completed();
    ensure!(
        second.conversation.session == first.conversation.session
            && second.was_delivered(spec.messages[0])
    );
    let remembers = |request: &woodward_testkit::model_api::Recorded| {
        request.user_says("write a.txt=one") && request.user_says("write b.txt=two")
    };
    ensure!(stage.api.find(remembers).is_some());
    ensure!(
        second.conversation.used.output == first.conversation.used.output,
        "each run its own"
    );
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
    ensure!(!ended.was_delivered(spec.messages[0]));
    Ok(())
}

fn interrupted() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    // Pi leaves its tools behind, which only the supervisor would end: this one ends with the test.
    let wait = format!(
        "while [ -e {}/.git ]\\; do sleep 0.1\\; done",
        stage.tree().display()
    );
    let prompt = format!("stand-in: shell {wait}; write a.txt=never");
    let run = stage.start(&spec, &prompt)?;
    run.wait_for_event("tool", |event| matches!(event, Event::Tool { .. }));
    run.interrupt();
    let ended = run.finish();
    ensure!(
        *ended.ending() == Ending::Interrupted,
        "{:?}",
        ended.ending()
    );
    ensure!(stage.read("a.txt").is_err());
    Ok(())
}

fn failures() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    for (fault, is) in [
        (
            "401",
            (|e| matches!(e, Ending::LoggedOut { .. })) as fn(&Ending) -> bool,
        ),
        ("429 reset=3600 retry=no", |e| {
            matches!(e, Ending::RateLimited { .. })
        }),
        ("500 retry=no", |e| {
            matches!(
                e,
                Ending::ApiFailed {
                    status: Some(500),
                    ..
                }
            )
        }),
        ("overflow", |e| *e == Ending::ContextFull),
    ] {
        let ended = stage.run(&spec, &format!("stand-in: fault {fault}"))?;
        ensure!(is(ended.ending()), "{fault}: {:?}", ended.ending());
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
