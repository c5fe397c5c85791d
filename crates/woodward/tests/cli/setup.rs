//! `init` and completions.

use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use woodward_api::{OpenProject, ProjectView, TrialLeftovers, TrialWorktree};
use woodward_testkit::patience::until;

use crate::place::Place;
use crate::sample;
use crate::standin::{Reply, StandIn, ok, unknown};

fn daemon(place: &Place) -> StandIn {
    let root = place.shop().display().to_string();
    place.daemon(move |asked| -> Reply {
        match asked.route().as_str() {
            "POST /api/v1/projects" => {
                let request: OpenProject = serde_json::from_str(&asked.body).expect("a request");
                assert!(request.root.ends_with("/shop"));
                ok(ProjectView {
                    root: root.clone(),
                    ..sample::project()
                })
            }
            "POST /api/v1/projects/trial" => ok(open_trial(Path::new(&root))),
            "POST /api/v1/projects/trial/close" => {
                std::fs::remove_dir_all(trial(Path::new(&root))).expect("it is there");
                ok(TrialLeftovers::default())
            }
            "GET /api/v1/status" => ok(sample::status()),
            _ => unknown(asked),
        }
    })
}

fn trial(root: &Path) -> PathBuf {
    root.with_file_name("trial")
}

/// A directory with the files of the repository's root.
fn open_trial(root: &Path) -> TrialWorktree {
    let path = trial(root);
    std::fs::create_dir(&path).expect("it works");
    for entry in std::fs::read_dir(root).expect("it works") {
        let entry = entry.expect("it works");
        if entry.file_type().expect("it works").is_file() {
            std::fs::copy(entry.path(), path.join(entry.file_name())).expect("it works");
        }
    }
    let search = std::env::var("PATH").expect("a search path");
    TrialWorktree {
        path: path.display().to_string(),
        commit: "c0ffee".into(),
        env: [("PATH".to_owned(), search)].into(),
        ignored: Vec::new(),
    }
}

/// Time and place differ from run to run.
fn steady(place: &Place, seen: &str) -> String {
    let root = place.shop().display().to_string();
    let seen = seen.replace(&root, "<shop>");
    // `, 0.1s` or `, 12s`
    let mut parts = seen.split(", ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        match rest.strip_prefix('s') {
            Some(rest) if part.starts_with(|c: char| c.is_ascii_digit()) => {
                text + ", <time>" + rest
            }
            _ => text + ", " + part,
        }
    })
}

