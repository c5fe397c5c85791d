//! One transition, ready to be written: the heart of every change to a task.
//!
//! Everything is computed before the transaction begins, so that it is short. What a transition
//! means for leases and for the merge queue is read off the task before and after it.

use std::sync::Arc;

use woodward_core::lease::Resource;
use woodward_core::queue::entry_of;
use woodward_core::schedule::rank;
use woodward_core::{
    Actor, ClaimId, Epoch, Event, EventId, Fact, Millis, Policy, ProjectId, State, Task, TaskId,
    TaskName, Timestamp, Transition, Version, WorkerId,
};

use crate::conn::{Conn, Dialect, Op, Param, to_json};
use crate::error::{Result, StoreError};
use crate::ops::{leases, tasks};
use crate::policies::NamedPolicy;

/// A transition with all that its rows need.
#[derive(Clone, Debug)]
pub(crate) struct TaskWrite {
    pub(crate) task: TaskId,
    pub(crate) project: ProjectId,
    pub(crate) before: (Epoch, Version),
    pub(crate) columns: Columns,
    pub(crate) event: EventRow,
    pub(crate) effects: Vec<EffectRow>,
    pub(crate) lease: LeaseChange,
    queue: QueueChange,
    /// The name that a finished task takes back.
    reopens: Option<TaskName>,
    /// The policy, if it must be stored too.
    policy: Option<Arc<NamedPolicy>>,
}

/// A task's columns.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    pub(crate) epoch: Epoch,
    pub(crate) version: Version,
    pub(crate) state: &'static str,
    pub(crate) fresh: i64,
    pub(crate) claim_key: Option<i64>,
    pub(crate) run_at: Timestamp,
    pub(crate) holder: Option<WorkerId>,
    pub(crate) doc: String,
}

/// An event's columns.
#[derive(Clone, Debug)]
pub(crate) struct EventRow {
    pub(crate) id: EventId,
    pub(crate) at: Timestamp,
    pub(crate) kind: &'static str,
    pub(crate) policy: String,
    pub(crate) doc: String,
}

/// An effect's columns.
#[derive(Clone, Debug)]
pub(crate) struct EffectRow {
    pub(crate) key: String,
    pub(crate) epoch: Epoch,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) doc: String,
}

/// What a transition means for the task's lease.
#[derive(Clone, Debug)]
pub(crate) enum LeaseChange {
    Keep,
    Take {
        resource: String,
        worker: WorkerId,
        claim: ClaimId,
        length: Millis,
    },
    Drop {
        resource: String,
    },
}

#[derive(Clone, Debug)]
enum QueueChange {
    Keep,
    Enter { order_key: i64, doc: String },
    Leave,
}

impl Columns {
    pub(crate) fn of(task: &Task) -> Self {
        let rank = rank(task);
        Self {
            epoch: task.epoch,
            version: task.version,
            state: task.state.kind().as_str(),
            fresh: rank.map_or(0, |rank| i64::from(rank.fresh)),
            claim_key: rank.map(|rank| rank.key),
            run_at: match task.state {
                State::Queued { run_at, .. } => run_at,
                _ => task.since,
            },
            holder: task.holder,
            doc: to_json(task),
        }
    }
}

impl EventRow {
    pub(crate) fn of(event: &Event, policy: &NamedPolicy) -> Self {
        Self {
            id: event.id,
            at: event.at,
            kind: event.fact.as_str(),
            policy: policy.digest.clone(),
            doc: to_json(event),
        }
    }
}

impl TaskWrite {
    /// The write that takes `before` to `transition.next`. A claim says how long it lasts.
    pub(crate) fn new(
        before: &Task,
        event: &Event,
        policy: &NamedPolicy,
        transition: &Transition,
        claim: Option<(ClaimId, Millis)>,
    ) -> Self {
        let next = &transition.next;
        let resource = || Resource::Task(next.id).to_string();
        let lease = match (before.holder, next.holder, claim) {
            (_, Some(worker), Some((claim, length))) => LeaseChange::Take {
                resource: resource(),
                worker,
                claim,
                length,
            },
            (Some(_), None, _) => LeaseChange::Drop {
                resource: resource(),
            },
            _ => LeaseChange::Keep,
        };
        let queue = match (entry_of(before), entry_of(next)) {
            (None, Some(entry)) => QueueChange::Enter {
                order_key: entry.order_key,
                doc: to_json(&entry),
            },
            (Some(_), None) => QueueChange::Leave,
            _ => QueueChange::Keep,
        };
        Self {
            task: next.id,
            project: next.project,
            before: (before.epoch, before.version),
            columns: Columns::of(next),
            event: EventRow::of(event, policy),
            effects: transition
                .effects
                .iter()
                .map(|effect| EffectRow {
                    key: effect.key.to_string(),
                    epoch: effect.epoch,
                    worker: effect.worker,
                    doc: to_json(effect),
                })
                .collect(),
            lease,
            queue,
            reopens: (before.state.kind().is_finished() && !next.state.kind().is_finished())
                .then(|| next.name.clone()),
            policy: None,
        }
    }

