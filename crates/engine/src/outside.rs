//! Noticing what no event tells: where target branches are, whether rules or a person's settings have
//! changed, whether the state directory is still there.
//!
//! One loop for all projects and all agents. A look reads a few small files and asks neither git nor the
//! database; only for what has changed more is done.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use woodward_core::{CommitId, ProjectId};

use crate::directory_watch::DirectoryWatch;
use crate::engine::Inner;
use crate::notify;
use crate::targets;

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What a file looks like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileVersion {
    modified: Option<SystemTime>,
    inode: u64,
    bytes: u64,
}

impl FileVersion {
    /// `None` if the file is not there.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Self {
            modified: meta.modified().ok(),
            inode: meta.ino(),
            bytes: meta.len(),
        })
    }
}

/// By what a project's rules are known to be the same: the commit that they are read from, and the file in
/// the person's checkout.
pub(crate) type RulesVersion = (Option<CommitId>, Option<FileVersion>);

/// Everything that a person can change without telling the daemon.
#[derive(Debug, PartialEq, Eq)]
struct Settings {
    own: Option<FileVersion>,
    projects: BTreeMap<ProjectId, RulesVersion>,
}

impl Settings {
    fn of(inner: &Inner) -> Self {
        let projects = inner.all_projects();
        Self {
            own: FileVersion::of(&notify::own_file()),
            projects: (projects.iter())
                .map(|project| (project.id(), project.rules_version()))
                .collect(),
        }
    }
}

/// Looks until the engine stops.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut known = Settings::of(&inner);
    let removal = (inner.directories).watch_removal(inner.options.paths.state());
    loop {
        targets::watch(&inner).await;
        let now = Settings::of(&inner);
        if now != known {
            known = now;
            inner.settings.send_modify(|count| *count += 1);
            inner.look.notify_one();
        }
        inner.tick.send_modify(|count| *count += 1);
        let next = Instant::now() + LOOK_EVERY;
        loop {
            if !is_state_there(&inner) {
                let state = inner.options.paths.state().display();
                tracing::error!(%state, "the state directory is gone; the daemon ends");
                inner.state_lost.cancel();
                return;
            }
            tokio::select! {
                () = tokio::time::sleep_until(next) => break,
                () = removed(removal.as_ref()) => {}
            }
        }
    }
}

async fn removed(removal: Option<&DirectoryWatch>) {
    match removal {
        Some(removal) => removal.changed().await,
        None => std::future::pending().await,
    }
}

/// Whether the state directory is the one that this engine holds the lock of.
fn is_state_there(inner: &Inner) -> bool {
    let there = std::fs::metadata(inner.options.paths.daemon_lock());
    match (there, inner.lock.metadata()) {
        (Ok(there), Ok(held)) => (there.dev(), there.ino()) == (held.dev(), held.ino()),
        (Err(error), _) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        (Ok(_), Err(_)) => true,
    }
}
