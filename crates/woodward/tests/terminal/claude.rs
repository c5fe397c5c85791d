//! Real Claude Code in a terminal.

use woodward_agents::permission::Mode;
use woodward_agents::terminal;
use woodward_agents::terminal::tmux::{self, Session};
use woodward_agents::{Ending, Event, Kind, Letter, Question, QuickGate, Spec, StopCheck};
use woodward_testkit::patience::until;

use crate::scene::{Run, Scene, WOODWARD, exists, fresh, long_text};

fn env(scene: &Scene) -> Vec<(&'static str, String)> {
    vec![
        ("ANTHROPIC_BASE_URL", scene.api.url()),
        (
            "ANTHROPIC_API_KEY",
            "sk-ant-stand-in-0123456789abcdef".into(),
        ),
        ("IS_SANDBOX", "1".into()),
    ]
}

fn spec(scene: &Scene) -> Spec {
    scene.spec(Kind::ClaudeCode, &["claude"])
}

fn completed(run: &Run) {
    run.until_talk("its turn is over", |talk| {
        talk.ending == Some(Ending::Completed)
    });
}

fn asked(run: &Run) -> Question {
    let event = run.until_event("it asks", |event| matches!(event, Event::Asked(_)));
    match event {
        Event::Asked(question) => question,
        _ => unreachable!(),
    }
}

#[test]
fn it_works_by_itself_and_ends_when_nobody_is_attached() {
    let scene = Scene::new();
    let message = fresh();
    let spec = Spec {
        messages: vec![message],
        ..spec(&scene)
    };
    let prompt = "stand-in: write a.txt=hello; commit add a; say All done.";
    let mut run = scene.start(prompt, spec, &env(&scene));
    run.accepted(message);
    completed(&run);
    run.ends();
    let talk = run.talk();
    assert_eq!(talk.ending, Some(Ending::Completed));
    assert!(talk.session.is_some() && talk.used.output > 0, "{talk:?}");
    assert_eq!(talk.last_text, "All done.");
    assert!(exists(&scene.tree().join("a.txt")));
}

#[test]
fn it_is_told_once_what_it_leaves_however_long_the_look_takes() {
    let scene = Scene::new();
    // Longer than a title may say idle before that is believed.
    let slow = "sleep 7; test -e b.txt || { echo 'b.txt is missing'; exit 1; }";
    let check = StopCheck {
        worktree: scene.tree(),
        base: scene.repo.head("HEAD"),
        gates: vec![QuickGate {
            name: "slow".into(),
            command: ["sh", "-c", slow].map(str::to_owned).into(),
            shown: slow.into(),
            paths: Vec::new(),
            needs: Vec::new(),
            env: Vec::new(),
            timeout_ms: 60_000,
        }],
        env: vec!["PATH".into(), "HOME".into()],
    };
    let spec = Spec {
        stop: Some(check),
        ..spec(&scene)
    };
    scene
        .api
        .set_script("when b.txt is missing\nwrite b.txt=b; commit add both; say Both.");
    let mut run = scene.start("stand-in: write a.txt=a; say Only one.", spec, &env(&scene));
    completed(&run);
    run.ends();
    assert_eq!(run.talk().last_text, "Both.");
    let events = run.events();
    let told = events.iter().filter(
        |event| matches!(event, Event::Note { text } if text.ends_with("uncommitted work in 1 file, `slow` fails")),
    );
    assert_eq!(told.count(), 1, "{events:?}");
    let turns = events
        .iter()
        .filter(|event| matches!(event, Event::TurnEnded(_)));
    assert_eq!(turns.count(), 1, "{events:?}");
    assert!(exists(&scene.tree().join("b.txt")));
}

