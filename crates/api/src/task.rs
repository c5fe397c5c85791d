//! One task in full: what `show`, `timeline` and `diff` tell.

use serde::{Deserialize, Serialize};
use woodward_core::{CommitId, MessageId, RunId, State, TaskName, Timestamp};

use crate::conflict::PairView;
use crate::gate::GateView;
use crate::status::{Spent, TaskSummary};

/// A task just created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedTask {
    /// The task.
    pub task: TaskSummary,
    /// Whether an earlier call with the same key had made it.
    pub existed: bool,
}

/// One task in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDetail {
    /// At a glance.
    pub task: TaskSummary,
    /// Its state with all its data.
    pub state: State,
    /// What was asked for, cut at 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// What it comes after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<TaskName>,
    /// What people and rules know it by, besides its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// What the agent asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionView>,
    /// Messages, oldest first; texts are cut at 2 KiB.
    pub messages: Vec<MessageView>,
    /// Runs, oldest first.
    pub runs: Vec<RunView>,
    /// What gates said of its last result.
    pub gates: Vec<GateView>,
    /// What gates said last of what it makes of its branch, on top of those before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged_gates: Vec<GateView>,
    /// The size of its change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<DiffStat>,
    /// What about its change deserves a closer look, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// Tasks under way that its change meets, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<PairView>,
    /// Saved work that can be brought back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rescued: Vec<RescueView>,
}

/// What an agent asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionView {
    /// Its text.
    pub text: String,
    /// The answers it offers.
    pub choices: Vec<String>,
}

/// A message of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageView {
    /// Its identity.
    pub id: MessageId,
    /// Who wrote it.
    pub from: String,
    /// When.
    pub at: Timestamp,
    /// `stored`, `injected` or `accepted`.
    pub delivery: String,
    /// Its text.
    pub text: String,
}

/// One execution of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// Its identity.
    pub id: RunId,
    /// What it is for, in words.
    pub purpose: String,
    /// The agent.
    pub agent: String,
    /// The model, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the agent calls the conversation; it can be resumed by this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What it has used, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// `starting`, `running`, `lost` (its processes are gone, as after a reboot) or `finished`.
    pub state: String,
    /// Whether the task's next run by this agent goes on with its conversation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumable: bool,
    /// Whether it ended because its program is not logged in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub logged_out: bool,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How it ended, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its exit code, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// CPU time of all its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// The most memory that one of its processes held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
    /// How much it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
}

/// The size of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffStat {
    /// Files, bounded in number.
    pub files: Vec<FileStat>,
    /// How many files there are in all.
    pub files_total: u32,
    /// Lines added in all.
    pub added: u64,
    /// Lines removed in all.
    pub removed: u64,
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    /// Its path.
    pub path: String,
    /// Lines added; `None` for a binary file.
    pub added: Option<u64>,
    /// Lines removed; `None` for a binary file.
    pub removed: Option<u64>,
}

/// A change as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffText {
    /// Where it starts.
    pub base: CommitId,
    /// Where it ends; `None` is the working directory as it is.
    pub head: Option<CommitId>,
    /// Its size.
    pub stat: DiffStat,
    /// The unified diff, cut at 8 MiB.
    pub text: String,
    /// Whether it was cut.
    pub truncated: bool,
}

/// Saved work that can be brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescueView {
    /// The ref that holds it.
    pub reference: String,
    /// The commit.
    pub commit: CommitId,
    /// When it was saved.
    pub at: Timestamp,
    /// Why, in words.
    pub why: String,
}

/// A task's story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The task.
    pub task: TaskSummary,
    /// What happened, oldest first.
    pub entries: Vec<TimelineEntry>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEntry {
    /// When.
    pub at: Timestamp,
    /// By whose hand, in words.
    pub actor: String,
    /// The fact's word.
    pub fact: String,
    /// The state it led to.
    pub state: woodward_core::StateKind,
    /// One sentence.
    pub text: String,
    /// What the agent was told with it, where it was told something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<String>,
}
