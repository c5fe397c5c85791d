//! Aider, for real.

use anyhow::{Context as _, ensure};
use woodward_agents::{Ending, Event, Kind, SessionId, Spec};
use woodward_testkit::agent_run::new_message_id;

use crate::real::Real;
use crate::stage::Fact;

pub(crate) const FACTS: &[Fact] = &[
    ("aider::it_writes_and_commits_and_leaves_nothing", writes),
    ("aider::a_conversation_is_resumed", resumed),
    ("aider::an_unknown_conversation_is_said_to_be_so", unknown),
    (
        "aider::a_failure_is_an_ending_though_it_exits_with_0",
        failures,
    ),
    ("aider::a_failure_that_passes_is_none", passing),
    ("aider::an_option_it_does_not_have_is_named", unfit),
];

fn stage() -> anyhow::Result<(Real, Spec)> {
    let mut stage = Real::new(Kind::Aider, "aider")?;
    let url = stage.api.openai_url();
    stage.set("OPENAI_API_BASE", url);
    stage.set("OPENAI_API_KEY", "sk-stand-in-0123456789-0123456789");
    let mut spec = stage.spec(stage.program.clone());
    spec.model = Some(String::from("openai/stand-in"));
    spec.args = ["--edit-format", "diff", "--map-tokens", "0"]
        .map(String::from)
        .to_vec();
    Ok((stage, spec))
}

fn writes() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let before = stage.git(&["rev-parse", "HEAD"]);
    let ended = stage.run(&spec, "stand-in: write a.txt=hello")?.completed();
    ensure!(stage.git(&["rev-parse", "HEAD~1"]) == before, "one commit");
    ensure!(stage.read("a.txt")?.trim_end() == "hello");
    ensure!(
        stage.git(&["status", "--porcelain"]).is_empty(),
        "it leaves nothing"
    );
    let author = stage.git(&["log", "-1", "--format=%ae"]);
    ensure!(author == "person@example.org", "{author}");
    ensure!(ended.was_delivered(spec.messages[0]), "{:?}", ended.events);
    ensure!(ended.conversation.tools == 1 && ended.conversation.used.output > 0);
    let SessionId::New(id) = &spec.session else {
        anyhow::bail!("a new conversation")
    };
    ensure!(ended.conversation.session.as_ref() == Some(id));
    ensure!(ended.conversation.version.as_deref() == Some("0.86.2"));
    Ok(())
}

fn resumed() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    let first = stage.run(&spec, "stand-in: write a.txt=one")?.completed();
    spec.session = SessionId::Resume(first.conversation.session.context("a session")?);
    spec.messages = vec![new_message_id()];
    let second = stage.run(&spec, "stand-in: write b.txt=two")?.completed();
    ensure!(second.was_delivered(spec.messages[0]));
    ensure!(stage.read("b.txt")?.trim_end() == "two");
    let remembers = |request: &woodward_testkit::model_api::Recorded| {
        request.user_says("write a.txt=one") && request.user_says("write b.txt=two")
    };
    ensure!(stage.api.find(remembers).is_some());
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
    Ok(())
}

fn failures() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let ended = stage.run(&spec, "stand-in: fault 404")?;
    ensure!(
        matches!(ended.ending(), Ending::ApiFailed { note, .. } if note.contains("fails with 404, as it was told")),
        "{:?}",
        ended.ending()
    );
    let ended = stage.run(&spec, "stand-in: fault overflow")?;
    ensure!(
        *ended.ending() == Ending::ContextFull,
        "{:?}",
        ended.ending()
    );
    Ok(())
}

fn passing() -> anyhow::Result<()> {
    let (stage, spec) = stage()?;
    let ended = stage
        .run(
            &spec,
            "stand-in: fault 429 times=1 retry=no; write a.txt=hello",
        )?
        .completed();
    ensure!(stage.read("a.txt").is_ok());
    ensure!(
        ended.has_event(|event| matches!(event, Event::Retrying { .. })),
        "{:?}",
        ended.events
    );
    Ok(())
}

fn unfit() -> anyhow::Result<()> {
    let (stage, mut spec) = stage()?;
    spec.args.push(String::from("--no-such-option"));
    let ended = stage.run(&spec, "stand-in: say hello")?;
    ensure!(
        matches!(ended.ending(), Ending::Unfit { note } if note.contains("--no-such-option")),
        "{:?}",
        ended.ending()
    );
    Ok(())
}
