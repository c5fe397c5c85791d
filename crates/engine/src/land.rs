//! Landing: a queue a branch, looked at as merged, moved by compare-and-swap.
//!
//! A branch moves only to a tree whose gates passed, only with a recorded intent, and only from where
//! the merge was built on. A crash between any two steps is repaired by looking at the branch. No merge
//! ever happens in a person's checkout. Several branches land at the same time.

mod chain;
mod commits;
mod hold;
pub(crate) mod landing_message;
mod line;
mod looks;
pub(crate) mod met;
mod pins;
mod place;
mod recover;
mod regenerate;
mod right;
mod target;

pub(crate) use place::{Place, Use, checkout, turn};
pub(crate) use right::{HELD_BY_CHECKOUT, would_hold};

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use woodward_core::lease::{Lease, Resource};
use woodward_core::queue::learn::Learned;
use woodward_core::queue::plan::Pace;
use woodward_core::queue::search::Search;
use woodward_core::{ClaimId, CommitId, IntentId, ProjectId, TaskId};
use woodward_store::{LeaseRef, LeaseRequest, Queued, StoreError, fresh_uuid};

use crate::config::Config;
use crate::engine::Inner;
use crate::error::Result;
use crate::files;
use crate::project::Project;
use hold::Attempts;
use line::Line;
use right::Right;

/// How long a landing that met trouble waits before it looks again, longer each time.
const TROUBLE: Duration = Duration::from_millis(100);
const TROUBLE_MAX: Duration = Duration::from_secs(10);

/// What is landing on this machine.
#[derive(Debug, Default)]
pub(crate) struct Landers {
    state: Mutex<Landing>,
    places: Mutex<HashMap<(ProjectId, Use), Arc<place::Pool>>>,
    learned: Mutex<HashMap<ProjectId, Learned>>,
    /// For those who ask how many go together, again and again: working it out takes milliseconds.
    searches: Mutex<HashMap<ProjectId, Search>>,
}

/// A branch of a project.
type Branch = (ProjectId, String);

#[derive(Debug, Default)]
struct Landing {
    /// Projects whose queues are being looked through, and whether they must be once more.
    scanned: HashMap<ProjectId, bool>,
    /// Branches whose queues are worked on.
    lines: HashMap<Branch, Bell>,
    leases: Vec<LeaseRef>,
    /// Entries that wait, by what they met.
    attempts: HashMap<TaskId, Attempts>,
    /// Branches with a landing that can't be finished now.
    stuck: HashMap<Branch, Attempts>,
    /// Entries whose landing could not be tried, and until when it is not tried again.
    not_before: HashMap<TaskId, Instant>,
    /// Entries that no rule may land, and where the branch was when that was found.
    for_persons: HashMap<TaskId, CommitId>,
    /// Landings that are being put on record.
    recorded_now: HashSet<IntentId>,
}

/// How a queue at work is told that there may be something new.
#[derive(Debug, Default)]
struct Bell {
    notify: Arc<Notify>,
    rung: bool,
    /// The tasks of each merged tree that is looked at now.
    looks: Vec<Vec<TaskId>>,
}

impl Landers {
    fn lock(&self) -> MutexGuard<'_, Landing> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The landing rights that are held.
    pub(crate) fn held(&self) -> Vec<LeaseRef> {
        self.lock().leases.clone()
    }

    /// A landing right is lost. Whatever is under way is refused by the database.
    pub(crate) fn lost(&self, lease: &LeaseRef) {
        self.lock().leases.retain(|held| held != lease);
    }

    /// An entry that waits because it met trouble is tried at once.
    pub(crate) fn try_now(&self, task: TaskId) {
        let mut landing = self.lock();
        landing.not_before.remove(&task);
        landing.attempts.remove(&task);
        landing.stuck.clear();
    }

    /// The tasks of each merged tree of a branch that is looked at now.
    pub(crate) fn looks(&self, project: ProjectId, branch: &str) -> Vec<Vec<TaskId>> {
        let landing = self.lock();
        let bell = landing.lines.get(&(project, branch.to_owned()));
        bell.map(|bell| bell.looks.clone()).unwrap_or_default()
    }

