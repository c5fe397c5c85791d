//! The small connection trait that the operations are written against.
//!
//! Statements are `'static` texts in the SQL that both databases understand, with parameters
//! numbered `$1, $2, …` in the order of their first appearance (SQLite numbers by appearance;
//! checked in debug builds). On SQLite every future is ready at once.

use std::future::Future;

use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::ops::write::TaskWrite;
use crate::wake::Wakes;

/// Which SQL is spoken, for the few statements that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// A value handed to a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Param<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Id(Uuid),
}

/// A value that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Id(Uuid),
}

/// One row that came back.
#[derive(Clone, Debug)]
pub(crate) struct Row(pub(crate) Vec<Value>);

/// A connection inside one transaction.
pub(crate) trait Conn: Send {
    const DIALECT: Dialect;

    /// Runs a statement; how many rows it changed.
    fn execute(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<u64>> + Send;

    /// Runs a query; its rows.
    fn query(
        &mut self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Vec<Row>>> + Send;

    /// Writes one transition: compare-and-set of the task, its event, its effects, its lease.
    /// `false` if the task was not at the expected epoch and version: then nothing was written.
    /// After the last statement of a transaction there is nothing left to decide, so its commit may
    /// travel along with it.
    fn write_task(
        &mut self,
        write: &TaskWrite,
        is_last: bool,
    ) -> impl Future<Output = Result<bool>> + Send;
}

/// One operation: what to do, as data.
///
/// An operation may be run more than once: on SQLite when another one of its group failed and the
/// group was rolled back; on PostgreSQL when the connection broke while committing. In the latter
/// case `again` is true: an earlier run may have been committed, so the operation must look before
/// it acts.
pub(crate) trait Op: Send + Sync + 'static {
    type Out: Send + 'static;

    /// Whether it only reads.
    const READ: bool = false;

    /// Whether it only says that its worker is still there.
    const RENEWAL: bool = false;

    /// Who has something new to read once it has written.
    fn wakes(&self) -> Wakes {
        Wakes::WORK
    }

    /// Whether it is a single statement, which needs no transaction around it.
    fn single(&self) -> bool {
        false
    }

    fn run<C: Conn>(
        &self,
        conn: &mut C,
        again: bool,
    ) -> impl Future<Output = Result<Self::Out>> + Send;
}

impl<'a> Param<'a> {
    pub(crate) fn opt_id(id: Option<impl Into<Self>>) -> Self {
        id.map_or(Self::Null, Into::into)
    }

    pub(crate) fn opt_text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }

    pub(crate) fn opt_int(int: Option<i64>) -> Self {
        int.map_or(Self::Null, Self::Int)
    }
}

macro_rules! ids {
    ($($id:ty),+) => {$(
        impl From<$id> for Param<'_> {
            fn from(id: $id) -> Self {
                Self::Id(id.as_uuid())
            }
        }
    )+};
}

ids!(
    woodward_core::ProjectId,
    woodward_core::TaskId,
    woodward_core::RunId,
    woodward_core::EventId,
    woodward_core::MessageId,
    woodward_core::IntentId,
    woodward_core::WorkerId,
    woodward_core::ClaimId
);

macro_rules! counters {
    ($($counter:ty),+) => {$(
        impl From<$counter> for Param<'_> {
            fn from(counter: $counter) -> Self {
                Self::Int(counter.0.cast_signed())
            }
        }
    )+};
}

counters!(
    woodward_core::Epoch,
    woodward_core::Version,
    woodward_core::EventSeq,
    woodward_core::Millis
);

impl From<woodward_core::Timestamp> for Param<'_> {
    fn from(at: woodward_core::Timestamp) -> Self {
        Self::Int(at.0)
    }
}

impl From<i64> for Param<'_> {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<u32> for Param<'_> {
    fn from(int: u32) -> Self {
        Self::Int(i64::from(int))
    }
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl Row {
    fn value(&self, column: usize) -> Result<&Value> {
        self.0
            .get(column)
            .ok_or_else(|| StoreError::corrupt("row", format!("no column {column}")))
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64> {
        match self.value(column)? {
            Value::Int(int) => Ok(*int),
            other => Err(unexpected(column, "a number", other)),
        }
    }

    pub(crate) fn opt_int(&self, column: usize) -> Result<Option<i64>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            _ => self.int(column).map(Some),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<&str> {
        match self.value(column)? {
            Value::Text(text) => Ok(text),
            other => Err(unexpected(column, "a text", other)),
        }
    }

    pub(crate) fn opt_text(&self, column: usize) -> Result<Option<&str>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            _ => self.text(column).map(Some),
        }
    }

    pub(crate) fn id(&self, column: usize) -> Result<Uuid> {
        match self.value(column)? {
            Value::Id(id) => Ok(*id),
            other => Err(unexpected(column, "an id", other)),
        }
    }

    pub(crate) fn opt_id(&self, column: usize) -> Result<Option<Uuid>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            _ => self.id(column).map(Some),
        }
    }

    pub(crate) fn unsigned(&self, column: usize) -> Result<u64> {
        u64::try_from(self.int(column)?)
            .map_err(|_| StoreError::corrupt("row", format!("column {column} is negative")))
    }

    pub(crate) fn json<T: serde::de::DeserializeOwned>(
        &self,
        column: usize,
        what: &'static str,
    ) -> Result<T> {
        serde_json::from_str(self.text(column)?).map_err(|error| StoreError::corrupt(what, error))
    }

    pub(crate) fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        column: usize,
        what: &'static str,
    ) -> Result<T> {
        self.text(column)?
            .parse()
            .map_err(|error| StoreError::corrupt(what, error))
    }
}

fn unexpected(column: usize, wanted: &str, found: &Value) -> StoreError {
    let kind = match found {
        Value::Null => "nothing",
        Value::Int(_) => "a number",
        Value::Text(_) => "a text",
        Value::Id(_) => "an id",
    };
    StoreError::corrupt("row", format!("column {column} holds {kind}, not {wanted}"))
}

/// Serialises what is known to serialise: plain data with string keys.
pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("records are plain data with string keys")
}
