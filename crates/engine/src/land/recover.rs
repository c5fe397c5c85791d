//! Repairing a half-done landing by looking at the branch.

use woodward_core::landing::{Intent, IntentState, Recovery, RefSeen, recover};

use super::right::Right;
use crate::error::Result;
use crate::git::Advance;

/// The branch may move again between looking and acting; each round looks anew.
const ROUNDS: u32 = 5;

impl Right<'_> {
    /// Says what became of it; pending if that can't be said yet.
    pub(super) async fn recover(&self, intent: &Intent) -> Result<IntentState> {
        let repo = &self.project.repo;
        for _ in 0..ROUNDS {
            let current = self.tip(&intent.branch).await?;
            let contains_new = match &current {
                Some(current) if repo.is_ancestor(&intent.new, current).await? => true,
                Some(current) if *current == intent.old => false,
                // A person may have rebased the branch with the landing on it.
                Some(current) => {
                    let id = intent.id.to_string();
                    repo.names_intent(&intent.old, current, &id).await?
                }
                None => false,
            };
            let seen = RefSeen {
                current,
                contains_new,
            };
            let decision = recover(intent, &seen);
            tracing::info!(intent = %intent.id, ?decision, "a landing was under way");
            match decision {
                Recovery::RecordLanded => return self.is(intent, IntentState::Landed).await,
                Recovery::RecordVoid => return self.is(intent, IntentState::Void).await,
                Recovery::MoveRef => {
                    // The person may have changed files since the landing was planned.
                    if self
                        .in_the_way(&intent.branch, &intent.old, &intent.new)
                        .await?
                        .is_some()
                    {
                        return self.is(intent, IntentState::Void).await;
                    }
                    let moved = self.advance(&intent.branch, &intent.new, &intent.old);
                    match moved.await? {
                        Advance::Advanced => return self.is(intent, IntentState::Landed).await,
                        // Who plans anew meets it again, and knows whom it concerns.
                        Advance::Refused { .. } => {
                            return self.is(intent, IntentState::Void).await;
                        }
                        Advance::Moved { .. } => {}
                    }
                }
            }
        }
        Ok(IntentState::Pending)
    }

    async fn is(&self, intent: &Intent, outcome: IntentState) -> Result<IntentState> {
        self.settle(intent, outcome).await?;
        Ok(outcome)
    }
}
