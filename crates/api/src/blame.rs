//! Where lines come from: what `blame` tells.

use serde::{Deserialize, Serialize};
use woodward_core::{CommitId, TaskId, Timestamp};

use crate::{CostAmount, RunCost};

/// Where the lines of a file come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlameView {
    /// The file, as it was named.
    pub file: String,
    /// How many lines it has.
    pub lines: u32,
    /// The line that was asked for; all of them otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Lines that come from one commit each, from the top.
    pub parts: Vec<BlamePart>,
    /// The tasks that landed some of them.
    pub tasks: Vec<BlameTask>,
}

/// Lines that come from one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlamePart {
    /// The first of them, from 1.
    pub first: u32,
    /// The last of them.
    pub last: u32,
    /// The commit that brought them to the branch; none of what is not committed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// Who that commit is by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Its first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The place in [`BlameView::tasks`] of the task that it belongs to; none if it is not Woodward's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
}

/// A task that brought lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlameTask {
    /// Its name, as the commit says.
    pub name: String,
    /// Its identity; none when its record is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<TaskId>,
    /// The landing, as the commit says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// What was asked for, cut at 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Who worked on it, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Its runs, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunCost>,
    /// What they used together.
    #[serde(default)]
    pub spend: CostAmount,
}
