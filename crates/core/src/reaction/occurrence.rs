//! What has happened, as rules see it.
//!
//! An occurrence is named by its evidence: the commit and the set of failures, remarks or names it
//! is about. The same evidence is the same occurrence, however often and whenever it is seen.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Trigger;
use crate::event::{Actor, Event, Fact, Outcome};
use crate::gate::{Overall, overall};
use crate::id::CommitId;
use crate::name::GateName;
use crate::state::{Evidence, Failure, PauseReason, State};
use crate::task::Task;

/// How the note of a run ends that did nothing for longer than it may.
pub const STALLED: &str = "for too long";

/// Who sees to it that the agent hears of it, without any rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hand {
    /// Nobody.
    Nobody,
    /// The task itself goes back to its agent: a fix cycle, a conflict.
    Task,
    /// The task went back as often as it may; no rule goes beyond that.
    Spent,
    /// A person told the agent.
    Person,
}

/// Something that rules may answer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    /// What kind of thing.
    pub trigger: Trigger,
    /// The commit that it is about.
    pub head: Option<CommitId>,
    /// What else it is about, in order.
    pub evidence: Vec<String>,
    /// Who tells the agent anyway.
    pub hand: Hand,
    /// What happened, in one sentence.
    pub note: String,
}

impl Occurrence {
    /// The text that is the same for the same evidence, and for no other.
    pub fn evidence_text(&self) -> String {
        let mut text = String::from(self.trigger.as_str());
        text.push('\n');
        if let Some(head) = &self.head {
            text.push_str(head.as_str());
        }
        for part in &self.evidence {
            // A part can't look like two.
            text.push_str(&format!("\n{}:{part}", part.len()));
        }
        text
    }
}

/// Whether a fact can mean anything to rules at all: where not, nobody need look at the task before and
/// after it. What an agent spends matters only where it ends its run.
pub const fn may_matter(fact: &Fact) -> bool {
    matches!(
        fact,
        // By what they say, or by where they bring a task.
        Fact::AgentAsked { .. }
            | Fact::Approved { .. }
            | Fact::Brought { .. }
            | Fact::Cancelled { .. }
            | Fact::ChangesRequested { .. }
            | Fact::DependencyFailed { .. }
            | Fact::DependencyLanded { .. }
            | Fact::GatesFinished { .. }
            | Fact::Landed { .. }
            | Fact::LandingBroken { .. }
            | Fact::LandingConflicted { .. }
            | Fact::LandingFailed { .. }
            | Fact::LeaseExpired { .. }
            | Fact::Paused { .. }
            | Fact::PrepareFailed { .. }
            | Fact::Prepared { .. }
            | Fact::Resumed
            | Fact::RunFinished { .. }
            | Fact::Spent { .. }
            | Fact::Superseded { .. }
    )
}

/// What an event means to rules, given the task before and after it.
pub fn of_event(before: &Task, after: &Task, event: &Event) -> Vec<Occurrence> {
    let mut found = by_fact(before, after, event);
    found.extend(by_state(before, after));
    found
}

