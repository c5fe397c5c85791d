//! The right to move one branch, while it is held, and what may be done with it.
//!
//! A branch moves from where the merge was built on, to what was looked at, with a recorded intent.
//! Every write carries the right's epoch: who has lost it changes nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use woodward_core::hint::NextCommand;
use woodward_core::landing::{HoldCause, Intent, IntentState};
use woodward_core::lease::Lease;
use woodward_core::queue::learn::Learned;
use woodward_core::queue::plan::Pace;
use woodward_core::{
    Actor, CommitId, EventId, Fact, IntentId, Note, State, StateKind, Task, TaskId,
};
use woodward_store::{
    CloseIntent, GateResult, IntentMember, LeaseRef, OpenIntent, Queued, StoreError, fresh_uuid,
};

use super::chain::{Chain, Entry, Key, Link};
use super::commits::LandingCommits;
use super::hold::{Attempts, Hold, locked_checkout};
use super::pins::Recording;
use crate::clock;
use crate::config::Config;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::git::{Advance, Repo};
use crate::project::Project;

/// How every reason begins that a person's checkout gives for waiting.
pub(crate) const HELD_BY_CHECKOUT: &str = "your checkout has changes in the way";
/// How every reason begins that a remote gives for waiting.
const REFUSED: &str = "the remote refuses it";
const FILES_SHOWN: usize = 5;
/// How long a remote that does not want an entry is left alone with it.
const REFUSED_AGAIN: Duration = Duration::from_secs(300);

/// The right to move one branch, while it is held.
pub(super) struct Right<'a> {
    pub(super) inner: &'a Arc<Inner>,
    pub(super) project: &'a Arc<Project>,
    pub(super) lease: Lease,
}

/// What became of a branch that was to move.
#[derive(Debug)]
pub(super) enum Moved {
    /// It is there.
    To(CommitId),
    /// Somebody or something else was first: nothing has happened.
    Not,
    /// The remote does not want it, and says so: nothing has happened.
    Refused(String),
    /// It was begun and can't be finished now.
    Stuck,
    /// Something must change first: nothing has happened.
    Held(Hold),
}

/// Files of a person's checkout that a landing would overwrite.
#[derive(Debug)]
pub(super) struct Blocked {
    checkout: PathBuf,
    pub(super) files: Vec<String>,
}

impl Blocked {
    /// Why entries that change these files wait.
    pub(super) fn hold(&self, files: &[String]) -> Hold {
        Hold {
            cause: HoldCause::Checkout,
            reason: self.reason(files),
        }
    }

    /// What the person reads.
    fn reason(&self, files: &[String]) -> String {
        let shown = files.iter().take(FILES_SHOWN).cloned().collect::<Vec<_>>();
        let more = match files.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            "{HELD_BY_CHECKOUT}: {}{more}; commit or stash them in {}, and it lands by itself",
            shown.join(", "),
            self.checkout.display()
        )
    }
}

