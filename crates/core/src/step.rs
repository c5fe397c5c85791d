//! The one way a task changes.
//!
//! [`step`] is used live and in replay alike. It decides; it does nothing: what is to be done comes
//! back as effects. A fact that does not apply is refused with the reason, never ignored, so that a
//! late, doubled or forged one is seen for what it is.

mod change;
mod gates;
mod hands;
mod landing;
mod person;
mod waiting;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

use crate::budget::Limit;
use crate::effect::Effect;
use crate::event::{Actor, Event, Fact, Right};
use crate::id::Epoch;
use crate::name::TaskName;
use crate::policy::Policy;
use crate::state::{Failure, StateKind};
use crate::task::Task;

use change::Change;

/// What an event makes of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The task after it.
    pub next: Task,
    /// What is to be done to the world.
    pub effects: Vec<Effect>,
}

/// A fact that does not apply to a task as it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{fact}` does not apply to task `{task}`, which is {state}: {refusal}")]
pub struct IllegalTransition {
    /// The task.
    pub task: TaskName,
    /// Its state.
    pub state: StateKind,
    /// The fact, by its word.
    pub fact: &'static str,
    /// Why not.
    pub refusal: Refusal,
}

/// Why a fact does not apply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It makes no sense in this state.
    #[error("it has no meaning in this state")]
    WrongState,
    /// It was recorded by a holder that no longer holds.
    #[error("it was recorded under claim {carried}, but claim {current} is current")]
    StaleClaim {
        /// The claim it was recorded under.
        carried: Epoch,
        /// The claim that counts.
        current: Epoch,
    },
    /// It needs a right that its actor does not have.
    #[error("its actor has no right to say so")]
    NoRight,
    /// It has been said before, or something newer has.
    #[error("it speaks of {0} that is no longer the current one")]
    Outdated(What),
    /// It changes nothing.
    #[error("it has been taken into account already")]
    AlreadyApplied,
    /// The target branch may be moving at this moment.
    #[error("the target branch is being moved for it right now; wait for that to end")]
    LandingUnderWay,
    /// It still waits for other tasks.
    #[error("it waits for {0} other tasks")]
    Blocked(usize),
    /// Its time has not come.
    #[error("its time has not come")]
    TooEarly,
    /// Its result contains git repositories that are not declared submodules.
    #[error("it contains a git repository of its own in {0}/; decide first what becomes of it")]
    EmbeddedRepository(String),
    /// Its budget is still used up.
    #[error("its budget is still used up: {0}")]
    BudgetReached(Limit),
    /// The worktree can't be the holder's.
    #[error("the worktree is on another machine than the holder, or of a claim that never was")]
    ForeignWorktree,
    /// There is no room for more.
    #[error("{0} messages wait for it already")]
    TooManyMessages(usize),
    /// A task can't take its own place.
    #[error("a task can't take its own place")]
    Itself,
    /// A task is created once.
    #[error("it exists already")]
    Exists,
}

/// What an outdated fact speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A run.
    Run,
    /// A commit.
    Commit,
    /// A question.
    Question,
    /// A landing intent.
    Intent,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "a run",
            Self::Commit => "a commit",
            Self::Question => "a question",
            Self::Intent => "an intent",
        })
    }
}

type Decided = Result<(), Refusal>;

/// Decides what `event` makes of `task` under `policy`.
///
/// # Errors
/// When the fact does not apply; the task stays as it is.
pub fn step(task: &Task, event: &Event, policy: &Policy) -> Result<Transition, IllegalTransition> {
    let mut change = Change::of(task, event);
    require_right(task, event)
        .and_then(|()| decide(&mut change, event, policy))
        .map_err(|refusal| IllegalTransition {
            task: task.name.clone(),
            state: task.state.kind(),
            fact: event.fact.as_str(),
            refusal,
        })?;
    Ok(change.finish())
}

/// The transition by which a task comes to be.
pub use change::create;

/// A log that is not one task's whole story.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BrokenLog {
    /// Its beginning is missing.
    #[error("the log begins with `{fact}` instead of `created`")]
    NoBeginning {
        /// What it begins with, by its word.
        fact: &'static str,
    },
    /// Something in between is missing or does not belong there.
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
}

/// Folds a task's whole log, oldest first; each event comes with the policy it was decided under.
/// An empty log is no task.
///
/// # Errors
/// When the log does not begin with the task's creation, or holds a fact that does not apply.
pub fn replay<'a>(
    log: impl IntoIterator<Item = (&'a Event, &'a Policy)>,
) -> Result<Option<Task>, BrokenLog> {
    let mut task: Option<Task> = None;
    for (event, policy) in log {
        task = Some(match (&task, &event.fact) {
            (None, Fact::Created(new)) => create(new, event).next,
            (None, other) => {
                return Err(BrokenLog::NoBeginning {
                    fact: other.as_str(),
                });
            }
            (Some(task), _) => step(task, event, policy)?.next,
        });
    }
    Ok(task)
}

