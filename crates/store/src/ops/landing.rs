//! The merge queue's rows and the journal of landings.
//!
//! Closes crash windows 14 and 15: the intention to move a branch is on record before the branch
//! moves, one a branch, and stays pending until somebody has looked at the branch.

use std::sync::Arc;

use woodward_core::landing::{Intent, IntentState};
use woodward_core::lease::Resource;
use woodward_core::{
    Actor, Event, EventId, Fact, IntentId, Note, ProjectId, Roll, State, Task, TaskId, Timestamp,
};

use crate::conn::{Conn, Op, Param, Row, to_json};
use crate::error::{Result, StoreError};
use crate::ids::IdSource;
use crate::ops::leases;
use crate::ops::tasks;
use crate::ops::write::{Fence, TaskWrite, decide, explain_miss};
use crate::policies::NamedPolicy;
use crate::records::{CloseIntent, Freeze, IntentMember, OpenIntent, Queued, RecordedIntent};

/// The merge queue of a project, in order.
#[derive(Debug)]
pub(crate) struct LoadQueue(pub(crate) ProjectId);

impl Op for LoadQueue {
    type Out = Vec<Queued>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Queued>> {
        let rows = conn
            .query(
                "SELECT doc, hold, stopped FROM queue_entries WHERE project = $1 ORDER BY order_key, task",
                &[self.0.into()],
            )
            .await?;
        rows.iter()
            .map(|row| {
                Ok(Queued {
                    entry: row.json(0, "queue entry")?,
                    hold: row.opt_text(1)?.map(Note::from),
                    stopped: row.opt_text(2)?.map(Note::from),
                })
            })
            .collect()
    }
}

/// Holds an entry back with a reason, or lets it go.
#[derive(Debug)]
pub(crate) struct HoldEntry {
    pub(crate) task: TaskId,
    pub(crate) reason: Option<Note>,
}

impl Op for HoldEntry {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        let changed = conn
            .execute(
                "UPDATE queue_entries SET hold = $1 WHERE task = $2",
                &[
                    Param::opt_text(self.reason.as_ref().map(Note::as_str)),
                    self.task.into(),
                ],
            )
            .await?;
        require_entry(changed, self.task)
    }
}

/// Lets an entry wait for a person, or go on.
#[derive(Debug)]
pub(crate) struct StopEntry {
    pub(crate) task: TaskId,
    pub(crate) reason: Option<Note>,
}

impl Op for StopEntry {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        let reason = Param::opt_text(self.reason.as_ref().map(Note::as_str));
        let sql = "UPDATE queue_entries SET stopped = $1 WHERE task = $2";
        let changed = conn.execute(sql, &[reason, self.task.into()]).await?;
        require_entry(changed, self.task)
    }
}

/// Puts an entry before all others of its project.
#[derive(Debug)]
pub(crate) struct BumpEntry(pub(crate) TaskId);

impl Op for BumpEntry {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        // Who is first already stays where it is.
        let changed = conn
            .execute(
                "UPDATE queue_entries SET order_key = (SELECT CASE WHEN MIN(other.order_key) <= \
                 queue_entries.order_key THEN MIN(other.order_key) - 1 \
                 ELSE queue_entries.order_key END FROM queue_entries other \
                 WHERE other.project = queue_entries.project AND other.task <> queue_entries.task) \
                 WHERE task = $1 AND EXISTS (SELECT 1 FROM queue_entries other \
                 WHERE other.project = queue_entries.project AND other.task <> queue_entries.task)",
                &[self.0.into()],
            )
            .await?;
        if changed > 0 {
            return Ok(());
        }
        let sql = "SELECT task FROM queue_entries WHERE task = $1";
        let rows = conn.query(sql, &[self.0.into()]).await?;
        require_entry(rows.len() as u64, self.0)
    }
}

fn require_entry(found: u64, task: TaskId) -> Result<()> {
    if found == 0 {
        return Err(StoreError::NotFound {
            what: format!("queue entry of task {task}"),
        });
    }
    Ok(())
}

/// Lets nothing land on a branch, or lets it again.
#[derive(Debug)]
pub(crate) struct SetFreeze {
    pub(crate) project: ProjectId,
    pub(crate) branch: String,
    pub(crate) freeze: Option<(Note, Timestamp)>,
}

