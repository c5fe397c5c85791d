//! Looking at tasks.

use woodward_core::{Epoch, ProjectId, Task, TaskId, TaskName, Version};

use crate::conn::{Conn, Op, Param, Row};
use crate::error::{Result, StoreError};
use crate::ops::write::locking;
use crate::records::{PAGE_MAX, TaskClaim, TaskFilter};

pub(crate) fn not_found(task: TaskId) -> StoreError {
    StoreError::NotFound {
        what: format!("task {task}"),
    }
}

pub(crate) fn read(row: &Row, column: usize) -> Result<Task> {
    row.json(column, "task")
}

fn first(rows: &[Row]) -> Result<Option<Task>> {
    rows.first().map(|row| read(row, 0)).transpose()
}

/// A task of the hot table, locked until the transaction ends.
pub(crate) async fn require_locked<C: Conn>(conn: &mut C, task: TaskId) -> Result<Task> {
    let sql = locking::<C>(
        "SELECT doc FROM tasks WHERE id = $1",
        "SELECT doc FROM tasks WHERE id = $1 FOR UPDATE",
    );
    let rows = conn.query(sql, &[task.into()]).await?;
    first(&rows)?.ok_or_else(|| not_found(task))
}

/// Refuses a write on behalf of a claim that is no longer current; the claim can't change until
/// the transaction ends.
pub(crate) async fn require_claim<C: Conn>(conn: &mut C, claim: TaskClaim) -> Result<()> {
    let sql = locking::<C>(
        "SELECT epoch, name FROM tasks WHERE id = $1",
        "SELECT epoch, name FROM tasks WHERE id = $1 FOR SHARE",
    );
    let rows = conn.query(sql, &[claim.task.into()]).await?;
    let row = rows.first().ok_or_else(|| not_found(claim.task))?;
    let current = Epoch(row.unsigned(0)?);
    if current == claim.epoch {
        Ok(())
    } else {
        Err(StoreError::Stale {
            what: format!("task `{}`", row.text(1)?),
            carried: claim.epoch,
            current,
        })
    }
}

/// Refuses to give an open task's name to another one.
pub(crate) async fn require_free_name<C: Conn>(
    conn: &mut C,
    project: ProjectId,
    name: &TaskName,
) -> Result<()> {
    let open = conn
        .query(OPEN_BY_NAME, &[project.into(), Param::Text(name.as_str())])
        .await?;
    match open.first() {
        None => Ok(()),
        Some(_) => Err(StoreError::NameTaken { name: name.clone() }),
    }
}

const OPEN_BY_NAME: &str = "SELECT doc FROM tasks WHERE project = $1 AND name = $2
     AND state NOT IN ('landed', 'cancelled', 'superseded')";

/// A task by its id, archived or not.
#[derive(Debug)]
pub(crate) struct LoadTask(pub(crate) TaskId);

impl Op for LoadTask {
    type Out = Option<Task>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Option<Task>> {
        let rows = conn
            .query(
                "SELECT doc FROM tasks WHERE id = $1
                 UNION ALL SELECT doc FROM tasks_archive WHERE id = $1 LIMIT 1",
                &[self.0.into()],
            )
            .await?;
        first(&rows)
    }
}

/// A task by its name: the open one, else the one that finished last.
#[derive(Debug)]
pub(crate) struct FindTask {
    pub(crate) project: ProjectId,
    pub(crate) name: TaskName,
}

impl Op for FindTask {
    type Out = Option<Task>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Option<Task>> {
        let params = [self.project.into(), Param::Text(self.name.as_str())];
        let open = conn.query(OPEN_BY_NAME, &params).await?;
        if let Some(task) = first(&open)? {
            return Ok(Some(task));
        }
        let finished = conn
            .query(
                "SELECT doc FROM (
                     SELECT doc, updated_at AS finished_at, id FROM tasks
                     WHERE project = $1 AND name = $2
                     UNION ALL
                     SELECT doc, finished_at, id FROM tasks_archive
                     WHERE project = $1 AND name = $2) AS finished
                 ORDER BY finished_at DESC, id DESC LIMIT 1",
                &params,
            )
            .await?;
        first(&finished)
    }
}

/// A page of tasks of the hot table, by id.
#[derive(Debug)]
pub(crate) struct LoadTasks(pub(crate) TaskFilter);

impl Op for LoadTasks {
    type Out = Vec<Task>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Task>> {
        let filter = &self.0;
        let limit = filter.limit.unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let from = filter.after.map_or_else(uuid::Uuid::nil, TaskId::as_uuid);
        // Where a condition is not asked for, its own parameter decides that it holds.
        let rows = conn
            .query(
                "SELECT doc FROM tasks WHERE id > $1
                 AND (CAST($2 AS bigint) = 0 OR project = $3)
                 AND (CAST($4 AS bigint) = 0 OR holder = $5)
                 AND (CAST($6 AS bigint) = 0 OR state NOT IN ('landed', 'cancelled', 'superseded'))
                 AND (CAST($7 AS bigint) = 0 OR name = $8)
                 ORDER BY id LIMIT $9",
                &[
                    Param::Id(from),
                    Param::Int(i64::from(filter.project.is_some())),
                    Param::opt_id(filter.project),
                    Param::Int(i64::from(filter.holder.is_some())),
                    Param::opt_id(filter.holder),
                    Param::Int(i64::from(filter.open_only)),
                    Param::Int(i64::from(filter.name.is_some())),
                    Param::opt_text(filter.name.as_ref().map(TaskName::as_str)),
                    limit.into(),
                ],
            )
            .await?;
        rows.iter().map(|row| read(row, 0)).collect()
    }
}

/// The versions of a page of a project's open tasks, by id.
#[derive(Debug)]
pub(crate) struct LoadOpenVersions {
    pub(crate) project: ProjectId,
    pub(crate) after: Option<TaskId>,
}

impl Op for LoadOpenVersions {
    type Out = Vec<(TaskId, Version)>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<(TaskId, Version)>> {
        let from = self.after.map_or_else(uuid::Uuid::nil, TaskId::as_uuid);
        let rows = conn
            .query(
                "SELECT id, version FROM tasks WHERE project = $1
                 AND state NOT IN ('landed', 'cancelled', 'superseded') AND id > $2
                 ORDER BY id LIMIT $3",
                &[self.project.into(), Param::Id(from), PAGE_MAX.into()],
            )
            .await?;
        rows.iter()
            .map(|row| Ok((TaskId::new(row.id(0)?), Version(row.unsigned(1)?))))
            .collect()
    }
}

/// How many finished tasks of a project are not archived.
#[derive(Debug)]
pub(crate) struct CountFinished(pub(crate) ProjectId);

impl Op for CountFinished {
    type Out = u64;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<u64> {
        let rows = conn
            .query(
                "SELECT count(*) FROM tasks
                 WHERE project = $1 AND state IN ('landed', 'cancelled', 'superseded')",
                &[self.0.into()],
            )
            .await?;
        rows.first().map_or(Ok(0), |row| row.unsigned(0))
    }
}

/// The tasks that come after a task.
#[derive(Debug)]
pub(crate) struct LoadDependents(pub(crate) TaskId);

impl Op for LoadDependents {
    type Out = Vec<TaskId>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<TaskId>> {
        let rows = conn
            .query(
                "SELECT task FROM task_after WHERE on_task = $1 ORDER BY task",
                &[self.0.into()],
            )
            .await?;
        rows.iter().map(|row| row.id(0).map(TaskId::new)).collect()
    }
}