fn by_fact(before: &Task, after: &Task, event: &Event) -> Vec<Occurrence> {
    let one = |trigger, evidence: String, note: String| Occurrence {
        trigger,
        head: after.head.clone(),
        evidence: vec![evidence],
        hand: Hand::Nobody,
        note,
    };
    match &event.fact {
        Fact::GatesFinished {
            commit, reports, ..
        } => match overall(reports) {
            Overall::Fail(gates) => gates_failed(after, commit, &gates),
            _ => Vec::new(),
        },
        Fact::LandingFailed { commit, gates, .. } => gates_failed(after, commit, gates),
        Fact::LandingConflicted { commit, files } => {
            let mut files = files.clone();
            files.sort_unstable();
            vec![Occurrence {
                trigger: Trigger::MergeConflict,
                head: Some(commit.clone()),
                note: format!("{} in conflict", some(&files, "file")),
                evidence: files,
                hand: hand(after),
            }]
        }
        // What a rule passed on to the agent has been an occurrence before.
        Fact::ChangesRequested { message, .. } if matches!(event.actor, Actor::Person(_)) => {
            vec![Occurrence {
                hand: Hand::Person,
                ..one(
                    Trigger::ChangesRequested,
                    message.to_string(),
                    "changes were asked for".to_string(),
                )
            }]
        }
        Fact::AgentAsked { question, .. } => vec![one(
            Trigger::AgentWaiting,
            question.id.to_string(),
            format!("the agent asks: {}", question.text),
        )],
        Fact::RunFinished { run, outcome, .. } => {
            let run = run.to_string();
            match outcome {
                Outcome::Broke { note } => {
                    let trigger = if note.as_str().contains(STALLED) {
                        Trigger::AgentStuck
                    } else {
                        Trigger::AgentExited
                    };
                    vec![one(trigger, run, note.to_string())]
                }
                Outcome::NeedsPerson { note } => {
                    vec![one(Trigger::AgentExited, run, note.to_string())]
                }
                Outcome::Empty if before.head.is_none() => vec![one(
                    Trigger::AgentExited,
                    run,
                    "the agent changed nothing".to_string(),
                )],
                Outcome::Overloaded { note } => {
                    vec![one(Trigger::RateLimited, run, note.to_string())]
                }
                Outcome::RateLimited { .. } => vec![one(
                    Trigger::RateLimited,
                    run,
                    "the provider said to wait".to_string(),
                )],
                Outcome::Done { .. }
                | Outcome::Empty
                | Outcome::DiskFull { .. }
                | Outcome::MovedBranch { .. }
                | Outcome::OverBudget { .. } => Vec::new(),
            }
        }
        Fact::Landed { intent } => vec![one(
            Trigger::TaskLanded,
            intent.to_string(),
            "it has landed".to_string(),
        )],
        Fact::DependencyLanded { task } => vec![one(
            Trigger::DependencyLanded,
            task.to_string(),
            "what it comes after has landed".to_string(),
        )],
        _ => Vec::new(),
    }
}

/// What follows from where the task went, whatever brought it there.
fn by_state(before: &Task, after: &Task) -> Vec<Occurrence> {
    let moved = |trigger, evidence: String, note: String| {
        vec![Occurrence {
            trigger,
            head: after.head.clone(),
            evidence: vec![evidence],
            hand: Hand::Nobody,
            note,
        }]
    };
    let version = || after.version.to_string();
    match (&before.state, &after.state) {
        (State::Failed { .. }, State::Failed { .. }) => Vec::new(),
        (_, State::Failed { failure }) => {
            let mut found = moved(Trigger::TaskFailed, version(), failure.to_string());
            // An agent that goes in circles is stuck as much as one that does nothing.
            if let Failure::Circle { .. } | Failure::NoChanges { .. } = failure {
                found.extend(moved(Trigger::AgentStuck, version(), failure.to_string()));
            }
            found
        }
        (
            State::Paused {
                reason: PauseReason::Budget(_),
                ..
            },
            _,
        ) => Vec::new(),
        (
            _,
            State::Paused {
                reason: PauseReason::Budget(limit),
                ..
            },
        ) => moved(Trigger::BudgetReached, version(), limit.to_string()),
        (
            State::Review {
                evidence: Evidence::Pass,
                ..
            }
            | State::Verifying { .. },
            State::Landing { approval, .. },
        ) => vec![Occurrence {
            trigger: Trigger::ApprovedAndGreen,
            head: Some(approval.commit.clone()),
            evidence: Vec::new(),
            hand: Hand::Nobody,
            note: "approved, and all gates passed".to_string(),
        }],
        _ => Vec::new(),
    }
}

/// A failing gate is what a failing CI is, as long as there is no other.
fn gates_failed(after: &Task, commit: &CommitId, gates: &[GateName]) -> Vec<Occurrence> {
    let mut names: Vec<String> = gates.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    let note = format!("{} failed: {}", some(&names, "gate"), names.join(", "));
    let of = |trigger| Occurrence {
        trigger,
        head: Some(commit.clone()),
        evidence: names.clone(),
        hand: hand(after),
        note: note.clone(),
    };
    vec![of(Trigger::GateFailed), of(Trigger::CiFailed)]
}

/// A task that goes on goes back to its agent by itself.
const fn hand(after: &Task) -> Hand {
    match after.state {
        State::Failed { .. } => Hand::Spent,
        _ => Hand::Task,
    }
}

fn some<T>(all: &[T], what: &str) -> String {
    match all.len() {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}
