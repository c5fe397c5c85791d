//! The merge queue: its order, derived from the tasks that are landing; what it does next ([`plan`]);
//! where it looks ([`search`]); what it learns ([`learn`]).

pub mod learn;
pub mod plan;
pub mod search;

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::id::{CommitId, Epoch, ProjectId, TaskId};
use crate::schedule::PRIORITY_STEP;
use crate::state::State;
use crate::task::Task;
use crate::time::Timestamp;

/// A task in the merge queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// The task.
    pub task: TaskId,
    /// Its project.
    pub project: ProjectId,
    /// The branch it lands on.
    pub branch: String,
    /// The task's claim when it was queued: a later one makes the entry void.
    pub epoch: Epoch,
    /// What was approved.
    pub commit: CommitId,
    /// When it was approved.
    pub queued_at: Timestamp,
    /// Its place in line, smallest first; see [`order_key`].
    pub order_key: i64,
}

/// The queue entry that a task's state stands for.
pub fn entry_of(task: &Task) -> Option<QueueEntry> {
    let State::Landing { approval, .. } = &task.state else {
        return None;
    };
    Some(QueueEntry {
        task: task.id,
        project: task.project,
        branch: task.spec.base.clone(),
        epoch: task.epoch,
        commit: approval.commit.clone(),
        queued_at: approval.at,
        order_key: order_key(
            approval.at,
            task.spec.priority,
            task.tally.conflicts.saturating_add(task.tally.returns),
        ),
    })
}

/// A place in line: the time of approval, moved by priority as in [`crate::schedule`], so that
/// urgent entries go first and none waits for ever. Who had to give way to others is as if more urgent
/// each time: it must not meet the next ones for ever.
pub fn order_key(queued_at: Timestamp, priority: i8, returns: u32) -> i64 {
    let ahead = i64::from(priority).saturating_add(returns.into());
    let step = PRIORITY_STEP.0.cast_signed();
    queued_at.0.saturating_sub(ahead.saturating_mul(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_urgent_the_old_and_those_who_gave_way_go_first() {
        let minute = |minute: i64| Timestamp(minute * 60_000);
        assert!(order_key(minute(0), 0, 0) < order_key(minute(1), 0, 0));
        assert!(order_key(minute(1), 1, 0) < order_key(minute(0), 0, 0));
        assert!(order_key(minute(1), 0, 1) < order_key(minute(0), 0, 0));
        assert!(order_key(minute(60), 0, 2) > order_key(minute(0), 0, 0));
    }
}
