//! How an engine comes up: the lock, the machine's name, recovery, and the loops.
//!
//! Recovery removes nothing that somebody may still need: a process is ended only by its mark, a lock
//! file only with proof that nobody holds it, a worktree never.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio::time::Instant;
use woodward_core::WorkerId;
use woodward_store::{Due, Store, StoreError, TaskFilter, fresh_uuid};

use crate::engine::{Inner, Options};
use crate::error::{EngineError, Result};
use crate::paths::Paths;
use crate::project::Project;
use crate::{
    dispatch, drive, effects, files, git, land, notify, outside, radar, reaction, renew, retain,
    tail,
};

/// More digits than any process id has.
const PID_MAX: u64 = 20;
/// How often it is looked at what is due but could not be acted on, at first and at most.
const OVERDUE: Duration = Duration::from_secs(1);
const OVERDUE_MAX: Duration = Duration::from_secs(5);
const RETAIN_EVERY: Duration = Duration::from_secs(3_600);
/// How long git commands of a killed engine get to finish.
const ORPHANS_GET: Duration = Duration::from_millis(500);
/// How long a lock may still be held by a child that a killed engine had forked and that has not become
/// another program yet.
const LOCK_GETS: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Makes the state directory and holds its lock.
pub(crate) async fn lock(paths: &Paths) -> Result<File> {
    let state = paths.state();
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state)
        .map_err(EngineError::file(format!(
            "the state directory {}",
            state.display()
        )))?;
    // It may have been there before, for all to read: prompts and output are not for all.
    fs::set_permissions(state, fs::Permissions::from_mode(0o700)).map_err(EngineError::file(
        format!("the state directory {}", state.display()),
    ))?;
    let path = paths.daemon_lock();
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(EngineError::file(path.display().to_string()))?;
    let deadline = Instant::now() + LOCK_GETS;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // For whoever comes second; a disk without space must not keep the daemon from starting.
                let _ = file
                    .set_len(0)
                    .and_then(|()| (&file).write_all(std::process::id().to_string().as_bytes()));
                return Ok(file);
            }
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StoreError::InUse {
                    path: state.to_owned(),
                    pid: holder(&file),
                }
                .into());
            }
            Err(error) => {
                return Err(EngineError::file(path.display().to_string())(error.into()));
            }
        }
    }
}

