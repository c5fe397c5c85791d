//! The outbox: effects are handed out, performed, reported.
//!
//! Closes the window between recording a decision and acting on it: an effect stays due until its
//! performer says it is done. Handing out is by lease (`run_at` moves into the future), reporting
//! back names the handing-out, so a performer that was given up on can't report for its successor.
//! Effects of one task for one worker are handed out in the order they were recorded.

use woodward_core::{Effect, Epoch, Millis, Note, TaskId, WorkerId};

use crate::conn::{Conn, Op, Param, Row};
use crate::error::{Result, StoreError};
use crate::ops::write::locking;
use crate::records::TakenEffect;
use crate::wake::Wakes;

/// Hands out due effects.
#[derive(Debug)]
pub(crate) struct TakeEffects {
    pub(crate) worker: WorkerId,
    pub(crate) limit: u32,
    pub(crate) length: Millis,
}

const DUE_SQLITE: &str = "SELECT e.id, e.attempt, e.doc, t.epoch FROM effects e
     LEFT JOIN tasks t ON t.id = e.task
     WHERE e.state = 'pending' AND (e.worker IS NULL OR e.worker = $1) AND e.run_at <= now_ms()
     AND NOT EXISTS (SELECT 1 FROM effects p WHERE p.state = 'pending' AND p.task = e.task
         AND p.id < e.id AND p.worker IS NOT DISTINCT FROM e.worker)
     ORDER BY e.id LIMIT $2";
const DUE_POSTGRES: &str = "SELECT e.id, e.attempt, e.doc, t.epoch FROM effects e
     LEFT JOIN tasks t ON t.id = e.task
     WHERE e.state = 'pending' AND (e.worker IS NULL OR e.worker = $1) AND e.run_at <= now_ms()
     AND NOT EXISTS (SELECT 1 FROM effects p WHERE p.state = 'pending' AND p.task = e.task
         AND p.id < e.id AND p.worker IS NOT DISTINCT FROM e.worker)
     ORDER BY e.id LIMIT $2 FOR UPDATE OF e SKIP LOCKED";

impl Op for TakeEffects {
    type Out = Vec<TakenEffect>;

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<TakenEffect>> {
        // Voiding one effect uncovers the next of its task, so look again until there is something
        // to do or nothing was voided. Each round voids at least one: it ends.
        loop {
            let rows = conn
                .query(
                    locking::<C>(DUE_SQLITE, DUE_POSTGRES),
                    &[self.worker.into(), self.limit.into()],
                )
                .await?;
            let mut taken = Vec::with_capacity(rows.len());
            let mut voided = false;
            for row in &rows {
                let (id, attempt, effect) = read(row)?;
                let current = row.opt_int(3)?.map(i64::cast_unsigned).map(Epoch);
                if effect.action.needs_current_claim() && current != Some(effect.epoch) {
                    void(conn, id).await?;
                    voided = true;
                } else {
                    taken.push(self.hand_out(conn, id, attempt + 1, effect).await?);
                }
            }
            if !taken.is_empty() || !voided {
                return Ok(taken);
            }
        }
    }
}

impl TakeEffects {
    async fn hand_out<C: Conn>(
        &self,
        conn: &mut C,
        id: i64,
        attempt: u32,
        effect: Effect,
    ) -> Result<TakenEffect> {
        conn.execute(
            "UPDATE effects SET attempt = $1, run_at = now_ms() + $2 WHERE id = $3",
            &[attempt.into(), self.length.into(), Param::Int(id)],
        )
        .await?;
        Ok(TakenEffect {
            id,
            attempt,
            effect,
        })
    }
}

async fn void<C: Conn>(conn: &mut C, id: i64) -> Result<()> {
    conn.execute(
        "UPDATE effects SET state = 'void', finished_at = now_ms() WHERE id = $1",
        &[Param::Int(id)],
    )
    .await
    .map(drop)
}

fn read(row: &Row) -> Result<(i64, u32, Effect)> {
    Ok((
        row.int(0)?,
        u32::try_from(row.int(1)?).unwrap_or(u32::MAX - 1),
        row.json(2, "effect")?,
    ))
}

/// What became of a handed-out effect.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    /// It was performed.
    Done,
    /// It could not be performed now; hand it out again after this long.
    Later(Millis, Note),
}

/// Reports back on one handing-out.
#[derive(Debug)]
pub(crate) struct ReportEffect {
    pub(crate) id: i64,
    pub(crate) attempt: u32,
    pub(crate) report: Report,
}

impl Op for ReportEffect {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, again: bool) -> Result<()> {
        let changed = match &self.report {
            Report::Done => {
                conn.execute(
                    "UPDATE effects SET state = 'done', finished_at = now_ms()
                     WHERE id = $1 AND attempt = $2 AND state = 'pending'",
                    &[Param::Int(self.id), self.attempt.into()],
                )
                .await?
            }
            Report::Later(after, error) => {
                conn.execute(
                    "UPDATE effects SET run_at = now_ms() + $1, last_error = $2
                     WHERE id = $3 AND attempt = $4 AND state = 'pending'",
                    &[
                        (*after).into(),
                        Param::Text(error.as_str()),
                        Param::Int(self.id),
                        self.attempt.into(),
                    ],
                )
                .await?
            }
        };
        if changed > 0 {
            return Ok(());
        }
        let rows = conn
            .query(
                "SELECT attempt, state FROM effects WHERE id = $1",
                &[Param::Int(self.id)],
            )
            .await?;
        let Some(row) = rows.first() else {
            return Err(StoreError::NotFound {
                what: format!("effect {}", self.id),
            });
        };
        let current = row.unsigned(0)?;
        let was_us = current == u64::from(self.attempt) && row.text(1)? == "done";
        if was_us && (again || matches!(self.report, Report::Done)) {
            return Ok(());
        }
        Err(StoreError::Stale {
            what: format!("effect {}", self.id),
            carried: Epoch(u64::from(self.attempt)),
            current: Epoch(current),
        })
    }
}

/// The effects of a task that are still due, oldest first.
#[derive(Debug)]
pub(crate) struct LoadPendingEffects(pub(crate) TaskId);

impl Op for LoadPendingEffects {
    type Out = Vec<Effect>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Effect>> {
        let rows = conn
            .query(
                "SELECT doc FROM effects WHERE state = 'pending' AND task = $1 ORDER BY id",
                &[self.0.into()],
            )
            .await?;
        rows.iter().map(|row| row.json(0, "effect")).collect()
    }
}
