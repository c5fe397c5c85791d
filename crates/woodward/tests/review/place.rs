//! A repository, an agent that is a shell script, and the real program with a daemon of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    /// A project whose rules are these; `AGENT` and `OUT` in them name the agent's script and a
    /// directory outside of the repository.
    pub(crate) fn new(rules: &str, agent: &str) -> Self {
        let dir = TempDir::with_prefix("review").expect("a directory");
        let place = Self { dir };
        fs::create_dir(place.repo()).expect("a repository's directory");
        let identity = "[user]\n\tname = T\n\temail = t@example.org\n";
        place.write(".gitconfig", identity);
        place.write("agent.sh", &place.named(agent));
        let head = "agents:\n  script:\n    command: [\"sh\", \"AGENT\"]\n";
        place.write(
            "repo/woodward.yaml",
            &place.named(&format!("{head}{rules}")),
        );
        place.write("repo/base.txt", "one\n");
        place.git(&["init", "--quiet", "--initial-branch=main"]);
        place.commit("start");
        place.ok(&["init"]);
        place
    }

    fn named(&self, text: &str) -> String {
        let dir = self.dir.path().display().to_string();
        text.replace("AGENT", &format!("{dir}/agent.sh"))
            .replace("OUT", &dir)
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn worktree(&self, task: &str) -> PathBuf {
        self.dir.path().join("repo.worktrees").join(task)
    }

    pub(crate) fn out(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.path().join(name), text).expect("a file");
    }

    /// How many lines a file outside of the repository has.
    pub(crate) fn lines(&self, name: &str) -> usize {
        let text = fs::read_to_string(self.out(name)).unwrap_or_default();
        text.lines().count()
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.repo(), args)
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", message]);
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_woodward"))
            .args(args)
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("TMPDIR", self.dir.path())
            .env("WOODWARD_STATE_DIR", self.out("state"))
            .stdin(Stdio::null())
            .output()
            .expect("the program runs")
    }

    /// What a command says that must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn show(&self, task: &str) -> Value {
        let answer: Value =
            serde_json::from_str(&self.ok(&["show", task, "--json"])).expect("JSON");
        answer["data"].clone()
    }

    pub(crate) fn state(&self, task: &str) -> String {
        let shown = self.show(task);
        shown["task"]["state"].as_str().unwrap_or("?").to_owned()
    }

    /// Waits for a state; fails at once when the task fails instead.
    pub(crate) fn until_state(&self, task: &str, wanted: &str) {
        let mut last = String::new();
        until(&format!("{task} is {wanted}"), || {
            last = self.state(task);
            assert!(
                last == wanted || last != "failed",
                "{}\n{}",
                self.ok(&["timeline", task]),
                self.log()
            );
            last == wanted
        });
    }

    pub(crate) fn log(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.out("state"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry.path().extension().is_some_and(|end| end == "log") {
                text.push_str(&fs::read_to_string(entry.path()).unwrap_or_default());
            }
        }
        text
    }

    fn processes(&self) -> Vec<Pid> {
        let mark = format!("WOODWARD_STATE_DIR={}", self.out("state").display());
        let all = fs::read_dir("/proc").expect("a process table").flatten();
        all.filter(|process| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == mark.as_bytes())
        })
        .filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?))
        .collect()
    }
}

impl Drop for Place {
    /// A test that fails must not leave a daemon behind.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), self.log().as_bytes());
        }
        for pid in self.processes() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org"])
        .args(args)
        .current_dir(dir)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} has not come true");
        std::thread::sleep(Duration::from_millis(20));
    }
}