impl Op for SetFreeze {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        let (project, branch) = (self.project.into(), (&self.branch).into());
        let Some((reason, at)) = &self.freeze else {
            let sql = "DELETE FROM freezes WHERE project = $1 AND branch = $2";
            conn.execute(sql, &[project, branch]).await?;
            return Ok(());
        };
        conn.execute(
            "INSERT INTO freezes (project, branch, reason, at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (project, branch) DO UPDATE SET reason = excluded.reason",
            &[project, branch, Param::Text(reason.as_str()), (*at).into()],
        )
        .await?;
        Ok(())
    }
}

/// The branches of a project on which nothing lands.
#[derive(Debug)]
pub(crate) struct LoadFreezes(pub(crate) ProjectId);

impl Op for LoadFreezes {
    type Out = Vec<Freeze>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Freeze>> {
        let sql = "SELECT branch, reason, at FROM freezes WHERE project = $1 ORDER BY branch";
        let rows = conn.query(sql, &[self.0.into()]).await?;
        rows.iter()
            .map(|row| {
                Ok(Freeze {
                    branch: row.text(0)?.to_owned(),
                    reason: Note::from(row.text(1)?),
                    at: Timestamp(row.int(2)?),
                })
            })
            .collect()
    }
}

fn read(row: &Row) -> Result<RecordedIntent> {
    let state = match row.text(1)? {
        "pending" => IntentState::Pending,
        "landed" => IntentState::Landed,
        "void" => IntentState::Void,
        other => {
            return Err(StoreError::corrupt(
                "intent",
                format!("unknown state `{other}`"),
            ));
        }
    };
    Ok(RecordedIntent {
        intent: row.json(0, "intent")?,
        state,
    })
}

async fn load<C: Conn>(conn: &mut C, intent: IntentId) -> Result<Option<RecordedIntent>> {
    let rows = conn
        .query(
            "SELECT doc, state FROM intents WHERE id = $1",
            &[intent.into()],
        )
        .await?;
    rows.first().map(read).transpose()
}

/// The right that an intent is recorded and closed under.
fn right(intent: &Intent) -> Resource {
    Resource::Landing {
        project: intent.project,
        branch: intent.branch.clone(),
    }
}

fn event(id: EventId, at: Timestamp, actor: Actor, fact: Fact) -> Event {
    Event {
        id,
        at,
        actor,
        roll: Roll(0),
        fact,
    }
}

async fn record<C: Conn>(
    conn: &mut C,
    before: &Task,
    event: &Event,
    policy: &Arc<NamedPolicy>,
) -> Result<()> {
    let transition = decide(before, event, &policy.policy)?;
    let write = TaskWrite::new(before, event, policy, &transition, None).with_policy(policy);
    if write.apply(conn).await? {
        Ok(())
    } else {
        explain_miss(conn, &write, &Fence::Open).await
    }
}

/// Puts a landing on record: the intent and its members' transitions, in one transaction, under
/// the landing right.
#[derive(Debug)]
pub(crate) struct RecordIntent {
    pub(crate) open: OpenIntent,
    pub(crate) policy: Arc<NamedPolicy>,
}

impl Op for RecordIntent {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        let OpenIntent {
            intent,
            worker,
            members,
            at,
            ..
        } = &self.open;
        leases::require(conn, &right(intent), *worker, intent.epoch).await?;
        let inserted = conn
            .execute(
                "INSERT INTO intents (id, project, branch, state, created_at, doc)
                 VALUES ($1, $2, $3, 'pending', $4, $5) ON CONFLICT DO NOTHING",
                &[
                    intent.id.into(),
                    intent.project.into(),
                    (&intent.branch).into(),
                    (*at).into(),
                    (&to_json(intent)).into(),
                ],
            )
            .await?;
        if inserted == 0 {
            return already_there(conn, intent).await;
        }
        let actor = Actor::Lander {
            worker: *worker,
            epoch: intent.epoch,
        };
        for IntentMember {
            task,
            event: id,
            result,
        } in members
        {
            let State::Landing { approval, .. } = &task.state else {
                return Err(StoreError::Conflict {
                    what: format!("task `{}`", task.name),
                });
            };
            let fact = Fact::IntentRecorded {
                intent: intent.id,
                commit: approval.commit.clone(),
                result: result.clone(),
            };
            let event = event(*id, *at, actor.clone(), fact);
            record(conn, task, &event, &self.policy).await?;
        }
        require_may_land(conn, intent).await
    }
}

