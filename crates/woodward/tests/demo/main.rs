//! `woodward demo` as a person starts it: the real program, a real daemon, real agents and git.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use woodward_testkit::patience::until;
use woodward_testkit::process;

/// A temporary directory with a space in its name, and no home.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::with_prefix("demo of ").expect("a directory");
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn demo(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_woodward"));
        command
            .arg("demo")
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Processes that have anything below this place as their state directory.
    fn processes(&self) -> Vec<Pid> {
        let start = format!("WOODWARD_STATE_DIR={}", self.path().display());
        process::with_entry(|entry| entry.starts_with(start.as_bytes()))
    }

    /// The words that a process of this place was started with, joined.
    fn command_lines(&self) -> Vec<String> {
        let read = |pid: Pid| {
            let file = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
            fs::read(file).unwrap_or_default()
        };
        let lines = self.processes().into_iter().map(read);
        lines
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .collect()
    }
}

impl Drop for Place {
    /// A test that fails must not leave a daemon behind.
    fn drop(&mut self) {
        process::kill_all(|| self.processes());
    }
}

fn summary(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}\n{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer in JSON");
    assert_eq!(answer["schema"], 1);
    answer["data"].clone()
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(dir).output();
    let output = output.expect("git runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn finished(demo: Child) -> Output {
    demo.wait_with_output().expect("the demo ends")
}

#[test]
fn the_demo_does_what_it_claims() {
    let place = Place::new();
    let did = summary(&place.demo(&["--json"]).output().unwrap());
    for (what, wanted) in [
        ("tasks", 5),
        ("landed", 5),
        ("fix_cycles", 1),
        ("conflicts_resolved", 1),
        ("questions_answered", 1),
        ("runs", 7),
        ("commits", 6),
        ("commits_green", 6),
        ("tests_passed", 9),
        ("tests_total", 9),
        ("processes_left", 0),
    ] {
        assert_eq!(did[what], wanted, "{what} in {did}");
    }
    assert!(did["agents_at_once"].as_u64().unwrap() > 1, "{did}");
    assert_eq!(did["fsck_clean"], true);
    assert_eq!(did["checkout_clean"], true);
    assert_eq!(place.command_lines(), Vec::<String>::new());

    let repository = Path::new(did["directory"].as_str().unwrap()).join("till");
    let log = git(&repository, &["log", "--first-parent", "--format=%s"]);
    assert_eq!(log.lines().count(), 6, "{log}");
    let readme = fs::read_to_string(repository.join("README.md")).unwrap();
    let named = readme.lines().find(|line| line.starts_with("Commands: "));
    let named = named.expect("the line that two tasks changed");
    assert!(named.contains("tax") && named.contains("change"), "{named}");
    let hours = fs::read_to_string(repository.join("hours.txt")).unwrap();
    assert_eq!(hours, "Mon-Fri 8:00\nSat 9:00\n");
}

#[test]
fn two_demos_at_once_do_not_mind_each_other_nor_odd_git_settings() {
    let place = Place::new();
    let home = place.path().join("home");
    let hooks = home.join("hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["pre-commit", "commit-msg", "reference-transaction"] {
        let hook = hooks.join(hook);
        fs::write(&hook, "#!/bin/sh\necho no >&2\nexit 1\n").unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&hook, executable).unwrap();
    }
    let settings = format!(
        "[commit]\n gpgSign = true\n[gpg]\n program = /bin/false\n[merge]\n ff = only\n\
         conflictStyle = diff3\n[core]\n hooksPath = {}\n autocrlf = true\n excludesFile = {}\n\
         [diff]\n noprefix = true\n external = /bin/false\n[status]\n short = true\n\
         [user]\n useConfigOnly = true\n[log]\n showSignature = true\n[color]\n ui = always\n",
        hooks.display(),
        home.join("ignore").display()
    );
    fs::write(home.join(".gitconfig"), settings).unwrap();
    fs::write(home.join("ignore"), "*.sh\n*.txt\n").unwrap();
    let demos: Vec<Child> = (0..2)
        .map(|_| {
            let mut demo = place.demo(&["--json", "--rm"]);
            demo.env("HOME", &home).spawn().unwrap()
        })
        .collect();
    let did: Vec<Value> = demos
        .into_iter()
        .map(|demo| summary(&finished(demo)))
        .collect();
    assert_ne!(did[0]["directory"], did[1]["directory"]);
    for did in did {
        assert_eq!(did["landed"], 5, "{did}");
        assert_eq!(did["removed"], true, "{did}");
        assert!(!Path::new(did["directory"].as_str().unwrap()).exists());
    }
    assert_eq!(place.command_lines(), Vec::<String>::new());
}

#[test]
fn an_interrupted_demo_leaves_nothing_running() {
    let place = Place::new();
    let mut demo = place.demo(&[]).spawn().unwrap();
    until("an agent works", || {
        let lines = place.command_lines();
        lines.iter().any(|line| line.contains("scripted-agent"))
    });
    let pid = Pid::from_child(&demo);
    kill_process(pid, Signal::INT).unwrap();
    let status = demo.wait().unwrap();
    assert_eq!(place.command_lines(), Vec::<String>::new());
    assert_eq!(status.code(), Some(130));
}

#[test]
fn in_a_pipe_it_tells_a_line_a_change_and_ends_with_how_to_go_on() {
    let place = Place::new();
    let output = finished(place.demo(&["--dir", "my demo"]).spawn().unwrap());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(!told.contains('\u{1b}'), "{told}");
    for part in [
        "not ok - money has cents: wanted \"3.70\", was \"0,003.70\"",
        "asks: When does the shop open on Saturdays?",
        "you answer: 9:00",
        "conflict while landing: README.md",
        "$ git log --oneline --first-parent\n",
        "$ git fsck",
        "Tests: 0 failed, 9 passed, 9 total\n",
        "  ✓ 5 of 5 tasks landed on main",
        "  woodward create fix-login -p 'Fix the login'\n",
    ] {
        assert!(told.contains(part), "`{part}` is not in\n{told}");
    }
    let shown = place.path().join("my demo");
    let last = format!("Remove it:   rm -rf '{}'\n", shown.display());
    assert!(told.ends_with(&last), "{told}");
    for line in told.lines().filter(|line| !line.contains("demo of ")) {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn a_directory_with_something_in_it_is_refused() {
    let place = Place::new();
    fs::write(place.path().join("mine"), "precious").unwrap();
    let output = place.demo(&["--dir", "."]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is not empty"), "{said}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}