    fn show_looks(&self, project: ProjectId, branch: &str, looks: Vec<Vec<TaskId>>) {
        let mut landing = self.lock();
        if let Some(bell) = landing.lines.get_mut(&(project, branch.to_owned())) {
            bell.looks = looks;
        }
    }

    /// How many entries of so many are looked at together first.
    pub(crate) fn together(&self, project: ProjectId, pace: Pace, backlog: usize) -> usize {
        let mut searches = self.searches.lock().unwrap_or_else(|e| e.into_inner());
        let search = searches.entry(project).or_default();
        search.fit(pace, backlog);
        let cuts = search.cuts(backlog, None, &[], pace.slots);
        cuts.first().copied().unwrap_or(1)
    }

    /// What was learned of a project's entries and gates.
    pub(crate) fn learned(&self, inner: &Inner, project: ProjectId) -> Learned {
        let mut known = Learned::default();
        self.learn(inner, project, |learned| known = learned.clone());
        known
    }

    fn learn(&self, inner: &Inner, project: ProjectId, what: impl FnOnce(&mut Learned)) {
        let mut learned = self.learned.lock().unwrap_or_else(|e| e.into_inner());
        let file = || files::load_json(&learned_file(inner, project)).unwrap_or_default();
        what(learned.entry(project).or_insert_with(file));
    }

    /// Keeps what was learned. It is only an estimate: what can't be written is learned anew.
    fn remember(&self, inner: &Inner, project: ProjectId) {
        let learned = self.learned(inner, project);
        let file = learned_file(inner, project);
        if let Err(error) = files::save_json_lazily(&file, &learned) {
            tracing::debug!(%error, "what the queue learned is not kept");
        }
    }
}

/// How a queue of so many goes about it.
pub(crate) fn pace(learned: &Learned, backlog: usize, config: &Config) -> Pace {
    let most = match config.queue.parallel {
        Some(most) => most as usize,
        None => std::thread::available_parallelism().map_or(2, usize::from),
    };
    let mut pace = learned.pace(backlog, most, config.queue.strict);
    if let Some(batch) = config.queue.batch {
        pace.batch = pace.batch.min(batch as usize);
        pace.one_by_one |= pace.batch <= 1;
    }
    pace
}

fn learned_file(inner: &Inner, project: ProjectId) -> PathBuf {
    let queues = inner.options.paths.state().join("queues");
    queues.join(format!("{project}.json"))
}

/// Looks at every project's queues.
pub(crate) fn wake(inner: &Arc<Inner>) {
    for project in inner.all_projects() {
        {
            let mut landing = inner.landers.lock();
            if let Some(again) = landing.scanned.get_mut(&project.id()) {
                *again = true;
                continue;
            }
            landing.scanned.insert(project.id(), false);
        }
        let inner = Arc::clone(inner);
        inner.tasks.clone().spawn(async move {
            let mut trouble = TROUBLE;
            loop {
                inner.landers.lock().scanned.insert(project.id(), false);
                let scanned = with_patience(&inner, &project, &mut trouble, scan(&inner, &project));
                let again = scanned.await;
                let mut landing = inner.landers.lock();
                let again = again || landing.scanned.get(&project.id()) == Some(&true);
                if inner.stopping.is_cancelled() || !again {
                    landing.scanned.remove(&project.id());
                    return;
                }
            }
        });
    }
}

/// Does it; if it fails, waits a while, longer each time, and says that it must be done again.
async fn with_patience(
    inner: &Inner,
    project: &Project,
    trouble: &mut Duration,
    work: impl Future<Output = Result<()>>,
) -> bool {
    match inner.stopping.run_until_cancelled(work).await {
        Some(Ok(())) | None => {
            *trouble = TROUBLE;
            false
        }
        Some(Err(error)) => {
            tracing::warn!(project = %project.record.name, %error, "landing met trouble; it goes on later");
            // What it did before it failed is itself a reason to look again: at once would be for ever.
            let wait = tokio::time::sleep(*trouble);
            *trouble = (*trouble * 2).min(TROUBLE_MAX);
            inner.stopping.run_until_cancelled(wait).await.is_some()
        }
    }
}

