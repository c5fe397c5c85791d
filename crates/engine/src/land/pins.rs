//! What a landing has built is kept by a ref of ours, so that no gc drops it, until it is decided.
//!
//! Letting go is level-triggered: each look at a queue lets go of all that nothing on record needs, so
//! a kill, a failed command or a database that went away costs one ref until the next look. What is
//! being put on record right now must never be let go of.

use woodward_core::landing::Intent;
use woodward_core::{CommitId, IntentId};

use super::Landers;
use crate::engine::Inner;
use crate::error::Result;
use crate::project::Project;

/// A landing that is being put on record. Once this is dropped, the record alone decides.
pub(super) struct Recording<'a> {
    landers: &'a Landers,
    intent: IntentId,
}

impl<'a> Recording<'a> {
    /// Keeps a commit.
    pub(super) async fn of(
        landers: &'a Landers,
        project: &Project,
        intent: IntentId,
        commit: &CommitId,
    ) -> Result<Self> {
        landers.lock().recorded_now.insert(intent);
        let recording = Self { landers, intent };
        project.repo.pin_landing(intent, commit).await?;
        Ok(recording)
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.landers.lock().recorded_now.remove(&self.intent);
    }
}

/// Lets go of everything that is settled or never was on record; what is on record is returned.
pub(super) async fn let_go(inner: &Inner, project: &Project) -> Result<Vec<Intent>> {
    // In this order: whoever is no longer among the second is among the third, or settled.
    let kept = project.repo.pinned_landings().await?;
    let recorded_now = inner.landers.lock().recorded_now.clone();
    let pending = inner.store.load_pending_intents(project.id()).await?;
    for one in kept {
        let is_needed = pending.iter().any(|intent| intent.id == one);
        if !is_needed && !recorded_now.contains(&one) {
            project.repo.unpin_landing(one).await?;
        }
    }
    Ok(pending)
}
