//! Facts: what happened, when, and by whose hand.
//!
//! An event never says what follows from it; that is [`crate::step`]'s business. Time and chance
//! are part of it, so that a replay decides as the live system did.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, Limit, Spend};
use crate::disk::DiskFull;
use crate::gate::{GateKind, GateReport};
use crate::id::{
    CommitId, Epoch, EventId, IntentId, MessageId, RunId, TaskId, TreeId, Version, WorkerId,
};
use crate::moved_branch::MovedBranch;
use crate::name::GateName;
use crate::risk::EmbeddedRepository;
use crate::state::{Question, RejectionSource};
use crate::task::{NewTask, Worktree};
use crate::text::Note;
use crate::time::{Roll, Timestamp};

/// One entry of a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Recording the same id twice records it once.
    pub id: EventId,
    /// When.
    pub at: Timestamp,
    /// By whose hand.
    pub actor: Actor,
    /// The die for this event's decisions.
    pub roll: Roll,
    /// What happened.
    pub fact: Fact,
}

/// By whose hand something happened, and with what right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A person, by name.
    Person(String),
    /// The holder of the task's claim. A stale epoch writes nothing.
    Claim {
        /// Who.
        worker: WorkerId,
        /// The claim's fencing token.
        epoch: Epoch,
    },
    /// The holder of the right to move the target branch. A stale epoch writes nothing.
    Lander {
        /// Who.
        worker: WorkerId,
        /// The landing right's fencing token.
        epoch: Epoch,
    },
    /// Woodward itself: rules, timers, recovery.
    Woodward,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// The task came to be.
    Created(NewTask),
    /// A person said what to do.
    PromptGiven {
        /// The stored text.
        message: MessageId,
    },
    /// A task it comes after has landed.
    DependencyLanded {
        /// That task.
        task: TaskId,
    },
    /// A task it comes after will not land as things are.
    DependencyFailed {
        /// That task.
        task: TaskId,
        /// Why not.
        reason: Note,
        /// The version of that task that this is true of.
        as_of: Version,
    },
    /// A task it comes after, thought lost, is being worked on again.
    DependencyReopened {
        /// That task.
        task: TaskId,
        /// The version of that task that this is true of.
        as_of: Version,
    },
    /// A person no longer wants it to wait for another task.
    DependencyDropped {
        /// That task.
        task: TaskId,
    },
    /// A worker took it.
    Claimed {
        /// Who.
        worker: WorkerId,
        /// The run that this claim will start.
        run: RunId,
    },
    /// Its worktree is ready.
    Prepared {
        /// The worktree.
        worktree: Worktree,
        /// The commit that has the task's change on top of the target branch, if the change had to be
        /// rebuilt because the target was rewritten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rebuilt: Option<CommitId>,
    },
    /// Its worktree could not be made ready.
    PrepareFailed {
        /// What to do about it.
        fault: Fault,
        /// What went wrong.
        note: Note,
        /// Whether a setup command failed, which leaves its output.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        in_setup: bool,
    },
    /// The agent asked something.
    AgentAsked {
        /// The run that asks.
        run: RunId,
        /// What.
        question: Question,
    },
    /// A person answered.
    Answered {
        /// The question.
        question: MessageId,
        /// The stored answer.
        message: MessageId,
    },
    /// The agent no longer waits for an answer.
    QuestionWithdrawn {
        /// The question.
        question: MessageId,
    },
    /// The agent has provably taken a message.
    MessageAccepted {
        /// The message.
        message: MessageId,
    },
    /// The agent used tokens or money.
    Spent {
        /// The run.
        run: RunId,
        /// All that the run has used so far.
        total: Spend,
    },
    /// The agent's run is over.
    RunFinished {
        /// The run.
        run: RunId,
        /// How it ended.
        outcome: Outcome,
        /// All that the run has used.
        total: Spend,
    },
    /// All gates have looked at a commit.
    GatesFinished {
        /// The commit.
        commit: CommitId,
        /// Its content, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeId>,
        /// What they said.
        reports: Vec<GateReport>,
        /// Whether the change shows a risk signal.
        risky: bool,
        /// Git repositories in the change that are not declared submodules: a person decides what
        /// becomes of them before it lands.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        embedded: Vec<EmbeddedRepository>,
        /// The run that a fix cycle would be.
        next_run: RunId,
    },
    /// The worker gives the task back unharmed (it is shutting down).
    HandedBack,
    /// The claim ran out, by the database's clock.
    LeaseExpired {
        /// The claim that ran out.
        epoch: Epoch,
    },
    /// Somebody said yes to a commit.
    Approved {
        /// The commit.
        commit: CommitId,
    },
    /// A person brings a commit that no agent of this task made, and says yes to it.
    Brought {
        /// The commit.
        commit: CommitId,
        /// The stored text: what it is for.
        message: MessageId,
    },
    /// Somebody wants something changed in the current result.
    ChangesRequested {
        /// The stored text.
        message: MessageId,
        /// What asked for it.
        #[serde(default)]
        source: RejectionSource,
    },
    /// The task's branch moved after its result was verified.
    HeadMoved {
        /// Where it is now.
        commit: CommitId,
    },
    /// The target branch was rewritten: it no longer has the commit that the task's change is based on.
    TargetRewritten {
        /// The commit whose change must be rebuilt on the target.
        commit: CommitId,
    },
    /// The intention to move the target branch is on record.
    IntentRecorded {
        /// The record.
        intent: IntentId,
        /// The approved commit that lands with it.
        commit: CommitId,
        /// The task's own commit on the branch; for tasks that land together one commit each.
        result: CommitId,
    },
    /// The recorded intention came to nothing: the branch had moved.
    IntentVoided {
        /// The record.
        intent: IntentId,
    },
    /// The target branch has the task's change.
    Landed {
        /// The record.
        intent: IntentId,
    },
    /// The task's change does not fit the target branch.
    LandingConflicted {
        /// The approved commit.
        commit: CommitId,
        /// The conflicting paths.
        files: Vec<String>,
    },
    /// The merged tree failed these gates.
    LandingFailed {
        /// The approved commit.
        commit: CommitId,
        /// The gates.
        gates: Vec<GateName>,
        /// Their kinds, in the same order. Where none is said, it is a gate of no special kind.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kinds: Vec<GateKind>,
    },
    /// The gates could not really be run on the merged tree.
    LandingBroken {
        /// The approved commit.
        commit: CommitId,
        /// What went wrong.
        note: Note,
    },
    /// A person gave it another budget.
    BudgetSet {
        /// The new one.
        budget: Budget,
    },
    /// A person stopped it for now.
    Paused {
        /// Why.
        reason: Note,
    },
    /// A person lets it go on.
    Resumed,
    /// A person wants it tried again from here.
    Retried,
    /// A person gave it up.
    Cancelled {
        /// Why.
        reason: Note,
    },
    /// A person took the giving-up back.
    Restored {
        /// Its working directory, if that was brought back too.
        worktree: Option<Worktree>,
    },
    /// Another task takes its place.
    Superseded {
        /// That task.
        by: TaskId,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// There is a result.
    Done {
        /// Its commit.
        commit: CommitId,
    },
    /// The agent is done and nothing changed.
    Empty,
    /// It crashed, stalled or ran out of time.
    Broke {
        /// How.
        note: Note,
    },
    /// The provider said to wait. Not an attempt.
    RateLimited {
        /// Until when.
        until: Timestamp,
    },
    /// It ended badly while a disk that it needs was full. Not an attempt.
    DiskFull {
        /// Which disk.
        disk: DiskFull,
    },
    /// The provider is overloaded. Not an attempt until that has lasted for hours.
    Overloaded {
        /// What was said.
        note: Note,
    },
    /// The agent is done, and has moved a branch of the person's.
    MovedBranch {
        /// Which, and how.
        moved: MovedBranch,
        /// The result on the task's own branch, if there is one.
        commit: Option<CommitId>,
    },
    /// A budget stopped it.
    OverBudget {
        /// Which limit.
        limit: Limit,
    },
    /// Only a person can help: no login, access refused, program missing.
    NeedsPerson {
        /// With what.
        note: Note,
    },
}

