//! Gemini CLI, Qwen Code, Copilot CLI and Goose.

use libtest_mimic::Trial;
use woodward_agents::permission::Mode;
use woodward_agents::{Ending, Event, Kind, SessionId, Spec, Usage};

use woodward_testkit::agent_run::new_message_id;

use crate::scene::{Agent, Scene, assert_ended, was_completed};
use crate::{Fact, trial};

/// Copilot blackens its key wherever it stands: it must be like no other word.
const KEY: &str = "sk-stand-in-0123456789abcdef";

const GEMINI: Agent = Agent {
    kind: Kind::Gemini,
    args: &[],
    model: Some("gemini-2.5-flash"),
    env: |scene| {
        vec![
            ("GEMINI_API_KEY", KEY.into()),
            ("GOOGLE_GEMINI_BASE_URL", scene.api.url()),
        ]
    },
    settle: |scene| {
        let directory = scene.home().join(".gemini");
        std::fs::create_dir_all(&directory).unwrap();
        let settings = r#"{"security":{"auth":{"selectedType":"gemini-api-key"}},"general":{"enableAutoUpdate":false,"maxAttempts":1},"privacy":{"usageStatisticsEnabled":false}}"#;
        std::fs::write(directory.join("settings.json"), settings).unwrap();
    },
};

const QWEN: Agent = Agent {
    kind: Kind::Qwen,
    args: &["--auth-type", "openai"],
    model: Some("stand-in"),
    env: |scene| {
        vec![
            ("OPENAI_API_KEY", KEY.into()),
            ("OPENAI_BASE_URL", scene.api.openai_url()),
        ]
    },
    settle: |_| {},
};

const COPILOT: Agent = Agent {
    kind: Kind::Copilot,
    args: &[],
    model: Some("gpt-4.1"),
    env: |scene| {
        vec![
            ("COPILOT_PROVIDER_BASE_URL", scene.api.openai_url()),
            ("COPILOT_PROVIDER_API_KEY", KEY.into()),
            ("COPILOT_OFFLINE", "true".into()),
        ]
    },
    settle: |scene| {
        crate::installed()
            .of("copilot-cli")
            .skip_unpacking(&scene.home());
    },
};

const GOOSE: Agent = Agent {
    kind: Kind::Goose,
    args: &[],
    model: Some("gpt-4o"),
    env: |scene| {
        vec![
            ("GOOSE_PROVIDER", "openai".into()),
            ("OPENAI_HOST", scene.api.url()),
            ("OPENAI_API_KEY", KEY.into()),
            ("GOOSE_DISABLE_KEYRING", "1".into()),
        ]
    },
    settle: |_| {},
};

pub(crate) fn trials() -> Vec<Trial> {
    let all: [Fact; 9] = [
        ("writes_commits_and_says_what_it_used", writes_and_commits),
        ("goes_on_in_the_same_conversation", resumes),
        ("hears_after_its_turn_what_was_said_before", hears_later),
        ("asks_and_is_allowed", asks_and_is_allowed),
        ("is_told_why_it_may_not", is_denied_with_words),
        ("is_interrupted", is_interrupted),
        ("withdraws_a_question_when_interrupted", withdraws),
        ("tells_failures_of_the_provider_apart", fails),
        ("tells_what_keeps_it_from_starting", does_not_start),
    ];
    let agents = [GEMINI, QWEN, COPILOT, GOOSE].into_iter();
    let pairs = agents.flat_map(|agent| all.iter().map(move |(name, test)| (agent, *name, *test)));
    pairs
        .map(|(agent, name, test)| trial(name, agent, test))
        .collect()
}

/// Who is trusted is not asked about.
fn trusted(scene: &Scene) -> Spec {
    let mut spec = scene.spec();
    spec.rules.mode = Mode::Yolo;
    spec
}

/// What a run of so many requests uses, as the program tells it.
fn used(kind: Kind, requests: u64) -> Usage {
    let (input, cached) = match kind {
        // They do not tell what came from a cache.
        Kind::Gemini | Kind::Goose => (1200, 0),
        _ => (1000, 200),
    };
    Usage {
        input: input * requests,
        cached: cached * requests,
        output: 50 * requests,
        micro_usd: None,
    }
}

fn writes_and_commits(scene: Scene) {
    let message = new_message_id();
    let mut spec = scene.spec();
    spec.messages = vec![message];
    let ended = scene.run("stand-in: write a.txt=hello; commit add a", spec);
    assert_ended(&ended, was_completed);
    assert_eq!(scene.git(&["log", "-1", "--format=%s"]), "add a");
    assert_eq!(scene.git(&["show", "HEAD:a.txt"]), "hello");
    assert!(
        ended.conversation.is_settled(message) && ended.conversation.delivered[0].refused.is_none()
    );
    assert_eq!(ended.conversation.tools, 2, "{ended:#?}");
    assert_eq!(ended.conversation.last_text, "Done.");
    assert_eq!(
        ended.conversation.used,
        used(scene.agent.kind, 3),
        "{ended:#?}"
    );
    if scene.agent.kind != Kind::Goose {
        assert_eq!(
            ended.conversation.version.as_deref(),
            scene.agent.kind.facts().tested
        );
    }
}

