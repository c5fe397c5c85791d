//! Real Codex in a terminal.

use woodward_agents::{Ending, Event, Kind, Letter, Question, Spec};
use woodward_testkit::agent_run::{AgentRun, new_message_id};

use crate::person::long_text;
use crate::scene::Scene;

fn env(_: &Scene) -> Vec<(&'static str, String)> {
    vec![("STAND_IN_KEY", "sk-stand-in-0123456789abcdef".into())]
}

fn spec(scene: &Scene) -> Spec {
    let text = scene.api.codex_config();
    let home = scene.own_config().join("config");
    std::fs::create_dir_all(&home).expect("it works");
    std::fs::write(home.join("config.toml"), &text).expect("it works");
    scene.spec(Kind::Codex, &["codex"])
}

fn completed(run: &AgentRun) {
    run.wait_for_conversation("its turn is over", |talk| {
        talk.ending == Some(Ending::Completed)
    });
}

/// A command that Codex asks about: it is told to run it outside of its sandbox.
fn outside(command: &str) -> String {
    format!(
        "stand-in: call exec_command {{\"cmd\":\"{command}\",\
         \"sandbox_permissions\":\"require_escalated\",\"justification\":\"because\"}}"
    )
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
fn it_works_when_everything_lies_below_the_temporary_directory() {
    let scene = Scene::in_directory(tempfile::tempdir().expect("it works"));
    let prompt = "stand-in: write a.txt=hello; commit add a; say All done.";
    let run = scene.start(prompt, spec(&scene), &env(&scene));
    completed(&run);
    run.wait();
    assert_eq!(run.conversation().last_text, "All done.");
    let committed = scene
        .repo
        .git(&["log", "-1", "--format=%s", "woodward/tree/1"]);
    assert_eq!(committed.trim(), "add a");
}

#[test]
fn a_long_message_arrives_exact() {
    let scene = Scene::new();
    let run = scene.start("Say hello.", spec(&scene), &env(&scene));
    let ada = scene.viewer("ada", &run, (120, 40));
    run.wait_for_conversation("a person is attached", |talk| talk.attached);
    completed(&run);
    let text = long_text("stand-in: say Done twice.");
    let message = run.say(&text);
    run.wait_for_acceptance(message);
    scene
        .api
        .expect("every word", |request| request.user_says(text.trim()));
    run.wait_for_conversation("it did what it was told", |talk| {
        talk.last_text == "Done twice." && talk.ending == Some(Ending::Completed)
    });
    ada.presses("C-q");
    run.wait();
}

#[test]
fn a_permission_is_given_from_afar_for_the_command_on_the_screen() {
    let scene = Scene::new();
    let prompt = outside("touch ../outside") + "; say Done.";
    let run = scene.start(&prompt, spec(&scene), &env(&scene));
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
fn a_no_is_told_to_the_agent_which_goes_on() {
    let scene = Scene::new();
    let prompt = outside("touch ../outside") + "; say Done.";
    let run = scene.start(&prompt, spec(&scene), &env(&scene));
    let question = asked(&run).id;
    let id = new_message_id();
    let text = String::from("stand-in: say Then not.");
    run.post(&Letter::Answer { id, question, text });
    run.wait_for_acceptance(id);
    run.wait_for_conversation("it goes on without", |talk| {
        talk.last_text == "Then not." && talk.ending == Some(Ending::Completed)
    });
    run.wait();
    assert!(!scene.directory().join("outside").exists());
}

#[test]
fn a_permission_that_the_person_gives_is_no_longer_asked_for() {
    let scene = Scene::new();
    let prompt = outside("touch ../outside") + "; say Done.";
    let run = scene.start(&prompt, spec(&scene), &env(&scene));
    let ada = scene.viewer("ada", &run, (120, 40));
    let question = asked(&run).id;
    ada.until_sees("Would you like to run the following command?");
    ada.types("y");
    run.wait_for_event("it is withdrawn", |event| {
        *event == Event::Withdrawn { question }
    });
    completed(&run);
    assert!(scene.directory().join("outside").exists());
    ada.presses("C-q");
    run.wait();
}
