//! `init` tries setup and gates in a fresh worktree, and what it writes works there.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use woodward_testkit::TestRepo;
use woodward_testkit::patience::until;

use crate::scene::Scene;

const PACKAGE: &str = r#"{ "name": "shop", "version": "1.0.0", "scripts": { "test": "check-shop" },
  "dependencies": { "checker": "file:checker" } }"#;
/// A dependency inside the repository: installing it needs no registry.
const LOCK: &str = r#"{ "name": "shop", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
  "": { "name": "shop", "version": "1.0.0", "dependencies": { "checker": "file:checker" } },
  "checker": { "version": "1.0.0", "bin": { "check-shop": "check.js" } },
  "node_modules/checker": { "resolved": "checker", "link": true } } }"#;
const CHECKER: &str =
    r#"{ "name": "checker", "version": "1.0.0", "bin": { "check-shop": "check.js" } }"#;
const CHECK: &str = "#!/usr/bin/env node\nconsole.log('checked');\n";

/// No worktree of a trial is left, and git knows of none.
fn no_trial_is_left(scene: &Scene) -> bool {
    let trials = scene.root().with_file_name("shop.worktrees").join(".trial");
    let is_empty = std::fs::read_dir(trials).is_ok_and(|mut entries| entries.next().is_none());
    is_empty && !scene.repo.git(&["worktree", "list"]).contains(".trial")
}

fn commit_config(scene: &Scene) {
    scene.repo.git(&["add", "woodward.yaml"]);
    let message = ["commit", "--quiet", "-m", "Set up Woodward"];
    scene.repo.git(&message);
}

