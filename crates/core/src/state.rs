//! The states of a task. Each variant carries what that state needs, and nothing else.
//!
//! Only [`crate::step`] moves a task from one to another. What can be derived (attention, queue
//! position, whether a task may be claimed) is not stored here.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::budget::Limit;
use crate::disk::DiskFull;
use crate::id::{CommitId, IntentId, MessageId, RunId, TaskId};
use crate::moved_branch::MovedBranch;
use crate::name::GateName;
use crate::text::Note;
use crate::time::{Millis, Timestamp};

/// Where a task is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has no prompt yet.
    Draft,
    /// It waits to be claimed.
    Queued {
        /// What the next run is for.
        purpose: Purpose,
        /// Not before this moment.
        run_at: Timestamp,
        /// Why it waits, when it is not simply its turn that is missing.
        delay: Option<Delay>,
    },
    /// A worker makes its worktree ready.
    Preparing {
        /// The run that follows.
        run: RunId,
        /// What that run is for.
        purpose: Purpose,
    },
    /// An agent works on it.
    Working {
        /// The run.
        run: RunId,
        /// What it is for.
        purpose: Purpose,
    },
    /// The agent asked something and waits for the answer.
    Waiting {
        /// The run.
        run: RunId,
        /// What it is for.
        purpose: Purpose,
        /// What it asked.
        question: Question,
    },
    /// Its gates run.
    Verifying {
        /// The commit they look at.
        commit: CommitId,
    },
    /// Its result waits for a person.
    Review {
        /// The commit to look at. An approval names it.
        commit: CommitId,
        /// What the gates said of it.
        evidence: Evidence,
    },
    /// It is in the merge queue.
    Landing {
        /// What was approved.
        approval: Approval,
        /// The recorded intention to move the target branch, once there is one.
        intent: Option<LandingIntent>,
    },
    /// It is on the target branch.
    Landed {
        /// The commit on the target branch that brought it.
        commit: CommitId,
        /// The intention by which it got there.
        intent: IntentId,
    },
    /// A person or a budget stopped it; it goes on where it was when resumed.
    Paused {
        /// Why.
        reason: PauseReason,
        /// Where it goes on.
        back: ResumePoint,
    },
    /// It can't go on without a person.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// A person gave it up.
    Cancelled {
        /// Why, in their words.
        reason: Note,
    },
    /// Another task took its place.
    Superseded {
        /// That task.
        by: TaskId,
    },
}

/// What a run is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The task's own prompt, from the start.
    First,
    /// The task's own prompt once more, after a failed run.
    Retry,
    /// To go on after an interruption that was not the agent's doing.
    Continue,
    /// To repair what these gates found.
    Fix {
        /// The failing gates, bounded.
        gates: Vec<GateName>,
    },
    /// To do what the task's unread messages ask for.
    FollowUp,
    /// To resolve a conflict met while landing.
    Conflict {
        /// The conflicting paths, bounded in number and length.
        files: Vec<String>,
    },
    /// No agent: only the gates look at this commit again.
    Verify {
        /// The commit.
        commit: CommitId,
    },
}

/// Why a queued task waits although it could otherwise run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delay {
    /// A run failed; the next attempt waits.
    Backoff {
        /// Failures in a row so far.
        failures: u32,
        /// The last one.
        last: Note,
    },
    /// The provider said to wait. No attempt was used.
    RateLimit,
    /// The target branch was rewritten: the change is rebuilt on it, and its gates run again.
    TargetRewritten,
    /// A disk was full when its last run ended badly. No attempt was used.
    DiskFull(DiskFull),
    /// The provider is overloaded. No attempt was used.
    Overloaded {
        /// What it said last.
        last: Note,
    },
}

/// What an agent asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Which question, so that an answer can't meet another one.
    pub id: MessageId,
    /// Its text.
    pub text: Note,
    /// The answers it offers, if any; a task keeps a bounded number.
    pub choices: Vec<Note>,
    /// How a person can answer it.
    #[serde(default, skip_serializing_if = "AnswerVia::is_command")]
    pub via: AnswerVia,
}

/// How a person can answer a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerVia {
    /// With `woodward answer`.
    #[default]
    Command,
    /// Only in the program's own terminal, with `woodward attach`.
    Terminal,
}

impl AnswerVia {
    /// Whether `woodward answer` answers it.
    pub const fn is_command(&self) -> bool {
        matches!(self, Self::Command)
    }
}

/// What the gates said of a commit that waits for review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// All required gates passed.
    Pass,
    /// A required gate passed only on a second try.
    Flaky,
    /// A required gate fails, but only as it does on the base.
    Baseline,
    /// No required gate looked at it.
    Unverified,
}

/// What asked for changes to a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectionSource {
    /// A reviewer.
    #[default]
    Review,
    /// A CI that reported a failure.
    CiFailed,
}

impl fmt::Display for RejectionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Review => "your review",
            Self::CiFailed => "CI failed",
        })
    }
}

/// A yes, bound to one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The commit that may land.
    pub commit: CommitId,
    /// Who said so.
    pub by: Approver,
    /// When.
    pub at: Timestamp,
}

