//! One PostgreSQL server for all tests of a run.
//!
//! It is held by a program of the testkit, which ends it when this process ends, however that
//! happens. It must never reach a server that it did not start.

use super::space::Space;
use anyhow::{Context as _, Result, bail};
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Tells tests where the server is; `woodward_testkit::postgres` reads it.
const VARIABLE: &str = "WOODWARD_TEST_POSTGRES";

/// The server. Dropped, it ends.
pub(crate) struct SharedPostgres {
    holder: Child,
    access: String,
}

impl SharedPostgres {
    /// Starts it with the holder program that was built with the tests.
    pub(crate) fn start(holder: &Path, space: &Space) -> Result<Self> {
        let mut holder = Command::new(holder)
            .envs(space.variables(true))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", holder.display()))?;
        let stdout = holder.stdout.take().context("it has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        // "POSTMASTER SWEEPER PORT USER DIRECTORY": tests need the last three.
        let Some(access) = line.trim_end().splitn(3, ' ').nth(2) else {
            let _ = holder.kill();
            holder.wait()?;
            bail!("the tests' PostgreSQL server did not start; run: cargo xtask setup");
        };
        let access = access.to_owned();
        Ok(Self { holder, access })
    }

    /// The variable for the tests' environment.
    pub(crate) fn variable(&self) -> (OsString, OsString) {
        (VARIABLE.into(), OsString::from(&self.access))
    }
}

impl Drop for SharedPostgres {
    fn drop(&mut self) {
        // The holder stops the server and removes its files when its input closes.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}
