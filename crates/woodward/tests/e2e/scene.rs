//! A repository, a daemon and a stage on which agents and the test meet.
//!
//! The agent is a shell that reads its prompt as a script, so each task says itself what its agent
//! does.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use woodward_api::{Envelope, StatusView, TaskDetail, TaskSummary, Timeline};
use woodward_testkit::patience::{until, until_some};
use woodward_testkit::{Ran, TestDaemon, TestRepo};

/// Everything that one test works with. The daemon goes first when it is dropped.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) daemon: TestDaemon,
    pub(crate) repo: TestRepo,
}

/// An agent that runs its prompt as a script.
pub(crate) const SHELL_AGENT: &str =
    "orchestrator: { agent: shell, maxConcurrent: 8 }\nagents:\n  shell: { command: sh }\n";

impl Scene {
    /// A repository whose rules are the shell agent and `rules`, known as a project.
    pub(crate) fn new(rules: &str) -> Self {
        let config = format!("{SHELL_AGENT}{rules}");
        let scene = Self::of(TestRepo::with(&[
            ("woodward.yaml", &config),
            (".gitignore", "*.ignored\n"),
            ("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n"),
        ]));
        scene.ok(&["init", "-q"]);
        scene
    }

    /// A repository as it is.
    pub(crate) fn of(repo: TestRepo) -> Self {
        std::fs::create_dir(repo.around().join("stage")).expect("a stage");
        Self {
            daemon: TestDaemon::new(env!("CARGO_BIN_EXE_woodward")),
            repo,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.repo.root()
    }

    /// Runs the program in the repository.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.daemon.run(self.root(), args)
    }

    /// Runs the program in the repository; it must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "woodward {args:?}: {ran:#?}");
        ran
    }

    /// Runs the program in the repository; it must refuse with this code and say all of these words.
    pub(crate) fn refused(&self, args: &[&str], code: i32, words: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, code, "woodward {args:?}: {ran:#?}");
        for word in words {
            assert!(ran.stderr.contains(word), "{word:?} is missing: {ran:#?}");
        }
        ran
    }

    /// What the program answers as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self, args: &[&str]) -> T {
        let mut all = args.to_vec();
        all.push("--json");
        let ran = self.ok(&all);
        let envelope: Envelope<T> = serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|error| panic!("woodward {args:?}: {error}: {ran:#?}"));
        envelope.data
    }

    pub(crate) fn show(&self, task: &str) -> TaskDetail {
        self.json(&["show", task])
    }

    pub(crate) fn status(&self) -> Vec<TaskSummary> {
        self.json::<StatusView>(&["status", "--all"]).tasks
    }

    pub(crate) fn timeline(&self, task: &str) -> Timeline {
        self.json(&["timeline", task])
    }

    /// Creates a task whose agent does this.
    pub(crate) fn create(&self, name: &str, script: &str) {
        self.ok(&["create", name, "-p", script]);
    }

    /// Waits until a task is there.
    pub(crate) fn wait(&self, task: &str, when: &str) -> Ran {
        let ran = self.run(&["wait", task, "--until", when, "--timeout", "180s"]);
        let shown = || self.run(&["show", task]);
        assert_eq!(ran.code, 0, "waiting for {task}: {ran:#?}\n{:#?}", shown());
        ran
    }

    /// Waits until a task failed, and says why.
    pub(crate) fn failed(&self, task: &str) -> String {
        self.wait(task, "failed");
        self.show(task).task.attention.reason
    }

    /// Lands a task that is in review.
    pub(crate) fn land(&self, task: &str) {
        self.wait(task, "review");
        self.ok(&["merge", task]);
        self.wait(task, "landed");
    }

    /// Waits until a task that was held up has landed; `wait` would say that it needs the person.
    pub(crate) fn lands_by_itself(&self, task: &str) {
        until(&format!("{task} lands"), || {
            self.show(task).task.state.as_str() == "landed"
        });
    }

    /// Does exactly what a hint said.
    pub(crate) fn type_in(&self, line: &str) -> Ran {
        let ran = self.daemon.type_in(self.root(), line);
        assert_eq!(ran.code, 0, "$ {line}: {ran:#?}");
        ran
    }

    /// A task's working directory.
    pub(crate) fn worktree(&self, task: &str) -> PathBuf {
        self.root().with_file_name("shop.worktrees").join(task)
    }

    /// A file by which an agent and the test tell each other something.
    pub(crate) fn mark(&self, name: &str) -> PathBuf {
        self.repo.around().join("stage").join(name)
    }

    /// A line of a script that leaves a mark.
    pub(crate) fn leave(&self, name: &str) -> String {
        format!("touch '{}'", self.mark(name).display())
    }

    /// A line of a script that waits for a mark.
    pub(crate) fn await_mark(&self, name: &str) -> String {
        format!(
            "while [ ! -e '{}' ]; do sleep 0.02; done",
            self.mark(name).display()
        )
    }

    /// Leaves a mark for an agent.
    pub(crate) fn give(&self, name: &str) {
        std::fs::write(self.mark(name), "").expect("a mark");
    }

    /// Waits for an agent's mark.
    pub(crate) fn seen(&self, name: &str) {
        until(&format!("the mark {name}"), || self.mark(name).exists());
    }

    /// Waits for the number that an agent wrote.
    pub(crate) fn number(&self, name: &str) -> i32 {
        until_some(&format!("the number {name}"), || {
            let text = std::fs::read_to_string(self.mark(name)).ok()?;
            text.strip_suffix('\n')?.parse().ok()
        })
    }

    /// Asks the daemon how it is, which takes it a moment.
    pub(crate) fn daemon_state(&self) {
        self.run(&["--no-daemon", "status"]);
    }

    /// The end of the daemon as `kill -9` has it. Who asks it while it dies gets no answer.
    pub(crate) fn kill_daemon(&self) {
        let pid = self.daemon_pid();
        let daemon = Pid::from_raw(pid).expect("a process");
        kill_process(daemon, Signal::KILL).expect("it runs");
        until("the daemon is gone", || !lives(pid));
    }

    /// The daemon's process.
    pub(crate) fn daemon_pid(&self) -> i32 {
        let health: woodward_api::Health = self.json(&["up"]);
        health.pid.try_into().expect("a process id")
    }
}

/// Whether a process is there and not a zombie.
pub(crate) fn lives(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}

/// Whether a process is the supervisor of another.
pub(crate) fn is_supervisor(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|words| words.split(|byte| *byte == 0).nth(1) == Some(b"supervise"))
}
