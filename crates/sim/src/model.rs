//! The reference model of the store: what a durable store must do, in plain data.
//!
//! Every method is one transaction: it changes everything it says, or nothing. Each accepted write
//! is a compare-and-set together with its event and its effects, decided by
//! [`woodward_core::step`]. The real stores' conformance suite compares itself with this model, so
//! it must stay free of clocks, chance and input/output: `now` is always handed in.

mod intents;
mod leases;
mod outbox;
mod refused;

use std::collections::BTreeMap;
use std::sync::Arc;

use woodward_core::event::Right;
use woodward_core::lease::{Lease, LeaseTiming, Resource};
use woodward_core::schedule::{self, Limits, Load};
use woodward_core::task::Blocker;
use woodward_core::{
    Actor, ClaimId, Effect, Event, EventId, EventSeq, Fact, IntentId, NewTask, Policy, State, Task,
    TaskId, Timestamp, Transition, WorkerId, step,
};

use crate::guards::Guards;
use intents::IntentRow;
use leases::LeaseRow;
use outbox::Outbox;
pub use refused::Refused;

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its place; places have no gaps.
    pub seq: EventSeq,
    /// The task it shaped.
    pub task: TaskId,
    /// What happened.
    pub event: Event,
    /// The policy it was decided under.
    pub policy: Policy,
}

/// What became of a write that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// It was recorded; this is the task after it.
    Now(Arc<Task>),
    /// An event of that id had been recorded before; nothing changed.
    Before,
}

/// A wish to claim.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Made by the caller: asking twice with the same id gives the same answer and claims once.
    pub id: ClaimId,
    /// Who claims.
    pub worker: WorkerId,
    /// One event for each task that may be claimed at most; their facts must be
    /// [`Fact::Claimed`] by `worker`, each with a run of its own.
    pub events: Vec<Event>,
    /// The project's limits.
    pub limits: Limits,
}

/// One task that a claim got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The task as it was after the claim.
    pub task: Arc<Task>,
    /// The lease on it.
    pub lease: Lease,
}

/// A whole store in memory.
#[derive(Clone, Debug)]
pub struct Model {
    guards: Guards,
    timing: LeaseTiming,
    tasks: BTreeMap<TaskId, Arc<Task>>,
    log: Vec<Recorded>,
    recorded: BTreeMap<EventId, EventSeq>,
    outbox: Outbox,
    leases: BTreeMap<Resource, LeaseRow>,
    claims: BTreeMap<ClaimId, Vec<Claim>>,
    intents: BTreeMap<IntentId, IntentRow>,
}

impl Default for Model {
    fn default() -> Self {
        Self::new()
    }
}

impl Model {
    /// An empty store.
    pub fn new() -> Self {
        Self::with_guards(Guards::ALL, LeaseTiming::default())
    }

    /// An empty store with some guards off: only for testing an oracle.
    pub const fn with_guards(guards: Guards, timing: LeaseTiming) -> Self {
        Self {
            guards,
            timing,
            tasks: BTreeMap::new(),
            log: Vec::new(),
            recorded: BTreeMap::new(),
            outbox: Outbox::new(),
            leases: BTreeMap::new(),
            claims: BTreeMap::new(),
            intents: BTreeMap::new(),
        }
    }

    /// The task of that id.
    pub fn task(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.tasks.get(&id)
    }

