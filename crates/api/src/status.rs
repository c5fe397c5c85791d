//! The list of tasks: what needs the person, then what runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use woodward_core::attention::{Attention, Level};
use woodward_core::provider::ProviderWait;
use woodward_core::{CommitId, EventSeq, StateKind, TaskId, TaskName, Timestamp};

use crate::conflict::{MeetingNote, TargetConflict};
use crate::project::ProjectView;

/// A project at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    /// The project.
    pub project: ProjectView,
    /// When this was true.
    pub now: Timestamp,
    /// How far the log of events had come.
    pub seq: EventSeq,
    /// The tasks, most urgent first.
    pub tasks: Vec<TaskSummary>,
    /// How many more there are of each level, when only the most urgent were asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unlisted: BTreeMap<Level, u32>,
    /// Finished tasks that are not listed.
    pub finished_hidden: u32,
    /// How many run, and how many may.
    pub load: Load,
    /// What a person should know besides, for instance why nothing new starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// How busy a project is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Tasks that are being worked on.
    pub running: u32,
    /// How many may be.
    pub running_max: Option<u32>,
    /// Results that wait for a person.
    pub in_review: u32,
    /// How many may wait before no new work starts.
    pub review_max: Option<u32>,
}

/// Which tasks a list has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusFilter {
    /// Finished ones, too.
    pub finished: bool,
    /// No more than so many, the most urgent ones.
    pub limit: Option<u32>,
}

impl StatusFilter {
    /// All open tasks.
    pub const OPEN: Self = Self {
        finished: false,
        limit: None,
    };
    /// All tasks that are not archived.
    pub const ALL: Self = Self {
        finished: true,
        limit: None,
    };
}

/// One task at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSummary {
    /// Its identity.
    pub id: TaskId,
    /// What people type.
    pub name: TaskName,
    /// Where it is.
    pub state: StateKind,
    /// Since when.
    pub since: Timestamp,
    /// When it was created.
    pub created_at: Timestamp,
    /// What a person should do about it.
    pub attention: Attention,
    /// Who works on it.
    pub agent: String,
    /// Higher goes first.
    pub priority: i8,
    /// The branch it lands on.
    pub base: String,
    /// Its own branch, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Its working directory, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// Its last result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// How far it is, from evidence.
    pub progress: Progress,
    /// What it has cost, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// Its place in the merge queue, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<u32>,
    /// Why it is held back in the merge queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The full disk that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_full: Option<woodward_core::disk::DiskFull>,
    /// What it waits for, if it waits for a model's provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_wait: Option<ProviderWait>,
    /// Tasks under way whose changes don't fit its own, the worst first; the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meets: Vec<MeetingNote>,
    /// Where its change conflicts with the branch that it lands on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_conflict: Option<TargetConflict>,
}

/// How far a task is, from evidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Runs so far.
    pub runs: u32,
    /// Commits on its branch beyond its base.
    pub commits: u32,
    /// Steps of the agent's own plan that are done, and how many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<(u32, u32)>,
    /// Tests that passed when its gates last ran, and how many there were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<(u32, u32)>,
    /// Gates that passed on its last result, and how many there were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<(u32, u32)>,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens.
    pub tokens: u64,
    /// Millionths of a dollar; `None` is unknown.
    pub usd_micros: Option<u64>,
}
