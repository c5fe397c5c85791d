//! What is known of a task's progress from evidence: commits on its branch, tests that passed.
//!
//! Kept in small files of the state directory and in memory, so that `status` asks git nothing. It
//! is for people only: nothing is decided by it, and losing it loses nothing.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use woodward_core::provider::ProviderWait;
use woodward_core::{AgentName, TaskId};

use crate::files;

/// Tasks whose evidence is kept in memory.
const KEPT_MAX: usize = 10_000;

/// What is known of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Evidence {
    pub(crate) runs: u32,
    /// Who did the last run, which may be another than the first choice.
    pub(crate) agent: Option<AgentName>,
    pub(crate) commits: u32,
    /// Steps of the agent's own plan that are done, and how many there are.
    pub(crate) plan: Option<(u32, u32)>,
    pub(crate) tests: Option<(u32, u32)>,
    pub(crate) gates: Option<(u32, u32)>,
    /// How many risk signals its change shows.
    pub(crate) risks: u32,
    /// What the program of its current run waits for.
    pub(crate) provider_wait: Option<ProviderWait>,
}

/// The evidence of all tasks.
#[derive(Debug)]
pub(crate) struct Book {
    directory: PathBuf,
    known: Mutex<HashMap<TaskId, Evidence>>,
}

impl Book {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            known: Mutex::default(),
        }
    }

    pub(crate) fn of(&self, task: TaskId) -> Evidence {
        let mut known = self.known.lock().unwrap_or_else(|e| e.into_inner());
        if known.len() > KEPT_MAX {
            known.clear();
        }
        known
            .entry(task)
            .or_insert_with(|| files::load_json(&self.file(task)).unwrap_or_default())
            .clone()
    }

    /// Changes what is known of a task. A failed write is only a gap in what is shown.
    pub(crate) fn note(&self, task: TaskId, change: impl FnOnce(&mut Evidence)) {
        let before = self.of(task);
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return;
        }
        self.known
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .insert(task, after.clone());
        if let Err(error) = files::save_json_lazily(&self.file(task), &after) {
            tracing::debug!(%task, %error, "evidence was not written");
        }
    }

    fn file(&self, task: TaskId) -> PathBuf {
        self.directory.join(format!("{task}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use woodward_store::fresh_uuid;

    #[test]
    fn evidence_outlives_the_book() {
        let dir = tempfile::tempdir().unwrap();
        let task = TaskId::new(fresh_uuid());
        Book::new(dir.path().into()).note(task, |known| known.commits = 3);
        assert_eq!(Book::new(dir.path().into()).of(task).commits, 3);
        assert_eq!(
            Book::new(dir.path().into()).of(TaskId::new(fresh_uuid())),
            Evidence::default()
        );
    }
}
