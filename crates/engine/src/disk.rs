//! Full disks: how they are noticed, and which tasks wait for room.
//!
//! A full disk is recognised by the kind of an error or by measured space, never by what a program
//! printed. A task that waits uses no attempt, and is tried again when there is room.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use woodward_core::TaskId;
use woodward_core::disk::{DiskFull, DiskLimit, DiskSpace};
use woodward_store::StoreError;

use crate::error::EngineError;
use crate::git::GitError;
use crate::supervise;

/// How often a full disk is measured again, at first and at most.
const MEASURE_EVERY: Duration = Duration::from_millis(500);
const MEASURE_EVERY_MAX: Duration = Duration::from_secs(5);

/// The tasks that wait for room on a disk. In memory only: what finds its disk full after a restart
/// waits again.
#[derive(Debug, Default)]
pub(crate) struct DiskWaits {
    waiting: Mutex<HashMap<TaskId, DiskFull>>,
}

impl DiskWaits {
    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, DiskFull>> {
        self.waiting.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What a task waits for, if it waits for room on a disk.
    pub(crate) fn of(&self, task: TaskId) -> Option<DiskFull> {
        self.lock().get(&task).cloned()
    }

    /// Shows a task as waiting for room.
    pub(crate) fn note(&self, task: TaskId, full: DiskFull) {
        self.lock().insert(task, full);
    }

    /// A task no longer waits for room.
    pub(crate) fn clear(&self, task: TaskId) {
        self.lock().remove(&task);
    }

    /// Waits until there is room on the disk, for at most `longest`, and keeps what is shown of it up
    /// to date. Returns early when cancelled.
    pub(crate) async fn wait(
        &self,
        task: TaskId,
        full: &DiskFull,
        longest: Duration,
        cancel: &CancellationToken,
    ) {
        let begun = Instant::now();
        let mut every = MEASURE_EVERY;
        self.note(task, full.clone());
        while begun.elapsed() < longest {
            let pause = tokio::time::sleep(every);
            if cancel.run_until_cancelled(pause).await.is_none() {
                return;
            }
            every = (every * 2).min(MEASURE_EVERY_MAX);
            let Ok(space) = measure(Path::new(&full.path)) else {
                continue;
            };
            if space.has_room_after(full) {
                self.clear(task);
                return;
            }
            if let Some(shown) = self.lock().get_mut(&task) {
                shown.free_bytes = space.free;
            }
        }
    }
}

/// The space of the file system that has a path, or would have it.
fn measure(path: &Path) -> io::Result<DiskSpace> {
    let stat = rustix::fs::statvfs(existing(path))?;
    Ok(DiskSpace {
        free: stat.f_bavail.saturating_mul(stat.f_frsize),
        total: stat.f_blocks.saturating_mul(stat.f_frsize),
        inodes: (stat.f_files > 0).then_some(stat.f_favail),
    })
}

/// The nearest directory above a path that exists.
fn existing(path: &Path) -> &Path {
    let mut above = path.ancestors();
    above.find(|it| it.exists()).unwrap_or(Path::new("/"))
}

/// The first of some directories whose disk is full.
pub(crate) fn find_full(paths: &[PathBuf]) -> Option<DiskFull> {
    paths.iter().find_map(|path| {
        let space = measure(path).ok()?;
        let limit = space.exhausted()?;
        Some(told(path, space.free, limit))
    })
}

fn told(path: &Path, free_bytes: u64, limit: DiskLimit) -> DiskFull {
    DiskFull {
        path: path.display().to_string(),
        free_bytes,
        limit,
    }
}

/// The full disk behind an error, if that is what it is: by the kind of the error, or because one of
/// the disks that the work needs is full now.
pub(crate) fn behind(error: &EngineError, paths: &[PathBuf]) -> Option<DiskFull> {
    let (source, path) = match error {
        EngineError::DiskFull(full) => return Some(full.clone()),
        EngineError::File { source, .. } => (Some(source), None),
        EngineError::Git(GitError::Io { source, path, .. })
        | EngineError::Process(supervise::Error::Io { source, path, .. }) => {
            (Some(source), Some(path.as_path()))
        }
        EngineError::Git(_) | EngineError::Process(_) | EngineError::Setup(_) => (None, None),
        EngineError::Store(StoreError::DiskFull) => (None, None),
        EngineError::Store(_)
        | EngineError::Config(_)
        | EngineError::Repository(_)
        | EngineError::Agent(_)
        | EngineError::Problem(_) => return None,
    };
    if let Some(full) = find_full(paths) {
        return Some(full);
    }
    let limit = match source.map(io::Error::kind) {
        Some(io::ErrorKind::StorageFull) => DiskLimit::Space,
        Some(io::ErrorKind::QuotaExceeded) => DiskLimit::Quota,
        _ => return None,
    };
    let path = path.or(paths.first().map(PathBuf::as_path))?;
    let free = measure(path).map_or(0, |space| space.free);
    Some(told(existing(path), free, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_known_by_the_kind_of_the_error_and_not_by_its_words() {
        let here = std::env::temp_dir();
        let missing = here.join("not/there");
        let io = |source: io::Error| EngineError::Git(GitError::io("write", &missing, source));
        let found = behind(&io(io::ErrorKind::StorageFull.into()), &[]).expect("a full disk");
        assert_eq!(found.limit, DiskLimit::Space);
        assert_eq!(found.path, existing(&missing).display().to_string());
        let found = behind(&io(io::ErrorKind::QuotaExceeded.into()), &[]).expect("a quota");
        assert_eq!(found.limit, DiskLimit::Quota);
        let words = io::Error::other("No space left on device (os error 28)");
        assert_eq!(behind(&io(words), &[]), None);
    }
}