fn resumes(scene: Scene) {
    let first = scene.run("stand-in: say one", trusted(&scene));
    assert_ended(&first, was_completed);
    let spec = Spec {
        session: SessionId::Resume(first.conversation.session.clone().unwrap()),
        used_before: first.conversation.used_in_all().clone(),
        ..trusted(&scene)
    };
    let run = scene.start("stand-in: say two", spec);
    // Gemini CLI may have to wait for another minute first.
    run.wait_for_event("a beginning", |event| {
        matches!(event, Event::Started { .. })
    });
    let second = run.finish();
    assert_ended(&second, was_completed);
    assert_eq!(second.conversation.session, first.conversation.session);
    assert_eq!(
        second.conversation.used,
        used(scene.agent.kind, 1),
        "{second:#?}"
    );
    // What it said before is no news.
    let texts = second
        .events
        .iter()
        .filter(|event| matches!(event, Event::Text { .. }));
    assert_eq!(texts.count(), 1, "{second:#?}");
    scene.api.expect("both prompts", |request| {
        request.user_says("say one") && request.user_says("say two")
    });
}

/// A command that ends when a file is there.
const WAITS: &str = "until test -e go\\; do sleep 0.1\\; done";

fn hears_later(scene: Scene) {
    let run = scene.start(&format!("stand-in: shell {WAITS}"), trusted(&scene));
    run.wait_for_event("a command", |event| matches!(event, Event::Tool { .. }));
    let message = run.say("stand-in: shell touch b.txt");
    std::fs::write(scene.tree().join("go"), "").unwrap();
    run.wait_for_event("the message's arrival", |event| {
        *event == Event::Accepted { message }
    });
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    assert!(scene.tree().join("b.txt").exists(), "{ended:#?}");
    let ends = ended
        .events
        .iter()
        .filter(|event| matches!(event, Event::TurnEnded(_)));
    assert_eq!(ends.count(), 2, "{ended:#?}");
}

fn outside(scene: &Scene) -> String {
    let path = scene.directory().join("x");
    format!("stand-in: shell touch {}; say I see.", path.display())
}

fn asks_and_is_allowed(scene: Scene) {
    let run = scene.start(&outside(&scene), scene.spec());
    let question = run.wait_for_questions(1).remove(0);
    assert!(question.text.contains("May I run `touch"), "{question:?}");
    let answer = run.answer(&question, "allow");
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    assert!(ended.conversation.is_settled(answer), "{ended:#?}");
    assert!(scene.directory().join("x").exists(), "{ended:#?}");
}

fn is_denied_with_words(scene: Scene) {
    let run = scene.start(&outside(&scene), scene.spec());
    let question = run.wait_for_questions(1).remove(0);
    run.answer(&question, "put it into the worktree");
    // Goose forgets now and then that it tried, and asks once more.
    let ended = run.finish_denying(&[question.id]);
    assert_ended(&ended, was_completed);
    assert!(!scene.directory().join("x").exists());
    scene.api.expect("the reason", |request| {
        request.user_says("put it into the worktree")
    });
}

fn is_interrupted(scene: Scene) {
    let prompt = format!("stand-in: shell {WAITS}; shell touch b.txt");
    let run = scene.start(&prompt, trusted(&scene));
    run.wait_for_event("a command", |event| matches!(event, Event::Tool { .. }));
    run.interrupt();
    let ended = run.finish();
    assert_ended(&ended, |ending| *ending == Ending::Interrupted);
    assert!(!scene.tree().join("b.txt").exists());
}

fn withdraws(scene: Scene) {
    let run = scene.start(&outside(&scene), scene.spec());
    let question = run.wait_for_questions(1).remove(0);
    run.interrupt();
    run.wait_for_event("the end of the question", |event| {
        *event
            == Event::Withdrawn {
                question: question.id,
            }
    });
    let ended = run.finish();
    assert_ended(&ended, |ending| *ending == Ending::Interrupted);
    assert!(ended.conversation.pending.is_empty() && !scene.directory().join("x").exists());
}

fn fails(scene: Scene) {
    let ends = |fault: &str, is: fn(&Ending) -> bool| {
        let prompt = format!("stand-in: fault {fault} retry=no");
        let ended = scene.run(&prompt, trusted(&scene));
        assert_ended(&ended, is);
    };
    ends("401", |end| matches!(end, Ending::LoggedOut { .. }));
    ends("400", |end| matches!(end, Ending::ApiFailed { .. }));
    if scene.agent.kind == Kind::Qwen {
        // It tries again for minutes, without a word; it can be stopped.
        let run = scene.start("stand-in: fault 429", trusted(&scene));
        scene
            .api
            .expect("a refusal", |request| request.answer.contains("429"));
        run.interrupt();
        let ended = run.finish();
        assert_ended(&ended, |ending| *ending == Ending::Interrupted);
        return;
    }
    ends("429", |end| matches!(end, Ending::RateLimited { .. }));
    ends("500", |end| matches!(end, Ending::ApiFailed { .. }));
}

fn does_not_start(scene: Scene) {
    let ended = scene.run(
        "hello",
        Spec {
            session: SessionId::Resume("0b9bb7ac-3f0d-4b3a-9d0e-0d6b6a2f7c11".into()),
            ..scene.spec()
        },
    );
    assert_ended(&ended, |end| matches!(end, Ending::NoSuchSession { .. }));
    let unfit = |spec: Spec, words: &str| {
        let ended = scene.run("hello", spec);
        assert_ended(
            &ended,
            |end| matches!(end, Ending::Unfit { note } if note.contains(words)),
        );
    };
    let absent = vec!["/nowhere/agent".to_owned()];
    unfit(
        Spec {
            program: absent,
            ..scene.spec()
        },
        scene.agent.kind.facts().install,
    );
    if scene.agent.kind != Kind::Gemini {
        let args = vec!["--brand-new-option".to_owned()];
        unfit(
            Spec {
                args,
                ..scene.spec()
            },
            "brand-new-option",
        );
    }
}