impl Right<'_> {
    pub(super) fn reference(&self) -> LeaseRef {
        LeaseRef {
            resource: self.lease.resource.clone(),
            epoch: self.lease.epoch,
        }
    }

    /// Whether it is still ours, as far as is known here. The database knows better.
    pub(super) fn is_held(&self) -> bool {
        let reference = self.reference();
        self.inner.landers.lock().leases.contains(&reference)
    }

    /// How the queue goes about it.
    pub(super) fn pace(&self, backlog: usize, config: &Config) -> Pace {
        let learned = self.inner.landers.learned(self.inner, self.project.id());
        super::pace(&learned, backlog, config)
    }

    /// Remembers what was learned, until [`Self::remember`] for this engine's life only.
    pub(super) fn learn(&self, what: impl FnOnce(&mut Learned)) {
        let landers = &self.inner.landers;
        landers.learn(self.inner, self.project.id(), what);
    }

    /// Keeps what was learned. It is only an estimate: what can't be written is learned anew.
    pub(super) fn remember(&self) {
        self.inner.landers.remember(self.inner, self.project.id());
    }

    /// The task of an entry, if it is still what was queued.
    pub(super) async fn landing(&self, (task, commit): &Key) -> Result<Option<Task>> {
        let task = self.inner.store.load_task(*task).await?;
        Ok(task.filter(|task| {
            matches!(&task.state, State::Landing { approval, intent: None } if approval.commit == *commit)
        }))
    }

    /// Whether trouble must pass first; then the queue is looked at again.
    pub(super) fn must_wait(&self, task: &Task) -> bool {
        let now = clock::now();
        let Some(after) = task.lands_after(now) else {
            return false;
        };
        let left = Duration::from_millis((after.0 - now.0).unsigned_abs());
        self.leave_alone(task.id, left);
        true
    }

    /// Does not try an entry for a while, and looks at the queue again then.
    fn leave_alone(&self, task: TaskId, left: Duration) {
        let now = Instant::now();
        let mut landing = self.inner.landers.lock();
        landing.not_before.retain(|_, until| now < *until);
        landing.not_before.insert(task, now + left);
        drop(landing);
        self.wake_at(now + left);
    }

    /// Whether somebody committed after the yes: that yes was to something else.
    pub(super) async fn has_moved(&self, task: &Task, commit: &CommitId) -> Result<bool> {
        let worktree = task.worktree.as_ref();
        if let Some(worktree) = worktree.filter(|w| w.worker == self.inner.worker)
            && let Some(tip) = self.project.repo.tip(&worktree.branch).await?
            && tip != *commit
        {
            let fact = Fact::HeadMoved { commit: tip };
            match self.inner.record(task, Actor::Woodward, fact).await {
                Err(error) if !error.is_repeated() => return Err(error),
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Keeps what gates said of a merged tree, with those who are in it.
    pub(super) async fn save_results(
        &self,
        tasks: Vec<TaskId>,
        results: Vec<GateResult>,
    ) -> Result<()> {
        if results.is_empty() {
            return Ok(());
        }
        let right = LeaseRef {
            resource: self.lease.resource.clone(),
            epoch: self.lease.epoch,
        };
        let store = &self.inner.store;
        let saved = store.save_merged_results(self.lease.holder, right, tasks, results);
        Ok(saved.await?)
    }

    /// Says something under the landing right. An outdated fact means the task has moved on.
    pub(super) async fn say(&self, task: &Task, fact: Fact, config: &Config) -> Result<bool> {
        let actor = Actor::Lander {
            worker: self.inner.worker,
            epoch: self.lease.epoch,
        };
        match self
            .inner
            .persist(task.id, clock::event(actor, fact), &config.policy())
            .await
        {
            Ok(transition) => Ok(transition.next.state.kind() != StateKind::Landing),
            Err(error) if error.is_repeated() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What in a person's checkout of the branch would be overwritten.
    pub(super) async fn in_the_way(
        &self,
        branch: &str,
        old: &CommitId,
        new: &CommitId,
    ) -> Result<Option<Blocked>> {
        let shown = self.shown(branch, old).await?;
        in_the_way(&self.project.repo, branch, &shown, new).await
    }

    /// What was in an entry's way is so no longer: it is looked at. Only what a remote said stays, until
    /// it says something else.
    pub(super) async fn free(&self, queued: &Queued) -> Result<()> {
        let may_go = |reason: &Note| !reason.as_str().starts_with(REFUSED);
        if !queued.hold.as_ref().is_some_and(may_go) {
            return Ok(());
        }
        self.inner
            .landers
            .lock()
            .attempts
            .remove(&queued.entry.task);
        match self.inner.store.hold_entry(queued.entry.task, None).await {
            Err(StoreError::NotFound { .. }) => Ok(()),
            freed => Ok(freed?),
        }
    }

    /// Only a person may say yes to an entry as long as the branch is there.
    pub(super) fn leave_to_persons(&self, task: TaskId, base: &CommitId) {
        let mut landing = self.inner.landers.lock();
        landing.for_persons.insert(task, base.clone());
    }

    /// Whether that is so. What was found on top of something else is forgotten.
    pub(super) fn is_left_to_persons(&self, task: TaskId, base: &CommitId) -> bool {
        let mut landing = self.inner.landers.lock();
        landing
            .for_persons
            .retain(|of, found| *of != task || found == base);
        landing.for_persons.contains_key(&task)
    }

    /// The remote does not want an entry: it waits, and the remote is not asked again and again.
    pub(super) async fn refused(&self, queued: &Queued, why: String) -> Result<()> {
        let Some(task) = self.inner.store.load_task(queued.entry.task).await? else {
            return Ok(());
        };
        let task = task.name;
        let reject = NextCommand::Reject { task: task.clone() };
        let release = NextCommand::QueueRelease { task };
        let reason = format!(
            "{REFUSED}: {why}; have it changed: {reject}; or try again when it may land: {release}"
        );
        let cause = HoldCause::Remote;
        self.hold(queued, Hold { cause, reason }).await?;
        self.leave_alone(queued.entry.task, REFUSED_AGAIN);
        Ok(())
    }

    /// Writes the commits that land and moves the branch to the last of them.
    pub(super) async fn move_branch(
        &self,
        branch: &str,
        members: Vec<Task>,
        old: &CommitId,
        links: &[Link],
        config: &Config,
    ) -> Result<Moved> {
        if let Some(hold) = locked_checkout(&self.project.repo, branch).await? {
            return Ok(Moved::Held(hold));
        }
        let id = IntentId::new(fresh_uuid());
        let written = self.write_commits(&members, old, links, id, config);
        let LandingCommits { new, of_members } = match written.await? {
            Ok(commits) => commits,
            Err(hold) => return Ok(Moved::Held(hold)),
        };
        let recording = Recording::of(&self.inner.landers, self.project, id, &new).await?;
        let intent = Intent {
            id,
            project: self.project.id(),
            branch: branch.to_owned(),
            epoch: self.lease.epoch,
            old: old.clone(),
            new: new.clone(),
            members: members.iter().map(|task| task.id).collect(),
        };
        let names: Vec<String> = members.iter().map(|it| it.name.to_string()).collect();
        let members = members.into_iter().zip(of_members);
        let opened = self
            .inner
            .store
            .open_intent(OpenIntent {
                intent: intent.clone(),
                worker: self.inner.worker,
                members: members
                    .map(|(task, result)| IntentMember {
                        task,
                        event: EventId::new(fresh_uuid()),
                        result,
                    })
                    .collect(),
                at: clock::now(),
                policy: config.policy(),
            })
            .await;
        // If the database gave no answer, perhaps it is on record: whoever looks next sees.
        drop(recording);
        match opened {
            Ok(()) => {}
            Err(StoreError::Conflict { .. } | StoreError::Illegal(_)) => {
                self.inner.look.notify_one();
                return Ok(Moved::Not);
            }
            Err(error) => return Err(error.into()),
        }
        match self.finish(&intent).await {
            Ok(Moved::To(new)) => {
                tracing::info!(tasks = names.join(", "), commit = %new, "landed");
                Ok(Moved::To(new))
            }
            Err(error) => {
                self.stuck(&intent, error).await?;
                Ok(Moved::Stuck)
            }
            moved => moved,
        }
    }

    /// Does what is on record.
    async fn finish(&self, intent: &Intent) -> Result<Moved> {
        let Intent {
            branch, old, new, ..
        } = intent;
        match self.advance(branch, new, old).await? {
            Advance::Advanced => {
                self.project.moved(branch, old, new).await;
                self.settle(intent, IntentState::Landed).await?;
            }
            Advance::Moved { .. } => match self.recover(intent).await? {
                IntentState::Landed => {}
                IntentState::Void => return Ok(Moved::Not),
                IntentState::Pending => return Ok(Moved::Stuck),
            },
            Advance::Refused { why } => {
                self.settle(intent, IntentState::Void).await?;
                return Ok(Moved::Refused(why));
            }
        }
        Ok(Moved::To(new.clone()))
    }

    /// Brings the person's checkout along and records what became of a landing.
    pub(super) async fn settle(&self, intent: &Intent, outcome: IntentState) -> Result<()> {
        let repo = &self.project.repo;
        if outcome == IntentState::Landed {
            match self.remote().await? {
                Some(_) => self.catch_up(&intent.branch, &intent.new).await?,
                None if repo.tip(&intent.branch).await?.as_ref() == Some(&intent.new) => {
                    self.follow(&intent.branch, &intent.old, &intent.new)
                        .await?;
                }
                None => {}
            }
        }
        let config = self.project.config().await?;
        self.inner
            .store
            .close_intent(CloseIntent {
                intent: intent.id,
                outcome,
                worker: self.inner.worker,
                epoch: self.lease.epoch,
                at: clock::now(),
                policy: config.policy(),
            })
            .await?;
        {
            let branch = (self.project.id(), intent.branch.clone());
            let mut landing = self.inner.landers.lock();
            landing.stuck.remove(&branch);
            for task in &intent.members {
                landing.attempts.remove(task);
            }
        }
        if let Err(error) = repo.unpin_landing(intent.id).await {
            tracing::debug!(%error, "what landed is kept until the next look");
        }
        self.inner.look.notify_one();
        Ok(())
    }

    /// Brings a checkout of the branch along, if there is one.
    pub(super) async fn follow(&self, branch: &str, old: &CommitId, new: &CommitId) -> Result<()> {
        let repo = &self.project.repo;
        let Some(checkout) = repo.checkout_of(branch).await? else {
            return Ok(());
        };
        for path in repo.follow(&checkout, old, new).await?.left {
            tracing::warn!(
                path,
                "a file of the checkout was changed meanwhile and was left alone"
            );
        }
        Ok(())
    }

    /// Whether an error says something about the repository or a checkout, and not about the database
    /// or this engine's end.
    pub(super) fn is_of_the_world(&self, error: &EngineError) -> bool {
        !matches!(error, EngineError::Store(_)) && !self.inner.stopping.is_cancelled()
    }

    /// A landing that is under way can't be finished now. Nothing else can land there until it is, so
    /// the person must know; it is tried again after a while, longer each time.
    pub(super) async fn stuck(&self, intent: &Intent, error: EngineError) -> Result<()> {
        if !self.is_of_the_world(&error) {
            return Err(error);
        }
        let hold = self.hold_for(&intent.branch, error).await;
        let reason = format!("its landing can't be finished: {}", hold.reason);
        let reason = Note::from(reason);
        let earlier = {
            let branch = (self.project.id(), intent.branch.clone());
            let mut landing = self.inner.landers.lock();
            let earlier = landing.stuck.get(&branch).copied();
            let attempts = Attempts::after(earlier, hold.cause, self.inner.options.retry_pace);
            landing.stuck.insert(branch, attempts);
            self.wake_at(attempts.until);
            earlier
        };
        let is_known = earlier.is_some_and(|earlier| earlier.cause == hold.cause);
        for queued in self.inner.store.load_queue(self.project.id()).await? {
            let task = queued.entry.task;
            if intent.members.contains(&task) && queued.hold.as_ref() != Some(&reason) {
                tracing::warn!(%task, reason = reason.as_str(), "stuck");
                self.store_hold(task, reason.clone(), is_known && queued.hold.is_some())
                    .await?;
            }
        }
        Ok(())
    }

    /// Looks at the queue again then.
    pub(super) fn wake_at(&self, when: Instant) {
        let inner = Arc::clone(self.inner);
        let stopping = inner.stopping.clone();
        inner.tasks.clone().spawn(async move {
            let wait = tokio::time::sleep_until(when.into());
            if stopping.run_until_cancelled(wait).await.is_some() {
                inner.look.notify_one();
            }
        });
    }

    pub(super) async fn release(self) {
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

async fn in_the_way(
    repo: &Repo,
    branch: &str,
    old: &CommitId,
    new: &CommitId,
) -> Result<Option<Blocked>> {
    let Some(checkout) = repo.checkout_of(branch).await? else {
        return Ok(None);
    };
    let files = repo.blockers(&checkout, old, new).await?;
    Ok((!files.is_empty()).then_some(Blocked { checkout, files }))
}

/// What in a person's checkout would be in the way of a task that fits the branch.
pub(crate) async fn would_hold(
    project: &Project,
    config: &Config,
    task: &Task,
    base: &CommitId,
    commit: &CommitId,
) -> Result<Option<String>> {
    let mut chain = Chain::default();
    chain.fit(base, &[]);
    let entry = Entry { task, commit };
    chain.add(&project.repo, config, entry, None).await?;
    let Some(link) = chain.links().last() else {
        return Ok(None);
    };
    let blocked = in_the_way(&project.repo, &task.spec.base, base, &link.commit).await?;
    Ok(blocked.map(|blocked| blocked.reason(&blocked.files)))
}
