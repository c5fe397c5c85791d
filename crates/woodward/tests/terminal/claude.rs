//! Real Claude Code in a terminal.

use woodward_agents::permission::Mode;
use woodward_agents::terminal;
use woodward_agents::terminal::tmux::{self, Session};
use woodward_agents::{Ending, Event, Kind, Letter, Question, QuickGate, Spec, StopCheck};
use woodward_testkit::agent_run::{AgentRun, new_message_id};
use woodward_testkit::patience::until;

use crate::person::long_text;
use crate::scene::{Scene, WOODWARD};

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

fn completed(run: &AgentRun) {
    run.wait_for_conversation("its turn is over", |talk| {
        talk.ending == Some(Ending::Completed)
    });
}

fn asked(run: &AgentRun) -> Question {
    let event = run.wait_for_event("it asks", |event| matches!(event, Event::Asked(_)));
    match event {
        Event::Asked(question) => question,
        _ => unreachable!(),
    }
}

#[test]
fn it_works_by_itself_and_ends_when_nobody_is_attached() {
    let scene = Scene::new();
    let message = new_message_id();
    let spec = Spec {
        messages: vec![message],
        ..spec(&scene)
    };
    let prompt = "stand-in: write a.txt=hello; commit add a; say All done.";
    let run = scene.start(prompt, spec, &env(&scene));
    run.wait_for_acceptance(message);
    completed(&run);
    run.wait();
    let talk = run.conversation();
    assert_eq!(talk.ending, Some(Ending::Completed));
    assert!(talk.session.is_some() && talk.used.output > 0, "{talk:?}");
    assert_eq!(talk.last_text, "All done.");
    assert!(scene.tree().join("a.txt").exists());
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
    let run = scene.start("stand-in: write a.txt=a; say Only one.", spec, &env(&scene));
    completed(&run);
    run.wait();
    assert_eq!(run.conversation().last_text, "Both.");
    let events = run.events();
    let told = events.iter().filter(
        |event| matches!(event, Event::Note { text } if text.ends_with("uncommitted work in 1 file, `slow` fails")),
    );
    assert_eq!(told.count(), 1, "{events:?}");
    let turns = events
        .iter()
        .filter(|event| matches!(event, Event::TurnEnded(_)));
    assert_eq!(turns.count(), 1, "{events:?}");
    assert!(scene.tree().join("b.txt").exists());
}

