//! Facts by which a person decides: yes, no, not now, not at all, once more.

use alloc::string::String;

use super::change::Change;
use super::hands::interrupted;
use super::landing::return_approval;
use super::{Decided, Refusal, What};
use crate::budget::Budget;
use crate::event::Actor;
use crate::id::{CommitId, MessageId, TaskId};
use crate::policy::Policy;
use crate::state::{
    Approval, Approver, Evidence, Failure, LandingIntent, PauseReason, Purpose, RejectionSource,
    ResumePoint, State,
};
use crate::task::{RejectedResult, ReturnCause, Worktree};
use crate::text::Note;

pub(super) fn approved(change: &mut Change<'_>, commit: &CommitId, actor: &Actor) -> Decided {
    if let State::Landing { approval, intent } = change.state() {
        return approved_too(change, approval, intent.as_ref(), commit, actor);
    }
    let State::Review {
        commit: reviewed,
        evidence,
    } = change.state()
    else {
        return Err(Refusal::WrongState);
    };
    if reviewed != commit {
        return Err(Refusal::Outdated(What::Commit));
    }
    if let Some(repository) = change.task.embedded.first() {
        return Err(Refusal::EmbeddedRepository(repository.path.clone()));
    }
    let by = match actor {
        Actor::Person(name) => Approver::Person(String::from(name.as_str())),
        // A result that was rejected lands only if a person approves it after all.
        Actor::Woodward if *evidence == Evidence::Pass && change.task.rejected.is_none() => {
            Approver::Policy
        }
        Actor::Woodward | Actor::Claim { .. } | Actor::Lander { .. } => {
            return Err(Refusal::NoRight);
        }
    };
    change.task.rejected = None;
    change.go(State::Landing {
        approval: Approval {
            commit: commit.clone(),
            by,
            at: change.at,
        },
        intent: None,
    });
    Ok(())
}

/// A person says yes to what a rule has queued: it keeps its place in line, and more may land so.
fn approved_too(
    change: &mut Change<'_>,
    approval: &Approval,
    intent: Option<&LandingIntent>,
    commit: &CommitId,
    actor: &Actor,
) -> Decided {
    let (Actor::Person(name), Approver::Policy) = (actor, &approval.by) else {
        return Err(Refusal::WrongState);
    };
    if approval.commit != *commit {
        return Err(Refusal::Outdated(What::Commit));
    }
    if intent.is_some() {
        return Err(Refusal::LandingUnderWay);
    }
    change.go(State::Landing {
        approval: Approval {
            by: Approver::Person(String::from(name.as_str())),
            ..approval.clone()
        },
        intent: None,
    });
    Ok(())
}

/// A draft becomes what somebody made elsewhere: it only has to land.
pub(super) fn brought(change: &mut Change<'_>, commit: &CommitId, actor: &Actor) -> Decided {
    let Actor::Person(name) = actor else {
        return Err(Refusal::NoRight);
    };
    if !matches!(change.state(), State::Draft) || !change.task.blockers.is_empty() {
        return Err(Refusal::WrongState);
    }
    change.task.prompted = true;
    change.task.head = Some(commit.clone());
    change.go(State::Landing {
        approval: Approval {
            commit: commit.clone(),
            by: Approver::Person(String::from(name.as_str())),
            at: change.at,
        },
        intent: None,
    });
    Ok(())
}

pub(super) fn changes_requested(
    change: &mut Change<'_>,
    message: MessageId,
    source: RejectionSource,
) -> Decided {
    let commit = match change.state() {
        State::Review { commit, .. } => commit,
        State::Landing {
            approval,
            intent: None,
        } => &approval.commit,
        State::Landing { .. } => return Err(Refusal::LandingUnderWay),
        _ => return Err(Refusal::WrongState),
    };
    let tree = change.task.verified_tree.clone();
    let earlier = change.task.rejected.take();
    let unchanged_runs = earlier
        .filter(|earlier| earlier.has_content_of(commit, tree.as_ref()))
        .map_or(0, |earlier| earlier.unchanged_runs);
    change.task.rejected = Some(RejectedResult {
        commit: commit.clone(),
        tree,
        source,
        run_ended: false,
        unchanged_runs,
    });
    return_approval(change, ReturnCause::ChangesRequested);
    change.queue(Purpose::FollowUp);
    change.keep_message(message)
}

pub(super) fn paused(change: &mut Change<'_>, reason: &Note, actor: &Actor) -> Decided {
    let back = match change.state() {
        State::Queued {
            purpose, run_at, ..
        } => ResumePoint::Queue {
            purpose: purpose.clone(),
            run_at: *run_at,
        },
        State::Review { commit, evidence } => ResumePoint::Review {
            commit: commit.clone(),
            evidence: *evidence,
        },
        State::Landing {
            intent: Some(_), ..
        } => return Err(Refusal::LandingUnderWay),
        State::Landing { approval, .. } => ResumePoint::Landing {
            approval: approval.clone(),
        },
        running => ResumePoint::Queue {
            purpose: interrupted(running).ok_or(Refusal::WrongState)?,
            run_at: change.at,
        },
    };
    change.revoke();
    change.go(State::Paused {
        reason: match actor {
            Actor::Person(_) => PauseReason::Person(reason.clone()),
            _ => PauseReason::Rule(reason.clone()),
        },
        back,
    });
    Ok(())
}

