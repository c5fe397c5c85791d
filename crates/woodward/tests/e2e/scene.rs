//! A repository under a daemon, whose agent is a shell that reads its prompt as a script: each task says
//! itself what its agent does.

use std::ops::{Deref, DerefMut};

pub(crate) use woodward_testkit::process::is_alive as lives;
use woodward_testkit::{TestDaemon, TestProject, TestRepo};

/// Everything that one test works with.
#[derive(Debug)]
pub(crate) struct Scene(TestProject);

/// How many times sooner than usual the daemon tries again what failed.
pub(crate) const RETRY_PACE: u32 = 4;

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
        let mut daemon = TestDaemon::new(env!("CARGO_BIN_EXE_woodward"));
        daemon.retry_sooner(RETRY_PACE);
        Self(TestProject::new(daemon, repo))
    }

    /// Asks the daemon how it is, which takes it a moment.
    pub(crate) fn daemon_state(&self) {
        self.run(&["--no-daemon", "status"]);
    }
}

impl Deref for Scene {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.0
    }
}

impl DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut TestProject {
        &mut self.0
    }
}

/// Whether a process is the supervisor of another.
pub(crate) fn is_supervisor(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|words| words.split(|byte| *byte == 0).nth(1) == Some(b"supervise"))
}
