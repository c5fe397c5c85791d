//! Workers and when they were last heard of, by the database's clock.

use woodward_core::{Timestamp, WorkerId};

use crate::conn::{Conn, Op, Param, Row};
use crate::error::{Result, StoreError};
use crate::records::Worker;
use crate::wake::Wakes;

fn read(row: &Row) -> Result<Worker> {
    Ok(Worker {
        id: WorkerId::new(row.id(0)?),
        host: row.text(1)?.to_owned(),
        pid: u32::try_from(row.int(2)?).unwrap_or_default(),
        version: row.text(3)?.to_owned(),
        started_at: Timestamp(row.int(4)?),
        seen_at: Timestamp(row.int(5)?),
    })
}

/// A process starts to speak for a worker. What was handed to the process before it is due again at
/// once: that one will not report back.
#[derive(Debug)]
pub(crate) struct RegisterWorker {
    pub(crate) id: WorkerId,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) version: String,
}

impl Op for RegisterWorker {
    type Out = Worker;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Worker> {
        conn.execute(
            "UPDATE effects SET run_at = now_ms()
             WHERE state = 'pending' AND worker = $1 AND run_at > now_ms()",
            &[self.id.into()],
        )
        .await?;
        conn.execute(
            "UPDATE ledger SET run_at = now_ms(), holder = NULL
             WHERE state = 'pending' AND holder = $1",
            &[self.id.into()],
        )
        .await?;
        let rows = conn
            .query(
                "INSERT INTO workers (id, host, pid, version, started_at, seen_at)
                 VALUES ($1, $2, $3, $4, now_ms(), now_ms())
                 ON CONFLICT (id) DO UPDATE SET host = excluded.host, pid = excluded.pid,
                     version = excluded.version, started_at = excluded.started_at,
                     seen_at = excluded.seen_at
                 RETURNING id, host, pid, version, started_at, seen_at",
                &[
                    self.id.into(),
                    (&self.host).into(),
                    Param::Int(i64::from(self.pid)),
                    (&self.version).into(),
                ],
            )
            .await?;
        rows.first()
            .map(read)
            .transpose()?
            .ok_or_else(|| StoreError::corrupt("worker", "an upsert returned nothing"))
    }
}

/// A worker is still there.
#[derive(Debug)]
pub(crate) struct SeeWorker(pub(crate) WorkerId);

impl Op for SeeWorker {
    type Out = ();
    const RENEWAL: bool = true;

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        let changed = conn
            .execute(
                "UPDATE workers SET seen_at = now_ms() WHERE id = $1",
                &[self.0.into()],
            )
            .await?;
        if changed == 0 {
            return Err(StoreError::NotFound {
                what: format!("worker {}", self.0),
            });
        }
        Ok(())
    }
}

/// All workers, the one heard of last first.
#[derive(Debug)]
pub(crate) struct LoadWorkers;

impl Op for LoadWorkers {
    type Out = Vec<Worker>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Worker>> {
        let rows = conn
            .query(
                "SELECT id, host, pid, version, started_at, seen_at FROM workers
                 ORDER BY seen_at DESC, id",
                &[],
            )
            .await?;
        rows.iter().map(read).collect()
    }
}
