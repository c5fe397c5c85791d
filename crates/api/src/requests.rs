//! What is asked of the daemon, and its short answers.

use serde::{Deserialize, Serialize};
use woodward_core::policy::ReviewRule;
use woodward_core::risk::EmbeddedChoice;
use woodward_core::{CommitId, EventSeq, MessageId};

use crate::status::TaskSummary;

/// A task to be created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskDraft {
    /// What people type to mean it.
    pub name: String,
    /// What to do; without one the task is a draft.
    pub prompt: Option<String>,
    /// Names of tasks that must have landed before it starts; also of tasks created with it.
    pub after: Vec<String>,
    /// Higher goes first.
    pub priority: i8,
    /// The agent, or several with commas, of which the first that can be used now does the work; the
    /// project's default otherwise.
    pub agent: Option<String>,
    /// The model; the agent's own choice otherwise.
    pub model: Option<String>,
    /// Whether the agent may do everything that no rule denies, without asking.
    pub yolo: bool,
    /// The branch it starts from and lands on; the project's otherwise.
    pub base: Option<String>,
    /// The files it should keep to, as patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Whether it starts even where others that touch the same are under way.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub anyway: bool,
    /// Who looks before it lands; the project's rule otherwise.
    pub review: Option<ReviewRule>,
    /// What people and rules know it by, besides its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// Tasks to be created, all or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateTasks {
    /// The tasks.
    pub tasks: Vec<TaskDraft>,
    /// Creating with the same key again gives the same tasks.
    #[serde(default)]
    pub key: Option<String>,
}

/// A text for a task: a prompt, or what should be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The text.
    pub text: String,
}

/// The answer to an agent's question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The text, or the number (from 1) or text of a choice.
    pub text: String,
}

/// A yes to a commit; without one, to what is up for review now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approve {
    /// The commit.
    #[serde(default)]
    pub commit: Option<CommitId>,
}

/// Queue a task for landing; a person's wish approves the commit it names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeTask {
    /// The commit; what is up for review now otherwise.
    #[serde(default)]
    pub commit: Option<CommitId>,
    /// Before all others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

/// A short reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// Give a task up.
pub type CancelTask = Note;
/// Stop a task for now.
pub type PauseTask = Note;

/// Let a task go on; with a limit of its own from now on, where one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeTask {
    /// Most tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Most millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_micros: Option<u64>,
    /// Tasks that it no longer waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// First move what the agent committed on another branch to the task's own branch.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub move_commits: bool,
}

/// Decide what becomes of a git repository inside a task's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideEmbedded {
    /// Its directory in the worktree; the only one otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What becomes of it.
    pub choice: EmbeddedChoice,
}

/// Undo a removal or a cancellation; of the last one when no task is named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The task.
    #[serde(default)]
    pub task: Option<String>,
}

/// Something was done to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The task as it is now.
    pub task: TaskSummary,
    /// What was done, in one sentence.
    pub message: String,
    /// What to type next, for instance to take it back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// How far the log of events has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The place in the log.
    pub seq: EventSeq,
    /// How often the daemon has rung the person's bell since it started.
    #[serde(default)]
    pub bells: u64,
}

/// A question of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewQuestion {
    /// Its identity, made by the asker so that asking again after a lost answer asks once.
    pub id: MessageId,
    /// Its text.
    pub text: String,
    /// The answers it offers.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// The question is on record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Which.
    pub question: MessageId,
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerState {
    /// Nobody has answered yet.
    Pending,
    /// Somebody has.
    Answered {
        /// The answer.
        text: String,
    },
    /// Nobody will: the run is over or the task was stopped.
    Gone,
}
