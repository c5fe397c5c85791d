//! Why a landing waits: typed, so that the next attempt depends on the cause and not on its wording.
//!
//! The text that a person reads names no temporary file. Attempts in a row that meet the same cause come
//! further and further apart, up to a minute.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use woodward_core::landing::HoldCause;
use woodward_core::{Note, TaskId};
use woodward_store::{Queued, StoreError};

use super::right::Right;
use crate::engine::RetryPace;
use crate::error::{EngineError, Result};
use crate::git::{GitError, Repo, SigningConfig, SigningError, is_unique};

/// Less free space than this is a full disk to a failing git.
const FULL_BYTES: u64 = 1 << 20;
/// A lock that is younger than this is most likely held by a git that is about to end.
const YOUNG_LOCK: Duration = Duration::from_secs(2);
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// A reason to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) cause: HoldCause,
    /// What the person reads, with the next command.
    pub(super) reason: String,
}

/// Attempts in a row that met one cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempts {
    pub(super) cause: HoldCause,
    pub(super) count: u32,
    /// When it is tried again.
    pub(super) until: Instant,
}

impl Attempts {
    /// One more attempt that met this cause.
    pub(super) fn after(earlier: Option<Self>, cause: HoldCause, pace: RetryPace) -> Self {
        let same = earlier.filter(|earlier| earlier.cause == cause);
        let count = same.map_or(0, |same| same.count).saturating_add(1);
        let wait = Duration::from_millis(cause.retry_after(count).0);
        Self {
            cause,
            count,
            until: Instant::now() + pace.wait(wait),
        }
    }
}

impl Hold {
    /// The commit could not be signed.
    pub(super) fn signing(error: &SigningError, signing: Option<&SigningConfig>) -> Self {
        let hint = error.hint(signing);
        Self {
            cause: HoldCause::Signing,
            reason: format!("its commit can't be signed: {error}; {hint}; then it lands by itself"),
        }
    }

    /// A lock file of git is in the way.
    fn locked(lock: &Path) -> Self {
        let age = match age_of(lock) {
            Some(age) => format!(" ({} old)", in_words(age)),
            None => String::new(),
        };
        let path = lock.display();
        Self {
            cause: HoldCause::Locked,
            reason: format!(
                "{path}{age} says that another git process is at work; it lands by itself \
                 when that has ended; if none is running, remove the file: rm '{path}'"
            ),
        }
    }

    fn disk_full(at: &Path, free: u64) -> Self {
        let free = free >> 20;
        let path = at.display();
        Self {
            cause: HoldCause::DiskFull,
            reason: format!(
                "disk full: {free} MB free on {path}; free some space, and it lands by itself: \
                 df -h '{path}'"
            ),
        }
    }
}

fn age_of(file: &Path) -> Option<Duration> {
    let changed = std::fs::symlink_metadata(file).ok()?.modified().ok()?;
    Some(
        SystemTime::now()
            .duration_since(changed)
            .unwrap_or_default(),
    )
}

fn in_words(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds @ 100..=7_199 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

/// The lock on the index of a checkout, if it is there.
fn index_lock(checkout: &Path) -> Option<PathBuf> {
    let pointer = checkout.join(".git");
    let git_dir = match std::fs::read_to_string(&pointer) {
        Ok(text) => checkout.join(text.trim_end().strip_prefix("gitdir: ")?),
        Err(_) => pointer,
    };
    let lock = git_dir.join("index.lock");
    lock.symlink_metadata().is_ok().then_some(lock)
}

/// The lock on the index of a branch's checkout, unless it goes away by itself in a moment.
pub(super) async fn locked_checkout(repo: &Repo, branch: &str) -> Result<Option<Hold>> {
    let Some(checkout) = repo.checkout_of(branch).await? else {
        return Ok(None);
    };
    loop {
        let Some(lock) = index_lock(&checkout) else {
            return Ok(None);
        };
        if age_of(&lock).is_none_or(|age| age >= YOUNG_LOCK) {
            return Ok(Some(Hold::locked(&lock)));
        }
        tokio::time::sleep(LOCK_PAUSE).await;
    }
}

/// What an error means for a landing, by its type and by what is on the disk.
fn classify(error: EngineError, repo: &Repo, branch: &str, checkout: Option<&Path>) -> Hold {
    let source = match &error {
        EngineError::Git(GitError::Io { source, .. }) | EngineError::File { source, .. } => {
            Some(source.kind())
        }
        _ => None,
    };
    let no_room = matches!(
        source,
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    );
    let dirs = [Some(repo.common_dir()), checkout];
    for dir in dirs.into_iter().flatten() {
        if let Some(free) = free_bytes(dir)
            && free < FULL_BYTES
        {
            return Hold::disk_full(dir, free);
        }
    }
    if no_room {
        return Hold::disk_full(repo.common_dir(), 0);
    }
    let refs = repo.common_dir().join("refs/heads");
    let lock = refs.join(format!("{branch}.lock"));
    let lock = lock.symlink_metadata().is_ok().then_some(lock);
    if let Some(lock) = lock.or_else(|| checkout.and_then(index_lock)) {
        return Hold::locked(&lock);
    }
    if let EngineError::Git(GitError::Locked { path, .. }) = &error {
        return Hold::locked(path);
    }
    Hold {
        cause: HoldCause::Other,
        reason: String::from(without_temporary_names(error).into_note()),
    }
}

/// The same error, about the directory where it is about a temporary file: a fresh name each time would
/// be another reason each time.
fn without_temporary_names(error: EngineError) -> EngineError {
    let EngineError::Git(GitError::Io { what, path, source }) = error else {
        return error;
    };
    let is_temporary = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        is_unique(&name.to_string_lossy())
    };
    let temporary = path.ancestors().find(|path| is_temporary(path));
    let path = temporary.and_then(Path::parent).unwrap_or(&path).to_owned();
    EngineError::Git(GitError::Io { what, path, source })
}

