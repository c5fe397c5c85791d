//! A state directory that is removed or replaced under a running daemon.

use std::fs;

use woodward_testkit::TestRepo;

use crate::scene::Scene;

fn scene() -> Scene {
    Scene::of(TestRepo::with(&[("a.txt", "1\n")]))
}

/// The daemon ends by itself, says why, and leaves the place as it found it.
fn ends_after(scene: &Scene, remove: impl FnOnce(&std::path::Path)) {
    let state = scene.daemon.state();
    let mut daemon = scene.daemon.foreground(scene.root());
    scene.ok(&["init", "-q"]);
    scene.ok(&["create", "draft"]);
    remove(&state);
    let status = daemon.wait().expect("it ends");
    assert_eq!(status.code(), Some(1), "{status}");
    let log = scene.daemon.home().join("foreground.log");
    let log = fs::read_to_string(log).expect("what it said");
    let said = format!("the state directory {} is gone", state.display());
    assert!(log.contains(&said), "{log}");
}

#[test]
fn a_daemon_whose_state_directory_is_removed_ends_and_does_not_make_it_anew() {
    let scene = scene();
    ends_after(&scene, |state| {
        fs::remove_dir_all(state).expect("it is removed");
    });
    assert!(!scene.daemon.state().exists());
}

#[test]
fn a_daemon_whose_state_directory_is_moved_away_ends_and_the_next_one_takes_it_up() {
    let scene = scene();
    let aside = scene.daemon.home().join("aside");
    ends_after(&scene, |state| {
        fs::rename(state, &aside).expect("it is moved");
    });
    assert!(!scene.daemon.state().exists());
    fs::rename(&aside, scene.daemon.state()).expect("it is moved back");
    let tasks = scene.status();
    assert_eq!(tasks.len(), 1, "{tasks:?}");
}