/// What the caller must decide about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Trying again may help.
    Transient,
    /// Trying again will not help.
    Permanent,
    /// A person must do something first.
    NeedsPerson,
}

macro_rules! words {
    ($($pattern:pat => $word:literal,)+) => {
        impl Fact {
            /// The one word for this kind of fact in logs, docs and database.
            pub const fn as_str(&self) -> &'static str {
                match self {
                    $($pattern => $word,)+
                }
            }

            /// All words there are.
            pub const WORDS: &'static [&'static str] = &[$($word,)+];
        }
    };
}

words! {
    Self::Created(_) => "created",
    Self::PromptGiven { .. } => "prompt_given",
    Self::DependencyLanded { .. } => "dependency_landed",
    Self::DependencyFailed { .. } => "dependency_failed",
    Self::DependencyReopened { .. } => "dependency_reopened",
    Self::DependencyDropped { .. } => "dependency_dropped",
    Self::Claimed { .. } => "claimed",
    Self::Prepared { .. } => "prepared",
    Self::PrepareFailed { .. } => "prepare_failed",
    Self::MessageAccepted { .. } => "message_accepted",
    Self::AgentAsked { .. } => "agent_asked",
    Self::Answered { .. } => "answered",
    Self::QuestionWithdrawn { .. } => "question_withdrawn",
    Self::Spent { .. } => "spent",
    Self::RunFinished { .. } => "run_finished",
    Self::GatesFinished { .. } => "gates_finished",
    Self::HandedBack => "handed_back",
    Self::LeaseExpired { .. } => "lease_expired",
    Self::Approved { .. } => "approved",
    Self::Brought { .. } => "brought",
    Self::ChangesRequested { .. } => "changes_requested",
    Self::HeadMoved { .. } => "head_moved",
    Self::TargetRewritten { .. } => "target_rewritten",
    Self::IntentRecorded { .. } => "intent_recorded",
    Self::IntentVoided { .. } => "intent_voided",
    Self::Landed { .. } => "landed",
    Self::LandingConflicted { .. } => "landing_conflicted",
    Self::LandingFailed { .. } => "landing_failed",
    Self::LandingBroken { .. } => "landing_broken",
    Self::BudgetSet { .. } => "budget_set",
    Self::Paused { .. } => "paused",
    Self::Resumed => "resumed",
    Self::Retried => "retried",
    Self::Cancelled { .. } => "cancelled",
    Self::Restored { .. } => "restored",
    Self::Superseded { .. } => "superseded",
}

/// The right a fact must be recorded with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// Anybody may.
    Any,
    /// Only the holder of the task's claim.
    Claim,
    /// Only the holder of the landing right.
    Landing,
}

impl Fact {
    /// The right this fact needs.
    pub const fn right(&self) -> Right {
        match self {
            Self::Prepared { .. }
            | Self::PrepareFailed { .. }
            | Self::AgentAsked { .. }
            | Self::QuestionWithdrawn { .. }
            | Self::MessageAccepted { .. }
            | Self::Spent { .. }
            | Self::RunFinished { .. }
            | Self::GatesFinished { .. }
            | Self::HandedBack => Right::Claim,
            Self::IntentRecorded { .. }
            | Self::IntentVoided { .. }
            | Self::Landed { .. }
            | Self::LandingConflicted { .. }
            | Self::LandingFailed { .. }
            | Self::LandingBroken { .. } => Right::Landing,
            _ => Right::Any,
        }
    }
}
