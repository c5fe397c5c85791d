//! Facts from the hands: claims, worktrees, agents, gates, and the loss of a claim.

use super::change::Change;
use super::{Decided, Refusal, What};
use crate::backoff::PROVIDER_PATIENCE;
use crate::budget::{Limit, Spend};
use crate::effect::Action;
use crate::event::{Fault, Outcome};
use crate::id::{CommitId, Epoch, MessageId, RunId, WorkerId};
use crate::policy::Policy;
use crate::state::{Delay, Failure, PauseReason, Purpose, Question, ResumePoint, State};
use crate::task::{OverloadTally, Worktree};
use crate::text::Note;
use crate::time::Roll;

/// The most answers that are offered with a question.
const CHOICES_MAX: usize = 16;

pub(super) fn claimed(change: &mut Change<'_>, worker: WorkerId, run: RunId) -> Decided {
    let State::Queued {
        purpose, run_at, ..
    } = change.state()
    else {
        return Err(Refusal::WrongState);
    };
    if !change.task.blockers.is_empty() {
        return Err(Refusal::Blocked(change.task.blockers.len()));
    }
    if change.at < *run_at {
        return Err(Refusal::TooEarly);
    }
    change.task.epoch = change.task.epoch.next();
    change.task.holder = Some(worker);
    change.go(State::Preparing {
        run,
        purpose: purpose.clone(),
    });
    change.ask(Action::PrepareWorktree {
        run,
        purpose: purpose.clone(),
    });
    Ok(())
}

pub(super) fn prepared(
    change: &mut Change<'_>,
    worktree: &Worktree,
    rebuilt: Option<&CommitId>,
    policy: &Policy,
) -> Decided {
    let State::Preparing { run, purpose } = change.state() else {
        return Err(Refusal::WrongState);
    };
    // Work would start where the holder is not, and its removal would be asked of the wrong machine.
    if Some(worktree.worker) != change.task.holder || worktree.made_by > change.task.epoch {
        return Err(Refusal::ForeignWorktree);
    }
    if let Some(old) = change.task.worktree.replace(worktree.clone())
        && old != *worktree
    {
        change.ask_machine(old.worker, Action::RemoveWorktree { worktree: old });
    }
    if let Some(rebuilt) = rebuilt
        && change.task.head.is_some()
    {
        change.task.head = Some(rebuilt.clone());
    }
    match purpose {
        Purpose::Verify { commit } if change.task.unread.is_empty() => {
            verify(change, rebuilt.unwrap_or(commit).clone());
        }
        Purpose::Verify { .. } => start(change, *run, Purpose::FollowUp, policy),
        _ => start(change, *run, purpose.clone(), policy),
    }
    Ok(())
}

/// Starts an agent, or pauses a task that has no budget left for one.
pub(super) fn start(change: &mut Change<'_>, run: RunId, purpose: Purpose, policy: &Policy) {
    if let Some(limit) = change.budget_reached(policy) {
        change.release();
        pause_for_budget(change, limit, purpose);
        return;
    }
    change.go(State::Working {
        run,
        purpose: purpose.clone(),
    });
    change.task.tally.spent_by_run = Spend::NONE;
    let mut messages = change.task.taken.clone();
    messages.extend(&change.task.unread);
    change.ask(Action::StartRun {
        run,
        purpose,
        messages,
    });
}

/// A run has come to an end; what no agent has read yet comes before anything else. A follow-up run
/// that took none of its messages has failed: otherwise there would be no end to it.
fn follow_up_on_unread(
    change: &mut Change<'_>,
    purpose: &Purpose,
    policy: &Policy,
    roll: Roll,
) -> bool {
    let took_nothing = change.task.taken.is_empty();
    if change.task.unread.is_empty() {
        run_completed(change);
        return false;
    }
    change.task.taken.clear();
    if *purpose == Purpose::FollowUp && took_nothing {
        let note = Note::from("the agent took none of its messages");
        change.fail_attempt(Purpose::FollowUp, &note, policy, roll, |attempts| {
            Failure::AttemptsSpent {
                attempts,
                last: note.clone(),
            }
        });
    } else {
        change.task.tally.failures = 0;
        change.release();
        change.queue(Purpose::FollowUp);
    }
    true
}

/// A run has come to an end with all that it was given.
fn run_completed(change: &mut Change<'_>) {
    change.task.taken.clear();
    change.task.tally.failures = 0;
    if let Some(rejected) = &mut change.task.rejected {
        rejected.run_ended = true;
    }
}