fn require_right(task: &Task, event: &Event) -> Decided {
    match (&event.actor, event.fact.right()) {
        // Whatever a holder says, it says as the holder.
        (Actor::Claim { epoch, .. }, _) if *epoch != task.epoch => Err(Refusal::StaleClaim {
            carried: *epoch,
            current: task.epoch,
        }),
        (Actor::Claim { worker, .. }, Right::Claim | Right::Any)
            if Some(*worker) == task.holder =>
        {
            Ok(())
        }
        (Actor::Lander { .. }, Right::Landing | Right::Any)
        | (Actor::Person(_) | Actor::Woodward, Right::Any) => Ok(()),
        _ => Err(Refusal::NoRight),
    }
}

fn decide(change: &mut Change<'_>, event: &Event, policy: &Policy) -> Decided {
    match &event.fact {
        Fact::Created(_) => Err(Refusal::Exists),

        Fact::PromptGiven { message } => waiting::prompt_given(change, *message),
        Fact::DependencyLanded { task } => waiting::dependency_landed(change, *task),
        Fact::DependencyFailed {
            task,
            reason,
            as_of,
        } => waiting::dependency_failed(change, *task, reason, *as_of),
        Fact::DependencyReopened { task, as_of } => {
            waiting::dependency_reopened(change, *task, *as_of)
        }
        Fact::DependencyDropped { task } => waiting::dependency_dropped(change, *task),
        Fact::MessageAccepted { message } => waiting::message_accepted(change, *message),

        Fact::Claimed { worker, run } => hands::claimed(change, *worker, *run),
        Fact::Prepared { worktree, rebuilt } => {
            hands::prepared(change, worktree, rebuilt.as_ref(), policy)
        }
        Fact::PrepareFailed {
            fault,
            note,
            in_setup,
        } => {
            let failure = if *in_setup {
                Failure::SetupFailed { note: note.clone() }
            } else {
                Failure::NotPrepared { note: note.clone() }
            };
            hands::prepare_failed(change, *fault, note, failure, policy, event.roll)
        }
        Fact::AgentAsked { run, question } => hands::agent_asked(change, *run, question),
        Fact::Answered { question, message } => hands::answered(change, *question, *message),
        Fact::QuestionWithdrawn { question } => hands::question_withdrawn(change, *question),
        Fact::Spent { run, total } => hands::spent(change, *run, *total, policy),
        Fact::RunFinished {
            run,
            outcome,
            total,
        } => hands::run_finished(change, *run, outcome, *total, policy, event.roll),
        Fact::GatesFinished {
            commit,
            tree,
            reports,
            risky,
            embedded,
            next_run,
        } => {
            let looked = gates::Looked {
                commit,
                tree: tree.as_ref(),
                reports,
                risky: *risky,
                embedded,
            };
            gates::gates_finished(change, looked, *next_run, policy, event.roll)
        }
        Fact::HandedBack => hands::handed_back(change),
        Fact::LeaseExpired { epoch } => hands::lease_expired(change, *epoch, policy),

        Fact::HeadMoved { commit } => landing::head_moved(change, commit),
        Fact::TargetRewritten { commit } => landing::target_rewritten(change, commit),
        Fact::IntentRecorded {
            intent,
            commit,
            result,
        } => landing::intent_recorded(change, *intent, commit, result),
        Fact::IntentVoided { intent } => landing::intent_voided(change, *intent),
        Fact::Landed { intent } => landing::landed(change, *intent),
        Fact::LandingConflicted { commit, files } => {
            landing::conflicted(change, commit, files, policy)
        }
        Fact::LandingFailed {
            commit,
            gates,
            kinds,
        } => landing::failed(change, commit, gates, kinds, policy),
        Fact::LandingBroken { commit, note } => {
            landing::broken(change, commit, note, policy, event.roll)
        }

        Fact::Approved { commit } => person::approved(change, commit, &event.actor),
        Fact::Brought { commit, .. } => person::brought(change, commit, &event.actor),
        Fact::ChangesRequested { message, source } => {
            person::changes_requested(change, *message, *source)
        }
        Fact::Paused { reason } => person::paused(change, reason, &event.actor),
        Fact::BudgetSet { budget } => person::budget_set(change, *budget),
        Fact::Resumed => person::resumed(change, policy),
        Fact::Retried => person::retried(change),
        Fact::Cancelled { reason } => person::cancelled(change, reason),
        Fact::Restored { worktree } => person::restored(change, worktree.as_ref()),
        Fact::Superseded { by } => person::superseded(change, *by),
    }
}