#[test]
fn a_long_message_arrives_exact_although_the_person_is_in_copy_mode() {
    let scene = Scene::new();
    let run = scene.start("Say hello.", spec(&scene), &env(&scene));
    let mark = format!("WOODWARD_STATE_DIR={}", scene.directory().display());
    let session = Session {
        socket: scene.directory().join("tmux.sock"),
        name: "claude".into(),
        client: vec![
            "env".into(),
            mark,
            WOODWARD.into(),
            terminal::VIEW.into(),
            run.directory().display().to_string(),
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
    run.wait_for_conversation("a person is attached", |talk| talk.attached);
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
    run.wait_for_acceptance(message);
    scene
        .api
        .expect("every word", |request| request.user_says(text.trim()));
    run.wait_for_conversation("it did what it was told", |talk| {
        talk.last_text == "Done twice." && talk.ending == Some(Ending::Completed)
    });
    assert!(scene.tree().join("b.txt").exists());
    let injected = Event::Injected { message };
    assert!(run.events().contains(&injected));
    // As long as a person is there it goes on, and then no longer.
    assert!(run.is_running());
    ada.presses("C-q");
    run.wait();
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
    let run = scene.start("Say hello.", spec, &env);
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
    run.wait_for_acceptance(message);
    until("it did it", || scene.tree().join("c.txt").exists());
    ada.presses("C-q");
    completed(&run);
    run.wait();
}

#[test]
fn a_permission_is_given_from_afar() {
    let scene = Scene::new();
    let prompt = "stand-in: shell touch ../outside; say Done.";
    let run = scene.start(prompt, spec(&scene), &env(&scene));
    let question = asked(&run).id;
    // What is said meanwhile waits: it could answer the dialog.
    let message = run.say("stand-in: say Heard.");
    let id = new_message_id();
    let text = String::from("allow");
    run.post(&Letter::Answer { id, question, text });
    run.wait_for_acceptance(id);
    run.wait_for_acceptance(message);
    run.wait_for_conversation("all is done", |talk| talk.last_text == "Heard.");
    run.wait();
    assert!(scene.directory().join("outside").exists());
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
    let run = scene.start(prompt, spec(&scene), &env(&scene));
    let question = asked(&run);
    assert_eq!(question.choices, ["Red", "Blue"]);
    let (id, question) = (new_message_id(), question.id);
    let text = String::from("Blue");
    run.post(&Letter::Answer { id, question, text });
    run.wait_for_acceptance(id);
    scene
        .api
        .expect("the answer", |request| request.tool_says("Blue"));
    completed(&run);
    run.wait();
}

#[test]
fn a_permission_that_the_person_gives_is_no_longer_asked_for() {
    let scene = Scene::new();
    let prompt = "stand-in: shell touch ../outside; say Done.";
    let run = scene.start(prompt, spec(&scene), &env(&scene));
    let ada = scene.viewer("ada", &run, (120, 40));
    let question = asked(&run).id;
    ada.until_sees("Do you want to proceed?");
    ada.presses("1");
    run.wait_for_event("it is withdrawn", |event| {
        *event == Event::Withdrawn { question }
    });
    completed(&run);
    assert!(scene.directory().join("outside").exists());
    ada.presses("C-q");
    run.wait();
}

#[test]
fn the_projects_rules_hold_in_a_terminal_too() {
    let scene = Scene::new();
    let mut spec = spec(&scene);
    spec.rules.mode = Mode::Yolo;
    spec.rules.deny = vec!["touch *".into()];
    let prompt = "stand-in: shell touch no.txt; shell echo yes > yes.txt; say Done.";
    let run = scene.start(prompt, spec, &env(&scene));
    completed(&run);
    run.wait();
    assert!(!scene.tree().join("no.txt").exists());
    assert!(scene.tree().join("yes.txt").exists());
    let talk = run.conversation();
    assert_eq!(talk.denied.len(), 1, "{talk:?}");
}

#[test]
fn what_a_person_interrupts_is_not_said_again_with_the_next_message() {
    let scene = Scene::new();
    let prompt = "Remember walnuts.\nstand-in: slow 50; say Late.";
    let run = scene.start(prompt, spec(&scene), &env(&scene));
    let ada = scene.viewer("ada", &run, (120, 40));
    scene
        .api
        .expect("it works", |request| request.user_says("slow 50"));
    // It had not said anything yet, so it puts the prompt back where it is typed.
    ada.presses("Escape");
    run.wait_for_conversation("it is interrupted", |talk| {
        talk.ending == Some(Ending::Interrupted)
    });
    ada.until_sees("❯\u{a0}Remember walnuts.");
    let message = run.say("stand-in: say By letter.");
    run.wait_for_acceptance(message);
    run.wait_for_conversation("it did what it was told", |talk| {
        talk.last_text == "By letter." && talk.ending == Some(Ending::Completed)
    });
    ada.types("stand-in: say By hand.");
    ada.until_sees("say By hand.");
    ada.presses("Enter");
    run.wait_for_conversation("it has done what the person said", |talk| {
        talk.last_text == "By hand." && talk.ending == Some(Ending::Completed)
    });
    let by_hand = "stand-in: say By hand.";
    run.wait_for_event(
        "what the person said is told",
        |event| matches!(event, Event::Said { text } if text == by_hand),
    );
    ada.presses("C-q");
    run.wait();
}

#[test]
fn a_headless_conversation_is_taken_over() {
    let scene = Scene::new();
    let spec = Spec {
        terminal: false,
        ..spec(&scene)
    };
    let prompt = "Remember the word walnut.\nstand-in: slow 50; say Late.";
    let run = scene.start(prompt, spec, &env(&scene));
    run.wait_for_conversation("it has begun", |talk| talk.session.is_some());
    scene
        .api
        .expect("it works", |request| request.user_says("walnut"));
    let session = run.conversation().session;
    let id = new_message_id();
    run.post(&Letter::Takeover { id });
    run.wait_for_acceptance(id);
    assert!(run.conversation().terminal);
    let ada = scene.viewer("ada", &run, (120, 40));
    ada.until_sees("walnut");
    ada.types("stand-in: say By hand.");
    ada.until_sees("say By hand.");
    ada.presses("Enter");
    run.wait_for_conversation("it has done what the person said", |talk| {
        talk.last_text == "By hand." && talk.ending == Some(Ending::Completed)
    });
    assert_eq!(run.conversation().session, session);
    ada.presses("C-q");
    run.wait();
}
