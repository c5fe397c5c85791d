//! Landing: one entry at a time, tested as merged, moved by compare-and-swap.
//!
//! The target branch moves only to a tree whose gates passed, only with a recorded intent, and only
//! from where the merge was built on. A crash between any two steps is repaired by looking at the
//! branch. No merge ever happens in a person's checkout.

mod attempt;
mod place;
mod recover;
#[expect(dead_code, reason = "the queue calls it next")]
mod regenerate;

pub(crate) use attempt::HELD_BY_CHECKOUT;
pub(crate) use place::{Place, Use, checkout, turn};

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use woodward_core::landing::Intent;
use woodward_core::lease::{Lease, Resource};
use woodward_core::{ClaimId, Note, ProjectId, TaskId};
use woodward_store::{LeaseRef, LeaseRequest, Queued, StoreError, fresh_uuid};

use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::project::Project;

/// How often an entry that a person's checkout holds up is looked at again.
const HELD_AGAIN: Duration = Duration::from_secs(3);

/// How long a landing that met trouble waits before it looks again, longer each time.
const TROUBLE: Duration = Duration::from_millis(100);
const TROUBLE_MAX: Duration = Duration::from_secs(10);

/// What is landing on this machine.
#[derive(Debug, Default)]
pub(crate) struct Landers {
    state: Mutex<Landing>,
    places: Mutex<HashMap<(ProjectId, Use), Arc<place::Pool>>>,
}

#[derive(Debug, Default)]
struct Landing {
    busy: HashSet<ProjectId>,
    woken: HashSet<ProjectId>,
    leases: Vec<LeaseRef>,
    held_until: HashMap<TaskId, Instant>,
    /// Projects whose leftovers of a killed engine were looked for.
    unpinned: HashSet<ProjectId>,
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
}

/// Looks at every project's queue.
pub(crate) fn wake(inner: &Arc<Inner>) {
    for project in inner.all_projects() {
        {
            let mut landing = inner.landers.lock();
            if !landing.busy.insert(project.id()) {
                landing.woken.insert(project.id());
                continue;
            }
        }
        let inner = Arc::clone(inner);
        inner.tasks.clone().spawn(async move {
            let mut trouble = TROUBLE;
            loop {
                inner.landers.lock().woken.remove(&project.id());
                let stopping = inner.stopping.clone();
                match stopping.run_until_cancelled(land(&inner, &project)).await {
                    Some(Ok(())) | None => trouble = TROUBLE,
                    Some(Err(error)) => {
                        tracing::warn!(project = %project.record.name, %error, "landing met trouble; it goes on later");
                        // What it did before it failed is itself a reason to look again: at once
                        // would be for ever.
                        let wait = tokio::time::sleep(trouble);
                        trouble = (trouble * 2).min(TROUBLE_MAX);
                        if stopping.run_until_cancelled(wait).await.is_some() {
                            continue;
                        }
                    }
                }
                let mut landing = inner.landers.lock();
                if inner.stopping.is_cancelled() || !landing.woken.contains(&project.id()) {
                    landing.busy.remove(&project.id());
                    return;
                }
            }
        });
    }
}

async fn land(inner: &Arc<Inner>, project: &Arc<Project>) -> Result<()> {
    let pending = inner.store.load_pending_intents(project.id()).await?;
    if !inner.landers.lock().unpinned.contains(&project.id()) {
        unpin(project, &pending).await?;
        inner.landers.lock().unpinned.insert(project.id());
    }
    let queue = inner.store.load_queue(project.id()).await?;
    let branches: BTreeSet<String> = pending
        .iter()
        .map(|intent| intent.branch.clone())
        .chain(queue.iter().map(|queued| queued.entry.branch.clone()))
        .collect();
    for branch in branches {
        let due = pending.iter().any(|intent| intent.branch == branch)
            || queue.iter().any(|queued| is_due(inner, queued, &branch));
        if !due {
            continue;
        }
        let Some(lease) = acquire(inner, project, &branch).await? else {
            continue;
        };
        let right = Right {
            inner,
            project,
            lease,
        };
        let landed = right.work(&branch).await;
        right.release().await;
        landed?;
    }
    Ok(())
}