/// Who approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// A person, by name.
    Person(String),
    /// The project's review rule.
    Policy,
}

/// The recorded intention to move the target branch for this task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandingIntent {
    /// Its record.
    pub id: IntentId,
    /// The task's own commit on the branch: its last one, where it lands as several.
    pub result: CommitId,
}

/// Why a task is paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// A person asked for it.
    Person(Note),
    /// Its budget is used up.
    Budget(Limit),
    /// A rule wants a person to look at it first.
    Rule(Note),
    /// Its agent moved a branch of the person's, who decides what becomes of the commits.
    MovedBranch(MovedBranch),
}

/// Where a paused task goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumePoint {
    /// In the queue.
    Queue {
        /// What the next run is for.
        purpose: Purpose,
        /// Not before this moment.
        run_at: Timestamp,
    },
    /// Before a person.
    Review {
        /// The commit to look at.
        commit: CommitId,
        /// What the gates said of it.
        evidence: Evidence,
    },
    /// In the merge queue.
    Landing {
        /// What was approved.
        approval: Approval,
    },
}

/// Why a task can't go on by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The agent said it was done and had changed nothing.
    #[error("the agent changed nothing")]
    Empty,
    /// Too many runs failed in a row.
    #[error("{attempts} runs in a row failed; the last one: {last}")]
    AttemptsSpent {
        /// How many.
        attempts: u32,
        /// The last failure.
        last: Note,
    },
    /// The fix cycles are used up.
    #[error("{}", fixes_spent(gate.as_ref()))]
    FixesSpent {
        /// The gate that still fails, or `None` when the total was reached.
        gate: Option<GateName>,
    },
    /// More fix cycles would lead nowhere.
    #[error("more fix cycles would lead nowhere: {note}")]
    Circle {
        /// Why, and what was tried.
        note: Note,
    },
    /// A gate still exceeds its time limit when its fix cycles are used up.
    #[error("gate `{gate}` still times out after {limit}; all its fix cycles are used up")]
    GateTimedOut {
        /// Which.
        gate: GateName,
        /// Its time limit.
        limit: Millis,
    },
    /// The agent was asked for changes too often without making any.
    #[error("the agent made no changes after {after}, in {attempts} attempts")]
    NoChanges {
        /// What asked for changes.
        after: RejectionSource,
        /// How many runs ended without a change.
        attempts: u32,
    },
    /// A gate could not be run.
    #[error("a gate did not really run: {note}")]
    GateBroken {
        /// Which, and how often it was tried.
        note: Note,
    },
    /// The landing conflicts are used up.
    #[error("{conflicts} landing conflicts were not resolved")]
    ConflictsSpent {
        /// How many.
        conflicts: u32,
    },
    /// Its workers were lost too often.
    #[error("its worker was lost {losses} times")]
    LeaseLossesSpent {
        /// How often.
        losses: u32,
    },
    /// The worktree could not be made.
    #[error("its worktree could not be prepared: {note}")]
    NotPrepared {
        /// Why.
        note: Note,
    },
    /// A setup command of the worktree failed.
    #[error("worktree setup failed: {note}")]
    SetupFailed {
        /// Which command, how it ended, and the end of its output.
        note: Note,
    },
    /// Something only a person can do: log in, grant access, decide.
    #[error("{}", needs_person(note))]
    NeedsPerson {
        /// What.
        note: Note,
    },
}

fn fixes_spent(gate: Option<&GateName>) -> String {
    use alloc::format;
    gate.map_or_else(
        || String::from("all fix cycles of the task are used up"),
        |gate| format!("gate `{gate}` still fails after all its fix cycles"),
    )
}

fn needs_person(note: &Note) -> &str {
    match note.as_str().trim() {
        "" => "only a person can help",
        text => text,
    }
}

macro_rules! kinds {
    ($($kind:ident $word:literal,)+) => {
        /// Which state, without its data.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum StateKind {
            $(#[doc = concat!("`", $word, "`")] $kind,)+
        }

        impl StateKind {
            /// All of them, in the order a task usually meets them.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)+];

            /// The one word used in code, CLI, web, docs and database.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $word,)+
                }
            }
        }

        impl State {
            /// Which state this is.
            pub const fn kind(&self) -> StateKind {
                match self {
                    $(Self::$kind { .. } => StateKind::$kind,)+
                }
            }
        }
    };
}

kinds! {
    Draft "draft",
    Queued "queued",
    Preparing "preparing",
    Working "working",
    Waiting "waiting",
    Verifying "verifying",
    Review "review",
    Landing "landing",
    Landed "landed",
    Paused "paused",
    Failed "failed",
    Cancelled "cancelled",
    Superseded "superseded",
}

impl StateKind {
    /// Whether the task's story is over. Its name is free again, and its rows may be archived.
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Landed | Self::Cancelled | Self::Superseded)
    }

    /// Whether a worker holds the task's lease in this state.
    pub const fn is_held(self) -> bool {
        matches!(
            self,
            Self::Preparing | Self::Working | Self::Waiting | Self::Verifying
        )
    }
}

impl fmt::Display for StateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
