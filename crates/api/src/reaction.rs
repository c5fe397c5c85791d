//! Rules, what they did, remarks, and news from outside.

use serde::{Deserialize, Serialize};
use woodward_core::{CommitId, TaskName, Timestamp};

/// A rule as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionView {
    /// Its name.
    pub rule: String,
    /// What happens.
    pub trigger: String,
    /// What is done about it.
    pub action: String,
    /// Whether nobody wrote it.
    pub built_in: bool,
    /// For which tasks, when, how often: in words, one condition each.
    pub conditions: Vec<String>,
    /// Its text, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Its command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// What would happen if something happened to a task now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionTest {
    /// The task.
    pub task: TaskName,
    /// What would happen.
    pub trigger: String,
    /// Each rule for it.
    pub rules: Vec<ReactionTrial>,
}

/// What one rule would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionTrial {
    /// The rule.
    pub rule: String,
    /// What it does.
    pub action: String,
    /// Whether it would be done.
    pub fires: bool,
    /// Why, or why not.
    pub why: String,
    /// Exactly what the agent or the person would be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A line of the log of reactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionEntry {
    /// When it was decided.
    pub at: Timestamp,
    /// What happened.
    pub trigger: String,
    /// The rule; none for news that no rule answered to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What is done about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskName>,
    /// `pending`, `done` or `dropped`.
    pub state: String,
    /// What happened, in words.
    pub note: String,
    /// Why it fired or did not.
    pub why: String,
    /// What became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// What the agent or the person was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// When it is due, while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

/// Ask for the secret that signals are signed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AskSecret {
    /// Make a new one; the old one counts no longer.
    pub renew: bool,
}

/// The secret that signals are signed with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// The secret.
    pub secret: String,
    /// Where signals are taken, if anywhere but the daemon's own socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A remark on a task's work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NewComment {
    /// The file.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// What it says.
    pub text: String,
}

/// A remark as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentView {
    /// Who made it.
    pub author: String,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What it says.
    pub text: String,
    /// When it was made.
    pub at: Timestamp,
    /// Whether the agent was sent it.
    pub sent: bool,
}

/// News from outside, as a CI tells it. Keys that are not known are left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SignalRequest {
    /// What kind: `ci-failed`, `changes-requested`, `review-comment`, `merge-conflict` or
    /// `approved-and-green`.
    pub event: String,
    /// Names this delivery, at the sender's choice: a second one of the same name does nothing.
    pub delivery: Option<String>,
    /// The project by its name; may be left out where there is only one.
    pub project: Option<String>,
    /// The task by its name.
    pub task: Option<String>,
    /// The task by its branch.
    pub branch: Option<String>,
    /// The commit that it is about, in full. It also finds the task.
    pub commit: Option<CommitId>,
    /// What failed, by name. The same set for the same commit is the same news.
    pub failures: Vec<String>,
    /// What failed, in words.
    pub errors: String,
    /// Files that it is about.
    pub files: Vec<String>,
    /// Remarks.
    pub comments: Vec<SignalComment>,
    /// More of what was printed.
    pub log: String,
    /// Where to read on.
    pub url: String,
    /// What a reviewer says.
    pub text: String,
}

/// A remark in news from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SignalComment {
    /// Who made it.
    pub author: String,
    /// The file.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// What it says.
    pub text: String,
}

/// News was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalTaken {
    /// The task that it is about.
    pub task: TaskName,
    /// What kind.
    pub event: String,
    /// Whether it was news: the same told again is not.
    pub new: bool,
}
