//! What agents have used: what `cost` tells.

use serde::{Deserialize, Serialize};
use woodward_core::budget::Spend;
use woodward_core::{RunId, TaskName, Timestamp};

/// What the runs of a project have used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostView {
    /// Since when runs are counted.
    pub since: Timestamp,
    /// Each run, oldest first.
    pub runs: Vec<RunCost>,
    /// All of them together. Where a price is not known, the money is the least it can be.
    pub total: Spend,
    /// Today's, from midnight by UTC.
    pub today: Spend,
    /// The most tokens of a day, where there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_tokens_max: Option<u64>,
    /// The most millionths of a dollar of a day, where there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_micro_usd_max: Option<u64>,
}

/// What one run has used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCost {
    /// The run.
    pub run: RunId,
    /// Its task.
    pub task: TaskName,
    /// Its agent.
    pub agent: String,
    /// When it was started.
    pub started_at: Timestamp,
    /// What it has used.
    pub spend: Spend,
}