    /// Also stores the policy, which no earlier write of this process has.
    pub(crate) fn with_policy(mut self, policy: &Arc<NamedPolicy>) -> Self {
        self.policy = Some(Arc::clone(policy));
        self
    }

    /// The parameters of the compare-and-set, as [`UPDATE_TASK`] numbers them.
    pub(crate) fn update_params(&self) -> [Param<'_>; 12] {
        let columns = &self.columns;
        let (epoch, version) = self.before;
        [
            columns.epoch.into(),
            columns.version.into(),
            columns.state.into(),
            Param::Int(columns.fresh),
            Param::opt_int(columns.claim_key),
            columns.run_at.into(),
            Param::opt_id(columns.holder),
            (&columns.doc).into(),
            self.event.at.into(),
            self.task.into(),
            epoch.into(),
            version.into(),
        ]
    }

    /// Whether it is one statement on PostgreSQL.
    pub(crate) fn is_single(&self) -> bool {
        self.policy.is_none() && self.reopens.is_none() && matches!(self.queue, QueueChange::Keep)
    }

    /// Writes it; `false` if the task was not as expected, and then nothing was written.
    pub(crate) async fn apply<C: Conn>(&self, conn: &mut C) -> Result<bool> {
        self.write(conn, false).await
    }

    /// The same as the last thing that its transaction does.
    pub(crate) async fn apply_last<C: Conn>(&self, conn: &mut C) -> Result<bool> {
        self.write(conn, self.is_single()).await
    }

    async fn write<C: Conn>(&self, conn: &mut C, is_last: bool) -> Result<bool> {
        if let Some(name) = &self.reopens {
            tasks::require_free_name(conn, self.project, name).await?;
        }
        if !conn.write_task(self, is_last).await? {
            return Ok(false);
        }
        match &self.queue {
            QueueChange::Keep => {}
            QueueChange::Enter { order_key, doc } => {
                conn.execute(
                    "INSERT INTO queue_entries (task, project, order_key, doc)
                     VALUES ($1, $2, $3, $4)",
                    &[
                        self.task.into(),
                        self.project.into(),
                        Param::Int(*order_key),
                        doc.into(),
                    ],
                )
                .await?;
            }
            QueueChange::Leave => {
                conn.execute(
                    "DELETE FROM queue_entries WHERE task = $1",
                    &[self.task.into()],
                )
                .await?;
            }
        }
        if let Some(policy) = &self.policy {
            policy.save(conn).await?;
        }
        Ok(true)
    }
}

/// Writes one transition decided by the caller on the task as it was loaded.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) write: TaskWrite,
    pub(crate) fence: Fence,
}

/// The right that a write needs besides the task being as expected.
#[derive(Clone, Debug)]
pub(crate) enum Fence {
    /// None.
    Open,
    /// The task's claim, by its epoch.
    Claim(Epoch),
    /// The landing right.
    Landing {
        resource: Resource,
        worker: WorkerId,
        epoch: Epoch,
    },
}

impl Fence {
    /// The fence that an event's actor must pass to write to `task`; `default_branch` is where
    /// tasks land that name no branch.
    pub(crate) fn of(event: &Event, task: &Task) -> Self {
        match &event.actor {
            Actor::Claim { epoch, .. } => Self::Claim(*epoch),
            Actor::Lander { worker, epoch } => Self::Landing {
                resource: leases::landing_right(task),
                worker: *worker,
                epoch: *epoch,
            },
            Actor::Person(_) | Actor::Woodward => Self::Open,
        }
    }

    pub(crate) async fn require<C: Conn>(&self, conn: &mut C) -> Result<()> {
        match self {
            // The compare-and-set on the task's epoch is the check.
            Self::Open | Self::Claim(_) => Ok(()),
            Self::Landing {
                resource,
                worker,
                epoch,
            } => leases::require(conn, resource, *worker, *epoch).await,
        }
    }
}

