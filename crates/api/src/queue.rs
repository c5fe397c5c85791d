//! The merge queue, as it is shown and steered.

use serde::{Deserialize, Serialize};
use woodward_core::{CommitId, TaskName, Timestamp};

/// The queues of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueView {
    /// One a branch that has entries or is frozen.
    pub branches: Vec<BranchQueue>,
    /// What the queue has learned of this project on this machine.
    pub pace: PaceView,
}

/// The queue of one branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchQueue {
    /// The branch.
    pub branch: String,
    /// Why nothing lands on it for now, if so.
    pub frozen: Option<FreezeView>,
    /// Its entries, in order.
    pub entries: Vec<QueuedTask>,
    /// What is being looked at now: the tasks of each merged tree.
    pub looks: Vec<Vec<TaskName>>,
}

/// A branch on which nothing lands for now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeView {
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedTask {
    /// Its place, from 1.
    pub place: u32,
    /// The task.
    pub task: TaskName,
    /// What was approved.
    pub commit: CommitId,
    /// By whom: a person's name, or `policy`.
    pub approved_by: String,
    /// When.
    pub approved_at: Timestamp,
    /// What is in its way, if anything.
    pub held: Option<String>,
    /// Why a person lets it wait, if one does.
    pub stopped: Option<String>,
    /// Whether its branch moves to it at this moment.
    pub landing: bool,
}

/// What the queue has learned, and how it goes about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaceView {
    /// How likely an entry is to fail, in thousandths.
    pub failing_permille: u32,
    /// How long one look takes while `slots` of them run, if known.
    pub look_ms: Option<u64>,
    /// How many looks at once are worth it here.
    pub slots: u32,
    /// How many entries are looked at together now.
    pub batch: u32,
}

/// Let nothing land on a branch, or let it again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreezeQueue {
    /// The branch; the project's own otherwise.
    #[serde(default)]
    pub branch: Option<String>,
    /// Why; `None` lets it land again.
    #[serde(default)]
    pub reason: Option<String>,
}

/// What would happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergePlan {
    /// The tasks, in the order in which they would land.
    pub steps: Vec<PlannedMerge>,
}

/// What would happen to one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedMerge {
    /// The task.
    pub task: TaskName,
    /// The branch it would land on.
    pub branch: String,
    /// How many entries would be before it.
    pub behind: u32,
    /// The commit; `None` if there is no result to land.
    pub commit: Option<CommitId>,
    /// Why it could not be queued, if so.
    pub refused: Option<String>,
    /// Files that conflict with the branch as it is.
    pub conflicts: Vec<String>,
    /// A task before it that it conflicts with, and in which files.
    pub conflicts_with: Option<(TaskName, Vec<String>)>,
    /// What in your checkout would be in the way.
    pub held: Option<String>,
    /// The gates that would look at the merged tree.
    pub gates: Vec<String>,
    /// Files that it would change on the branch.
    pub files: u32,
}