#[test]
fn a_long_message_arrives_exact_although_the_person_is_in_copy_mode() {
    let scene = Scene::new();
    let mut run = scene.start("Say hello.", spec(&scene), &env(&scene));
    let mark = format!("WOODWARD_STATE_DIR={}", scene.around().display());
    let session = Session {
        socket: scene.around().join("tmux.sock"),
        name: "claude".into(),
        client: vec![
            "env".into(),
            mark,
            WOODWARD.into(),
            terminal::VIEW.into(),
            run.dir.display().to_string(),
        ],
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(tmux::open(&session)).unwrap();
    let socket = session.socket.display();
    let line = format!("env -u TMUX tmux -S {socket} attach -t =claude");
    let ada = scene.person("ada", &line, (120, 40));
    run.until_talk("a person is attached", |talk| talk.attached);
    completed(&run);
    let copy = std::process::Command::new("tmux")
        .arg("-S")
        .arg(&session.socket)
        .args(["copy-mode", "-t", "=claude:"])
        .status()
        .unwrap();
    assert!(copy.success());
    let text = long_text("stand-in: write b.txt=second; say Done twice.");
    let message = run.say(&text);
    run.accepted(message);
    scene
        .api
        .expect("every word", |request| request.user_says(text.trim()));
    run.until_talk("it did what it was told", |talk| {
        talk.last_text == "Done twice." && talk.ending == Some(Ending::Completed)
    });
    assert!(exists(&scene.tree().join("b.txt")));
    let injected = Event::Injected { message };
    assert!(run.events().contains(&injected));
    // As long as a person is there it goes on, and then no longer.
    assert!(run.is_alive());
    ada.presses("C-q");
    run.ends();
}

#[test]
fn a_dialog_at_the_start_swallows_nothing() {
    let scene = Scene::new();
    let config = scene.home().join("theirs");
    std::fs::create_dir(&config).unwrap();
    let text = r#"{"hasCompletedOnboarding":true,"theme":"dark","numStartups":5}"#;
    std::fs::write(config.join(".claude.json"), text).unwrap();
    let mut env = env(&scene);
    env.push(("CLAUDE_CONFIG_DIR", config.display().to_string()));
    let spec = Spec {
        own_config: false,
        ..spec(&scene)
    };
    let mut run = scene.start("Say hello.", spec, &env);
    let message = run.say("stand-in: write c.txt=third");
    let ada = scene.viewer("ada", &run, (120, 40));
    ada.until_sees("Yes, I trust this folder");
    assert!(!run.events().contains(&Event::Injected { message }));
    ada.chooses("Down", "❯ Yes, I trust");
    ada.presses("Enter");
    ada.until_sees("Do you want to use this API key?");
    assert!(!run.events().contains(&Event::Injected { message }));
    ada.chooses("Up", "❯ Yes");
    ada.presses("Enter");
    run.accepted(message);
    until("it did it", || exists(&scene.tree().join("c.txt")));
    ada.presses("C-q");
    completed(&run);
    run.ends();
}

#[test]
fn a_permission_is_given_from_afar() {
    let scene = Scene::new();
    let prompt = "stand-in: shell touch ../outside; say Done.";
    let mut run = scene.start(prompt, spec(&scene), &env(&scene));
    let question = asked(&run).id;
    // What is said meanwhile waits: it could answer the dialog.
    let message = run.say("stand-in: say Heard.");
    let id = fresh();
    let text = String::from("allow");
    run.post(&Letter::Answer { id, question, text });
    run.accepted(id);
    run.accepted(message);
    run.until_talk("all is done", |talk| talk.last_text == "Heard.");
    run.ends();
    assert!(exists(&scene.around().join("outside")));
    let events = run.events();
    let at = |is: &dyn Fn(&Event) -> bool| events.iter().position(is).unwrap();
    let answered = at(&|event| matches!(event, Event::Answered { .. }));
    let injected = at(&|event| *event == Event::Injected { message });
    assert!(answered < injected, "{events:#?}");
}

#[test]
fn a_question_is_answered_from_afar() {
    let scene = Scene::new();
    let prompt = "stand-in: ask Which colour?|Red|Blue; say Done.";
    let mut run = scene.start(prompt, spec(&scene), &env(&scene));
    let question = asked(&run);
    assert_eq!(question.choices, ["Red", "Blue"]);
    let (id, question) = (fresh(), question.id);
    let text = String::from("Blue");
    run.post(&Letter::Answer { id, question, text });
    run.accepted(id);
    scene
        .api
        .expect("the answer", |request| request.tool_says("Blue"));
    completed(&run);
    run.ends();
}

#[test]
fn a_permission_that_the_person_gives_is_no_longer_asked_for() {
    let scene = Scene::new();
    let prompt = "stand-in: shell touch ../outside; say Done.";
    let mut run = scene.start(prompt, spec(&scene), &env(&scene));
    let ada = scene.viewer("ada", &run, (120, 40));
    let question = asked(&run).id;
    ada.until_sees("Do you want to proceed?");
    ada.presses("1");
    run.until_event("it is withdrawn", |event| {
        *event == Event::Withdrawn { question }
    });
    completed(&run);
    assert!(exists(&scene.around().join("outside")));
    ada.presses("C-q");
    run.ends();
}

#[test]
fn the_projects_rules_hold_in_a_terminal_too() {
    let scene = Scene::new();
    let mut spec = spec(&scene);
    spec.rules.mode = Mode::Yolo;
    spec.rules.deny = vec!["touch *".into()];
    let prompt = "stand-in: shell touch no.txt; shell echo yes > yes.txt; say Done.";
    let mut run = scene.start(prompt, spec, &env(&scene));
    completed(&run);
    run.ends();
    assert!(!exists(&scene.tree().join("no.txt")));
    assert!(exists(&scene.tree().join("yes.txt")));
    let talk = run.talk();
    assert_eq!(talk.denied.len(), 1, "{talk:?}");
}

#[test]
fn what_a_person_interrupts_is_not_said_again_with_the_next_message() {
    let scene = Scene::new();
    let prompt = "Remember walnuts.\nstand-in: slow 50; say Late.";
    let mut run = scene.start(prompt, spec(&scene), &env(&scene));
    let ada = scene.viewer("ada", &run, (120, 40));
    scene
        .api
        .expect("it works", |request| request.user_says("slow 50"));
    // It had not said anything yet, so it puts the prompt back where it is typed.
    ada.presses("Escape");
    run.until_talk("it is interrupted", |talk| {
        talk.ending == Some(Ending::Interrupted)
    });
    ada.until_sees("❯\u{a0}Remember walnuts.");
    let message = run.say("stand-in: say By letter.");
    run.accepted(message);
    run.until_talk("it did what it was told", |talk| {
        talk.last_text == "By letter." && talk.ending == Some(Ending::Completed)
    });
    ada.types("stand-in: say By hand.");
    ada.until_sees("say By hand.");
    ada.presses("Enter");
    run.until_talk("it has done what the person said", |talk| {
        talk.last_text == "By hand." && talk.ending == Some(Ending::Completed)
    });
    let by_hand = "stand-in: say By hand.";
    run.until_event(
        "what the person said is told",
        |event| matches!(event, Event::Said { text } if text == by_hand),
    );
    ada.presses("C-q");
    run.ends();
}

#[test]
fn a_headless_conversation_is_taken_over() {
    let scene = Scene::new();
    let spec = Spec {
        terminal: false,
        ..spec(&scene)
    };
    let prompt = "Remember the word walnut.\nstand-in: slow 50; say Late.";
    let mut run = scene.start(prompt, spec, &env(&scene));
    run.until_talk("it has begun", |talk| talk.session.is_some());
    scene
        .api
        .expect("it works", |request| request.user_says("walnut"));
    let session = run.talk().session;
    let id = fresh();
    run.post(&Letter::Takeover { id });
    run.accepted(id);
    assert!(run.talk().terminal);
    let ada = scene.viewer("ada", &run, (120, 40));
    ada.until_sees("walnut");
    ada.types("stand-in: say By hand.");
    ada.until_sees("say By hand.");
    ada.presses("Enter");
    run.until_talk("it has done what the person said", |talk| {
        talk.last_text == "By hand." && talk.ending == Some(Ending::Completed)
    });
    assert_eq!(run.talk().session, session);
    ada.presses("C-q");
    run.ends();
}
