//! What is kept, and for how long: rows, removed worktrees, outputs of agents and gates.
//!
//! Only what is finished and old goes, a bounded number at a time, and the log says so. What belongs to
//! an open task, or still runs, is never touched; what nobody knows is old before it goes.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use woodward_core::{Millis, ProjectId, RunId, Task, TaskId, Timestamp};
use woodward_store::Retention;

use crate::clock;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::files;
use crate::supervise::{self, Seen};

/// How long removed worktrees stay in the trash.
const TRASH_KEPT: Millis = Millis::from_days(14);
/// The same for what has landed: all of it is on its branch, and only disk space is left to give back.
const LANDED_KEPT: Millis = Millis::from_days(1);
/// The most directories of outputs that go at a time.
const OUTPUTS_MAX: usize = 500;

/// Lets go of everything whose time is over.
pub(crate) async fn run(inner: Arc<Inner>) -> Result<()> {
    let rules = Retention::default();
    inner.store.retain(rules).await?;
    let now = clock::now();
    for project in inner.all_projects() {
        let (others, landed) = (now - TRASH_KEPT, now - LANDED_KEPT);
        let trash = project.worktrees();
        let emptied = project.repo.empty_trash(&trash, others, landed).await?;
        let emptied = emptied + project.repo.empty_kept_repositories(&trash, others)?;
        if emptied > 0 {
            tracing::info!(project = %project.record.name, emptied, "emptied the trash");
        }
    }
    outputs(&inner, now - rules.logs).await
}

/// Whose output a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Run(RunId),
    Task(TaskId),
    /// A branch's gates, or a command that ran for a task's directory.
    Nobody,
}

/// Removes outputs of tasks that were over before a moment.
async fn outputs(inner: &Inner, before: Timestamp) -> Result<()> {
    let state = inner.options.paths.state().to_owned();
    let found = tokio::task::spawn_blocking(move || unchanged_since(&state, before));
    let found = found.await.unwrap_or_default();
    let runs: HashSet<RunId> = found
        .iter()
        .filter_map(|(_, of)| match of {
            Of::Run(run) => Some(*run),
            _ => None,
        })
        .collect();
    let projects = inner.all_projects().into_iter().map(|project| project.id());
    let owners = owners(inner, &runs, projects.collect()).await?;
    let mut removed = 0_usize;
    for (dir, of) in found {
        let task = match of {
            Of::Run(run) => owners.get(&run).copied(),
            Of::Task(task) => Some(task),
            Of::Nobody => None,
        };
        let task = match task {
            Some(task) => inner.store.load_task(task).await?,
            None => None,
        };
        if !may_go(task.as_ref(), before) || matches!(supervise::look(&dir), Ok(Seen::Running(_))) {
            continue;
        }
        let gone = dir.clone();
        let gone = tokio::task::spawn_blocking(move || fs::remove_dir_all(gone));
        let gone = gone.await.unwrap_or_else(|lost| Err(lost.into()));
        gone.map_err(EngineError::file(dir.display().to_string()))?;
        removed += 1;
    }
    if removed > 0 {
        tracing::info!(removed, "removed outputs of tasks that were over long ago");
    }
    Ok(())
}

/// Which tasks these runs were of.
async fn owners(
    inner: &Inner,
    runs: &HashSet<RunId>,
    projects: Vec<ProjectId>,
) -> Result<HashMap<RunId, TaskId>> {
    let mut owners = HashMap::new();
    if runs.is_empty() {
        return Ok(owners);
    }
    for project in projects {
        let all = inner.store.load_runs_since(project, Timestamp(0)).await?;
        let known = all.into_iter().map(|(_, run)| (run.id, run.task));
        owners.extend(known.filter(|(run, _)| runs.contains(run)));
    }
    Ok(owners)
}

/// Whether what a task left may go. What is no task's, or one's that nobody knows any more, may.
fn may_go(task: Option<&Task>, before: Timestamp) -> bool {
    task.is_none_or(|task| task.state.kind().is_finished() && task.since < before)
}

/// Directories of outputs in which nothing has happened since a moment.
fn unchanged_since(state: &Path, before: Timestamp) -> Vec<(PathBuf, Of)> {
    let before = Duration::from_millis(u64::try_from(before.0).unwrap_or(0));
    let before = SystemTime::UNIX_EPOCH + before;
    let is_old = |dir: &Path| {
        let changed = fs::metadata(dir).and_then(|meta| meta.modified());
        changed.is_ok_and(|changed| changed < before)
    };
    let name = |dir: &Path| {
        dir.file_name()
            .and_then(|name| name.to_str())
            .map(str::to_owned)
    };
    let runs = files::subdirectories(&state.join("runs"));
    let runs = runs.into_iter().map(|dir| {
        let run = name(&dir).and_then(|name| name.parse().ok());
        (dir, run.map_or(Of::Nobody, Of::Run))
    });
    let gates = files::subdirectories(&state.join("gates"));
    let gates = gates.into_iter().flat_map(|dir| {
        match name(&dir).and_then(|name| name.parse().ok()) {
            Some(task) => vec![(dir, Of::Task(task))],
            // A commit at a time: the branch itself is never over.
            None => {
                let commits = files::subdirectories(&dir).into_iter();
                commits.map(|dir| (dir, Of::Nobody)).collect()
            }
        }
    });
    runs.chain(gates)
        .filter(|(dir, _)| is_old(dir))
        .take(OUTPUTS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use woodward_store::fresh_uuid;

    #[test]
    fn only_what_did_not_change_for_long_is_found_with_its_owner() {
        let state = tempfile::tempdir().unwrap();
        let (run, task) = (RunId::new(fresh_uuid()), TaskId::new(fresh_uuid()));
        let make = |name: String, is_old: bool| {
            let dir = state.path().join(name);
            fs::create_dir_all(&dir).unwrap();
            if is_old {
                let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
                fs::File::open(&dir)
                    .unwrap()
                    .set_modified(long_ago)
                    .unwrap();
            }
            dir
        };
        let old = [
            (make(format!("runs/{run}"), true), Of::Run(run)),
            (make("runs/teardown-1".into(), true), Of::Nobody),
            (make(format!("gates/{task}"), true), Of::Task(task)),
            (make("gates/base-1/c0ffee".into(), true), Of::Nobody),
        ];
        make(format!("runs/{}", fresh_uuid()), false);
        make(format!("gates/{}/c0ffee", fresh_uuid()), false);
        make("gates/base-1/beef".into(), false);
        let mut found = unchanged_since(state.path(), Timestamp(5_000));
        found.sort_by_key(|(dir, _)| old.iter().position(|(one, _)| one == dir));
        assert_eq!(found, old);
        assert!(unchanged_since(state.path(), Timestamp(500)).is_empty());
    }
}
