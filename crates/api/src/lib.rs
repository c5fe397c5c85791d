//! What goes over the wire: the types of the HTTP API and of `--json`, and the client.
//!
//! The types are versioned by [`SCHEMA`]; a field may be added, never renamed or taken away within
//! a version. This crate never decides and never prints.

mod blame;
pub mod client;
mod conflict;
mod cost;
mod environment;
mod gate;
mod logs;
mod notify;
mod place;
mod problem;
mod project;
mod queue;
mod reaction;
mod requests;
mod status;
mod task;

pub use blame::{BlamePart, BlameTask, BlameView};
pub use conflict::{
    ConflictTask, ConflictsView, ForeseenFile, ForeseenPair, MeetingNote, OverlapCheck, PairView,
    TargetConflict, WaitingView,
};
pub use cost::{CostAmount, CostView, RunCost};
pub use environment::{EnvironmentRules, HandOver};
pub use gate::{
    FailureView, GateEvidence, GateRecord, GateRule, GateRules, GateView, GatesRun, RunGates,
    SkippedGate, TestsView,
};
pub use logs::{LogSource, LogText};
pub use notify::{ChannelTest, ChannelView, NoticeView, NotifyView, TestChannels};
pub use place::RunPlace;
pub use problem::{Code, Problem};
pub use project::{
    Check, CheckState, CloseTrial, Diagnosis, Health, OpenProject, OpenTrial, ProjectView,
    TrialLeftovers, TrialWorktree, WorktreeTrust,
};
pub use queue::{
    BranchQueue, FreezeQueue, FreezeView, MergePlan, PaceView, PlannedMerge, QueueView, QueuedTask,
};
pub use reaction::{
    AskSecret, CommentView, NewComment, ReactionEntry, ReactionTest, ReactionTrial, ReactionView,
    Secret, SignalComment, SignalRequest, SignalTaken,
};
pub use requests::{
    Answer, AnswerState, Approve, Asked, CancelTask, Changed, CreateTasks, DecideEmbedded, Done,
    MergeTask, NewQuestion, Note, PauseTask, ResumeTask, TaskDraft, Text, Undo,
};
pub use status::{Load, Progress, Spent, StatusFilter, StatusView, TaskSummary};
pub use task::{
    CreatedTask, DiffStat, DiffText, FileStat, MessageView, QuestionView, RescueView, RunView,
    TaskDetail, Timeline, TimelineEntry,
};

use serde::{Deserialize, Serialize};

/// The version of every type here.
pub const SCHEMA: u32 = 1;

/// What every answer of the API and every `--json` output is wrapped in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// The version of `data`.
    pub schema: u32,
    /// The answer.
    pub data: T,
}

impl<T> Envelope<T> {
    /// Wraps an answer of today's version.
    pub const fn new(data: T) -> Self {
        Self {
            schema: SCHEMA,
            data,
        }
    }
}
