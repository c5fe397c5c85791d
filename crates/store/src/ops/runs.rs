//! Runs.

use woodward_core::TaskId;

use crate::conn::{Conn, Op, Param, to_json};
use crate::error::Result;
use crate::ops::tasks;
use crate::records::{Run, RunState, TaskClaim};

/// Records a run as it stands now, on behalf of the claim it belongs to.
#[derive(Debug)]
pub(crate) struct SaveRun(pub(crate) Run);

impl Op for SaveRun {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        let run = &self.0;
        let claim = TaskClaim {
            task: run.task,
            epoch: run.epoch,
        };
        tasks::require_claim(conn, claim).await?;
        let state = match run.state {
            RunState::Starting => "starting",
            RunState::Running => "running",
            RunState::Finished => "finished",
        };
        conn.execute(
            "INSERT INTO runs (id, task, epoch, state, started_at, doc)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (id) DO UPDATE SET state = excluded.state, doc = excluded.doc",
            &[
                run.id.into(),
                run.task.into(),
                run.epoch.into(),
                Param::Text(state),
                run.started_at.into(),
                (&to_json(run)).into(),
            ],
        )
        .await
        .map(drop)
    }
}

/// A task's runs, oldest first.
#[derive(Debug)]
pub(crate) struct LoadRuns(pub(crate) TaskId);

impl Op for LoadRuns {
    type Out = Vec<Run>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Run>> {
        let rows = conn
            .query(
                "SELECT doc FROM runs WHERE task = $1 ORDER BY started_at, id",
                &[self.0.into()],
            )
            .await?;
        rows.iter().map(|row| row.json(0, "run")).collect()
    }
}