/// Lets go of what a crash left pinned before an intention was on record, or after it was settled.
/// Only an engine that was killed leaves such: once is enough.
async fn unpin(project: &Project, pending: &[Intent]) -> Result<()> {
    for pinned in project.repo.pinned_landings().await? {
        if pending.iter().all(|intent| intent.id != pinned) {
            project.repo.unpin_landing(pinned).await?;
        }
    }
    Ok(())
}

/// Whether an entry can be tried now.
fn is_due(inner: &Inner, queued: &Queued, branch: &str) -> bool {
    if queued.entry.branch != branch {
        return false;
    }
    let landing = inner.landers.lock();
    match (&queued.hold, landing.held_until.get(&queued.entry.task)) {
        (None, _) => true,
        (Some(_), Some(until)) => Instant::now() >= *until,
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

/// The right to move one branch, while it is held.
struct Right<'a> {
    inner: &'a Arc<Inner>,
    project: &'a Arc<Project>,
    lease: Lease,
}

impl Right<'_> {
    fn reference(&self) -> LeaseRef {
        LeaseRef {
            resource: self.lease.resource.clone(),
            epoch: self.lease.epoch,
        }
    }

    /// First what a crash left, then the queue, entry by entry.
    async fn work(&self, branch: &str) -> Result<()> {
        self.inner.landers.lock().leases.push(self.reference());
        for intent in self
            .inner
            .store
            .load_pending_intents(self.project.id())
            .await?
        {
            if intent.branch == branch
                && let Err(error) = self.recover(&intent).await
            {
                return self.stuck(&intent, error).await;
            }
        }
        let mut tried = HashSet::new();
        loop {
            let queue = self.inner.store.load_queue(self.project.id()).await?;
            let next = queue.into_iter().find(|queued| {
                is_due(self.inner, queued, branch)
                    && !tried.contains(&(queued.entry.task, queued.entry.commit.clone()))
            });
            let Some(queued) = next else {
                return Ok(());
            };
            let moved_on = match self.attempt(&queued).await {
                Ok(moved_on) => moved_on,
                // Whether or not trying again helps: the person must know, and the others go on.
                Err(error) if self.is_of_the_world(&error) => {
                    self.hold(&queued, error.into_note().into()).await?
                }
                Err(error) => return Err(error),
            };
            if !moved_on {
                tried.insert((queued.entry.task, queued.entry.commit.clone()));
            }
        }
    }

    /// Whether an error says something about the repository or a checkout, and not about the database
    /// or this engine's end.
    fn is_of_the_world(&self, error: &EngineError) -> bool {
        !matches!(error, EngineError::Store(_)) && !self.inner.stopping.is_cancelled()
    }

    /// A landing that is under way can't be finished now. Nothing else can land there until it is, so
    /// the person must know; it is tried again with every look.
    async fn stuck(&self, intent: &Intent, error: EngineError) -> Result<()> {
        if !self.is_of_the_world(&error) {
            return Err(error);
        }
        let why = String::from(error.into_note());
        let reason = Note::from(format!("its landing can't be finished: {why}"));
        for queued in self.inner.store.load_queue(self.project.id()).await? {
            let task = queued.entry.task;
            if intent.members.contains(&task) && queued.hold.as_ref() != Some(&reason) {
                tracing::warn!(%task, reason = reason.as_str(), "stuck");
                crate::notify::tell_held(self.inner, task, &reason).await?;
                let reason = Some(reason.clone());
                self.inner.store.hold_entry(task, reason).await?;
            }
        }
        Ok(())
    }

    async fn release(self) {
        let reference = self.reference();
        self.inner.landers.lost(&reference);
        if let Err(error) = self
            .inner
            .store
            .release_lease(self.inner.worker, reference)
            .await
        {
            tracing::debug!(%error, "a landing right was not released; it runs out");
        }
    }
}