/// Whoever said that a member shall wait, or that nothing lands there, was told yes.
async fn require_may_land<C: Conn>(conn: &mut C, intent: &Intent) -> Result<()> {
    let frozen = conn
        .query(
            "SELECT branch FROM freezes WHERE project = $1 AND branch = $2",
            &[intent.project.into(), (&intent.branch).into()],
        )
        .await?;
    if !frozen.is_empty() {
        return Err(StoreError::Conflict {
            what: format!("branch `{}`", intent.branch),
        });
    }
    for member in &intent.members {
        // It holds off whoever wants to stop it until this is on record.
        let sql = "UPDATE queue_entries SET stopped = stopped WHERE task = $1 AND stopped IS NULL";
        if conn.execute(sql, &[(*member).into()]).await? == 0 {
            return Err(StoreError::Conflict {
                what: format!("queue entry of task {member}"),
            });
        }
    }
    Ok(())
}

/// Recording the same intent again is recording it once; another pending one is in the way, and so is
/// that it is settled already.
async fn already_there<C: Conn>(conn: &mut C, intent: &Intent) -> Result<()> {
    if let Some(recorded) = load(conn, intent.id).await? {
        return match recorded.state {
            IntentState::Pending => Ok(()),
            IntentState::Landed | IntentState::Void => Err(StoreError::Conflict {
                what: format!("landing {}", intent.id),
            }),
        };
    }
    let rows = conn
        .query(
            "SELECT id FROM intents WHERE project = $1 AND branch = $2 AND state = 'pending'",
            &[intent.project.into(), (&intent.branch).into()],
        )
        .await?;
    let other = rows.first().map(|row| row.id(0)).transpose()?;
    Err(other.map_or_else(
        || StoreError::Conflict {
            what: format!("branch `{}`", intent.branch),
        },
        |other| StoreError::IntentPending {
            branch: intent.branch.clone(),
            intent: IntentId::new(other),
        },
    ))
}

/// Records what became of a landing, for the intent and all its members, under the landing right.
#[derive(Debug)]
pub(crate) struct FinishIntent {
    pub(crate) close: CloseIntent,
    pub(crate) policy: Arc<NamedPolicy>,
    pub(crate) ids: IdSource,
}

impl Op for FinishIntent {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        let close = &self.close;
        let recorded = load(conn, close.intent)
            .await?
            .ok_or_else(|| StoreError::NotFound {
                what: format!("landing {}", close.intent),
            })?;
        let mut members = Vec::with_capacity(recorded.intent.members.len());
        for task in &recorded.intent.members {
            members.push(tasks::require_locked(conn, *task).await?);
        }
        let right = right(&recorded.intent);
        leases::require(conn, &right, close.worker, close.epoch).await?;
        let changed = conn
            .execute(
                "UPDATE intents SET state = $1 WHERE id = $2 AND state = 'pending'",
                &[Param::Text(close.outcome.as_str()), close.intent.into()],
            )
            .await?;
        if changed == 0 {
            return self.closed_before(conn).await;
        }
        let actor = Actor::Lander {
            worker: close.worker,
            epoch: close.epoch,
        };
        for task in &members {
            let fact = match close.outcome {
                IntentState::Landed => Fact::Landed {
                    intent: close.intent,
                },
                _ => Fact::IntentVoided {
                    intent: close.intent,
                },
            };
            let event = event(self.ids.event(), close.at, actor.clone(), fact);
            record(conn, task, &event, &self.policy).await?;
        }
        Ok(())
    }
}

impl FinishIntent {
    /// Closing it the same way again is closing it once.
    async fn closed_before<C: Conn>(&self, conn: &mut C) -> Result<()> {
        match load(conn, self.close.intent).await? {
            Some(recorded) if recorded.state == self.close.outcome => Ok(()),
            _ => Err(StoreError::Conflict {
                what: format!("landing {}", self.close.intent),
            }),
        }
    }
}

/// The unfinished landings of a project.
#[derive(Debug)]
pub(crate) struct LoadPendingIntents(pub(crate) ProjectId);

impl Op for LoadPendingIntents {
    type Out = Vec<Intent>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Intent>> {
        let rows = conn
            .query(
                "SELECT doc, state FROM intents WHERE project = $1 AND state = 'pending'
                 ORDER BY created_at, id",
                &[self.0.into()],
            )
            .await?;
        rows.iter().map(|row| Ok(read(row)?.intent)).collect()
    }
}

/// A landing on record.
#[derive(Debug)]
pub(crate) struct LoadIntent(pub(crate) IntentId);

impl Op for LoadIntent {
    type Out = Option<RecordedIntent>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Self::Out> {
        load(conn, self.0).await
    }
}
