//! Lock files that a killed git left behind.
//!
//! A lock is removed only with proof that nobody holds it: its identity is recorded, no process has
//! it open, no git that was there when it appeared still works in its scope, and it is still the
//! same file afterwards. What can't be proved stays. Other users' processes and other containers are
//! not visible; where a git process can't be looked at, it counts as a holder.

mod proc;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use self::proc::{Process, now_since_boot};
use super::door::MARKER;
use super::error::{At, GitError};
use super::repo::Repo;
use super::worktree::Worktree;

const LOCKS_MAX: usize = 10_000;
const DEPTH_MAX: usize = 12;
const WAIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);
/// A process that started this long after a lock appeared can't be its holder; the slack covers
/// the coarse clocks of file systems and of process start times.
const SLACK_S: f64 = 2.0;

/// What became of lock files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Removed: nobody held them.
    pub removed: Vec<PathBuf>,
    /// Kept, with who holds or may hold them.
    pub held: Vec<(PathBuf, String)>,
}

impl Repo {
    /// The lock files of the repository and all its worktrees.
    pub fn locks(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let common = self.common_dir();
        collect(common, 0, &mut found);
        for part in ["refs", "worktrees", "logs", "reftable"] {
            collect(&common.join(part), DEPTH_MAX, &mut found);
        }
        found.retain(|path| path != &common.join("woodward.lock"));
        found
    }

    /// Removes the lock files that nobody holds.
    pub async fn sweep_locks(&self) -> Result<Swept, GitError> {
        self.sweep_shared(self.locks()).await
    }

    async fn sweep_shared(&self, locks: Vec<PathBuf>) -> Result<Swept, GitError> {
        let mut scope = vec![self.root().to_owned(), self.common_dir().to_owned()];
        scope.push(self.worktrees_dir());
        scope.extend(self.linked_paths());
        self.sweep(locks, scope).await
    }

    /// Makes sure that no stale lock is in the way in one worktree; waits for a living holder.
    pub(crate) async fn clear_locks_of(&self, worktree: &Worktree) -> Result<(), GitError> {
        let branch = self.common_dir().join("refs/heads").join(&worktree.branch);
        let mut branch_lock = branch.into_os_string();
        branch_lock.push(".lock");
        let branch_lock = PathBuf::from(branch_lock);
        // Whoever deletes a ref takes this one, and a stale one costs each of them its whole
        // time-out; a living holder is soon done with it.
        let packed = self.common_dir().join("packed-refs.lock");
        if packed.is_file() {
            self.sweep_shared(vec![packed]).await?;
        }
        let deadline = Instant::now() + WAIT;
        loop {
            // Whatever git calls them: `index.lock`, `HEAD.lock`, `AUTO_MERGE.lock` …
            let mut there = Vec::new();
            collect(&worktree.admin, 0, &mut there);
            there.extend(branch_lock.is_file().then(|| branch_lock.clone()));
            if there.is_empty() {
                return Ok(());
            }
            let scope = vec![worktree.path.clone(), worktree.admin.clone()];
            let swept = self.sweep(there, scope).await?;
            let Some((path, holder)) = swept.held.into_iter().next() else {
                return Ok(());
            };
            if Instant::now() > deadline {
                return Err(GitError::Locked { path, holder });
            }
            sleep(PAUSE).await;
        }
    }

    async fn sweep(&self, locks: Vec<PathBuf>, scope: Vec<PathBuf>) -> Result<Swept, GitError> {
        if locks.is_empty() {
            return Ok(Swept::default());
        }
        let swept = tokio::task::spawn_blocking(move || sweep_now(&locks, &scope));
        swept.await.map_err(|lost| GitError::Unexpected {
            verb: "(locks)",
            what: lost.to_string(),
        })?
    }

    /// The directories of all linked worktrees.
    pub(crate) fn linked_paths(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.admins()).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| fs::read(entry.path().join("gitdir")).ok())
            .map(|text| super::os_path(text.trim_ascii_end()))
            .filter_map(|pointer| pointer.parent().map(Path::to_owned))
            .collect()
    }

    /// Waits for git processes that a dead daemon with our marker has left, then ends those that
    /// take longer than `patience`. Processes below this one are not orphans. Says how many there
    /// were.
    pub async fn end_orphans(&self, patience: Duration) -> usize {
        end_orphans(self.door().marker(), patience).await
    }
}

/// As [`Repo::end_orphans`], for all repositories of a state directory.
pub async fn end_orphans(marker: &str, patience: Duration) -> usize {
    let wanted = format!("{MARKER}={marker}");
    let find = || {
        let wanted = wanted.clone();
        async move {
            let found = tokio::task::spawn_blocking(move || proc::strangers_with(&wanted));
            found.await.unwrap_or_default()
        }
    };
    let met = find().await.len();
    let started = Instant::now();
    let mut left = met;
    while left > 0 {
        let waited = started.elapsed();
        let signal = if waited < patience {
            None
        } else if waited < patience + WAIT {
            Some(Signal::TERM)
        } else {
            Some(Signal::KILL)
        };
        let found = find().await;
        if let Some(signal) = signal {
            for process in &found {
                process.signal(signal, &wanted);
            }
        }
        left = found.len();
        if left > 0 {
            sleep(PAUSE).await;
        }
        if waited > patience + 2 * WAIT {
            break;
        }
    }
    met
}

#[derive(Clone, Copy, PartialEq)]
struct Identity {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

fn identity(path: &Path) -> Option<Identity> {
    let meta = fs::symlink_metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)?;
    Some(Identity {
        device: meta.dev(),
        inode: meta.ino(),
        changed: (meta.ctime(), meta.ctime_nsec()),
    })
}

fn sweep_now(locks: &[PathBuf], scope: &[PathBuf]) -> Result<Swept, GitError> {
    let mut swept = Swept::default();
    let before: Vec<_> = locks
        .iter()
        .filter_map(|path| Some((path, identity(path)?)))
        .collect();
    let processes = Process::all();
    let (uptime, wall) = now_since_boot();
    for (path, seen) in before {
        // Seconds since boot at which the lock appeared, as far as its file system knows.
        let appeared = uptime - (wall - seen.changed.0 as f64);
        let holder = processes.iter().find(|process| {
            process.has_open(seen.device, seen.inode)
                || (process.is_git()
                    && process.started < appeared + SLACK_S
                    && process.may_work_in(scope))
        });
        if let Some(holder) = holder {
            swept.held.push((path.clone(), holder.to_string()));
        } else if identity(path) == Some(seen) {
            fs::remove_file(path).at("remove", path)?;
            swept.removed.push(path.clone());
        }
    }
    Ok(swept)
}

fn collect(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let path = entry.path();
        if found.len() >= LOCKS_MAX {
            return;
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "lock") {
            found.push(path);
        } else if kind.is_dir() && depth > 0 {
            collect(&path, depth - 1, found);
        }
    }
}