pub(super) fn resumed(change: &mut Change<'_>, policy: &Policy) -> Decided {
    let State::Paused { back, .. } = change.state() else {
        return Err(Refusal::WrongState);
    };
    // Said while it was paused and read by nobody: that comes first.
    let back = if change.task.unread.is_empty() {
        back.clone()
    } else {
        ResumePoint::Queue {
            purpose: match back {
                ResumePoint::Queue { purpose, .. } if runs_an_agent(purpose) => purpose.clone(),
                _ => Purpose::FollowUp,
            },
            run_at: change.at,
        }
    };
    let costs = matches!(&back, ResumePoint::Queue { purpose, .. } if runs_an_agent(purpose));
    if costs && let Some(limit) = change.budget_reached(policy) {
        return Err(Refusal::BudgetReached(limit));
    }
    change.go(match back {
        ResumePoint::Queue { purpose, run_at } => State::Queued {
            purpose,
            run_at,
            delay: None,
        },
        ResumePoint::Review { commit, evidence } => State::Review { commit, evidence },
        ResumePoint::Landing { approval } => State::Landing {
            approval,
            intent: None,
        },
    });
    Ok(())
}

const fn runs_an_agent(purpose: &Purpose) -> bool {
    !matches!(purpose, Purpose::Verify { .. })
}

pub(super) fn budget_set(change: &mut Change<'_>, budget: Budget) -> Decided {
    if change.state().kind().is_finished() {
        return Err(Refusal::WrongState);
    }
    change.task.spec.budget = Some(budget);
    Ok(())
}

pub(super) fn retried(change: &mut Change<'_>) -> Decided {
    // Whoever asks for the next attempt does not wait for it.
    if let State::Queued {
        purpose,
        run_at,
        delay: Some(_),
    } = change.state()
    {
        change.forgive();
        change.go(State::Queued {
            purpose: purpose.clone(),
            run_at: change.at.min(*run_at),
            delay: None,
        });
        return Ok(());
    }
    let (State::Failed { .. } | State::Cancelled { .. }) = change.state() else {
        return Err(Refusal::WrongState);
    };
    change.forgive();
    let broken_gate = matches!(
        change.state(),
        State::Failed {
            failure: Failure::GateBroken { .. }
        }
    );
    match change.task.head.clone() {
        // Nothing is wrong with the result itself: only the gates look again.
        Some(commit) if broken_gate => change.queue(Purpose::Verify { commit }),
        _ if change.task.prompted => change.queue(Purpose::Retry),
        _ => change.go(State::Draft),
    }
    Ok(())
}

pub(super) fn cancelled(change: &mut Change<'_>, reason: &Note) -> Decided {
    give_up(
        change,
        State::Cancelled {
            reason: reason.clone(),
        },
    )
}

/// It lies still until somebody says how it goes on: nothing starts by itself because of an undo.
pub(super) fn restored(change: &mut Change<'_>, worktree: Option<&Worktree>) -> Decided {
    let State::Cancelled { .. } = change.state() else {
        return Err(Refusal::WrongState);
    };
    if worktree.is_some_and(|worktree| worktree.made_by > change.task.epoch) {
        return Err(Refusal::ForeignWorktree);
    }
    change.forgive();
    change.task.worktree = worktree.cloned();
    if !change.task.prompted {
        change.go(State::Draft);
        return Ok(());
    }
    // What an agent had taken when the task was given up, no run has come to an end with.
    let heard_all = change.task.taken.is_empty() && change.task.unread.is_empty();
    let purpose = match change.task.head.clone() {
        Some(commit) if heard_all => Purpose::Verify { commit },
        Some(_) => Purpose::FollowUp,
        None => Purpose::Continue,
    };
    change.go(State::Paused {
        reason: PauseReason::Person(Note::from("brought back")),
        back: ResumePoint::Queue {
            purpose,
            run_at: change.at,
        },
    });
    Ok(())
}

pub(super) fn superseded(change: &mut Change<'_>, by: TaskId) -> Decided {
    if by == change.task.id {
        return Err(Refusal::Itself);
    }
    give_up(change, State::Superseded { by })
}

fn give_up(change: &mut Change<'_>, end: State) -> Decided {
    match change.state() {
        State::Landing {
            intent: Some(_), ..
        } => Err(Refusal::LandingUnderWay),
        state if state.kind().is_finished() => Err(Refusal::WrongState),
        _ => {
            change.revoke();
            change.go(end);
            Ok(())
        }
    }
}
