//! Clean directories in which gates look at a commit that is not a task's own.
//!
//! They belong to Woodward alone: whatever gates leave in them is thrown away. Ignored files (build
//! caches) stay, which is what makes the next gate fast.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;
use woodward_core::CommitId;

use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::project::Project;
use crate::{files, gate};

/// One user of a place at a time.
pub(super) type Turn = Arc<tokio::sync::Mutex<()>>;

/// Whose gates run in a place.
#[derive(Debug, Serialize, Deserialize)]
struct User {
    job: PathBuf,
}

/// A checkout of a commit, ours alone while it is held.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    _held: OwnedMutexGuard<()>,
}

impl Place {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The right to use a project's directory for one purpose.
#[derive(Debug)]
pub(crate) struct Held {
    purpose: &'static str,
    guard: OwnedMutexGuard<()>,
}

/// Waits until a project's directory for this purpose is free.
pub(crate) async fn turn(inner: &Inner, project: &Project, purpose: &'static str) -> Held {
    let lock = {
        let mut places = inner
            .landers
            .places
            .lock()
            .unwrap_or_else(|e| e.into_inner());
        let key = (project.id(), purpose.to_owned());
        Arc::clone(places.entry(key).or_default())
    };
    Held {
        purpose,
        guard: lock.lock_owned().await,
    }
}

/// A clean checkout of `commit`, in the directory that is held, for the gates of `job`.
/// Gates that an earlier engine left running there are ended first.
pub(crate) async fn checkout(
    inner: &Inner,
    project: &Project,
    held: Held,
    commit: &CommitId,
    job: &Path,
) -> Result<Place> {
    let Held { purpose, guard } = held;
    let name = format!("{}-{purpose}.json", project.id());
    let file = inner.options.paths.state().join("places").join(name);
    if let Some(User { job: earlier }) = files::load_json(&file)
        && earlier != job
    {
        gate::stop_all(&earlier).await?;
    }
    files::save_json(
        &file,
        &User {
            job: job.to_owned(),
        },
    )
    .map_err(EngineError::file(file.display().to_string()))?;
    let path = project.worktrees().join(".gates").join(purpose);
    project.repo.checkout_detached(&path, commit).await?;
    Ok(Place { path, _held: guard })
}
