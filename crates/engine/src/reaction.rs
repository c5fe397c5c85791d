//! Reactions: following what happens and doing what rules say about it.
//!
//! What happened is read from the log with a durable cursor (`follow`), from signals that came from
//! outside (`signal`) and from the clock; which rules answer is decided by `woodward_core::reaction`
//! (`consider`); what they ask for is put into the ledger under the evidence's key, together with
//! the cursor, and performed from there (`perform`). The same evidence is therefore acted on once,
//! however often it is seen and wherever a crash falls. Rules come from the trusted base, never from
//! a task's branch.

pub(crate) mod consider;
mod follow;
pub(crate) mod material;
mod perform;
pub(crate) mod remarks;
pub(crate) mod secret;
pub(crate) mod signal;
pub(crate) mod template;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use uuid::Uuid;
use woodward_core::reaction::{Deed, Occurrence, Rule, Trigger};
use woodward_core::{CommitId, ProjectId, TaskId, TaskName};
use woodward_store::{Due, EntryKind, Wakeups};

use crate::engine::Inner;

/// How long it waits after something could not be read.
const RETRY: Duration = Duration::from_secs(1);
/// What is due in less than this is looked at then.
const SOON: Duration = Duration::from_millis(20);

/// What the ledger says of a reaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The rule, by its name.
    pub(crate) rule: String,
    /// What happened.
    pub(crate) trigger: Trigger,
    /// What is done about it.
    pub(crate) deed: Deed,
    /// The task, by its name.
    pub(crate) task: Option<TaskName>,
    /// The commit that it is about.
    pub(crate) head: Option<CommitId>,
    /// What happened, in one sentence.
    pub(crate) note: String,
    /// Which time it is for this rule and task, from 1; 0 where it is not counted.
    pub(crate) time: u32,
    /// Why it is done, or why not.
    pub(crate) why: String,
    /// What the agent or the person is told.
    pub(crate) text: Option<String>,
    /// Only if the task is no better by then.
    #[serde(default)]
    pub(crate) unless_better: bool,
    /// Whether a person caused it, which does not count against the rule's limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_person: bool,
    /// What became of it.
    #[serde(default)]
    pub(crate) outcome: Option<String>,
}

/// The ledger's key of what a rule does about an occurrence.
pub(crate) fn key(
    rule: &Rule,
    project: ProjectId,
    task: Option<TaskId>,
    occurrence: &Occurrence,
) -> String {
    let about = task.map_or_else(|| project.to_string(), |task| task.to_string());
    let evidence = digest(&occurrence.evidence_text());
    format!("reaction/{}/{about}/{evidence}", rule.id)
}

/// A short name of a text, the same for ever.
pub(crate) fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// An id that follows from a key: whatever is recorded under it is recorded once.
pub(crate) fn derived_id(key: &str, purpose: &str) -> Uuid {
    let hash = Sha256::digest(format!("{purpose}\n{key}").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Follows, considers and performs until the engine stops.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut wakeups: Wakeups = inner.store.wakeups();
    let mut entries: Wakeups = inner.store.ledger_wakeups();
    let mut settings = inner.settings.subscribe();
    let mut followers = follow::Followers::default();
    // When schedules are looked at next; `None` if there are none.
    let mut clock = Some(Instant::now());
    let mut told = true;
    loop {
        let mut failed = false;
        match followers.follow(&inner).await {
            Ok(followed) => {
                told |= followed.recorded;
                failed |= followed.is_behind;
            }
            Err(error) => {
                tracing::warn!(%error, "what happened could not be considered; it comes again");
                failed = true;
            }
        }
        if clock.is_some_and(|clock| clock <= Instant::now()) {
            told |= followers.schedules(&inner).await;
            clock = follow::next_schedule(&inner).await;
        }
        // Every change of any task wakes us; few of them put something into the ledger.
        if told {
            if let Err(error) = signal::take(&inner).await {
                tracing::warn!(%error, "signals could not be considered; they come again");
                failed = true;
            }
            if let Err(error) = perform::take(&inner).await {
                tracing::warn!(%error, "reactions could not be taken");
                failed = true;
            }
        }
        let wait = if failed {
            RETRY
        } else if wakeups.is_pending() || entries.is_pending() {
            Duration::ZERO
        } else {
            let signals = inner.until_due(Due::Entry(EntryKind::Signal)).await;
            let reactions = inner.until_due(Due::Entry(EntryKind::Reaction)).await;
            signals.min(reactions).max(SOON)
        };
        let latest = Instant::now() + wait;
        let latest = [clock, followers.save_at()]
            .into_iter()
            .flatten()
            .fold(latest, Instant::min);
        told = tokio::select! {
            biased;
            _ = entries.next() => true,
            () = inner.react.notified() => true,
            _ = wakeups.next() => false,
            _ = settings.changed() => {
                clock = Some(Instant::now());
                false
            }
            () = tokio::time::sleep_until(latest) => true,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_follows_from_its_key_and_purpose() {
        assert_eq!(derived_id("a", "message"), derived_id("a", "message"));
        assert_ne!(derived_id("a", "message"), derived_id("a", "event"));
        assert_ne!(derived_id("a", "message"), derived_id("b", "message"));
        assert_eq!(digest("a").len(), 32);
    }
}
