//! Claiming: the next tasks in line, taken atomically.
//!
//! Closes crash window 1: a claim whose answer was lost is found again by its id, or its lease runs
//! out.

use std::sync::Arc;

use woodward_core::schedule::{Admission, Load, admit};
use woodward_core::{Actor, Event, Fact, ProjectId, Task, Timestamp};

use crate::conn::{Conn, Op, Param, Row};
use crate::error::{Result, StoreError};
use crate::ids::IdSource;
use crate::ops::tasks;
use crate::ops::write::{TaskWrite, locking};
use crate::policies::NamedPolicy;
use crate::records::{ClaimRequest, Claims};

/// Claims for one worker on one project.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) request: ClaimRequest,
    pub(crate) policy: Arc<NamedPolicy>,
    pub(crate) ids: IdSource,
    /// Whether the policy must be written too.
    pub(crate) new_policy: bool,
}

pub(crate) const PICK_SQLITE: &str = "SELECT doc, now_ms() FROM tasks \
     WHERE project = $1 AND claim_key IS NOT NULL AND fresh <= $2 AND run_at <= now_ms() \
     ORDER BY fresh, claim_key, id LIMIT $3";
/// How many tasks may have come up since those were looked at that are among the choice. More of them
/// only mean that the next claim finds the others.
const NEWER: u32 = 16;
pub(crate) const PICK_POSTGRES: &str = "WITH picked AS MATERIALIZED (\
     SELECT doc, fresh, claim_key, id FROM tasks \
     WHERE project = $1 AND claim_key IS NOT NULL AND fresh <= $2 AND run_at <= now_ms() \
     ORDER BY fresh, claim_key, id LIMIT $3 FOR UPDATE SKIP LOCKED) \
     SELECT doc, now_ms() FROM picked ORDER BY fresh, claim_key, id";

impl Op for Claim {
    type Out = Claims;

    async fn run<C: Conn>(&self, conn: &mut C, again: bool) -> Result<Claims> {
        let request = &self.request;
        if again {
            let tasks = claimed_before(conn, request).await?;
            if !tasks.is_empty() {
                return Ok(Claims { tasks, held: None });
            }
        }
        let admission = self.admission(conn).await?;
        let mut claims = Claims {
            tasks: Vec::new(),
            held: admission.held,
        };
        if admission.start_max == 0 {
            return Ok(claims);
        }
        // Those left out may be the first in line: as many more are looked at.
        let mut more = u32::try_from(request.except.len()).unwrap_or(u32::MAX);
        if request.among.is_some() {
            more = more.saturating_add(NEWER);
        }
        let mut picked = conn
            .query(
                locking::<C>(PICK_SQLITE, PICK_POSTGRES),
                &[
                    request.project.into(),
                    Param::Int(i64::from(admission.fresh)),
                    admission.start_max.saturating_add(more).into(),
                ],
            )
            .await?;
        if more > 0 {
            let mut wanted = Vec::with_capacity(picked.len());
            for row in picked {
                if request.may_claim(tasks::read(&row, 0)?.id) {
                    wanted.push(row);
                }
            }
            wanted.truncate(admission.start_max as usize);
            picked = wanted;
        }
        for (place, row) in picked.iter().enumerate() {
            let is_last = place + 1 == picked.len();
            claims.tasks.push(self.take(conn, row, is_last).await?);
        }
        Ok(claims)
    }
}

impl Claim {
    async fn take<C: Conn>(&self, conn: &mut C, row: &Row, is_last: bool) -> Result<Task> {
        let request = &self.request;
        let before = tasks::read(row, 0)?;
        let event = Event {
            id: self.ids.event(),
            at: Timestamp(row.int(1)?),
            actor: Actor::Woodward,
            roll: self.ids.roll(),
            fact: Fact::Claimed {
                worker: request.worker,
                run: self.ids.run(),
            },
        };
        let transition = woodward_core::step(&before, &event, &request.policy)?;
        let claim = Some((request.claim, request.lease));
        let mut write = TaskWrite::new(&before, &event, &self.policy, &transition, claim);
        if self.new_policy {
            write = write.with_policy(&self.policy);
        }
        let written = if is_last {
            write.apply_last(conn).await?
        } else {
            write.apply(conn).await?
        };
        if written {
            Ok(transition.next)
        } else {
            // The row is locked, so its columns can only differ from its doc if someone edited them.
            Err(StoreError::corrupt(
                "task",
                format!("columns and doc of `{}` disagree", before.name),
            ))
        }
    }

    /// What the project's limits allow. With limits, the project's row is locked first, so that
    /// claims of two machines can't both fill the last place.
    async fn admission<C: Conn>(&self, conn: &mut C) -> Result<Admission> {
        let request = &self.request;
        let limits = request.limits;
        if limits.running_max.is_none() && limits.review_max.is_none() {
            return Ok(admit(Load::default(), limits, request.wanted));
        }
        lock_project(conn, request.project).await?;
        let rows = conn
            .query(
                "SELECT state, count(*) FROM tasks WHERE project = $1
                 AND state IN ('preparing', 'working', 'waiting', 'verifying', 'review')
                 GROUP BY state",
                &[request.project.into()],
            )
            .await?;
        let mut load = Load::default();
        for row in &rows {
            let count = u32::try_from(row.int(1)?).unwrap_or(u32::MAX);
            match row.text(0)? {
                "review" => load.in_review = count,
                _ => load.running = load.running.saturating_add(count),
            }
        }
        Ok(admit(load, limits, request.wanted))
    }
}

async fn lock_project<C: Conn>(conn: &mut C, project: ProjectId) -> Result<()> {
    let sql = locking::<C>(
        "SELECT id FROM projects WHERE id = $1",
        "SELECT id FROM projects WHERE id = $1 FOR NO KEY UPDATE",
    );
    let rows = conn.query(sql, &[project.into()]).await?;
    if rows.is_empty() {
        return Err(StoreError::NotFound {
            what: format!("project {project}"),
        });
    }
    Ok(())
}

async fn claimed_before<C: Conn>(conn: &mut C, request: &ClaimRequest) -> Result<Vec<Task>> {
    let rows = conn
        .query(
            "SELECT tasks.doc FROM leases JOIN tasks ON tasks.id = leases.task
             WHERE leases.claim = $1 ORDER BY tasks.fresh, tasks.id",
            &[request.claim.into()],
        )
        .await?;
    rows.iter().map(|row| tasks::read(row, 0)).collect()
}

/// The tasks that a claim was granted, for a worker that lost the answer.
#[derive(Debug)]
pub(crate) struct RecallClaim(pub(crate) ClaimRequest);

impl Op for RecallClaim {
    type Out = Vec<Task>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Task>> {
        claimed_before(conn, &self.0).await
    }
}