fn verify(change: &mut Change<'_>, commit: CommitId) {
    change.go(State::Verifying {
        commit: commit.clone(),
    });
    change.ask(Action::RunGates { commit });
}

pub(super) fn prepare_failed(
    change: &mut Change<'_>,
    fault: Fault,
    note: &Note,
    failure: Failure,
    policy: &Policy,
    roll: Roll,
) -> Decided {
    let State::Preparing { purpose, .. } = change.state() else {
        return Err(Refusal::WrongState);
    };
    match fault {
        Fault::Transient => {
            change.fail_attempt(purpose.clone(), note, policy, roll, |_| failure);
        }
        Fault::Permanent => {
            change.release();
            change.fail(failure);
        }
        Fault::NeedsPerson => {
            change.release();
            change.fail(Failure::NeedsPerson { note: note.clone() });
        }
    }
    Ok(())
}

pub(super) fn agent_asked(change: &mut Change<'_>, run: RunId, question: &Question) -> Decided {
    let State::Working {
        run: current,
        purpose,
    } = change.state()
    else {
        return Err(Refusal::WrongState);
    };
    require_run(*current, run)?;
    change.go(State::Waiting {
        run,
        purpose: purpose.clone(),
        question: Question {
            id: question.id,
            text: question.text.clone(),
            choices: question.choices.iter().take(CHOICES_MAX).cloned().collect(),
            via: question.via,
        },
    });
    Ok(())
}

pub(super) fn answered(
    change: &mut Change<'_>,
    question: MessageId,
    message: MessageId,
) -> Decided {
    let run = back_to_work(change, question)?;
    change.ask(Action::DeliverMessage { run, message });
    change.keep_message(message)
}

pub(super) fn question_withdrawn(change: &mut Change<'_>, question: MessageId) -> Decided {
    back_to_work(change, question).map(drop)
}

fn back_to_work(change: &mut Change<'_>, question: MessageId) -> Result<RunId, Refusal> {
    let State::Waiting {
        run,
        purpose,
        question: current,
    } = change.state()
    else {
        return Err(Refusal::WrongState);
    };
    if current.id != question {
        return Err(Refusal::Outdated(What::Question));
    }
    change.go(State::Working {
        run: *run,
        purpose: purpose.clone(),
    });
    Ok(*run)
}

fn require_run(current: RunId, named: RunId) -> Decided {
    if current == named {
        Ok(())
    } else {
        Err(Refusal::Outdated(What::Run))
    }
}

pub(super) fn spent(change: &mut Change<'_>, run: RunId, total: Spend, policy: &Policy) -> Decided {
    let (State::Working { run: current, .. } | State::Waiting { run: current, .. }) =
        change.state()
    else {
        return Err(Refusal::WrongState);
    };
    require_run(*current, run)?;
    change.count_spend(total);
    if let Some(limit) = change.budget_reached(policy) {
        change.revoke();
        pause_for_budget(change, limit, purpose_left(change.state()));
    }
    Ok(())
}

fn pause_for_budget(change: &mut Change<'_>, limit: Limit, purpose: Purpose) {
    let back = ResumePoint::Queue {
        purpose,
        run_at: change.at,
    };
    change.go(State::Paused {
        reason: PauseReason::Budget(limit),
        back,
    });
}

