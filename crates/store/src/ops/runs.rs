//! Runs.

use woodward_core::{ProjectId, TaskId, TaskName, Timestamp};

use crate::conn::{Conn, Op, Param, to_json};
use crate::error::{Result, StoreError};
use crate::ops::tasks;
use crate::records::{Run, RunState, TaskClaim};
use crate::wake::Wakes;

/// Records a run as it stands now, on behalf of the claim it belongs to.
#[derive(Debug)]
pub(crate) struct SaveRun(pub(crate) Run);

impl Op for SaveRun {
    type Out = ();

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

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

/// A project's runs that started at a moment or later, oldest first, with the names of their tasks.
#[derive(Debug)]
pub(crate) struct LoadRunsSince {
    pub(crate) project: ProjectId,
    pub(crate) since: Timestamp,
}

impl Op for LoadRunsSince {
    type Out = Vec<(TaskName, Run)>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Self::Out> {
        let rows = conn
            .query(
                "SELECT named.name, runs.doc FROM runs
                 JOIN (SELECT id, name FROM tasks WHERE project = $1
                       UNION ALL SELECT id, name FROM tasks_archive WHERE project = $1) AS named
                   ON named.id = runs.task
                 WHERE runs.started_at >= $2 ORDER BY runs.started_at, runs.id",
                &[self.project.into(), self.since.into()],
            )
            .await?;
        rows.iter()
            .map(|row| {
                let name = row.text(0)?;
                let name = name
                    .parse()
                    .map_err(|_| StoreError::corrupt("task", format!("bad name `{name}`")))?;
                Ok((name, row.json(1, "run")?))
            })
            .collect()
    }
}
