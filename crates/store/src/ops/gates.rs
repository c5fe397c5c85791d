//! Gate results, keyed by task, claim, commit and gate; and what is known of content, whoever asks.

use woodward_core::{Epoch, ProjectId, TaskId, WorkerId};

use crate::conn::{Conn, Op, Param, to_json};
use crate::error::Result;
use crate::ops::{leases, tasks};
use crate::records::{GateResult, LeaseRef, PAGE_MAX, TaskClaim};
use crate::wake::Wakes;

/// Records what gates said, on behalf of a claim. Saying it again changes nothing.
#[derive(Debug)]
pub(crate) struct SaveGateResults {
    pub(crate) claim: TaskClaim,
    pub(crate) results: Vec<GateResult>,
}

impl Op for SaveGateResults {
    type Out = ();

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        tasks::require_claim(conn, self.claim).await?;
        insert(conn, self.claim, &self.results).await
    }
}

/// Records what gates said of a merged tree, with every task in it, under the right to land there.
/// Saying it again changes nothing.
#[derive(Debug)]
pub(crate) struct SaveMergedResults {
    pub(crate) worker: WorkerId,
    pub(crate) right: LeaseRef,
    pub(crate) tasks: Vec<TaskId>,
    pub(crate) results: Vec<GateResult>,
}

impl Op for SaveMergedResults {
    type Out = ();

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        let LeaseRef { resource, epoch } = &self.right;
        leases::require(conn, resource, self.worker, *epoch).await?;
        for task in &self.tasks {
            let rows = conn
                .query("SELECT epoch FROM tasks WHERE id = $1", &[(*task).into()])
                .await?;
            let Some(row) = rows.first() else {
                continue;
            };
            let claim = TaskClaim {
                task: *task,
                epoch: Epoch(row.unsigned(0)?),
            };
            insert(conn, claim, &self.results).await?;
        }
        Ok(())
    }
}

async fn insert<C: Conn>(conn: &mut C, claim: TaskClaim, results: &[GateResult]) -> Result<()> {
    for result in results {
        conn.execute(
            "INSERT INTO gate_results (task, epoch, commit_id, gate, doc)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (task, epoch, commit_id, gate) DO NOTHING",
            &[
                claim.task.into(),
                claim.epoch.into(),
                Param::Text(result.commit.as_str()),
                Param::Text(result.gate.as_str()),
                (&to_json(result)).into(),
            ],
        )
        .await?;
    }
    Ok(())
}

/// All gate results of a task, by claim, commit and gate.
#[derive(Debug)]
pub(crate) struct LoadGateResults(pub(crate) TaskId);

impl Op for LoadGateResults {
    type Out = Vec<GateResult>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<GateResult>> {
        let rows = conn
            .query(
                "SELECT doc FROM gate_results WHERE task = $1 ORDER BY epoch, commit_id, gate",
                &[self.0.into()],
            )
            .await?;
        rows.iter().map(|row| row.json(0, "gate result")).collect()
    }
}

/// What a gate said of content.
#[derive(Debug)]
pub(crate) struct LoadVerdict {
    pub(crate) project: ProjectId,
    pub(crate) key: String,
}

impl Op for LoadVerdict {
    type Out = Option<GateResult>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Option<GateResult>> {
        let rows = conn
            .query(
                "SELECT doc FROM gate_cache WHERE project = $1 AND key = $2",
                &[self.project.into(), Param::Text(&self.key)],
            )
            .await?;
        rows.first()
            .map(|row| row.json(0, "gate verdict"))
            .transpose()
    }
}

/// Remembers what a gate said of content; a newer look takes the place of an older one.
#[derive(Debug)]
pub(crate) struct SaveVerdict {
    pub(crate) project: ProjectId,
    pub(crate) key: String,
    pub(crate) result: GateResult,
}

impl Op for SaveVerdict {
    type Out = ();

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        conn.execute(
            "INSERT INTO gate_cache (project, key, at, doc) VALUES ($1, $2, $3, $4)
             ON CONFLICT (project, key) DO UPDATE SET at = excluded.at, doc = excluded.doc
             WHERE gate_cache.at <= excluded.at",
            &[
                self.project.into(),
                Param::Text(&self.key),
                self.result.at.into(),
                (&to_json(&self.result)).into(),
            ],
        )
        .await
        .map(drop)
    }
}

/// What gates of a project said of content, the newest first.
#[derive(Debug)]
pub(crate) struct LoadVerdicts {
    pub(crate) project: ProjectId,
    pub(crate) limit: u32,
}

impl Op for LoadVerdicts {
    type Out = Vec<GateResult>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<GateResult>> {
        let limit = i64::from(self.limit.min(PAGE_MAX));
        let rows = conn
            .query(
                "SELECT doc FROM gate_cache WHERE project = $1 ORDER BY at DESC, key LIMIT $2",
                &[self.project.into(), limit.into()],
            )
            .await?;
        rows.iter().map(|row| row.json(0, "gate verdict")).collect()
    }
}
