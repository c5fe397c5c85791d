//! The temporary directory of one server, gone when its last user is gone.
//!
//! A *sweeper* process removes it, not we: we may be killed. Everyone who uses
//! the directory holds a *lease*, the write end of the sweeper's stdin; the kernel
//! returns the lease of whoever dies.

use super::account::Account;
use super::command::script;
use super::error::PgError;
use super::name::random_name;
use std::fs::{self, DirBuilder};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

const SWEEP: &str = include_str!("sweep.sh");

/// A directory, the user it belongs to, and its sweeper.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    account: Option<Account>,
    sweeper: Child,
    lease: Option<ChildStdin>,
}

impl Home {
    /// A new, empty directory with a short path: a socket's path is limited to about 100 bytes.
    pub(crate) fn create() -> Result<Self, PgError> {
        let path = std::env::temp_dir().join(random_name("ww-pg-"));
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(PgError::io("create the directory", &path))?;
        Self::guard(&path).inspect_err(|_| {
            // Only on this path is there no sweeper; the first error is the one to report.
            let _ = fs::remove_dir(&path);
        })
    }

    fn guard(path: &Path) -> Result<Self, PgError> {
        // What we create belongs to our effective user.
        let ourselves = fs::metadata(path)
            .map_err(PgError::io("inspect the directory", path))?
            .uid();
        let account = Account::instead_of(ourselves)?;
        if let Some(Account { uid, gid }) = account {
            chown(path, Some(uid), Some(gid))
                .map_err(PgError::io("give PostgreSQL's user the directory", path))?;
        }
        let mut sweeper = script(SWEEP, "woodward-test-sweeper", account)
            .arg(path)
            .stdin(Stdio::piped())
            .spawn()
            .map_err(PgError::io("start the sweeper of", path))?;
        let lease = sweeper.stdin.take();
        Ok(Self {
            path: path.to_owned(),
            account,
            sweeper,
            lease,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    pub(crate) fn account(&self) -> Option<Account> {
        self.account
    }

    pub(crate) fn sweeper_pid(&self) -> u32 {
        self.sweeper.id()
    }

    /// A lease to be the stdout of a process that uses the directory, and of its children.
    pub(crate) fn lease(&self) -> Result<Stdio, PgError> {
        self.lease
            .as_ref()
            .expect("the lease is only given up by drop")
            .as_fd()
            .try_clone_to_owned()
            .map(Stdio::from)
            .map_err(PgError::io("share the lease on", &self.path))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(self.lease.take());
        // Nothing to report to from a drop; the sweeper goes on without us.
        let _ = self.sweeper.wait();
    }
}
