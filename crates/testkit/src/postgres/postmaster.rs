//! One running `postgres` under a guard that outlives us.
//!
//! It knows processes, not databases: whether the server answers is the caller's question.

use super::command::script;
use super::error::PgError;
use super::home::Home;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};

const GUARD: &str = include_str!("guard.sh");

/// A guard process and the pipe whose closing makes it stop its server.
#[derive(Debug)]
pub(crate) struct Postmaster {
    guard: Child,
    leash: Option<ChildStdin>,
}

impl Postmaster {
    /// Starts `postgres` with `arguments`, its log appended to the home's log file.
    pub(crate) fn spawn(
        home: &Home,
        postgres: &Path,
        arguments: &[OsString],
    ) -> Result<Self, PgError> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(home.log())
            .map_err(PgError::io("open the server log", &home.log()))?;
        let mut guard = script(GUARD, "woodward-test-guard", home.account())
            .arg(postgres)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(home.lease()?)
            .stderr(log)
            .spawn()
            .map_err(PgError::io("start the guard of", postgres))?;
        let leash = guard.stdin.take();
        Ok(Self { guard, leash })
    }

    /// How the server ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, PgError> {
        self.guard
            .try_wait()
            .map_err(PgError::io("watch the guard of", Path::new("postgres")))
    }

    /// Stops the server at once, without a checkpoint; returns when it is gone.
    pub(crate) fn stop_immediately(&mut self) -> Result<(), PgError> {
        drop(self.leash.take());
        self.guard
            .wait()
            .map(|_| ())
            .map_err(PgError::io("wait for the guard of", Path::new("postgres")))
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        // Nothing to report to from a drop; the guard goes on without us.
        let _ = self.stop_immediately();
    }
}
