//! Where the changes of tasks meet: what `conflicts`, `show` and `create --check` tell.

use serde::{Deserialize, Serialize};
use woodward_core::radar::foresee::Foreseen;
use woodward_core::radar::{Call, FileVerdict, Level};
use woodward_core::{StateKind, TaskName, Timestamp};

/// All tasks of a project that meet others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictsView {
    /// What is done about it: `show`, `warn`, `hold` or `serialise`.
    pub policy: String,
    /// When something in it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The tasks that are compared, oldest first.
    pub tasks: Vec<ConflictTask>,
    /// The pairs that meet, the worst first.
    pub pairs: Vec<PairView>,
    /// Tasks that conflict with the branch that they land on: others have landed since they began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with_target: Vec<TargetConflict>,
    /// Tasks that wait for others because both are foreseen to touch the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingView>,
}

/// A task that is compared with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictTask {
    /// What people type.
    pub name: TaskName,
    /// Where it is.
    pub state: StateKind,
    /// How many files it has changed.
    pub files: u32,
    /// How many of them are not committed.
    pub uncommitted: u32,
    /// Whether it has begun; what others will touch is foreseen.
    pub begun: bool,
    /// Whether there is more than could be compared.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub cut: bool,
}

/// Two tasks that meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairView {
    /// The one.
    pub a: TaskName,
    /// The other.
    pub b: TaskName,
    /// How they meet, at worst.
    pub level: Level,
    /// The files that both change, the worst first, bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileVerdict>,
    /// How many files both change.
    pub files_total: u32,
    /// What one changes or removes and the other newly uses, bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// What both are foreseen to touch, where one has not begun; bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreseen: Vec<Foreseen>,
    /// Whether only a real merge can say more: files were moved, or there is too much.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub unsure: bool,
}

/// A task that conflicts with the branch that it lands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetConflict {
    /// The task.
    pub task: TaskName,
    /// The branch.
    pub branch: String,
    /// The files that conflict, bounded.
    pub files: Vec<FileVerdict>,
}

/// A task that waits for another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingView {
    /// The one that waits.
    pub task: TaskName,
    /// For which.
    pub behind: TaskName,
    /// Why.
    pub why: Foreseen,
}

/// How a task meets another, at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeetingNote {
    /// Which other.
    pub with: TaskName,
    /// How.
    pub level: Level,
    /// In one sentence.
    pub what: String,
}

/// Which tasks that are to be created will likely meet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapCheck {
    /// How many commits were looked at.
    pub commits: u32,
    /// Tasks of which nothing is known: they declare no paths and their prompts name no file.
    pub unknown: Vec<TaskName>,
    /// The pairs that will likely meet.
    pub pairs: Vec<ForeseenPair>,
}

/// Two tasks that will likely meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeseenPair {
    /// A task that is to be created.
    pub a: TaskName,
    /// Another one, or one that is open.
    pub b: TaskName,
    /// Whether the other one is open already.
    pub b_open: bool,
    /// What both will touch, bounded.
    pub what: Vec<ForeseenFile>,
}

/// A file or pattern that two tasks will likely touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeseenFile {
    /// The file or pattern.
    pub what: String,
    /// Why history says so, if only history does: `changed with src/a.rs in 7 of 9 commits`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}
