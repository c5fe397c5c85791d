//! What is remembered of worktrees that were removed, so that a removal can be taken back.

use std::path::PathBuf;

use woodward_core::TaskId;
use woodward_core::task::Worktree;

use crate::error::{EngineError, Result};
use crate::files;
use crate::paths::Paths;

fn file(paths: &Paths, task: TaskId) -> PathBuf {
    paths.state().join("removed").join(format!("{task}.json"))
}

/// Remembers the last worktree of a task before it goes.
pub(crate) fn save(paths: &Paths, task: TaskId, worktree: &Worktree) -> Result<()> {
    let file = file(paths, task);
    files::save_json(&file, worktree).map_err(EngineError::file(file.display().to_string()))
}

/// The worktree of a task that was removed last.
pub(crate) fn load(paths: &Paths, task: TaskId) -> Option<Worktree> {
    files::load_json(&file(paths, task))
}