#[test]
fn a_first_init_tries_the_gates_and_a_second_changes_nothing() {
    let place = Place::new();
    let _standin = daemon(&place);
    std::fs::write(place.shop().join("Makefile"), "all:\n\ntest:\n\ttrue\n").unwrap();
    let first = place.seen(&["init", "--agent-command", "sh work.sh"]);
    let written = std::fs::read_to_string(place.shop().join("woodward.yaml")).unwrap();
    let second = place.seen(&["init"]);
    assert_snapshot!(steady(&place, &first), @r#"
    $ woodward init --agent-command sh work.sh
    project shop: <shop>, tasks start from and land on main
    woodward.yaml: written
    gate test: pass (exit 0, <time>): make test
    ! making a fresh worktree to try setup and gates in
    ! running gate test: make test
    !   ↳ look at it, then: git add woodward.yaml && git commit -m "Set up Woodward"
    !   ↳ woodward create fix-login -p "what to do"
    !   ↳ woodward status
    "#);
    assert_snapshot!(steady(&place, &second), @r#"
    $ woodward init
    project shop: <shop>, tasks start from and land on main
    woodward.yaml: there already, left as it is
    !   ↳ woodward create fix-login -p "what to do"
    !   ↳ woodward status
    "#);
    assert!(
        written.contains("\n  - name: test\n    command: \"make test\"\n"),
        "{written}"
    );
    let now = std::fs::read_to_string(place.shop().join("woodward.yaml")).unwrap();
    assert_eq!(now, written);
}

#[test]
fn a_gate_that_fails_is_told() {
    let place = Place::new();
    let _standin = daemon(&place);
    std::fs::write(place.shop().join("Makefile"), "all:\n\ntest:\n\tfalse\n").unwrap();
    let seen = place.run(&["init", "-q"]);
    assert_eq!((seen.code, seen.stderr.as_str()), (0, ""));
    assert!(
        seen.stdout.contains("gate test: fails now"),
        "{}",
        seen.stdout
    );
    let written = std::fs::read_to_string(place.shop().join("woodward.yaml")).unwrap();
    assert!(written.contains("\n  # - name: test\n"), "{written}");
}

/// As in a fresh `cargo new`: the daemon would call such a gate broken, with every task.
#[test]
fn a_gate_that_ran_no_test_is_a_comment() {
    let place = Place::new();
    let _standin = daemon(&place);
    let rule = "test:\n\t@echo 'test result: ok. 0 passed; 0 failed; 0 ignored'\n";
    std::fs::write(place.shop().join("Makefile"), format!("all:\n\n{rule}")).unwrap();
    let seen = place.run(&["init", "-q"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    for words in ["gate test: fails now", "it ran no test"] {
        assert!(seen.stdout.contains(words), "{}", seen.stdout);
    }
    let written = std::fs::read_to_string(place.shop().join("woodward.yaml")).unwrap();
    assert!(
        written.contains("  # Did not pass when it was tried: it ran no test\n  # - name: test\n"),
        "{written}"
    );
}

/// What `init` says where only these programs are installed.
fn init_with(programs: &[&str]) -> (String, String, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let _standin = daemon(&place);
    let bin = place.paths().state().join("bin");
    std::fs::create_dir_all(&bin).expect("it works");
    for program in programs {
        let file = bin.join(program);
        std::fs::write(&file, "#!/bin/sh\n").expect("it works");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("it works");
    }
    let mut command = place.command(&["init"]);
    let ran = crate::place::Ran::of(&command.env("PATH", &bin).output().expect("it works"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let written = std::fs::read_to_string(place.shop().join("woodward.yaml")).expect("it works");
    (ran.stdout, ran.stderr, written)
}

#[test]
fn the_best_agent_that_is_installed_works_on_tasks() {
    let (told, _, written) = init_with(&["pi", "codex", "amp"]);
    assert!(
        told.contains("\nagent: codex; installed too: pi, amp\n"),
        "{told}"
    );
    assert!(written.contains("\n  agent: codex\n"), "{written}");
    assert!(
        written.contains("\n# agents: [codex, pi, amp]\n"),
        "{written}"
    );
}

#[test]
fn where_no_agent_is_installed_init_says_so_and_what_to_do() {
    let (told, hints, written) = init_with(&[]);
    assert!(
        told.contains("agent: none that Woodward knows is installed"),
        "{told}"
    );
    assert!(
        hints.contains("npm install -g @anthropic-ai/claude-code"),
        "{hints}"
    );
    assert!(written.contains("\n  agent: claude-code\n"), "{written}");
}

fn complete(place: &Place) -> (String, String) {
    let output = place
        .command(&["--", "woodward", "merge", ""])
        .env("COMPLETE", "fish")
        .output()
        .expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

#[test]
fn the_shell_completes_real_tasks_and_hears_nothing_without_a_daemon() {
    let place = Place::new();
    let (stdout, stderr) = complete(&place);
    assert!(!stdout.contains("auth-api"), "{stdout}");
    assert_eq!(stderr, "");
    let _standin = daemon(&place);
    // Nobody who types waits long: on a busy machine there may be nothing to offer.
    until("tasks are offered", || {
        let (stdout, stderr) = complete(&place);
        assert_eq!(stderr, "");
        stdout.contains("auth-api")
    });
}

#[test]
fn every_shell_gets_its_script() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = place.run(&["completions", shell]);
        assert_eq!(ran.code, 0, "{shell}");
        assert!(ran.stdout.contains("COMPLETE"), "{shell}: {}", ran.stdout);
    }
}
