//! Verdicts of a moment ago: found without asking the store, and saved without anybody waiting.
//!
//! A verdict that a crash keeps from being saved costs one more look and nothing else. What tasks
//! become is never decided by what is only here: that is written with the task.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::RwLock;
use woodward_core::ProjectId;
use woodward_store::GateResult;

use crate::engine::Inner;
use crate::error::Result;

/// How many are kept at hand.
const RECENT_MAX: usize = 128;

/// What gates said.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    recent: Mutex<HashMap<(ProjectId, String), GateResult>>,
    /// Held for reading while something is being saved.
    saving: Arc<RwLock<()>>,
}

impl Verdicts {
    /// What was said to a question.
    pub(crate) async fn load(
        &self,
        inner: &Inner,
        project: ProjectId,
        key: &str,
    ) -> Result<Option<GateResult>> {
        let asked = (project, key.to_owned());
        if let Some(known) = self.recent().get(&asked) {
            return Ok(Some(known.clone()));
        }
        let known = inner.store.load_verdict(project, asked.1.clone()).await?;
        if let Some(known) = &known {
            self.note(asked, known.clone());
        }
        Ok(known)
    }

    /// Remembers what was said: at once here, and soon for good.
    pub(crate) fn save(&self, inner: &Inner, project: ProjectId, key: String, said: GateResult) {
        self.note((project, key.clone()), said.clone());
        let store = Arc::clone(&inner.store);
        let saving = Arc::clone(&self.saving).try_read_owned();
        inner.tasks.spawn(async move {
            let _saving = saving;
            if let Err(error) = store.save_verdict(project, key, said).await {
                tracing::warn!(%error, "a verdict was not saved; the gate will look again");
            }
        });
    }

    /// Waits until all that was said so far is saved.
    pub(crate) async fn saved(&self) {
        drop(self.saving.write().await);
    }

    fn note(&self, asked: (ProjectId, String), said: GateResult) {
        let mut recent = self.recent();
        if recent.len() >= RECENT_MAX {
            recent.clear();
        }
        recent.insert(asked, said);
    }

    fn recent(&self) -> MutexGuard<'_, HashMap<(ProjectId, String), GateResult>> {
        self.recent.lock().unwrap_or_else(|e| e.into_inner())
    }
}
