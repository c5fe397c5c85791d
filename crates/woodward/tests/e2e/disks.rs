//! Disks that can't be written: read-only, or full.
//!
//! Root can write everywhere, so these tests have file systems of their own, in a mount namespace
//! that is theirs alone.

use woodward_testkit::{Ran, TestRepo};

use crate::scene::{SHELL_AGENT, Scene};

/// Runs a script in a mount namespace of its own. Its daemon lives in there.
fn in_own_mounts(scene: &Scene, script: &str) -> Ran {
    let script_file = scene.mark("script.sh");
    std::fs::write(&script_file, format!("set -u\n{script}\n")).expect("a script");
    let line = format!(
        "exec unshare --map-root-user --mount sh '{}'",
        script_file.display()
    );
    scene.daemon.type_in(scene.root(), &line)
}

fn ready() -> Scene {
    Scene::of(TestRepo::with(&[
        ("woodward.yaml", SHELL_AGENT),
        ("big.bin", &"x".repeat(3 << 20)),
    ]))
}

#[test]
fn a_read_only_state_directory_is_told_with_a_way_out() {
    let scene = ready();
    let state = scene.daemon.state();
    std::fs::create_dir(&state).unwrap();
    let ran = in_own_mounts(
        &scene,
        &format!(
            "mount --bind '{0}' '{0}' && mount -o remount,ro,bind '{0}'\nwoodward status",
            state.display()
        ),
    );
    assert!(matches!(ran.code, 1 | 3), "{ran:?}");
    assert!(ran.stderr.contains("Read-only file system"), "{ran:?}");
    assert!(ran.stderr.contains("WOODWARD_STATE_DIR"), "{ran:?}");
}

#[test]
fn a_read_only_repository_is_a_recorded_outcome() {
    let scene = ready();
    let ran = in_own_mounts(
        &scene,
        &format!(
            "woodward init -q || exit 90
mount --bind '{0}' '{0}' && mount -o remount,ro,bind '{0}' || exit 91
woodward create one -p 'echo x > x; exit 0' || exit 92
woodward wait one --until review --timeout 60s
echo \"code $?\"
woodward status
woodward show one",
            scene.repo.around().display()
        ),
    );
    assert!(ran.stdout.contains("Read-only file system"), "{ran:?}");
    assert!(ran.stdout.contains("code 12"), "{ran:?}");
}

#[test]
fn a_full_disk_is_a_recorded_outcome_and_a_retry_goes_on() {
    let scene = ready();
    let trees = scene.worktree("");
    std::fs::create_dir_all(&trees).unwrap();
    let ran = in_own_mounts(
        &scene,
        &format!(
            "mount -t tmpfs -o size=4m none '{0}' || exit 91
head -c 3500000 /dev/zero > '{0}/ballast'
woodward init -q || exit 90
woodward create one -p 'echo x > x; exit 0' || exit 92
woodward wait one --until review --timeout 60s
echo \"code $?\"
woodward show one
rm '{0}/ballast'
woodward retry one
woodward wait one --until review --timeout 60s || exit 93
woodward merge one && woodward wait one --until landed --timeout 60s",
            trees.display()
        ),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("code 12"), "{ran:?}");
    assert!(ran.stdout.contains("No space left"), "{ran:?}");
    assert_eq!(scene.repo.git(&["show", "main:x"]), "x");
    scene.repo.fsck();
}

#[test]
fn a_full_state_disk_loses_nothing_and_says_so() {
    let scene = ready();
    let state = scene.daemon.state();
    std::fs::create_dir(&state).unwrap();
    let ran = in_own_mounts(
        &scene,
        &format!(
            "mount -t tmpfs -o size=8m,mode=0700 none '{0}' || exit 91
woodward init -q || exit 90
woodward create before -p 'echo x > x' || exit 92
woodward wait before --until review --timeout 60s || exit 93
head -c 100000000 /dev/zero > '{0}/ballast' 2> /dev/null
head -c 3000000 /dev/zero | tr '\\000' 'x' | woodward create after -p -
echo \"code $?\"
rm '{0}/ballast'
woodward create later -p 'echo y > y' || exit 94
woodward wait later --until review --timeout 60s || exit 95
woodward status",
            state.display()
        ),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("code 1"), "{ran:?}");
    assert!(
        ran.stderr.contains("space") || ran.stderr.contains("full"),
        "{ran:?}"
    );
    assert!(
        ran.stdout.contains("before") && ran.stdout.contains("later"),
        "{ran:?}"
    );
}