#[test]
fn an_npm_project_gets_the_setup_that_its_gates_need_in_a_worktree() {
    let scene = Scene::of(TestRepo::with(&[
        ("package.json", PACKAGE),
        ("package-lock.json", LOCK),
        ("checker/package.json", CHECKER),
        ("checker/check.js", CHECK),
        (".gitignore", "node_modules\n"),
    ]));
    // As in a person's checkout, where everything is installed already.
    let bin = scene.root().join("node_modules/.bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink("../../checker/check.js", bin.join("check-shop")).unwrap();
    let ran = scene.ok(&["init", "--agent-command", "sh"]);
    for words in ["setup: pass (exit 0", "): npm ci\n", "gate test: pass"] {
        assert!(ran.stdout.contains(words), "{words:?}: {ran:#?}");
    }
    let written = scene.repo.read("woodward.yaml");
    assert!(written.contains("\n    - \"npm ci\"\n"), "{written}");
    assert!(no_trial_is_left(&scene));
    let changed = scene.repo.git(&["status", "--porcelain"]);
    assert_eq!(changed.trim(), "?? woodward.yaml");
    commit_config(&scene);
    scene.create("one", "echo new > new.txt");
    scene.land("one");
    assert_eq!(scene.repo.read("new.txt"), "new\n");
}

#[test]
fn a_program_that_a_worktree_lacks_is_named() {
    let package = r#"{ "scripts": { "test": "check-shop" } }"#;
    let scene = Scene::of(TestRepo::with(&[("package.json", package)]));
    let ran = scene.ok(&["init", "-q"]);
    let words = "gate test: fails now, so it is written as a comment (check-shop: not found,";
    assert!(ran.stdout.contains(words), "{ran:#?}");
    let written = scene.repo.read("woodward.yaml");
    let reason = "# Did not pass when it was tried: check-shop: not found\n";
    assert!(written.contains(reason), "{written}");
}

#[test]
fn ignored_files_that_a_gate_needs_are_copied_into_worktrees() {
    let scene = Scene::of(TestRepo::with(&[
        ("Makefile", "test:\n\ttest -s .env && test -s local.json\n"),
        (".gitignore", ".env\nlocal.json\n"),
    ]));
    scene.repo.write(".env", "KEY=1\n");
    scene.repo.write("local.json", "{}\n");
    let ran = scene.ok(&["init", "--agent-command", "sh"]);
    for words in [
        "copy: .env, local.json (ignored by git",
        "it needs local.json, proposed under worktree.copy",
    ] {
        assert!(ran.stdout.contains(words), "{words:?}: {ran:#?}");
    }
    assert!(no_trial_is_left(&scene));
    commit_config(&scene);
    scene.create("one", "echo new > new.txt");
    scene.land("one");
}

#[test]
fn where_nothing_checks_results_init_says_what_to_write() {
    let scene = Scene::of(TestRepo::with(&[("README.md", "words\n")]));
    let ran = scene.ok(&["init"]);
    let words = "gates: nothing was found that checks results\n";
    assert!(ran.stdout.contains(words), "{ran:#?}");
    let hint = "write the commands that must pass under `gates` in woodward.yaml";
    assert!(ran.stderr.contains(hint), "{ran:#?}");
}

#[test]
fn an_interrupted_init_leaves_neither_worktree_nor_process_nor_file() {
    let scene = Scene::of(TestRepo::with(&[("README.md", "words\n")]));
    let gate = format!(
        "test:\n\techo $$$$ > '{}'; sleep 600\n",
        scene.mark("gate").display()
    );
    scene.repo.commit("gate", &[("Makefile", &gate)]);
    let mut command = scene.daemon.command(scene.root());
    command.args(["init"]).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut init = command.spawn().unwrap();
    let gate = scene.number("gate");
    let pid = Pid::from_raw(i32::try_from(init.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(init.wait().unwrap().code(), Some(130));
    until("the gate has ended", || {
        !std::path::Path::new(&format!("/proc/{gate}")).exists()
    });
    until("the worktree is removed", || no_trial_is_left(&scene));
    assert!(!scene.root().join("woodward.yaml").exists());
}

/// The directory of rustup and of its proxies for `cargo` and the like.
fn rustup_directory() -> std::path::PathBuf {
    let path = std::env::var_os("PATH").expect("a PATH");
    let mut directories = std::env::split_paths(&path);
    let found = directories.find(|directory| directory.join("rustup").is_file());
    found.expect("rustup is installed, as building Woodward needs it")
}

#[test]
fn a_repository_can_not_make_init_install_a_toolchain() {
    let mut scene = Scene::of(TestRepo::with(&[
        (
            "Cargo.toml",
            "[package]\nname = \"shop\"\nversion = \"1.0.0\"\nedition = \"2018\"\n",
        ),
        ("src/lib.rs", "#[test]\nfn works() {}\n"),
        (
            "rust-toolchain.toml",
            "[toolchain]\nchannel = \"1.50.0\"\ncomponents = [\"clippy\"]\n",
        ),
    ]));
    // Where rustup would download from, and where it would install to: both are the test's own.
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = server.local_addr().expect("an address");
    server.set_nonblocking(true).expect("it is a socket");
    let rustup = scene.daemon.home().join("rustup");
    let path = std::env::var_os("PATH").expect("a PATH");
    let path = std::env::split_paths(&path);
    let path = std::env::join_paths(std::iter::once(rustup_directory()).chain(path));
    scene.daemon.set("PATH", path.expect("plain paths"));
    scene.daemon.set("RUSTUP_HOME", &rustup);
    let url = format!("http://{address}");
    scene.daemon.set("RUSTUP_DIST_SERVER", &url);

    let ran = scene.ok(&["init", "--agent-command", "sh"]);
    let gate = ran.stdout.lines().find(|line| line.contains("gate test:"));
    let gate = gate.unwrap_or_else(|| panic!("no test gate is proposed: {ran:#?}"));
    for words in [
        "toolchain '1.50.0-",
        "is not installed (install it: rustup toolchain install)",
    ] {
        assert!(gate.contains(words), "{words:?}: {ran:#?}");
    }
    let asked = server.accept().map(|(_, who)| who);
    assert!(asked.is_err(), "rustup asked for a download: {asked:?}");
    assert!(!rustup.join("toolchains").exists(), "nothing is installed");
    assert!(!scene.daemon.home().join(".rustup").exists());
}
