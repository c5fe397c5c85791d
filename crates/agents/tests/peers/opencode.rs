//! OpenCode.

use libtest_mimic::Trial;
use woodward_agents::permission::Mode;
use woodward_agents::{Ending, Event, Kind, SessionId, Spec, Usage};

use woodward_testkit::agent_run::new_message_id;

use crate::scene::{Agent, Scene, assert_ended, was_completed};
use crate::{Fact, trial};

const OPENCODE: Agent = Agent {
    kind: Kind::OpenCode,
    args: &[],
    model: Some("stand-in/model"),
    env: |_| {
        vec![
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".into()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".into()),
        ]
    },
    settle: |scene| {
        // The person's own configuration, which must go on to count.
        let directory = scene.home().join(".config/opencode");
        std::fs::create_dir_all(&directory).unwrap();
        let text = format!(
            r#"{{"provider":{{"stand-in":{{"npm":"@ai-sdk/openai-compatible","name":"stand-in","options":{{"baseURL":"{}","apiKey":"sk-stand-in-0123456789abcdef"}},"models":{{"model":{{"name":"model","limit":{{"context":100000,"output":8000}},"cost":{{"input":1,"output":2}}}}}}}}}},"small_model":"stand-in/model"}}"#,
            scene.api.openai_url()
        );
        std::fs::write(directory.join("opencode.json"), text).unwrap();
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    let all: [Fact; 10] = [
        ("writes_commits_and_says_what_it_used", writes_and_commits),
        ("goes_on_in_the_same_conversation", resumes),
        ("hears_what_is_said_while_it_works", is_steered),
        ("asks_once_before_it_goes_outside", asks_and_is_allowed),
        ("is_told_why_it_may_not", is_denied_with_words),
        (
            "is_held_to_the_projects_rules_also_when_trusted",
            is_denied_by_rule,
        ),
        ("asks_a_person_a_question", asks_a_question),
        ("is_interrupted", is_interrupted),
        ("tells_failures_of_the_provider_apart", fails),
        ("tells_what_keeps_it_from_starting", does_not_start),
    ];
    let all = all.into_iter();
    all.map(|(name, test)| trial(name, OPENCODE, test))
        .collect()
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
    assert_eq!(
        ended.conversation.version.as_deref(),
        Kind::OpenCode.facts().tested
    );
    assert_eq!(ended.conversation.tools, 2, "{ended:#?}");
    assert_eq!(ended.conversation.last_text, "Done.");
    let used = Usage {
        input: 3000,
        cached: 600,
        output: 150,
        micro_usd: Some(3300),
    };
    assert_eq!(ended.conversation.used, used, "{ended:#?}");
}

fn resumes(scene: Scene) {
    let first = scene.run("stand-in: say one", scene.spec());
    assert_ended(&first, was_completed);
    let spec = Spec {
        session: SessionId::Resume(first.conversation.session.clone().unwrap()),
        used_before: first.conversation.used_in_all().clone(),
        ..scene.spec()
    };
    let second = scene.run("stand-in: say two", spec);
    assert_ended(&second, was_completed);
    assert_eq!(second.conversation.session, first.conversation.session);
    assert_eq!(second.conversation.used, first.conversation.used);
    scene.api.expect("both prompts", |request| {
        request.user_says("say one") && request.user_says("say two")
    });
}

const WAITS: &str = "until test -e go\\; do sleep 0.1\\; done";

fn trusted(scene: &Scene) -> Spec {
    let mut spec = scene.spec();
    spec.rules.mode = Mode::Yolo;
    spec
}

fn is_steered(scene: Scene) {
    let run = scene.start(&format!("stand-in: shell {WAITS}"), trusted(&scene));
    run.wait_for_event("a command", |event| matches!(event, Event::Tool { .. }));
    let message = run.say("stand-in: shell touch b.txt");
    run.wait_for_event("the message's arrival", |event| {
        *event == Event::Accepted { message }
    });
    std::fs::write(scene.tree().join("go"), "").unwrap();
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    assert!(scene.tree().join("b.txt").exists(), "{ended:#?}");
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
    // OpenCode asks whether it may go there, and then whether it may run this: one question.
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    assert!(ended.conversation.is_settled(answer), "{ended:#?}");
    assert!(scene.directory().join("x").exists(), "{ended:#?}");
}

fn is_denied_with_words(scene: Scene) {
    let run = scene.start(&outside(&scene), scene.spec());
    let question = run.wait_for_questions(1).remove(0);
    run.answer(&question, "put it into the worktree");
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    assert!(!scene.directory().join("x").exists());
    scene.api.expect("the reason", |request| {
        request.tool_says("put it into the worktree")
    });
}

fn is_denied_by_rule(scene: Scene) {
    let mut spec = trusted(&scene);
    spec.rules.deny = vec!["touch secret*".into()];
    let ended = scene.run("stand-in: shell touch secret.txt; shell touch b.txt", spec);
    assert_ended(&ended, was_completed);
    assert!(scene.tree().join("b.txt").exists(), "{ended:#?}");
    assert!(!scene.tree().join("secret.txt").exists());
    assert_eq!(ended.conversation.denied.len(), 1, "{ended:#?}");
}

fn asks_a_question(scene: Scene) {
    let run = scene.start("stand-in: ask Which colour?|Red|Blue", scene.spec());
    let question = run.wait_for_questions(1).remove(0);
    assert_eq!(question.text, "Which colour?");
    assert!(question.choices.contains(&"Blue".to_owned()));
    run.answer(&question, "Blue");
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    scene
        .api
        .expect("the answer", |request| request.tool_says("Blue"));
}

fn is_interrupted(scene: Scene) {
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

    let prompt = format!("stand-in: shell {WAITS}; shell touch b.txt");
    let run = scene.start(&prompt, trusted(&scene));
    run.wait_for_event("a command", |event| matches!(event, Event::Tool { .. }));
    run.interrupt();
    let ended = run.finish();
    assert_ended(&ended, |ending| *ending == Ending::Interrupted);
    assert!(!scene.tree().join("b.txt").exists());
}

fn fails(scene: Scene) {
    let ends = |fault: &str, is: fn(&Ending) -> bool| {
        let prompt = format!("stand-in: fault {fault}");
        let ended = scene.run(&prompt, trusted(&scene));
        assert_ended(&ended, is);
    };
    ends("400", |end| {
        matches!(
            end,
            Ending::ApiFailed {
                status: Some(400),
                ..
            }
        )
    });
    ends("overflow", |end| *end == Ending::ContextFull);
    // It tries again for more than a minute: that it does so is said.
    let run = scene.start("stand-in: fault 429", trusted(&scene));
    run.wait_for_event("another try", |event| {
        matches!(event, Event::Retrying { .. })
    });
    run.interrupt();
    let ended = run.finish();
    assert_ended(&ended, |ending| *ending == Ending::Interrupted);
}

fn does_not_start(scene: Scene) {
    let ended = scene.run(
        "hello",
        Spec {
            session: SessionId::Resume("ses_nonsense".into()),
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
    let absent = vec!["/nowhere/opencode".to_owned()];
    unfit(
        Spec {
            program: absent,
            ..scene.spec()
        },
        Kind::OpenCode.facts().install,
    );
}
