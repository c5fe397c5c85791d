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
    let config = format!("{SHELL_AGENT}limits: {{ backoff: 20ms }}\n");
    Scene::of(TestRepo::with(&[
        ("woodward.yaml", &config),
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

/// Polls until a shell condition holds, with a deadline.
const UNTIL: &str = r#"until_true() {
  deadline=$(( $(date +%s) + 60 ))
  while ! eval "$1"; do
    [ "$(date +%s)" -lt "$deadline" ] || { echo "timed out: $1"; woodward status; exit 80; }
    sleep 0.2
  done
}"#;

#[test]
fn tasks_wait_for_a_full_worktree_disk_and_continue_when_there_is_room() {
    let scene = ready();
    let trees = scene.worktree("");
    std::fs::create_dir_all(&trees).unwrap();
    let ran = in_own_mounts(
        &scene,
        &format!(
            "{UNTIL}
mount -t tmpfs -o size=8m none '{0}' || exit 91
head -c 7500000 /dev/zero > '{0}/ballast'
woodward init -q || exit 90
woodward create -q one two -p 'echo $WOODWARD_TASK > $WOODWARD_TASK.txt; exit 0' || exit 92
until_true '[ \"$(woodward status --json | grep -o \"\\\"free_bytes\\\"\" | wc -l)\" -ge 2 ]'
woodward status
woodward show one
woodward show two --json
rm '{0}/ballast'
woodward wait one two --until review --timeout 60s || exit 93
woodward show one --json > '{1}'
woodward show two --json >> '{1}'
woodward merge one two && woodward wait one two --until landed --timeout 60s",
            trees.display(),
            scene.mark("shown").display(),
        ),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = format!(
        "free on {}",
        trees.display().to_string().trim_end_matches('/')
    );
    assert!(ran.stdout.contains("disk full: "), "{ran:?}");
    assert!(ran.stdout.contains(&told), "{ran:?}");
    let shown = std::fs::read_to_string(scene.mark("shown")).unwrap();
    assert_eq!(shown.matches("\"runs\": 1").count(), 2, "{shown}");
    assert!(!shown.contains("prepare_failed"), "{shown}");
    scene.repo.fsck();
}

#[test]
fn a_run_that_fails_on_a_full_disk_uses_no_attempt() {
    let scene = Scene::of(TestRepo::with(&[
        ("woodward.yaml", SHELL_AGENT),
        ("a.txt", "1\n"),
    ]));
    let trees = scene.worktree("");
    std::fs::create_dir_all(&trees).unwrap();
    let (first, ballast) = (scene.mark("first"), trees.join("ballast"));
    // The first run fills the disk and fails; the second finds room.
    let prompt = format!(
        "[ -e \"{0}\" ] || {{ touch \"{0}\"; head -c 100000000 /dev/zero > \"{1}\"; exit 1; }}; \
         echo x > x.txt; exit 0",
        first.display(),
        ballast.display()
    );
    let prompt_file = scene.mark("prompt");
    std::fs::write(&prompt_file, prompt).unwrap();
    let ran = in_own_mounts(
        &scene,
        &format!(
            "{UNTIL}
mount -t tmpfs -o size=8m none '{0}' || exit 91
woodward init -q || exit 90
woodward create one -p - < '{1}' || exit 92
until_true 'woodward status --json | grep -q free_bytes'
woodward show one --json > '{2}'
rm '{3}'
woodward wait one --until review --timeout 60s || exit 93
woodward timeline one",
            trees.display(),
            prompt_file.display(),
            scene.mark("shown").display(),
            ballast.display(),
        ),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("disk full: "), "{ran:?}");
    let shown = std::fs::read_to_string(scene.mark("shown")).unwrap();
    assert!(!shown.contains("backoff"), "{shown}");
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