fn free_bytes(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

impl Right<'_> {
    /// What an error means for the entries that met it.
    pub(super) async fn hold_for(&self, branch: &str, error: EngineError) -> Hold {
        let repo = &self.project.repo;
        let checkout = repo.checkout_of(branch).await.ok().flatten();
        classify(error, repo, branch, checkout.as_deref())
    }

    /// Lets an entry wait, with a reason that the person sees, until it is tried again.
    pub(super) async fn hold(&self, queued: &Queued, hold: Hold) -> Result<()> {
        let task = queued.entry.task;
        let reason = Note::from(hold.reason);
        let earlier = self.inner.landers.lock().attempts.get(&task).copied();
        if queued.hold.as_ref() != Some(&reason) {
            tracing::info!(%task, reason = reason.as_str(), "held");
            let is_known =
                earlier.is_some_and(|earlier| earlier.cause == hold.cause) && queued.hold.is_some();
            self.store_hold(task, reason, is_known && hold.cause != HoldCause::Checkout)
                .await?;
        }
        let mut landing = self.inner.landers.lock();
        // Those that left the queue while they waited.
        let long_ago = Instant::now().checked_sub(FORGOTTEN_AFTER);
        landing
            .attempts
            .retain(|_, attempts| Some(attempts.until) > long_ago);
        let attempts = Attempts::after(earlier, hold.cause, self.inner.options.retry_pace);
        landing.attempts.insert(task, attempts);
        drop(landing);
        self.wake_at(attempts.until);
        Ok(())
    }

    /// Records a reason; the person is told, unless only its details have changed.
    pub(super) async fn store_hold(
        &self,
        task: TaskId,
        reason: Note,
        is_known: bool,
    ) -> Result<()> {
        if !is_known {
            // First: once it is held, nobody looks for a reason to tell again.
            crate::notify::tell_held(self.inner, task, &reason).await?;
        }
        match self.inner.store.hold_entry(task, Some(reason)).await {
            // It has just been taken out of the queue.
            Err(StoreError::NotFound { .. }) => Ok(()),
            held => Ok(held?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Door;
    use woodward_testkit::repo::TestRepo;

    #[test]
    fn attempts_that_meet_the_same_cause_come_further_apart() {
        let pace = RetryPace::default();
        let mut attempts = None;
        let mut waits = Vec::new();
        for _ in 0..8 {
            let next = Attempts::after(attempts, HoldCause::DiskFull, pace);
            waits.push(HoldCause::DiskFull.retry_after(next.count).0 / 1_000);
            attempts = Some(next);
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60, 60]);
        let other = Attempts::after(attempts, HoldCause::Signing, pace);
        assert_eq!(other.count, 1, "another cause starts anew");
    }

    #[tokio::test]
    async fn errors_are_told_apart_by_type_and_not_by_their_paths() {
        let test = TestRepo::with(&[("a", "1\n")]);
        let repo = Repo::discover(&Door::new("test"), test.root()).await;
        let repo = repo.expect("a repository");
        let full = |path: &str| {
            let source = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
            let error = GitError::io("write", Path::new(path), source);
            classify(error.into(), &repo, "main", None)
        };
        let hold = full("/x/tmp_obj_1");
        assert_eq!(hold.cause, HoldCause::DiskFull);
        assert_eq!(hold, full("/x/tmp_obj_2"), "the same reason each time");
        let other = |path: &str| {
            let error = GitError::io(
                "create",
                Path::new(path),
                io::ErrorKind::NotADirectory.into(),
            );
            classify(error.into(), &repo, "main", None).reason
        };
        let first = other("/x/.git/woodward/follow-0-0123456789abcdef/index");
        assert_eq!(first, other("/x/.git/woodward/follow-7-fedcba9876543210"));
        assert!(first.contains("create /x/.git/woodward:"), "{first}");
        assert!(other("/x/a-1-file.txt").contains("a-1-file.txt"));
        let lock = test.root().join(".git/index.lock");
        std::fs::write(&lock, "").expect("a lock");
        let failed = GitError::Unexpected {
            verb: "x",
            what: String::new(),
        };
        let hold = classify(failed.into(), &repo, "main", Some(test.root()));
        assert_eq!(hold.cause, HoldCause::Locked);
        let rm = format!("rm '{}'", lock.display());
        assert!(hold.reason.contains(&rm), "{hold:?}");
        assert!(hold.reason.contains("s old)"), "{hold:?}");
    }
}