/// Opens the database. The state is ours: only what a dead engine has left can be in the way.
pub(crate) async fn open(options: &Options) -> Result<Arc<dyn Store>> {
    let deadline = Instant::now() + LOCK_GETS;
    loop {
        match options.database.open(&options.paths.database()).await {
            Err(EngineError::Store(StoreError::InUse { .. })) if Instant::now() < deadline => {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            opened => return opened,
        }
    }
}

/// Who says to hold a lock.
fn holder(file: &File) -> String {
    let mut text = String::new();
    let told = file.take(PID_MAX).read_to_string(&mut text);
    match (told, text.trim().parse::<u32>()) {
        (Ok(_), Ok(pid)) => pid.to_string(),
        _ => "?".into(),
    }
}

/// This machine's durable name.
pub(crate) fn worker(paths: &Paths) -> Result<WorkerId> {
    let path = paths.worker();
    if let Ok(text) = fs::read_to_string(&path)
        && let Ok(worker) = text.trim().parse()
    {
        return Ok(worker);
    }
    let worker = WorkerId::new(fresh_uuid());
    files::save(&path, worker.to_string().as_bytes())
        .map_err(EngineError::file(path.display().to_string()))?;
    Ok(worker)
}

/// Takes up what an earlier engine of this machine left.
pub(crate) async fn recover(inner: &Arc<Inner>) -> Result<()> {
    git::end_orphans(inner.git.marker(), ORPHANS_GET).await;
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    inner
        .store
        .register_worker(
            inner.worker,
            host,
            std::process::id(),
            env!("CARGO_PKG_VERSION").into(),
        )
        .await?;
    notify::begin(inner).await?;
    for record in inner.store.load_projects().await? {
        let id = record.id;
        match Project::open(record, &inner.options.paths, &inner.git, None).await {
            Ok(project) => {
                let project = Arc::new(project);
                match project.repo.sweep_locks().await {
                    Ok(swept) => {
                        for path in swept.removed {
                            tracing::info!(path = %path.display(), "removed a lock file that nobody holds");
                        }
                    }
                    // One repository in trouble must not keep the others from going on.
                    Err(error) => {
                        tracing::warn!(project = %id, %error, "its lock files could not be looked at");
                    }
                }
                let mut projects = inner.projects.write().unwrap_or_else(|e| e.into_inner());
                projects.insert(id, project);
            }
            Err(error) => {
                tracing::warn!(project = %id, %error, "a project's repository can't be opened");
                let mut absent = inner.absent.lock().unwrap_or_else(|e| e.into_inner());
                absent.insert(id, error.to_string());
            }
        }
    }
    let mut after = None;
    loop {
        let held = inner
            .store
            .load_tasks(TaskFilter {
                holder: Some(inner.worker),
                open_only: true,
                after,
                ..TaskFilter::default()
            })
            .await?;
        for task in &held {
            drive::ensure(inner, task.id, task.epoch);
        }
        after = held.last().map(|task| task.id);
        if held.len() < woodward_store::PAGE_MAX as usize {
            break;
        }
    }
    Ok(())
}

/// Starts what the engine does over and over.
pub(crate) fn loops(inner: &Arc<Inner>) {
    spawn(inner, look);
    spawn(inner, renew::run);
    spawn(inner, tail::follow);
    spawn(inner, notify::follow);
    spawn(inner, notify::deliver);
    spawn(inner, notify::keep_awake);
    spawn(inner, reaction::run);
    spawn(inner, radar::run);
    spawn(inner, outside::run);
    spawn(inner, |inner| async move { inner.directories.run().await });
    spawn(inner, |inner| every(inner, RETAIN_EVERY, retain::run));
}

fn spawn<F>(inner: &Arc<Inner>, run: impl FnOnce(Arc<Inner>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let work = run(Arc::clone(inner));
    let stopping = inner.stopping.clone();
    inner.tasks.spawn(async move {
        let _ = stopping.run_until_cancelled(work).await;
    });
}

async fn every<F>(inner: Arc<Inner>, pause: Duration, act: impl Fn(Arc<Inner>) -> F + Send)
where
    F: Future<Output = Result<()>> + Send,
{
    loop {
        if let Err(error) = act(Arc::clone(&inner)).await {
            tracing::warn!(%error, "a chore failed; it comes again");
        }
        tokio::time::sleep(pause).await;
    }
}

/// Looks at what is recorded and acts on it, whenever there may be something new or something is due.
async fn look(inner: Arc<Inner>) {
    let mut wakeups = inner.store.wakeups();
    let mut overdue = OVERDUE;
    loop {
        let mut failed = false;
        if let Err(error) = effects::take(&inner).await {
            tracing::warn!(%error, "effects could not be taken");
            failed = true;
        }
        if let Err(error) = dispatch::claim(&inner).await {
            tracing::warn!(%error, "tasks could not be claimed");
            failed = true;
        }
        land::wake(&inner);
        let wait = if failed {
            OVERDUE
        } else if wakeups.is_pending() {
            Duration::ZERO
        } else {
            match inner.until_due(Due::Work(inner.worker)).await {
                Duration::ZERO => overdue,
                wait => wait,
            }
        };
        tokio::select! {
            biased;
            _ = wakeups.next() => overdue = OVERDUE,
            () = inner.look.notified() => overdue = OVERDUE,
            () = tokio::time::sleep(wait) => overdue = (overdue * 2).min(OVERDUE_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_state_directory_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        lock(&Paths::new(dir.path())).await.unwrap();
        let mode = fs::metadata(dir.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