pub(super) fn run_finished(
    change: &mut Change<'_>,
    run: RunId,
    outcome: &Outcome,
    total: Spend,
    policy: &Policy,
    roll: Roll,
) -> Decided {
    let (State::Working {
        run: current,
        purpose,
    }
    | State::Waiting {
        run: current,
        purpose,
        ..
    }) = change.state()
    else {
        return Err(Refusal::WrongState);
    };
    require_run(*current, run)?;
    change.count_spend(total);
    let overloads = core::mem::take(&mut change.task.tally.overloads);
    match outcome {
        Outcome::Done { commit } => {
            change.task.head = Some(commit.clone());
            change.task.tally.disk_waits = 0;
            if !follow_up_on_unread(change, purpose, policy, roll) {
                verify(change, commit.clone());
            }
        }
        // An answer in words only: the earlier result stands and is looked at again.
        Outcome::Empty => {
            if follow_up_on_unread(change, purpose, policy, roll) {
                return Ok(());
            }
            match change.task.head.clone() {
                Some(head) => verify(change, head),
                None => {
                    change.release();
                    change.fail(Failure::Empty);
                }
            }
        }
        Outcome::Broke { note } => {
            let purpose = match purpose {
                Purpose::First => Purpose::Retry,
                other => other.clone(),
            };
            change.fail_attempt(purpose, note, policy, roll, |attempts| {
                Failure::AttemptsSpent {
                    attempts,
                    last: note.clone(),
                }
            });
        }
        Outcome::RateLimited { until } => {
            change.task.tally.rate_limits += 1;
            change.release();
            let run_at = policy.backoff.after_rate_limit(change.at, *until);
            change.go(State::Queued {
                purpose: purpose_left(change.state()),
                run_at,
                delay: Some(Delay::RateLimit),
            });
        }
        Outcome::DiskFull { disk } => {
            let waits = change.task.tally.disk_waits.saturating_add(1);
            change.task.tally.disk_waits = waits;
            change.release();
            change.go(State::Queued {
                purpose: purpose_left(change.state()),
                run_at: change.at + policy.backoff.wait(waits, roll),
                delay: Some(Delay::DiskFull(disk.clone())),
            });
        }
        Outcome::Overloaded { note } => {
            let since = overloads.since.unwrap_or(change.at);
            if change.at.since(since) >= PROVIDER_PATIENCE {
                let purpose = purpose_left(change.state());
                change.fail_attempt(purpose, note, policy, roll, |attempts| {
                    Failure::AttemptsSpent {
                        attempts,
                        last: note.clone(),
                    }
                });
                return Ok(());
            }
            let count = overloads.count.saturating_add(1);
            change.task.tally.overloads = OverloadTally {
                count,
                since: Some(since),
            };
            change.release();
            let run_at = change.at + policy.backoff.provider_wait(count, roll);
            change.go(State::Queued {
                purpose: purpose_left(change.state()),
                run_at,
                delay: Some(Delay::Overloaded { last: note.clone() }),
            });
        }
        Outcome::MovedBranch { moved, commit } => {
            let purpose = match commit {
                Some(commit) => {
                    change.task.head = Some(commit.clone());
                    run_completed(change);
                    Purpose::Verify {
                        commit: commit.clone(),
                    }
                }
                None => purpose_left(change.state()),
            };
            change.release();
            change.go(State::Paused {
                reason: PauseReason::MovedBranch(moved.clone()),
                back: ResumePoint::Queue {
                    purpose,
                    run_at: change.at,
                },
            });
        }
        Outcome::OverBudget { limit } => {
            change.release();
            pause_for_budget(change, *limit, purpose_left(change.state()));
        }
        Outcome::NeedsPerson { note } => {
            change.release();
            change.fail(Failure::NeedsPerson { note: note.clone() });
        }
    }
    Ok(())
}

pub(super) fn handed_back(change: &mut Change<'_>) -> Decided {
    let purpose = interrupted(change.state()).ok_or(Refusal::WrongState)?;
    change.revoke();
    change.queue(purpose);
    Ok(())
}

pub(super) fn lease_expired(change: &mut Change<'_>, epoch: Epoch, policy: &Policy) -> Decided {
    if epoch != change.task.epoch {
        return Err(Refusal::StaleClaim {
            carried: epoch,
            current: change.task.epoch,
        });
    }
    let purpose = interrupted(change.state()).ok_or(Refusal::WrongState)?;
    change.revoke();
    change.task.tally.lease_losses += 1;
    let losses = change.task.tally.lease_losses;
    if losses > policy.lease_losses_max {
        change.fail(Failure::LeaseLossesSpent { losses });
    } else {
        change.queue(purpose);
    }
    Ok(())
}

/// What is left to do for a task whose run ended early.
fn purpose_left(state: &State) -> Purpose {
    interrupted(state).unwrap_or(Purpose::Continue)
}

/// What is left to do for a task whose worker went away in this state.
pub(super) fn interrupted(state: &State) -> Option<Purpose> {
    match state {
        State::Preparing { purpose, .. } => Some(purpose.clone()),
        State::Working { purpose, .. } | State::Waiting { purpose, .. } => Some(match purpose {
            Purpose::First | Purpose::Retry => Purpose::Continue,
            other => other.clone(),
        }),
        State::Verifying { commit } => Some(Purpose::Verify {
            commit: commit.clone(),
        }),
        _ => None,
    }
}
