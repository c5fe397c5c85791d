//! A directory of its own for each test, and the program started in it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use woodward_engine::paths::Paths;
pub(crate) use woodward_testkit::Ran;
pub(crate) use woodward_testkit::patience::until as eventually;

use crate::standin::{Asked, Reply, StandIn};

pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(dir.path().join("shop/.git")).expect("a directory");
        Self { dir }
    }

    /// The repository that commands are about.
    pub(crate) fn shop(&self) -> PathBuf {
        self.dir.path().join("shop")
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths::new(self.dir.path().join("state"))
    }

    pub(crate) fn daemon(
        &self,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> StandIn {
        StandIn::start(&self.paths().socket(), answer)
    }

    /// The program, ready to be started; it never starts a daemon.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_woodward"));
        command
            .args(args)
            .current_dir(self.shop())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("WOODWARD_STATE_DIR", self.paths().state())
            .env("WOODWARD_NO_AUTOSTART", "1")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&self.command(args).output().expect("the program starts"))
    }

    /// What a person sees who types this into a pipe: answer, narration, exit code.
    pub(crate) fn seen(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        let mut seen = format!("$ woodward {}\n{}", args.join(" "), ran.stdout);
        for line in ran.stderr.lines() {
            seen += &format!("! {line}\n");
        }
        if ran.code != 0 {
            seen += &format!("(exit {})\n", ran.code);
        }
        seen
    }
}
