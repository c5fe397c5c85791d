//! SQLite as a [`Conn`]: every future is ready at once.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, ToSql};
use uuid::Uuid;

use crate::conn::{Conn, Dialect, Op, Param, Row, Value};
use crate::error::{Result, StoreError};
use crate::ops::write::{
    DROP_LEASE, INSERT_EFFECT, INSERT_EVENT, LeaseChange, TAKE_LEASE, TaskWrite, UPDATE_TASK,
};

#[derive(Debug)]
pub(super) struct SqliteConn(pub(super) Connection);

impl SqliteConn {
    /// Runs an operation to its end.
    pub(super) fn run<O: Op>(&mut self, op: &O) -> Result<O::Out> {
        let future = pin!(op.run(self, false));
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => unreachable!("nothing on SQLite waits"),
        }
    }

    fn prepare(&self, sql: &'static str, params: &[Param<'_>]) -> Result<CachedStatement<'_>> {
        let mut statement = self.0.prepare_cached(sql).map_err(classify)?;
        for (index, param) in params.iter().enumerate() {
            debug_assert_eq!(
                statement.parameter_index(&format!("${}", index + 1)),
                Ok(Some(index + 1)),
                "parameters must be numbered in the order of their first appearance: {sql}"
            );
            statement
                .raw_bind_parameter(index + 1, param)
                .map_err(classify)?;
        }
        Ok(statement)
    }

    fn run_statement(&self, sql: &'static str, params: &[Param<'_>]) -> Result<u64> {
        let changed = self.prepare(sql, params)?.raw_execute().map_err(classify)?;
        Ok(changed as u64)
    }

    fn rows(&self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let mut statement = self.prepare(sql, params)?;
        let columns = statement.column_count();
        let mut rows = statement.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(classify)? {
            let values = (0..columns)
                .map(|column| value(row.get_ref(column).map_err(classify)?))
                .collect::<Result<Vec<_>>>()?;
            found.push(Row(values));
        }
        Ok(found)
    }

    fn write(&self, write: &TaskWrite) -> Result<bool> {
        let columns = &write.columns;
        let updated = self.run_statement(UPDATE_TASK, &write.update_params())?;
        if updated == 0 {
            return Ok(false);
        }
        self.run_statement(
            INSERT_EVENT,
            &[
                write.event.id.into(),
                write.project.into(),
                write.task.into(),
                columns.version.into(),
                write.event.at.into(),
                write.event.kind.into(),
                (&write.event.policy).into(),
                (&write.event.doc).into(),
            ],
        )?;
        match &write.lease {
            LeaseChange::Keep => {}
            LeaseChange::Take {
                resource,
                worker,
                claim,
                length,
            } => {
                self.run_statement(
                    TAKE_LEASE,
                    &[
                        resource.into(),
                        write.task.into(),
                        (*worker).into(),
                        columns.epoch.into(),
                        (*claim).into(),
                        (*length).into(),
                    ],
                )?;
            }
            LeaseChange::Drop { resource } => {
                self.run_statement(DROP_LEASE, &[resource.into()])?;
            }
        }
        for effect in &write.effects {
            self.run_statement(
                INSERT_EFFECT,
                &[
                    (&effect.key).into(),
                    write.task.into(),
                    effect.epoch.into(),
                    Param::opt_id(effect.worker),
                    (&effect.doc).into(),
                ],
            )?;
        }
        Ok(true)
    }
}

impl Conn for SqliteConn {
    const DIALECT: Dialect = Dialect::Sqlite;

    async fn execute(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<u64> {
        self.run_statement(sql, params)
    }

    async fn query(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        self.rows(sql, params)
    }

    async fn write_task(&mut self, write: &TaskWrite, _is_last: bool) -> Result<bool> {
        self.write(write)
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(int) => ValueRef::Integer(*int),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Id(id) => ValueRef::Blob(id.as_bytes()),
        }))
    }
}

fn value(found: ValueRef<'_>) -> Result<Value> {
    Ok(match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(int) => Value::Int(int),
        ValueRef::Text(text) => Value::Text(
            std::str::from_utf8(text)
                .map_err(|error| StoreError::corrupt("text", error))?
                .to_owned(),
        ),
        ValueRef::Blob(bytes) => {
            Value::Id(Uuid::from_slice(bytes).map_err(|error| StoreError::corrupt("id", error))?)
        }
        ValueRef::Real(_) => return Err(StoreError::corrupt("row", "a fraction")),
    })
}

/// What a failure of SQLite means for the caller.
pub(super) fn classify(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Unavailable(format!("another process is writing: {error}"))
        }
        Some(ErrorCode::DiskFull) => StoreError::DiskFull,
        // What must be there once is there already: somebody was faster.
        Some(ErrorCode::ConstraintViolation) => StoreError::Conflict {
            what: error.to_string(),
        },
        Some(ErrorCode::SystemIoFailure) => StoreError::Poisoned(error.to_string()),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            StoreError::Unavailable(error.to_string())
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            StoreError::corrupt("database", error)
        }
        _ => StoreError::Database(error.to_string()),
    }
}