    /// All tasks, by id.
    pub fn tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.tasks.values()
    }

    /// The tasks that a worker holds, for a worker that comes back and remembers nothing.
    pub fn held_by(&self, worker: WorkerId) -> impl Iterator<Item = &Arc<Task>> {
        self.tasks().filter(move |task| task.holder == Some(worker))
    }

    /// The log behind `seq`. A reader that goes on from the last place it saw misses nothing.
    pub fn events_after(&self, seq: EventSeq) -> &[Recorded] {
        let from = usize::try_from(seq.0).unwrap_or(usize::MAX);
        &self.log[from.min(self.log.len())..]
    }

    /// Creates the task of an event whose fact is [`Fact::Created`].
    ///
    /// Its blockers are looked up here, in the same transaction: a dependency that lands while the
    /// caller thinks would otherwise be waited for, for ever.
    ///
    /// # Errors
    /// When the fact is another one or the task exists.
    pub fn create(&mut self, mut event: Event, policy: &Policy) -> Result<Committed, Refused> {
        let Fact::Created(mut new) = event.fact.clone() else {
            return Err(Refused::NotACreation);
        };
        if self.recorded.contains_key(&event.id) {
            return Ok(Committed::Before);
        }
        if self.tasks.contains_key(&new.id) {
            return Err(Refused::Exists(new.id));
        }
        new.blockers = self.blockers_of(&new)?;
        let transition = step::create(&new, &event);
        event.fact = Fact::Created(new);
        Ok(Committed::Now(self.apply(transition, event, policy)))
    }

    fn blockers_of(&self, new: &NewTask) -> Result<BTreeMap<TaskId, Blocker>, Refused> {
        let mut blockers = BTreeMap::new();
        for id in &new.spec.after {
            let dependency = self.tasks.get(id).ok_or(Refused::UnknownTask(*id))?;
            if let Some(standing) = dependency.standing() {
                let as_of = dependency.version;
                blockers.insert(*id, Blocker { standing, as_of });
            }
        }
        Ok(blockers)
    }

    /// Whether a claim could get anything, limits aside: a cheap look before asking.
    pub fn has_due(&self, now: Timestamp) -> bool {
        self.tasks().any(|task| is_due(task, now))
    }

    /// Claims tasks in the order of [`schedule::plan`], each with a lease. An answer of none is not
    /// remembered: asking again may get something.
    ///
    /// # Errors
    /// When `step` refuses a claim that the plan offers, which would be a flaw in one of them.
    pub fn claim(
        &mut self,
        request: ClaimRequest,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Vec<Claim>, Refused> {
        if let Some(before) = self.claims.get(&request.id) {
            return Ok(before.clone());
        }
        let wanted = u32::try_from(request.events.len()).unwrap_or(u32::MAX);
        if !self.has_due(now) || self.is_full(request.limits, wanted) {
            return Ok(Vec::new());
        }
        let open: Vec<Task> = self
            .tasks()
            .filter(|task| !task.state.kind().is_finished())
            .map(|task| (**task).clone())
            .collect();
        let plan = schedule::plan(&open, request.limits, wanted, now);
        let mut claims = Vec::new();
        for (id, event) in plan.start.into_iter().zip(request.events) {
            let before = self.tasks.get(&id).ok_or(Refused::UnknownTask(id))?;
            let transition = step(before, &event, policy)?;
            let task = self.apply(transition, event, policy);
            let lease = self.grant(Resource::Task(id), request.worker, task.epoch, now);
            claims.push(Claim { task, lease });
        }
        if !claims.is_empty() {
            self.claims.insert(request.id, claims.clone());
        }
        Ok(claims)
    }

    /// Whether no claim at all would be admitted, whoever is next in line.
    fn is_full(&self, limits: Limits, wanted: u32) -> bool {
        let mut load = Load::default();
        for task in self.tasks() {
            load.count(task.state.kind());
        }
        schedule::admit(load, limits, wanted).start_max == 0
    }

    /// What a claim got, for a worker that never heard the answer.
    pub fn claim_by_id(&self, id: ClaimId) -> Option<&[Claim]> {
        self.claims.get(&id).map(Vec::as_slice)
    }

    /// Records `event` if the task still is as `before`: same epoch, same version.
    ///
    /// A fact that needs the landing right is refused unless its actor holds that right now.
    ///
    /// # Errors
    /// When the task has changed, the right is gone, or the fact does not apply. Nothing is
    /// written then.
    pub fn commit(
        &mut self,
        before: &Task,
        event: Event,
        policy: &Policy,
    ) -> Result<Committed, Refused> {
        if self.recorded.contains_key(&event.id) {
            return Ok(Committed::Before);
        }
        self.require_unchanged(before)?;
        self.record(before.id, event, policy)
    }

    /// Records `event` on the task as it is now. This is how reports arrive: their sender does not
    /// know the version, and its epoch is what protects the task.
    ///
    /// # Errors
    /// As [`Model::commit`].
    pub fn record(
        &mut self,
        task: TaskId,
        event: Event,
        policy: &Policy,
    ) -> Result<Committed, Refused> {
        if self.recorded.contains_key(&event.id) {
            return Ok(Committed::Before);
        }
        let current = self.tasks.get(&task).ok_or(Refused::UnknownTask(task))?;
        if event.fact.right() == Right::Landing {
            self.require_landing_right(&event.actor, current.project, &current.spec.base)?;
        }
        let event = self.fenced(event, current);
        let transition = step(current, &event, policy)?;
        Ok(Committed::Now(self.apply(transition, event, policy)))
    }

    fn require_unchanged(&self, before: &Task) -> Result<(), Refused> {
        let current = self
            .tasks
            .get(&before.id)
            .ok_or(Refused::UnknownTask(before.id))?;
        if current.version == before.version {
            Ok(())
        } else {
            Err(Refused::Changed {
                expected: before.version,
                found: current.version,
            })
        }
    }

    /// The event as the store takes it: untouched, unless nobody checks epochs.
    fn fenced(&self, mut event: Event, current: &Task) -> Event {
        if !self.guards.epoch
            && let Actor::Claim { worker, epoch } = &mut event.actor
        {
            *epoch = current.epoch;
            *worker = current.holder.unwrap_or(*worker);
        }
        event
    }

    /// The only place where anything is written for a task.
    fn apply(&mut self, transition: Transition, event: Event, policy: &Policy) -> Arc<Task> {
        let Transition { next, effects } = transition;
        let seq = EventSeq(self.log.len() as u64 + 1);
        self.recorded.insert(event.id, seq);
        self.log.push(Recorded {
            seq,
            task: next.id,
            event,
            policy: policy.clone(),
        });
        self.outbox.add(effects);
        if next.holder.is_none() {
            self.leases.remove(&Resource::Task(next.id));
        }
        self.outbox.drop_void(&next);
        let next = Arc::new(next);
        self.tasks.insert(next.id, Arc::clone(&next));
        next
    }

    /// Effects that are due for `worker`: addressed to it or to anybody, oldest first. Taking does
    /// not hide them: they are delivered at least once, until somebody finishes them.
    pub fn take_effects(&self, worker: WorkerId) -> impl Iterator<Item = &Effect> {
        self.outbox.due_for(worker)
    }

    /// All effects that are due.
    pub fn due_effects(&self) -> impl Iterator<Item = &Effect> {
        self.outbox.due()
    }

    /// Strikes an effect off. Finishing what is finished already is fine.
    pub fn finish_effect(&mut self, key: &woodward_core::EffectKey) {
        self.outbox.finish(key);
    }
}

/// Whether a claim could get it: a cheap look before the plan is made.
fn is_due(task: &Task, now: Timestamp) -> bool {
    let due = matches!(&task.state, State::Queued { run_at, .. } if *run_at <= now);
    due && schedule::rank(task).is_some()
}