/// Sees to it that every branch with something to do is worked on.
async fn scan(inner: &Arc<Inner>, project: &Arc<Project>) -> Result<()> {
    let pending = pins::let_go(inner, project).await?;
    let queue = inner.store.load_queue(project.id()).await?;
    let waiting = queue
        .iter()
        .filter(|queued| is_due(inner, queued, &queued.entry.branch));
    let branches: BTreeSet<String> = pending
        .iter()
        .map(|intent| intent.branch.clone())
        .chain(waiting.map(|queued| queued.entry.branch.clone()))
        .collect();
    let mut landing = inner.landers.lock();
    // Also those that have nothing to do any more: what left the queue need not be looked at.
    for ((of, _), bell) in &mut landing.lines {
        if *of == project.id() {
            bell.rung = true;
            bell.notify.notify_one();
        }
    }
    for branch in branches {
        let key = (project.id(), branch);
        if landing.lines.contains_key(&key) {
            continue;
        }
        landing.lines.insert(key.clone(), Bell::default());
        let (inner, project) = (Arc::clone(inner), Arc::clone(project));
        inner.tasks.clone().spawn(async move {
            let mut trouble = TROUBLE;
            loop {
                let bell = {
                    let mut landing = inner.landers.lock();
                    let bell = landing.lines.entry(key.clone()).or_default();
                    bell.rung = false;
                    Arc::clone(&bell.notify)
                };
                let work = land(&inner, &project, &key.1, &bell);
                let again = with_patience(&inner, &project, &mut trouble, work).await;
                let mut landing = inner.landers.lock();
                let again = again || landing.lines.get(&key).is_some_and(|bell| bell.rung);
                if inner.stopping.is_cancelled() || !again {
                    landing.lines.remove(&key);
                    return;
                }
            }
        });
    }
    Ok(())
}

/// Takes the right to move a branch and works through its queue.
async fn land(
    inner: &Arc<Inner>,
    project: &Arc<Project>,
    branch: &str,
    bell: &Notify,
) -> Result<()> {
    let Some(lease) = acquire(inner, project, branch).await? else {
        return Ok(());
    };
    let right = Right {
        inner,
        project,
        lease,
    };
    let landed = work(&right, branch, bell).await;
    right.release().await;
    landed
}

/// First what a crash left, then the queue.
async fn work(right: &Right<'_>, branch: &str, bell: &Notify) -> Result<()> {
    let Right { inner, project, .. } = right;
    {
        let mut landing = inner.landers.lock();
        landing.leases.push(right.reference());
        inner.lease_taken.notify_one();
        let stuck = landing.stuck.get(&(project.id(), branch.to_owned()));
        if stuck.is_some_and(|attempts| Instant::now() < attempts.until) {
            // It wakes the queue when it is tried again.
            return Ok(());
        }
    }
    for intent in inner.store.load_pending_intents(project.id()).await? {
        if intent.branch == branch
            && let Err(error) = right.recover(&intent).await
        {
            return right.stuck(&intent, error).await;
        }
    }
    Line::new(right, branch).work(bell).await
}

/// Whether an entry can be tried now.
fn is_due(inner: &Inner, queued: &Queued, branch: &str) -> bool {
    if queued.entry.branch != branch || queued.stopped.is_some() {
        return false;
    }
    let landing = inner.landers.lock();
    let not_before = landing.not_before.get(&queued.entry.task);
    if not_before.is_some_and(|until| Instant::now() < *until) {
        return false;
    }
    match (&queued.hold, landing.attempts.get(&queued.entry.task)) {
        (None, _) => true,
        (Some(_), Some(attempts)) => Instant::now() >= attempts.until,
        // Held since before this engine started: look whether what held it is gone.
        (Some(_), None) => true,
    }
}

async fn acquire(inner: &Inner, project: &Project, branch: &str) -> Result<Option<Lease>> {
    let request = LeaseRequest {
        resource: Resource::Landing {
            project: project.id(),
            branch: branch.to_owned(),
        },
        worker: inner.worker,
        claim: ClaimId::new(fresh_uuid()),
        length: inner.options.timing.length,
    };
    match inner.store.acquire_lease(request).await {
        Ok(lease) => Ok(Some(lease)),
        Err(StoreError::Held { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
