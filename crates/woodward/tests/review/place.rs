//! A repository whose agent is a shell script, under the real program with a daemon of its own.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use woodward_testkit::{TestDaemon, TestProject, TestRepo};

pub(crate) struct Place(TestProject);

impl Place {
    /// A project whose rules are these; `AGENT` and `OUT` in them name the agent's script and a
    /// directory outside of the repository.
    pub(crate) fn new(rules: &str, agent: &str) -> Self {
        let repo = TestRepo::empty();
        let out = repo.around().to_owned();
        let script = out.join("agent.sh");
        fs::write(&script, named(&out, agent)).expect("a script");
        let head = "agents:\n  script:\n    command: [\"sh\", \"AGENT\"]\n";
        let config = named(&out, &format!("{head}{rules}"));
        repo.commit(
            "start",
            &[("woodward.yaml", &config), ("base.txt", "one\n")],
        );
        let mut daemon = TestDaemon::new(env!("CARGO_BIN_EXE_woodward"));
        daemon.set("TMPDIR", &out);
        daemon.retry_sooner(10);
        let place = Self(TestProject::new(daemon, repo));
        place.ok(&["init"]);
        place
    }

    /// A file outside of the repository.
    pub(crate) fn out(&self, name: &str) -> PathBuf {
        self.repo.around().join(name)
    }

    /// Writes a file outside of the repository.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.out(name), text).expect("a file");
    }

    /// How many lines a file outside of the repository has.
    pub(crate) fn lines(&self, name: &str) -> usize {
        let text = fs::read_to_string(self.out(name)).unwrap_or_default();
        text.lines().count()
    }

    pub(crate) fn state(&self, task: &str) -> String {
        self.task(task).state.to_string()
    }

    /// Waits for a state; fails at once when the task fails instead.
    pub(crate) fn until_state(&self, task: &str, wanted: &str) {
        let state = self.reaches(task, &[wanted, "failed"]);
        assert_eq!(state, wanted, "{}\n{}", self.story(task), self.log());
    }

    pub(crate) fn log(&self) -> String {
        let log = self.daemon.state().join("daemon.log");
        fs::read_to_string(log).unwrap_or_default()
    }
}

impl Deref for Place {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.0
    }
}

fn named(out: &Path, text: &str) -> String {
    let out = out.display().to_string();
    text.replace("AGENT", &format!("{out}/agent.sh"))
        .replace("OUT", &out)
}
