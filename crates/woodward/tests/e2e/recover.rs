//! Ctrl-C, `down`, `rm` and `cancel` in every state: all work comes back with the command that was
//! printed.

use rustix::process::{Pid, Signal, kill_process};
use woodward_core::StateKind;
use woodward_testkit::patience::until;

use crate::cast::{STATES, Work, assemble};
use crate::scene::{Scene, is_supervisor, lives};

fn given_up_and_taken_back(verb: &str) {
    let (scene, work) = assemble();
    let mut told = Vec::new();
    for state in STATES {
        let ran = scene.ok(&[verb, state]);
        told.push((state, ran.hinted("undo")));
    }
    for (state, command) in told {
        let before = &work[state];
        scene.type_in(&command);
        let after = Work::of(&scene.worktree(state));
        assert_eq!(&after, before, "{verb} {state}, then {command}");
        let task = scene.show(state);
        let expected = if state == "draft" { "draft" } else { "paused" };
        assert_eq!(task.task.state.as_str(), expected, "{task:#?}");
    }
    // The person's own change was never touched.
    assert_eq!(scene.repo.read("a.txt"), "a person's own change\n");
    scene.repo.fsck();
    scene.repo.git(&["checkout", "a.txt"]);
    // What came back goes on to the end.
    scene.give("go");
    scene.ok(&["resume", "working"]);
    scene.land("working");
    assert_eq!(scene.repo.git(&["show", "main:committed.txt"]), "kept");
}

#[test]
fn what_rm_takes_in_any_state_comes_back_with_the_printed_command() {
    given_up_and_taken_back("rm");
}

#[test]
fn what_cancel_takes_in_any_state_comes_back_with_the_printed_command() {
    given_up_and_taken_back("cancel");
}

fn nothing_changed(
    scene: &Scene,
    work: &std::collections::BTreeMap<&'static str, Option<Work>>,
    why: &str,
) {
    for state in STATES {
        assert_eq!(
            &Work::of(&scene.worktree(state)),
            &work[state],
            "{why}: {state}"
        );
    }
}

#[test]
fn ctrl_c_and_down_leave_every_task_and_agent_where_it_is() {
    let (scene, work) = assemble();
    let supervisors = || -> Vec<i32> {
        let pids = scene.daemon.processes().into_iter();
        pids.map(|pid| pid.as_raw_nonzero().get())
            .filter(|pid| is_supervisor(*pid))
            .collect()
    };
    let kinds = |scene: &Scene| -> Vec<(String, StateKind)> {
        scene
            .status()
            .iter()
            .map(|task| (task.name.to_string(), task.state))
            .collect()
    };
    let before = kinds(&scene);
    let down = scene.ok(&["down"]);
    assert!(down.stdout.contains("still running"), "{down:?}");
    nothing_changed(&scene, &work, "after down");

    let mut child = scene.daemon.foreground(scene.root());
    assert_eq!(kinds(&scene), before);
    let running = supervisors();
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0), "Ctrl-C is a way to end it");
    // An agent, one that asks, a setup and a gate.
    assert_eq!(running.len(), 4, "{running:?}");
    for pid in &running {
        assert!(lives(*pid), "{pid} did not survive");
    }
    nothing_changed(&scene, &work, "after Ctrl-C");

    // The next command starts a daemon, which takes up what runs.
    assert_eq!(kinds(&scene), before);
    nothing_changed(&scene, &work, "after the restart");
    for mark in ["go", "gate", "set-up"] {
        scene.give(mark);
    }
    scene.ok(&["answer", "waiting", "that"]);
    for name in ["preparing", "working", "waiting", "verifying"] {
        scene.wait(name, "review");
        assert_eq!(
            scene.show(name).runs.len(),
            1,
            "{name} was adopted, not run again"
        );
    }
    scene.repo.git(&["stash", "--quiet"]);
    scene.lands_by_itself("landing");
    scene.repo.fsck();
}

#[test]
fn outputs_go_long_after_their_task_and_those_of_others_stay() {
    let scene = Scene::new("gates: [{ name: ok, command: \"true\" }]\n");
    let (works, wait) = (scene.leave("works"), scene.await_mark("go"));
    scene.create("open", &format!("{works}\n{wait}\necho x > x; exit 0"));
    scene.create("done", "echo it was done; echo y > y; exit 0");
    scene.land("done");
    scene.seen("works");
    scene.ok(&["down"]);
    let state = scene.daemon.state();
    let nobodys = state.join("runs/01900000-0000-7000-8000-000000000001");
    std::fs::create_dir_all(&nobodys).expect("made");
    let all = ["runs", "gates"].map(|of| std::fs::read_dir(state.join(of)).expect("read"));
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
    for dir in all.into_iter().flatten() {
        let dir = std::fs::File::open(dir.expect("read").path()).expect("opened");
        dir.set_modified(long_ago).expect("set");
    }
    scene.ok(&["up"]);
    until("what is nobody's goes", || !nobodys.exists());
    let said = scene.ok(&["logs", "done"]).stdout;
    assert!(said.contains("it was done"), "{said}");
    scene.give("go");
    scene.wait("open", "review");
}
