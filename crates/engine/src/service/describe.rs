//! Facts as sentences.

use woodward_core::event::Outcome;
use woodward_core::state::{Delay, RejectionSource, State};
use woodward_core::{CommitId, Fact, Policy, Task, Timestamp};

const SHORT: usize = 10;

fn short(commit: &CommitId) -> &str {
    &commit.as_str()[..SHORT]
}

/// How long a task waits after a failure, and how long at most, if it began to wait with this.
pub(super) fn wait(task: &Task, fact: &Fact, at: Timestamp, policy: &Policy) -> Option<String> {
    let (until, failures) = match (&task.state, fact) {
        (
            State::Queued {
                run_at,
                delay: Some(Delay::Backoff { failures, .. }),
                ..
            },
            _,
        ) if task.since == at => (*run_at, *failures),
        (State::Landing { .. }, Fact::LandingBroken { .. }) => {
            (task.tally.land_after?, task.tally.failures)
        }
        _ => return None,
    };
    let most = policy.backoff.ceiling(failures);
    Some(format!(
        "; tries again in {} (at most {most})",
        until.since(at)
    ))
}

/// What happened, in one sentence.
pub(super) fn fact(fact: &Fact) -> String {
    match fact {
        Fact::Created(new) if new.prompted => "created".into(),
        Fact::Created(_) => "created as a draft".into(),
        Fact::PromptGiven { .. } => "a prompt was given".into(),
        Fact::DependencyLanded { .. } => "a task it comes after has landed".into(),
        Fact::DependencyFailed { reason, .. } => format!("a task it comes after {reason}"),
        Fact::DependencyDropped { .. } => "it no longer waits for a task it came after".into(),
        Fact::DependencyReopened { .. } => "a task it comes after is worked on again".into(),
        Fact::Claimed { .. } => "claimed".into(),
        Fact::Prepared {
            worktree,
            rebuilt: None,
        } => format!("worktree ready on {}", worktree.branch),
        Fact::Prepared {
            worktree,
            rebuilt: Some(commit),
        } => format!(
            "change rebuilt on {} as {}; worktree ready on {}",
            short(&worktree.base),
            short(commit),
            worktree.branch
        ),
        Fact::PrepareFailed { note, .. } => format!("the worktree could not be made ready: {note}"),
        Fact::AgentAsked { question, .. } => format!("the agent asks: {}", question.text),
        Fact::Answered { .. } => "the question was answered".into(),
        Fact::QuestionWithdrawn { .. } => "the agent no longer waits for an answer".into(),
        Fact::MessageAccepted { .. } => "the agent took a message".into(),
        Fact::Spent { .. } => "the agent used tokens".into(),
        Fact::RunFinished { outcome, .. } => run(outcome),
        Fact::GatesFinished {
            commit, reports, ..
        } => {
            let said: Vec<String> = reports
                .iter()
                .map(|report| {
                    let verdict = report.verdict.as_str();
                    match report.timed_out {
                        Some(limit) => {
                            format!("{} {verdict} (timed out after {limit})", report.gate)
                        }
                        None => format!("{} {verdict}", report.gate),
                    }
                })
                .collect();
            match said.as_slice() {
                [] => format!("no gate looked at {}", short(commit)),
                said => format!("gates on {}: {}", short(commit), said.join(", ")),
            }
        }
        Fact::HandedBack => "given back to the queue".into(),
        Fact::LeaseExpired { .. } => "its worker was lost".into(),
        Fact::Approved { commit } => format!("approved {}", short(commit)),
        Fact::ChangesRequested { source, .. } => match source {
            RejectionSource::Review => "changes were requested".into(),
            RejectionSource::CiFailed => "changes were requested: CI failed".into(),
        },
        Fact::Brought { commit, .. } => format!("{} was brought and approved", short(commit)),
        Fact::HeadMoved { commit } => format!("its branch moved to {}", short(commit)),
        Fact::TargetRewritten { .. } => {
            "its target branch was rewritten; its change is rebuilt, and its gates run again".into()
        }
        Fact::IntentRecorded { result, .. } => format!("landing as {}", short(result)),
        Fact::IntentVoided { .. } => "the target branch had moved; landing anew".into(),
        Fact::Landed { .. } => "landed".into(),
        Fact::LandingConflicted { files, .. } => {
            format!("conflict while landing: {}", files.join(", "))
        }
        Fact::LandingFailed { gates, .. } => {
            let names: Vec<&str> = gates.iter().map(|gate| gate.as_str()).collect();
            format!("the merged tree failed {}", names.join(", "))
        }
        Fact::LandingBroken { note, .. } => format!("could not land: {note}"),
        Fact::BudgetSet { .. } => "another budget was set".into(),
        Fact::Paused { reason } => with("paused", reason.as_str()),
        Fact::Resumed => "resumed".into(),
        Fact::Retried => "tried again".into(),
        Fact::Cancelled { reason } => with("cancelled", reason.as_str()),
        Fact::Restored { .. } => "brought back".into(),
        Fact::Superseded { by } => format!("superseded by {by}"),
    }
}

fn with(what: &str, reason: &str) -> String {
    match reason {
        "" => what.into(),
        reason => format!("{what}: {reason}"),
    }
}

fn run(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done { commit } => format!("the agent is done: {}", short(commit)),
        Outcome::Empty => "the agent is done and changed nothing".into(),
        Outcome::Broke { note } => format!("the run broke off: {note}"),
        Outcome::RateLimited { .. } => "the provider said to wait".into(),
        Outcome::DiskFull { disk } => format!("the run broke off: {disk}"),
        Outcome::Overloaded { note } => format!("waiting for the provider: {note}"),
        Outcome::MovedBranch { moved, .. } => moved.to_string(),
        Outcome::OverBudget { limit } => format!("its budget is used up: {limit}"),
        Outcome::NeedsPerson { note } => format!("only a person can help: {note}"),
    }
}
