//! One at a time in a repository, over tasks and over processes.
//!
//! Held only for the short parts that git can't do in parallel: registering a worktree, moving one
//! to the trash. Never across a checkout or anything that depends on a network.

use std::fs::{File, OpenOptions};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio::sync::MutexGuard;
use tokio::time::{Instant, sleep};

use super::error::{At, GitError};
use super::repo::Repo;

const WAIT_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(3);

/// Proof that nobody else is in the short part.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    _here: MutexGuard<'a, ()>,
    /// The lock on it ends when the file is closed, also by a kill.
    _everywhere: File,
}

impl Repo {
    /// Waits for the turn.
    pub(crate) async fn turn(&self) -> Result<Turn<'_>, GitError> {
        let here = self.place.turn.lock().await;
        let path = self.common_dir().join("woodward.lock");
        let mut open = OpenOptions::new();
        let everywhere = open
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .at("open", &path)?;
        let deadline = Instant::now() + WAIT_MAX;
        while flock(&everywhere, FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() > deadline {
                return Err(GitError::Locked {
                    path,
                    holder: "another Woodward process".into(),
                });
            }
            sleep(PAUSE).await;
        }
        Ok(Turn {
            _here: here,
            _everywhere: everywhere,
        })
    }
}