impl Op for Commit {
    type Out = ();

    fn single(&self) -> bool {
        self.write.is_single() && !matches!(self.fence, Fence::Landing { .. })
    }

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        self.fence.require(conn).await?;
        if self.write.apply(conn).await? {
            return Ok(());
        }
        explain_miss(conn, &self.write, &self.fence).await
    }
}

/// Why a compare-and-set missed. A miss because this very event is in the log already is a success:
/// the first answer was lost.
pub(crate) async fn explain_miss<C: Conn>(
    conn: &mut C,
    write: &TaskWrite,
    fence: &Fence,
) -> Result<()> {
    let logged = conn
        .query(
            "SELECT task FROM events WHERE id = $1",
            &[write.event.id.into()],
        )
        .await?;
    if !logged.is_empty() {
        return Ok(());
    }
    let current = conn
        .query(
            "SELECT epoch, version, name FROM tasks WHERE id = $1",
            &[write.task.into()],
        )
        .await?;
    let Some(row) = current.first() else {
        return Err(tasks::not_found(write.task));
    };
    let what = format!("task `{}`", row.text(2)?);
    let current = Epoch(row.unsigned(0)?);
    match fence {
        Fence::Claim(carried) if *carried != current => Err(StoreError::Stale {
            what,
            carried: *carried,
            current,
        }),
        _ => Err(StoreError::Conflict { what }),
    }
}

/// Loads a task under lock, decides, writes: for decisions that must not lose to a race.
#[derive(Debug)]
pub(crate) struct Advance {
    pub(crate) task: TaskId,
    pub(crate) event: Event,
    pub(crate) policy: Arc<NamedPolicy>,
}

impl Op for Advance {
    type Out = Transition;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Transition> {
        let before = tasks::require_locked(conn, self.task).await?;
        let logged = conn
            .query(
                "SELECT version FROM events WHERE id = $1",
                &[self.event.id.into()],
            )
            .await?;
        if !logged.is_empty() {
            return Ok(Transition {
                next: before,
                effects: Vec::new(),
            });
        }
        let fence = Fence::of(&self.event, &before);
        fence.require(conn).await?;
        let transition = decide(&before, &self.event, &self.policy.policy)?;
        let write = TaskWrite::new(&before, &self.event, &self.policy, &transition, None)
            .with_policy(&self.policy);
        if !write.apply(conn).await? {
            explain_miss(conn, &write, &fence).await?;
        }
        Ok(transition)
    }
}

/// Asks the core; a stale claim is the store's own kind of refusal.
pub(crate) fn decide(before: &Task, event: &Event, policy: &Policy) -> Result<Transition> {
    debug_assert!(
        !matches!(event.fact, Fact::Claimed { .. } | Fact::Created(_)),
        "claims and creations have operations of their own"
    );
    woodward_core::step(before, event, policy).map_err(|illegal| match illegal.refusal {
        woodward_core::Refusal::StaleClaim { carried, current } => StoreError::Stale {
            what: format!("task `{}`", before.name),
            carried,
            current,
        },
        _ => StoreError::Illegal(illegal),
    })
}

pub(crate) const UPDATE_TASK: &str = "UPDATE tasks SET epoch = $1, version = $2, state = $3, \
     fresh = $4, claim_key = $5, run_at = $6, holder = $7, doc = $8, updated_at = $9 \
     WHERE id = $10 AND epoch = $11 AND version = $12";
pub(crate) const INSERT_EVENT: &str = "INSERT INTO events \
     (id, project, task, version, at, kind, policy, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
pub(crate) const TAKE_LEASE: &str = "INSERT INTO leases \
     (resource, task, holder, epoch, claim, expires_at) VALUES ($1, $2, $3, $4, $5, now_ms() + $6) \
     ON CONFLICT (resource) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch, \
     claim = excluded.claim, expires_at = excluded.expires_at";
pub(crate) const DROP_LEASE: &str = "DELETE FROM leases WHERE resource = $1";
pub(crate) const INSERT_EFFECT: &str =
    "INSERT INTO effects (key, task, epoch, worker, doc) VALUES ($1, $2, $3, $4, $5)";

/// A statement that differs between the two databases only by a row lock.
pub(crate) const fn locking<C: Conn>(sqlite: &'static str, postgres: &'static str) -> &'static str {
    match C::DIALECT {
        Dialect::Sqlite => sqlite,
        Dialect::Postgres => postgres,
    }
}
