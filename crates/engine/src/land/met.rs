//! What an entry met on its way: others landed before it, and now it does not fit or fails.
//!
//! Its agent is told what they changed, as data, bounded; what touches the same files comes first.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use woodward_core::{CommitId, Task, TaskId};

use super::right::Right;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::files;
use crate::git::Side;
use crate::project::Project;

/// Landed changes that are told, at most.
const OTHERS_MAX: usize = 10;
/// Files of its own by which those are found that matter most.
const PATHS_MAX: usize = 200;
/// How much of one change, and of all together.
const PATCH_BYTES: usize = 8 << 10;
const ALL_BYTES: usize = 24 << 10;

/// Where an entry began, and what it met.
#[derive(Debug, Serialize, Deserialize)]
struct Met {
    /// What was to land.
    commit: CommitId,
    /// Where it had left the branch.
    since: CommitId,
    /// Where the branch was.
    onto: CommitId,
}

/// A change that landed first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Other {
    /// The task, if it was one.
    pub(crate) task: Option<String>,
    /// The commit.
    pub(crate) commit: String,
    /// The first line of its message.
    pub(crate) subject: String,
    /// What it changed, if there was room for it.
    pub(crate) patch: String,
}

fn file(inner: &Inner, task: TaskId) -> PathBuf {
    let gates = inner.options.paths.state().join("gates");
    gates.join(task.to_string()).join("met.json")
}

/// Remembers what an entry met.
pub(super) async fn save(
    right: &Right<'_>,
    task: &Task,
    commit: &CommitId,
    onto: &CommitId,
) -> Result<()> {
    let Some(since) = right.project.repo.merge_base(commit, onto).await? else {
        return Ok(());
    };
    let met = Met {
        commit: commit.clone(),
        since,
        onto: onto.clone(),
    };
    let file = file(right.inner, task.id);
    files::save_json(&file, &met).map_err(EngineError::file(file.display().to_string()))
}

/// What landed between a task's start and its own landing, if that is why it is worked on again.
pub(crate) async fn others(inner: &Inner, project: &Project, task: &Task) -> Result<Vec<Other>> {
    let met = files::load_json::<Met>(&file(inner, task.id));
    // Of an earlier result it says nothing.
    let Some(met) = met.filter(|met| task.head.as_ref() == Some(&met.commit)) else {
        return Ok(Vec::new());
    };
    let repo = &project.repo;
    let mine = repo.numstat(&met.since, Side::Commit(&met.commit)).await?;
    let own: Vec<String> = mine
        .into_iter()
        .flat_map(|file| file.was.into_iter().chain([file.path]))
        .take(PATHS_MAX)
        .collect();
    let (since, onto) = (&met.since, &met.onto);
    // Those that touch the same files before all others, however long ago they landed; newest first.
    let mut found = match own.is_empty() {
        true => Vec::new(),
        false => repo.landed(since, onto, OTHERS_MAX, &own).await?,
    };
    for landed in repo.landed(since, onto, OTHERS_MAX, &[]).await? {
        if found.iter().all(|it| it.commit != landed.commit) {
            found.push(landed);
        }
    }
    let mut left = ALL_BYTES;
    let mut others = Vec::new();
    for landed in found.into_iter().take(OTHERS_MAX) {
        let side = Side::Commit(&landed.commit);
        let patch = repo.diff(&landed.parent, side, PATCH_BYTES).await?;
        let mut text = String::from_utf8_lossy(&patch.text).into_owned();
        if patch.cut {
            text.push_str("\n… (cut)");
        }
        if text.len() > left {
            text.clear();
        }
        left -= text.len();
        others.push(Other {
            task: landed.task,
            commit: landed.commit.to_string(),
            subject: landed.subject,
            patch: text,
        });
    }
    Ok(others)
}
