//! What the gates said, and what follows from it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::change::Change;
use super::hands::start;
use super::{Decided, Refusal, What};
use crate::fix;
use crate::gate::{GateReport, Overall, overall};
use crate::id::{CommitId, RunId, TreeId};
use crate::name::GateName;
use crate::policy::{Policy, ReviewRule};
use crate::risk::{EMBEDDED_MAX, EmbeddedRepository};
use crate::state::{Approval, Approver, Evidence, Failure, Purpose, State};
use crate::text::Note;
use crate::time::{Millis, Roll};

/// What the gates saw and said.
#[derive(Clone, Copy)]
pub(super) struct Looked<'a> {
    pub(super) commit: &'a CommitId,
    pub(super) tree: Option<&'a TreeId>,
    pub(super) reports: &'a [GateReport],
    pub(super) risky: bool,
    pub(super) embedded: &'a [EmbeddedRepository],
}

pub(super) fn gates_finished(
    change: &mut Change<'_>,
    looked: Looked<'_>,
    next_run: RunId,
    policy: &Policy,
    roll: Roll,
) -> Decided {
    let Looked {
        commit,
        tree,
        reports,
        risky,
        embedded,
    } = looked;
    let State::Verifying { commit: current } = change.state() else {
        return Err(Refusal::WrongState);
    };
    if current != commit {
        return Err(Refusal::Outdated(What::Commit));
    }
    let verdict = overall(reports);
    if !matches!(verdict, Overall::Broken(_)) {
        change.task.tally.failures = 0;
        change.task.verified_tree = tree.cloned();
        change.task.embedded = embedded.iter().take(EMBEDDED_MAX).cloned().collect();
        if let Some(rejected) = &change.task.rejected
            && !rejected.has_content_of(commit, tree)
        {
            change.task.rejected = None;
        }
    }
    if !change.task.unread.is_empty() && !matches!(verdict, Overall::Fail(_)) {
        // Somebody wants something else by now; the verdict would be on a result of yesterday.
        change.release();
        change.queue(Purpose::FollowUp);
        return Ok(());
    }
    match verdict {
        Overall::Pass => {
            change.release();
            let rule = change.task.spec.review.unwrap_or(policy.review);
            let lands_itself = rule == ReviewRule::Never || (rule == ReviewRule::Risky && !risky);
            let is_held = change.task.rejected.is_some() || !change.task.embedded.is_empty();
            if lands_itself && !is_held {
                let approval = Approval {
                    commit: commit.clone(),
                    by: Approver::Policy,
                    at: change.at,
                };
                change.go(State::Landing {
                    approval,
                    intent: None,
                });
            } else {
                review(change, commit, Evidence::Pass, policy);
            }
        }
        Overall::Unverified => {
            change.release();
            review(change, commit, Evidence::Unverified, policy);
        }
        Overall::Flaky(_) => {
            change.release();
            review(change, commit, Evidence::Flaky, policy);
        }
        Overall::Baseline(_) => {
            change.release();
            review(change, commit, Evidence::Baseline, policy);
        }
        Overall::Broken(gates) => {
            let note = Note::from(broken_why(&gates, reports));
            let purpose = Purpose::Verify {
                commit: commit.clone(),
            };
            change.fail_attempt(purpose, &note, policy, roll, |_| Failure::GateBroken {
                note: note.clone(),
            });
        }
        Overall::Fail(mut gates) => {
            gates.truncate(fix::GATES_MAX);
            let failed = |report: &&GateReport| gates.contains(&report.gate);
            let failing: Vec<fix::Failing> = reports
                .iter()
                .filter(failed)
                .map(|report| fix::Failing {
                    gate: report.gate.clone(),
                    kind: report.kind,
                })
                .collect();
            let look = tree.map(|tree| fix::Look {
                tree: tree.clone(),
                failures: reports
                    .iter()
                    .filter(failed)
                    .flat_map(|report| report.failures.iter().copied())
                    .collect(),
            });
            match fix::decide(&change.task.tally.fixes, policy.fix, &failing, look) {
                fix::Decision::Fix(tally) => {
                    change.task.tally.fixes = tally;
                    start(change, next_run, Purpose::Fix { gates }, policy);
                }
                fix::Decision::GiveUp(gate) => {
                    change.release();
                    change.fail(fixes_spent(gate, reports));
                }
                fix::Decision::Circle(circle) => {
                    change.release();
                    let note = led_nowhere(&circle, &change.task.tally.fixes, &gates, reports);
                    change.fail(Failure::Circle { note });
                }
            }
        }
    }
    Ok(())
}

/// Which gates did not really run, and why as far as they say.
fn broken_why(gates: &[GateName], reports: &[GateReport]) -> String {
    let why = |gate: &GateName| {
        let note = reports
            .iter()
            .find(|report| report.gate == *gate)
            .and_then(|report| report.note.as_ref());
        match note {
            Some(note) => format!("{gate} ({note})"),
            None => gate.as_str().into(),
        }
    };
    gates.iter().map(why).collect::<Vec<_>>().join(", ")
}

fn timed_out(gate: &GateName, reports: &[GateReport]) -> Option<Millis> {
    let report = reports.iter().find(|report| report.gate == *gate)?;
    report.timed_out
}

fn fixes_spent(gate: Option<GateName>, reports: &[GateReport]) -> Failure {
    let limit = gate.as_ref().and_then(|gate| timed_out(gate, reports));
    match (gate, limit) {
        (Some(gate), Some(limit)) => Failure::GateTimedOut { gate, limit },
        (gate, _) => Failure::FixesSpent { gate },
    }
}

/// What was tried, and why it stops.
fn led_nowhere(
    circle: &fix::Circle,
    tried: &fix::FixTally,
    gates: &[GateName],
    reports: &[GateReport],
) -> Note {
    let name = |gate: &GateName| match timed_out(gate, reports) {
        Some(limit) => format!("{gate} (timed out after {limit})"),
        None => gate.as_str().into(),
    };
    let names: Vec<String> = gates.iter().map(name).collect();
    let cycles = match tried.total {
        1 => String::from("1 cycle"),
        many => format!("{many} cycles"),
    };
    Note::from(format!(
        "{circle}; still failing after {cycles}: {}",
        names.join(", ")
    ))
}

/// Puts a result before a person. A rejected result that comes back with the same content is an
/// attempt of the agent that failed; there are only so many.
fn review(change: &mut Change<'_>, commit: &CommitId, evidence: Evidence, policy: &Policy) {
    if let Some(rejected) = &mut change.task.rejected
        && core::mem::take(&mut rejected.run_ended)
    {
        rejected.unchanged_runs += 1;
        let (after, attempts) = (rejected.source, rejected.unchanged_runs);
        if attempts >= policy.attempts_max {
            change.fail(Failure::NoChanges { after, attempts });
            return;
        }
    }
    change.go(State::Review {
        commit: commit.clone(),
        evidence,
    });
}
