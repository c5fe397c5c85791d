//! A run's session on a tmux server of Woodward's own.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use woodward_agents::terminal;
use woodward_agents::terminal::tmux::{self, Session};
use woodward_testkit::agent_run::AgentRun;
use woodward_testkit::patience::until;

use crate::scene::{Scene, WOODWARD};

const ECHO: &str = "echo ready; while read line; do echo \"heard $line\"; done";

fn session(scene: &Scene, run: &AgentRun, name: &str) -> Session {
    let mark = format!("WOODWARD_STATE_DIR={}", scene.directory().display());
    let words = ["env", &mark, WOODWARD, terminal::VIEW];
    let mut client: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    client.push(run.directory().display().to_string());
    Session {
        socket: scene.directory().join("tmux.sock"),
        name: name.to_owned(),
        client,
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("it works")
        .block_on(future)
}

fn server(socket: &Path) -> Pid {
    let output = std::process::Command::new("tmux")
        .arg("-S")
        .arg(socket)
        .args(["display-message", "-p", "#{pid}"])
        .env_remove("TMUX")
        .output()
        .expect("it works");
    let pid = String::from_utf8(output.stdout).expect("it works");
    Pid::from_raw(pid.trim().parse().expect("it works")).expect("it works")
}

#[test]
fn a_person_joins_types_and_leaves_and_the_agent_outlives_tmux() {
    let scene = Scene::new();
    let run = scene.start("", scene.script(ECHO), &[]);
    let session = session(&scene, &run, "fix-login-1");
    wait(tmux::open(&session)).unwrap();
    assert!(wait(tmux::is_there(&session)));
    // A pane that nobody looks at is nobody.
    until("the pane shows the agent", || {
        run.directory().join("attach.sock").exists()
    });
    assert!(!run.conversation().attached);
    let join = format!("{:?}", session.join(false)).replace("\" \"", " ");
    let join = join.replace('"', "");
    let ada = scene.person("ada", &format!("env -u {join}"), (100, 30));
    ada.until_sees("ready");
    run.wait_for_conversation("somebody is attached", |talk| talk.attached);
    ada.types("hello");
    ada.presses("Enter");
    ada.until_sees("heard hello");
    ada.presses("C-q");
    ada.until_sees("LEFT 0");
    run.wait_for_conversation("nobody is attached", |talk| !talk.attached);
    // The whole server is killed: only clients go.
    kill_process(server(&session.socket), Signal::KILL).unwrap();
    until("the session is gone", || !wait(tmux::is_there(&session)));
    assert!(run.is_running());
    wait(tmux::open(&session)).unwrap();
    let bob = scene.viewer("bob", &run, (100, 30));
    bob.until_sees("heard hello");
    bob.types("again");
    bob.presses("Enter");
    bob.until_sees("heard again");
    wait(tmux::close(&session)).unwrap();
    assert!(!wait(tmux::is_there(&session)));
    assert!(run.is_running());
}

#[test]
fn a_session_is_not_taken_for_another_whose_name_begins_like_it() {
    let scene = Scene::new();
    let run = scene.start("", scene.script(ECHO), &[]);
    let long = session(&scene, &run, "fix-login-12");
    let short = session(&scene, &run, "fix-login-1");
    wait(tmux::open(&long)).unwrap();
    assert!(!wait(tmux::is_there(&short)));
    wait(tmux::close(&short)).unwrap();
    assert!(wait(tmux::is_there(&long)));
    wait(tmux::open(&short)).unwrap();
    wait(tmux::close(&short)).unwrap();
    assert!(wait(tmux::is_there(&long)));
}
