//! Which queued tasks may start, in which order, and why the others may not.
//!
//! The database's claim follows [`rank`] to the letter: its index is this order. Work that has begun
//! goes before work that has not, so that started tasks get finished. Within each, a task's place is
//! its queueing time minus ten minutes a step of priority: an urgent task goes first, yet any task
//! that has waited long enough goes before any newer one, so nothing starves.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::state::{Delay, Purpose, State, StateKind};
use crate::task::{Standing, Task};
use crate::time::{Millis, Timestamp};

/// What one step of priority is worth in waiting time.
pub const PRIORITY_STEP: Millis = Millis::from_mins(10);

/// A claimable task's place in line; the smallest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rank {
    /// Whether no run of it has begun.
    pub fresh: bool,
    /// Its queueing time, moved by its priority.
    pub key: i64,
}

/// The place in line of a task that could be claimed once its time has come; `None` for all others.
pub fn rank(task: &Task) -> Option<Rank> {
    let State::Queued {
        purpose, run_at, ..
    } = &task.state
    else {
        return None;
    };
    task.blockers.is_empty().then(|| Rank {
        fresh: is_fresh(task, purpose),
        key: run_at.0.saturating_sub(
            i64::from(task.spec.priority).saturating_mul(PRIORITY_STEP.0.cast_signed()),
        ),
    })
}

fn is_fresh(task: &Task, purpose: &Purpose) -> bool {
    task.worktree.is_none() && matches!(purpose, Purpose::First | Purpose::Retry)
}

/// Most tasks of one project that may be in a state at once. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Held by workers.
    pub running_max: Option<u32>,
    /// Results that wait for a person. When there are as many, no new work starts.
    pub review_max: Option<u32>,
}

/// How many tasks of one project are in the states that [`Limits`] count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Held by workers.
    pub running: u32,
    /// Waiting for a person's review.
    pub in_review: u32,
}

impl Load {
    /// Counts one more task.
    pub const fn count(&mut self, kind: StateKind) {
        if kind.is_held() {
            self.running += 1;
        }
        if matches!(kind, StateKind::Review) {
            self.in_review += 1;
        }
    }
}

/// What may start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// At most so many claims.
    pub start_max: u32,
    /// Whether work that has not begun may begin.
    pub fresh: bool,
    /// The limit that holds work back, if one does.
    pub held: Option<Held>,
}

/// A limit that holds work back. Its text is shown to the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// As many run as may.
    Running {
        /// How many run.
        running: u32,
        /// How many may.
        max: u32,
    },
    /// As many results wait for a person as may.
    Review {
        /// How many wait.
        waiting: u32,
        /// How many may.
        max: u32,
    },
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running { running, max } => {
                write!(f, "{running} of {max} tasks run already")
            }
            Self::Review { waiting, max } => write!(
                f,
                "no new work starts: {waiting} of {max} results wait for review"
            ),
        }
    }
}

/// Decides how many of `wanted` claims a project may grant.
pub fn admit(load: Load, limits: Limits, wanted: u32) -> Admission {
    let running = limits
        .running_max
        .filter(|max| load.running >= *max)
        .map(|max| Held::Running {
            running: load.running,
            max,
        });
    let review = limits
        .review_max
        .filter(|max| load.in_review >= *max)
        .map(|max| Held::Review {
            waiting: load.in_review,
            max,
        });
    let room = limits
        .running_max
        .map_or(u32::MAX, |max| max.saturating_sub(load.running));
    Admission {
        start_max: wanted.min(room),
        fresh: review.is_none(),
        held: running.or(review),
    }
}

/// Why a queued task does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// It comes after tasks that have not landed.
    After(Vec<TaskId>),
    /// It comes after a task that will not land as things are.
    DependencyFailed(TaskId),
    /// Its time has not come.
    Until(Timestamp, Option<Delay>),
    /// A limit holds it back.
    Held(Held),
    /// Others go first.
    Turn,
}

/// What starts and what does not, with the reason for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// These may be claimed, in this order.
    pub start: Vec<TaskId>,
    /// These may not: first those in line, then those that wait for other tasks.
    pub wait: Vec<(TaskId, WhyNot)>,
}

/// Plans the claims of one project at `now`: `tasks` are all its open tasks, `wanted` is how many
/// claims are asked for.
pub fn plan(tasks: &[Task], limits: Limits, wanted: u32, now: Timestamp) -> Plan {
    let mut load = Load::default();
    for task in tasks {
        load.count(task.state.kind());
    }
    let admission = admit(load, limits, wanted);

    let mut line: Vec<&Task> = tasks.iter().collect();
    line.sort_by_key(|task| {
        let rank = rank(task);
        (rank.is_none(), rank, task.id)
    });

    let mut plan = Plan::default();
    for task in line {
        let State::Queued { run_at, delay, .. } = &task.state else {
            continue;
        };
        let why = match rank(task) {
            None => blocked(task),
            Some(_) if *run_at > now => WhyNot::Until(*run_at, delay.clone()),
            Some(rank) if rank.fresh && !admission.fresh => {
                admission.held.map_or(WhyNot::Turn, WhyNot::Held)
            }
            Some(_) if plan.start.len() < admission.start_max as usize => {
                plan.start.push(task.id);
                continue;
            }
            Some(_) => admission
                .held
                .filter(|held| matches!(held, Held::Running { .. }))
                .map_or(WhyNot::Turn, WhyNot::Held),
        };
        plan.wait.push((task.id, why));
    }
    plan
}

fn blocked(task: &Task) -> WhyNot {
    let failed = task
        .blockers
        .iter()
        .find(|(_, blocker)| matches!(blocker.standing, Standing::Failed(_)));
    match failed {
        Some((on, _)) => WhyNot::DependencyFailed(*on),
        None => WhyNot::After(task.blockers.keys().copied().collect()),
    }
}
