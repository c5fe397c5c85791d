//! Facts from the merge queue: intents, conflicts, red merges, the landing itself.

use alloc::string::String;
use alloc::vec::Vec;

use super::change::Change;
use super::{Decided, Refusal, What};
use crate::fix;
use crate::gate::GateKind;
use crate::id::{CommitId, IntentId};
use crate::name::GateName;
use crate::policy::Policy;
use crate::state::{
    Approval, Approver, Delay, Failure, LandingIntent, PauseReason, Purpose, State,
};
use crate::task::{ReturnCause, ReturnedApproval};
use crate::text::Note;
use crate::time::Roll;

/// The most conflicting paths that are remembered with a task.
const FILES_MAX: usize = 50;
/// The most of them, or of gates, that are remembered with a returned approval.
const FILES_SHOWN: usize = 5;

pub(super) fn head_moved(change: &mut Change<'_>, commit: &CommitId) -> Decided {
    let reviewed = match change.state() {
        State::Review { commit, .. } => commit,
        State::Landing {
            intent: Some(_), ..
        } => return Err(Refusal::LandingUnderWay),
        State::Landing { approval, .. } => &approval.commit,
        // The person moved the agent's commits to the task's branch.
        State::Paused {
            reason: PauseReason::MovedBranch(moved),
            ..
        } => change.task.head.as_ref().unwrap_or(&moved.old),
        _ => return Err(Refusal::WrongState),
    };
    if reviewed == commit {
        return Err(Refusal::AlreadyApplied);
    }
    return_approval(change, ReturnCause::HeadMoved);
    change.task.head = Some(commit.clone());
    change.queue(Purpose::Verify {
        commit: commit.clone(),
    });
    Ok(())
}

/// The change must be rebuilt on the target, and its gates run again. An approval was of the commit
/// that can no longer land: the review rule decides anew.
pub(super) fn target_rewritten(change: &mut Change<'_>, commit: &CommitId) -> Decided {
    match change.state() {
        State::Review {
            commit: current, ..
        } if current == commit => {}
        State::Review { .. } => return Err(Refusal::Outdated(What::Commit)),
        _ => drop(require_no_intent(change, commit)?),
    }
    return_approval(change, ReturnCause::TargetRewritten);
    let run_at = change.at;
    change.go(State::Queued {
        purpose: Purpose::Verify {
            commit: commit.clone(),
        },
        run_at,
        delay: Some(Delay::TargetRewritten),
    });
    Ok(())
}

pub(super) fn intent_recorded(
    change: &mut Change<'_>,
    intent: IntentId,
    commit: &CommitId,
    result: &CommitId,
) -> Decided {
    let approval = require_no_intent(change, commit)?;
    change.go(State::Landing {
        approval: approval.clone(),
        intent: Some(LandingIntent {
            id: intent,
            result: result.clone(),
        }),
    });
    Ok(())
}

fn recorded<'a>(change: &Change<'a>, named: IntentId) -> Result<&'a LandingIntent, Refusal> {
    match change.state() {
        State::Landing {
            intent: Some(intent),
            ..
        } if intent.id == named => Ok(intent),
        State::Landing { .. } => Err(Refusal::Outdated(What::Intent)),
        _ => Err(Refusal::WrongState),
    }
}

pub(super) fn intent_voided(change: &mut Change<'_>, intent: IntentId) -> Decided {
    recorded(change, intent)?;
    if let State::Landing { approval, .. } = change.state() {
        change.go(State::Landing {
            approval: approval.clone(),
            intent: None,
        });
    }
    Ok(())
}

pub(super) fn landed(change: &mut Change<'_>, intent: IntentId) -> Decided {
    let LandingIntent { id, result } = recorded(change, intent)?.clone();
    change.go(State::Landed {
        commit: result,
        intent: id,
    });
    Ok(())
}

/// The approval of `commit`, if nothing is under way for it and nothing newer was approved.
fn require_no_intent<'a>(change: &Change<'a>, commit: &CommitId) -> Result<&'a Approval, Refusal> {
    match change.state() {
        State::Landing {
            intent: Some(_), ..
        } => Err(Refusal::LandingUnderWay),
        State::Landing { approval, .. } if approval.commit == *commit => Ok(approval),
        State::Landing { .. } => Err(Refusal::Outdated(What::Commit)),
        _ => Err(Refusal::WrongState),
    }
}

pub(super) fn conflicted(
    change: &mut Change<'_>,
    commit: &CommitId,
    files: &[String],
    policy: &Policy,
) -> Decided {
    require_no_intent(change, commit)?;
    let paths = files.iter().take(FILES_SHOWN).map(|path| cut(path));
    let cause = ReturnCause::Conflict {
        files: paths.collect(),
    };
    return_approval(change, cause);
    change.task.tally.conflicts += 1;
    let conflicts = change.task.tally.conflicts;
    if conflicts > policy.conflicts_max {
        change.fail(Failure::ConflictsSpent { conflicts });
    } else {
        change.queue(Purpose::Conflict {
            files: files.iter().take(FILES_MAX).map(|path| cut(path)).collect(),
        });
    }
    Ok(())
}

/// Remembers what a person approved, and why it does not land as it is.
pub(super) fn return_approval(change: &mut Change<'_>, cause: ReturnCause) {
    if let State::Landing { approval, .. } = change.state()
        && matches!(approval.by, Approver::Person(_))
    {
        let commit = approval.commit.clone();
        change.task.tally.returned = Some(ReturnedApproval { commit, cause });
    }
}

/// A path no longer than a note.
fn cut(path: &str) -> String {
    Note::from(path).into()
}

/// Not the task's fault: it stays in the queue, a bounded number of times, and waits longer each time.
pub(super) fn broken(
    change: &mut Change<'_>,
    commit: &CommitId,
    note: &Note,
    policy: &Policy,
    roll: Roll,
) -> Decided {
    require_no_intent(change, commit)?;
    change.task.tally.failures += 1;
    let failures = change.task.tally.failures;
    if failures >= policy.attempts_max {
        change.fail(Failure::GateBroken { note: note.clone() });
    } else {
        let after = change.at + policy.backoff.wait(failures, roll);
        change.task.tally.land_after = Some(after);
    }
    Ok(())
}

pub(super) fn failed(
    change: &mut Change<'_>,
    commit: &CommitId,
    gates: &[GateName],
    kinds: &[GateKind],
    policy: &Policy,
) -> Decided {
    require_no_intent(change, commit)?;
    let gates = &gates[..gates.len().min(fix::GATES_MAX)];
    let cause = ReturnCause::Gates {
        gates: gates.iter().take(FILES_SHOWN).cloned().collect(),
    };
    return_approval(change, cause);
    let failing: Vec<fix::Failing> = gates
        .iter()
        .enumerate()
        .map(|(place, gate)| fix::Failing {
            gate: gate.clone(),
            kind: kinds.get(place).copied().unwrap_or_default(),
        })
        .collect();
    match fix::decide(&change.task.tally.fixes, policy.fix, &failing, None) {
        fix::Decision::Fix(tally) => {
            change.task.tally.fixes = tally;
            change.task.tally.returns += 1;
            change.queue(Purpose::Fix {
                gates: gates.to_vec(),
            });
        }
        fix::Decision::GiveUp(gate) => change.fail(Failure::FixesSpent { gate }),
        // Only a look at a tree can see a circle.
        fix::Decision::Circle(_) => change.fail(Failure::FixesSpent { gate: None }),
    }
    Ok(())
}
