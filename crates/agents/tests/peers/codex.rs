//! Codex.

use libtest_mimic::Trial;
use woodward_agents::permission::Mode;
use woodward_agents::{Ending, Event, Kind, SessionId, Spec, Usage};

use woodward_testkit::agent_run::new_message_id;

use crate::scene::{Agent, Scene, assert_ended, was_completed};
use crate::{Fact, trial};

const CODEX: Agent = Agent {
    kind: Kind::Codex,
    args: &[],
    model: None,
    env: |_| vec![("STAND_IN_KEY", "sk-stand-in-0123456789abcdef".into())],
    settle: |scene| {
        let text = scene.api.codex_config();
        for home in [
            scene.home().join(".codex"),
            scene.own_config().join("config"),
        ] {
            std::fs::create_dir_all(&home).unwrap();
            std::fs::write(home.join("config.toml"), &text).unwrap();
        }
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    let all: [Fact; 15] = [
        ("writes_commits_and_says_what_it_used", writes_and_commits),
        (
            "leaves_the_persons_configuration_alone",
            leaves_config_alone,
        ),
        (
            "commits_but_does_not_write_the_shared_git_directory_or_the_main_checkout",
            writes_nothing_shared,
        ),
        (
            "uses_its_own_configuration_below_the_temporary_directory",
            own_configuration_in_tmp,
        ),
        ("goes_on_in_the_same_conversation", resumes),
        ("hears_what_is_said_while_it_works", is_steered),
        ("asks_before_it_leaves_the_sandbox", asks_and_is_allowed),
        ("is_told_why_it_may_not", is_denied_with_words),
        ("asks_two_things_at_once", asks_two_things),
        (
            "is_held_to_the_projects_rules_also_when_trusted",
            is_denied_by_rule,
        ),
        ("asks_a_person_a_question", asks_a_question),
        ("is_interrupted", is_interrupted),
        ("withdraws_a_question_when_interrupted", withdraws),
        ("tells_failures_of_the_provider_apart", fails),
        ("tells_what_keeps_it_from_starting", does_not_start),
    ];
    let all = all.into_iter();
    all.map(|(name, test)| trial(name, CODEX, test)).collect()
}

fn writes_and_commits(scene: Scene) {
    let message = new_message_id();
    let spec = Spec {
        messages: vec![message],
        ..scene.spec()
    };
    let ended = scene.run("stand-in: write a.txt=hello; commit add a", spec);
    assert_ended(&ended, was_completed);
    assert_eq!(scene.git(&["log", "-1", "--format=%s"]), "add a");
    assert_eq!(scene.git(&["show", "HEAD:a.txt"]), "hello");
    assert!(
        ended.conversation.is_settled(message) && ended.conversation.delivered[0].refused.is_none()
    );
    assert_eq!(
        ended.conversation.version.as_deref(),
        Kind::Codex.facts().tested
    );
    assert_eq!(ended.conversation.tools, 2);
    assert_eq!(ended.conversation.last_text, "Done.");
    let used = Usage {
        input: 3000,
        cached: 600,
        output: 150,
        micro_usd: None,
    };
    assert_eq!(ended.conversation.used, used);
}

fn leaves_config_alone(scene: Scene) {
    let file = scene.home().join(".codex/config.toml");
    let before = std::fs::read_to_string(&file).unwrap();
    let mut spec = scene.spec();
    spec.rules.mode = Mode::Yolo;
    let ended = scene.run("stand-in: say hello", spec);
    assert_ended(&ended, was_completed);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    let spec = Spec {
        own_config: true,
        ..scene.spec()
    };
    let ended = scene.run("stand-in: say hello", spec);
    assert_ended(&ended, was_completed);
    assert!(
        scene.own_config().join("config/sessions").exists(),
        "{ended:#?}"
    );
}

fn writes_nothing_shared(scene: Scene) {
    let main = scene.repo.root().to_owned();
    assert!(main.starts_with(std::env::temp_dir()), "{}", main.display());
    let git = main.join(".git");
    let shared = [
        git.join("hooks/pre-commit"),
        git.join("config"),
        git.join("refs/heads/main"),
        git.join("refs/heads/woodward/other"),
        git.join("packed-refs"),
        main.join("README.md"),
        main.join("new.txt"),
    ];
    let read = || {
        let all = shared.iter().map(|path| std::fs::read(path).ok());
        all.collect::<Vec<_>>()
    };
    let before = read();
    let attempts = shared
        .iter()
        .map(|path| format!("shell echo hostile >> {}; ", path.display()));
    let attempts: String = attempts.collect();
    let prompt = format!(
        "stand-in: {attempts}shell mktemp; write a.txt=hello; commit add a; say Committed."
    );
    let ended = scene.start(&prompt, scene.spec()).finish_denying(&[]);
    assert_ended(&ended, was_completed);
    assert_eq!(read(), before, "{ended:#?}");
    assert_eq!(scene.git(&["log", "-1", "--format=%s"]), "add a");
    // Temporary files have a place of their own, which is removed afterwards.
    let made = ended.events.iter().find_map(|event| match event {
        Event::ToolEnded { output, .. } => {
            let mut lines = output.lines();
            lines.find(|line| line.contains("/woodward-"))
        }
        _ => None,
    });
    let made = made.unwrap_or_else(|| panic!("{ended:#?}"));
    assert!(!std::path::Path::new(made).exists(), "{made}");
}

fn own_configuration_in_tmp(scene: Scene) {
    let directory = tempfile::tempdir().unwrap();
    let theirs = scene.own_config().join("config/config.toml");
    let config = directory.path().join("config");
    std::fs::create_dir(&config).unwrap();
    std::fs::copy(theirs, config.join("config.toml")).unwrap();
    let spec = Spec {
        own_config: true,
        home: directory.path().to_owned(),
        ..scene.spec()
    };
    let ended = scene.run("stand-in: write a.txt=hello; commit add a", spec);
    assert_ended(&ended, was_completed);
    assert!(config.join("sessions").exists(), "{ended:#?}");
    assert_eq!(scene.git(&["show", "HEAD:a.txt"]), "hello");
}

fn resumes(scene: Scene) {
    let first = scene.run("stand-in: write a.txt=one", scene.spec());
    assert_ended(&first, was_completed);
    let spec = Spec {
        session: SessionId::Resume(first.conversation.session.clone().unwrap()),
        used_before: first.conversation.used_in_all().clone(),
        ..scene.spec()
    };
    let second = scene.run("stand-in: write b.txt=two", spec);
    assert_ended(&second, was_completed);
    assert_eq!(second.conversation.session, first.conversation.session);
    assert_eq!(second.conversation.used, first.conversation.used);
    scene.api.expect("both prompts", |request| {
        request.user_says("a.txt=one") && request.user_says("b.txt=two")
    });
}

fn is_steered(scene: Scene) {
    let run = scene.start(
        "stand-in: shell until test -e go\\; do sleep 0.1\\; done",
        scene.spec(),
    );
    run.wait_for_event("a command", |event| matches!(event, Event::Tool { .. }));
    let message = run.say("stand-in: write b.txt=more");
    std::fs::write(scene.tree().join("go"), "").unwrap();
    run.wait_for_event("the message's arrival", |event| {
        *event == Event::Accepted { message }
    });
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    assert!(scene.tree().join("b.txt").exists(), "{ended:#?}");
}

/// A command that asks for more than the sandbox gives.
fn outside(scene: &Scene, name: &str) -> String {
    let path = scene.directory().join(name);
    format!(
        r#"call exec_command {{"cmd":"touch {}","sandbox_permissions":"require_escalated","justification":"It must be there."}}"#,
        path.display()
    )
}

fn asks_and_is_allowed(scene: Scene) {
    let outside = outside(&scene, "x");
    let run = scene.start(&format!("stand-in: {outside}"), scene.spec());
    let question = run.wait_for_questions(1).remove(0);
    assert!(question.text.contains("It must be there."), "{question:?}");
    let answer = run.answer(&question, "allow");
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    assert!(ended.conversation.is_settled(answer), "{ended:#?}");
    assert!(scene.directory().join("x").exists(), "{ended:#?}");
}

fn is_denied_with_words(scene: Scene) {
    let outside = outside(&scene, "x");
    let run = scene.start(&format!("stand-in: {outside}; say I see."), scene.spec());
    let question = run.wait_for_questions(1).remove(0);
    run.answer(&question, "put it into the worktree");
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    assert!(!scene.directory().join("x").exists());
    scene.api.expect("the reason", |request| {
        request.user_says("put it into the worktree")
    });
}

fn asks_two_things(scene: Scene) {
    let (one, two) = (outside(&scene, "one"), outside(&scene, "two"));
    let run = scene.start(&format!("stand-in: {one}; with {two}"), scene.spec());
    let questions = run.wait_for_questions(2);
    let yes = |name: &str| {
        let found = questions.iter().find(|asked| asked.text.contains(name));
        found.unwrap_or_else(|| panic!("{questions:?}"))
    };
    run.answer(yes("/two"), "allow");
    run.answer(yes("/one"), "deny");
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    assert!(scene.directory().join("two").exists(), "{ended:#?}");
    assert!(!scene.directory().join("one").exists(), "{ended:#?}");
}

fn is_denied_by_rule(scene: Scene) {
    let mut spec = scene.spec();
    spec.rules.mode = Mode::Yolo;
    spec.rules.deny = vec!["touch secret*".into()];
    let ended = scene.run("stand-in: shell touch secret.txt; shell touch b.txt", spec);
    assert_ended(&ended, was_completed);
    assert!(scene.tree().join("b.txt").exists(), "{ended:#?}");
    assert!(!scene.tree().join("secret.txt").exists());
    assert_eq!(ended.conversation.denied.len(), 1, "{ended:#?}");
    let by_rule = |event: &&Event| matches!(event, Event::Answered { by_rule: true, .. });
    assert_eq!(ended.events.iter().filter(by_rule).count(), 2, "{ended:#?}");
}

fn asks_a_question(scene: Scene) {
    let run = scene.start("stand-in: ask Which colour?|Red|Blue", scene.spec());
    let question = run.wait_for_questions(1).remove(0);
    assert_eq!(question.text, "Which colour?");
    assert!(question.choices.contains(&"Blue".to_owned()));
    let answer = run.answer(&question, "Blue");
    let ended = run.finish();
    assert_ended(&ended, was_completed);
    assert!(ended.conversation.is_settled(answer), "{ended:#?}");
    scene
        .api
        .expect("the answer", |request| request.tool_says("Blue"));
}

fn is_interrupted(scene: Scene) {
    let run = scene.start("stand-in: shell sleep 300; write b.txt=x", scene.spec());
    run.wait_for_event("a command", |event| matches!(event, Event::Tool { .. }));
    run.interrupt();
    let ended = run.finish();
    assert_ended(&ended, |ending| *ending == Ending::Interrupted);
    assert!(!scene.tree().join("b.txt").exists());
}

fn withdraws(scene: Scene) {
    let outside = outside(&scene, "x");
    let run = scene.start(&format!("stand-in: {outside}"), scene.spec());
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
    assert!(ended.conversation.pending.is_empty());
}

fn fails(scene: Scene) {
    let ends = |fault: &str, is: fn(&Ending) -> bool| {
        let prompt = format!("stand-in: fault {fault} retry=no");
        let ended = scene.run(&prompt, scene.spec());
        assert_ended(&ended, is);
    };
    ends("401", |end| matches!(end, Ending::LoggedOut { .. }));
    ends("429", |end| matches!(end, Ending::RateLimited { .. }));
    ends("500", |end| matches!(end, Ending::ApiFailed { .. }));
    ends("overflow", |end| *end == Ending::ContextFull);
    ends("cut", |end| matches!(end, Ending::ApiFailed { .. }));
}

fn does_not_start(scene: Scene) {
    let ended = scene.run(
        "hello",
        Spec {
            session: SessionId::Resume("01a1e26d-2b64-7fc1-b30c-bb7638b86000".into()),
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
    let absent = vec!["/nowhere/codex".to_owned()];
    unfit(
        Spec {
            program: absent,
            ..scene.spec()
        },
        Kind::Codex.facts().install,
    );
    unfit(
        Spec {
            args: vec!["--brand-new-option".into()],
            ..scene.spec()
        },
        "--brand-new-option",
    );
}
