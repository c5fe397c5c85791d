//! The conflict radar: where the changes of tasks under way meet, while agents still work.
//!
//! One loop looks at branches and worktrees ([`watch`]), keeps the pairwise picture ([`picture`]) and
//! acts by the project's rule ([`act`]); [`foresee`] is about tasks that have not begun. The picture
//! is in memory only: after a restart it is worked out anew, while what was said to agents is in the
//! ledger and is not said again. It decides nothing about landing: git's own merge does.

mod act;
mod delta;
pub(crate) mod foresee;
pub mod picture;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio::sync::{Notify, watch as channel};
use tokio::time::Instant;
use woodward_core::radar::Verdict;
use woodward_core::{EventSeq, ProjectId, TaskId, Timestamp};

use crate::engine::Inner;

pub(crate) use act::RULE;

/// Changes that come in a bunch are looked at together …
const SETTLE: Duration = Duration::from_millis(100);
/// … and no more often than this: tasks that are over in a moment cost nothing.
const PACE: Duration = Duration::from_secs(2);
/// How long it waits for the log when there is nothing to watch.
const IDLE: Duration = Duration::from_secs(60);
/// How long a person waits for a fresh look.
const FRESH_MAX: Duration = Duration::from_secs(10);

/// What the radar knows, for everybody.
#[derive(Debug)]
pub(crate) struct Radar {
    published: RwLock<HashMap<ProjectId, Arc<Published>>>,
    /// How many fresh looks were asked for, and how many are done.
    asked: AtomicU64,
    done: channel::Sender<u64>,
    wake: Notify,
    pub(crate) memory: foresee::Memory,
}

impl Default for Radar {
    fn default() -> Self {
        Self {
            published: RwLock::default(),
            asked: AtomicU64::new(0),
            done: channel::Sender::new(0),
            wake: Notify::new(),
            memory: foresee::Memory::default(),
        }
    }
}

/// The picture of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Published {
    /// When something in it last changed.
    pub(crate) at: Timestamp,
    pub(crate) sides: BTreeMap<TaskId, SideFacts>,
    /// Pairs that meet at all, the smaller id first.
    pub(crate) pairs: BTreeMap<(TaskId, TaskId), Verdict>,
    /// Tasks whose change meets what landed since they began, and how.
    pub(crate) with_target: BTreeMap<TaskId, Verdict>,
}

/// What is known of one task's change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SideFacts {
    /// The branch that it lands on.
    pub(crate) base: String,
    pub(crate) files: BTreeSet<String>,
    /// How many of them are not committed.
    pub(crate) loose: usize,
    /// Whether there is more than that.
    pub(crate) cut: bool,
}

impl Published {
    /// What is said of a task and each other one, the worst first. The flag says whether the task is
    /// the first of the pair.
    pub(crate) fn of(&self, task: TaskId) -> Vec<(TaskId, bool, &Verdict)> {
        let mut found: Vec<_> = self
            .pairs
            .iter()
            .filter_map(|((a, b), verdict)| {
                if *a == task {
                    Some((*b, true, verdict))
                } else {
                    (*b == task).then_some((*a, false, verdict))
                }
            })
            .collect();
        found.sort_by_key(|(other, _, verdict)| (std::cmp::Reverse(verdict.level), *other));
        found
    }
}

impl Radar {
    /// The picture of a project as last published.
    pub(crate) fn of(&self, project: ProjectId) -> Arc<Published> {
        let published = self.published.read().unwrap_or_else(|e| e.into_inner());
        published.get(&project).cloned().unwrap_or_default()
    }

    /// The same after a fresh look at every worktree.
    pub(crate) async fn fresh(&self, project: ProjectId) -> Arc<Published> {
        let ticket = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        self.wake.notify_one();
        let mut done = self.done.subscribe();
        let _ = tokio::time::timeout(FRESH_MAX, done.wait_for(|done| *done >= ticket)).await;
        self.of(project)
    }

    fn publish(&self, project: ProjectId, now: Published) {
        let mut published = self.published.write().unwrap_or_else(|e| e.into_inner());
        if now.sides.is_empty() {
            published.remove(&project);
        } else {
            published.insert(project, Arc::new(now));
        }
    }
}

/// Watches until the engine stops.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut watcher = watch::Watcher::default();
    let mut log = EventSeq(0);
    loop {
        let asked = inner.radar.asked.load(Ordering::Acquire);
        let force = asked > *inner.radar.done.borrow();
        let now = inner.tail.now();
        let next = watcher.pass(&inner, force, now != log).await;
        log = now;
        inner.radar.done.send_replace(asked);
        let rested = Instant::now() + PACE;
        let due = async {
            inner.tail.past(log, next.unwrap_or(IDLE)).await;
            tokio::time::sleep_until(rested.max(Instant::now() + SETTLE)).await;
        };
        tokio::select! {
            () = due => {}
            () = inner.radar.wake.notified() => {}
        }
    }
}
