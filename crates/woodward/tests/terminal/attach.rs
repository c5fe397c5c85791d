//! A person at the terminal of a run, without tmux of Woodward's.

use rustix::process::{Pid, Signal, kill_process};
use woodward_agents::{Ending, Event, Letter};
use woodward_testkit::agent_run::new_message_id;
use woodward_testkit::patience::until;

use crate::scene::{Scene, WOODWARD};

/// Says what it hears and how large its terminal is.
const ECHO: &str = "echo ready; while read line; do echo \"heard $line\"; stty size; done";

#[test]
fn a_person_attaches_types_and_leaves_and_the_agent_goes_on() {
    let scene = Scene::new();
    let run = scene.start("", scene.script(ECHO), &[]);
    let ada = scene.viewer("ada", &run, (100, 30));
    ada.until_sees("ready");
    run.wait_for_conversation("somebody is attached", |talk| talk.attached);
    ada.types("hello");
    ada.presses("Enter");
    ada.until_sees("heard hello");
    ada.until_sees("30 100");
    ada.presses("C-q");
    ada.until_sees("LEFT 0");
    until("the terminal is looked at", || {
        scene.directory().join("ada.after").exists()
    });
    assert!(scene.is_restored("ada"));
    run.wait_for_conversation("nobody is attached", |talk| !talk.attached);
    assert!(run.is_running());
    // Who comes later sees what is there.
    let bob = scene.viewer("bob", &run, (100, 30));
    bob.until_sees("heard hello");
    bob.presses("C-d");
    bob.until_sees("LEFT 0");
    run.wait();
    assert_eq!(run.conversation().ending, Some(Ending::Completed));
    assert!(!run.directory().join("attach.sock").exists());
}

#[test]
fn the_agent_has_the_size_of_the_persons_terminal() {
    let scene = Scene::new();
    let run = scene.start("", scene.script(ECHO), &[]);
    let ada = scene.viewer("ada", &run, (100, 30));
    ada.until_sees("ready");
    ada.tmux(&["resize-window", "-t", &ada.target(), "-x", "81", "-y", "22"]);
    until("the agent has it too", || {
        ada.presses("Enter");
        ada.sees().contains("22 81")
    });
}

#[test]
fn several_look_at_once_and_who_only_looks_does_not_type() {
    let scene = Scene::new();
    let run = scene.start("", scene.script(ECHO), &[]);
    let ada = scene.viewer("ada", &run, (100, 30));
    let line = format!(
        "env -u TMUX {WOODWARD} view-terminal {} --read-only",
        run.directory().display()
    );
    let eve = scene.person("eve", &line, (60, 20));
    eve.until_sees("ready");
    eve.types("no");
    eve.presses("Enter");
    ada.until_sees("ready");
    ada.types("yes");
    ada.presses("Enter");
    eve.until_sees("heard yes");
    assert!(!ada.sees().contains("heard no"), "{}", ada.sees());
    // Nor does the size of who only looks count.
    ada.until_sees("30 100");
    ada.presses("C-q");
    run.wait_for_conversation("who only looks does not keep it", |talk| !talk.attached);
    eve.presses("C-q");
    eve.until_sees("LEFT 0");
}

#[test]
fn a_client_that_is_killed_takes_nobody_with_it() {
    let scene = Scene::new();
    let run = scene.start("", scene.script(ECHO), &[]);
    let ada = scene.viewer("ada", &run, (100, 30));
    let bob = scene.viewer("bob", &run, (100, 30));
    ada.until_sees("ready");
    bob.until_sees("ready");
    kill_process(ada.client(), Signal::KILL).unwrap();
    ada.until_sees("LEFT 137");
    bob.types("still");
    bob.presses("Enter");
    bob.until_sees("heard still");
    assert!(run.is_running());
    // One that is asked to end gives the terminal back.
    kill_process(bob.client(), Signal::TERM).unwrap();
    bob.until_sees("LEFT 0");
    until("the terminal is looked at", || {
        scene.directory().join("bob.after").exists()
    });
    assert!(scene.is_restored("bob"));
}

#[test]
fn a_host_that_is_killed_leaves_the_persons_terminal_as_it_was() {
    let scene = Scene::new();
    let run = scene.start("", scene.script(ECHO), &[]);
    let ada = scene.viewer("ada", &run, (100, 30));
    ada.until_sees("ready");
    let host = Pid::from_raw(i32::try_from(run.process_id()).unwrap()).unwrap();
    kill_process(host, Signal::KILL).unwrap();
    ada.until_sees("LEFT 0");
    until("the terminal is looked at", || {
        scene.directory().join("ada.after").exists()
    });
    assert!(scene.is_restored("ada"));
}

#[test]
fn what_a_program_prints_does_not_reach_a_persons_terminal_as_it_is() {
    let scene = Scene::new();
    let script = "printf '\\033]52;c;c2VjcmV0\\007\\033]2;busy\\007\\033[?1003hready'; sleep 1000";
    let run = scene.start("", scene.script(script), &[]);
    let ada = scene.viewer("ada", &run, (100, 30));
    ada.until_sees("ready");
    let title = ada.tmux(&[
        "display-message",
        "-p",
        "-t",
        &ada.target(),
        "#{pane_title}",
    ]);
    assert_eq!(title.trim(), "busy");
    assert!(ada.tmux(&["list-buffers"]).is_empty());
}

#[test]
fn a_program_without_a_side_channel_is_told_nothing_and_says_so() {
    let scene = Scene::new();
    let run = scene.start("", scene.script(ECHO), &[]);
    let message = run.say("hello");
    let ada = scene.viewer("ada", &run, (100, 30));
    ada.until_sees("ready");
    ada.presses("C-d");
    run.wait_for_event(
        "it is not delivered",
        |event| matches!(event, Event::Rejected { message: one, .. } if *one == message),
    );
    assert!(!ada.sees().contains("hello"));
    run.wait();
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let scene = Scene::new();
    let spec = scene.spec(woodward_agents::Kind::ClaudeCode, &["/no/such/claude"]);
    let run = scene.start("hello", spec, &[]);
    run.wait();
    let Some(Ending::Unfit { note }) = run.conversation().ending else {
        panic!("{:?}", run.conversation());
    };
    assert!(note.contains("/no/such/claude"), "{note}");
}

#[test]
fn a_run_that_is_in_a_terminal_is_taken_over_already() {
    let scene = Scene::new();
    let run = scene.start("", scene.script(ECHO), &[]);
    let id = new_message_id();
    run.post(&Letter::Takeover { id });
    run.wait_for_acceptance(id);
}
