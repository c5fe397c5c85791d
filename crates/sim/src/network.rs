//! Reports on their way to the store: late, doubled, overtaken, lost.
//!
//! It must never make one up or change one.

use std::collections::BTreeMap;
use std::sync::Arc;

use woodward_core::{Event, EventId, Task, TaskId, Timestamp};

use crate::faults::Faults;
use crate::rng::Rng;

/// A fact on its way to a task.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) task: TaskId,
    pub(crate) event: Event,
    /// The worker that waits for the answer.
    pub(crate) reply_to: Option<usize>,
}

/// The store's answer to a report.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) event: EventId,
    /// The task as it is now, whatever became of the report.
    pub(crate) task: Arc<Task>,
}

#[derive(Debug, Default)]
pub(crate) struct Network {
    under_way: BTreeMap<(Timestamp, u64), Report>,
    sent: u64,
}

impl Network {
    pub(crate) fn send(&mut self, report: Report, now: Timestamp, faults: &Faults, rng: &mut Rng) {
        if report.reply_to.is_some() && rng.chance(faults.lost_report) {
            return;
        }
        if rng.chance(faults.duplicate) {
            self.put(report.clone(), now, faults, rng);
        }
        self.put(report, now, faults, rng);
    }

    fn put(&mut self, report: Report, now: Timestamp, faults: &Faults, rng: &mut Rng) {
        let travel = if rng.chance(faults.delay) {
            rng.span(1_000, 120_000)
        } else {
            rng.span(1, 300)
        };
        self.sent += 1;
        self.under_way.insert((now + travel, self.sent), report);
    }

    /// When the next report arrives.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        self.under_way.keys().next().map(|(at, _)| *at)
    }

    pub(crate) fn receive(&mut self) -> Option<Report> {
        self.under_way.pop_first().map(|(_, report)| report)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }
}
