//! One session with the server: statements prepared once, one transaction an operation.

use std::collections::HashMap;

use futures_util::future::join3;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use tokio_postgres::{Client, Error, Statement};
use uuid::Uuid;

use crate::conn::{Conn, Dialect, Op, Param, Row, Value};
use crate::error::{Result, StoreError};
use crate::ops::write::{LeaseChange, TaskWrite};

/// A transition as one statement: if the compare-and-set misses, nothing else happens either.
macro_rules! write_sql {
    ($lease:literal) => {
        concat!(
            "WITH t AS (UPDATE tasks SET epoch = $1, version = $2, state = $3, fresh = $4, \
             claim_key = $5, run_at = $6, holder = $7, doc = $8, updated_at = $9 \
             WHERE id = $10 AND epoch = $11 AND version = $12 RETURNING id), \
             e AS (INSERT INTO events (id, project, task, version, at, kind, policy, doc) \
             SELECT $13::uuid, $14::uuid, t.id, $2, $9, $15::text, $16::text, $17::text FROM t), ",
            $lease,
            "f AS (INSERT INTO effects (key, task, epoch, worker, doc) \
             SELECT x.key, t.id, x.epoch, x.worker, x.doc FROM t, \
             unnest($18::text[], $19::bigint[], $20::uuid[], $21::text[]) \
             WITH ORDINALITY AS x (key, epoch, worker, doc, place) ORDER BY x.place) \
             SELECT count(*) FROM t"
        )
    };
}

/// A transition that keeps its lease as it is.
pub(crate) const WRITE_KEEP: &str = write_sql!("");
/// A transition that drops its lease.
pub(crate) const WRITE_DROP: &str =
    write_sql!("l AS (DELETE FROM leases USING t WHERE leases.resource = $22), ");
/// A transition that takes a lease: a claim.
pub(crate) const WRITE_TAKE: &str = write_sql!(
    "l AS (INSERT INTO leases (resource, task, holder, epoch, claim, expires_at) \
     SELECT $22::text, t.id, $7, $1, $23::uuid, now_ms() + $24::bigint FROM t \
     ON CONFLICT (resource) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch, \
     claim = excluded.claim, expires_at = excluded.expires_at), "
);

/// How an operation ended otherwise than well.
#[derive(Debug)]
pub(super) enum Broken {
    /// The session broke, and surely nothing was committed.
    Before(String),
    /// The session broke while committing: it may have been.
    Committing(String),
    /// The operation was refused; the session is fine.
    Refused(StoreError),
}

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    client: Client,
    /// Prepared statements by the address of their text, which is static.
    statements: HashMap<(usize, usize), Statement>,
    /// The transaction is to begin with the next statement, in the same round trip.
    begin_pending: bool,
    /// The operation under way has a transaction around it.
    in_transaction: bool,
    /// The transaction's commit went along with its last statement.
    commit_sent: bool,
    /// The session is not to be used again.
    lost: Option<String>,
}

impl Session {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            statements: HashMap::new(),
            begin_pending: false,
            in_transaction: false,
            commit_sent: false,
            lost: None,
        }
    }

    pub(super) fn is_usable(&self) -> bool {
        self.lost.is_none() && !self.client.is_closed()
    }

    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Runs an operation in one transaction; a single statement and a read are their own.
    pub(super) async fn perform<O: Op>(
        &mut self,
        op: &O,
        again: bool,
    ) -> std::result::Result<O::Out, Broken> {
        let own_commit = op.single() && !again;
        self.in_transaction = !O::READ && !own_commit;
        self.begin_pending = self.in_transaction;
        self.commit_sent = false;
        let result = op.run(self, again).await;
        if let Some(reason) = self.lost.clone() {
            return Err(if own_commit || self.commit_sent {
                Broken::Committing(reason)
            } else {
                Broken::Before(reason)
            });
        }
        let open = self.in_transaction && !self.begin_pending && !self.commit_sent;
        self.begin_pending = false;
        match result {
            Ok(out) if open => match self.client.batch_execute("COMMIT").await {
                Ok(()) => Ok(out),
                Err(error) => Err(self.commit_failed(&error)),
            },
            Ok(out) => Ok(out),
            Err(error) => {
                if open && let Err(rollback) = self.client.batch_execute("ROLLBACK").await {
                    self.lost = Some(rollback.to_string());
                }
                Err(Broken::Refused(error))
            }
        }
    }

    /// Only a server that says why it refused has surely not committed.
    fn commit_failed(&mut self, error: &Error) -> Broken {
        let reason = error.to_string();
        self.lost = Some(reason.clone());
        match error.code().map(|code| code.code()) {
            Some(code) if code.starts_with("23") || code.starts_with("40") => {
                Broken::Before(reason)
            }
            _ => Broken::Committing(reason),
        }
    }

    async fn statement(&mut self, sql: &'static str) -> Result<Statement> {
        let address = (sql.as_ptr().addr(), sql.len());
        if let Some(statement) = self.statements.get(&address) {
            return Ok(statement.clone());
        }
        let statement = match self.client.prepare(sql).await {
            Ok(statement) => statement,
            Err(error) => return Err(self.classify(&error)),
        };
        self.statements.insert(address, statement.clone());
        Ok(statement)
    }

    /// Runs one statement; the first one of a transaction takes its BEGIN along, the last one may
    /// take its COMMIT. (If the statement fails, the server turns that COMMIT into a rollback.)
    async fn run(
        &mut self,
        sql: &'static str,
        params: &[&(dyn ToSql + Sync)],
        with_commit: bool,
    ) -> Result<(u64, Vec<tokio_postgres::Row>)> {
        let statement = self.statement(sql).await?;
        let changes = statement.columns().is_empty();
        let begin = std::mem::take(&mut self.begin_pending);
        let client = &self.client;
        let begin = async {
            if begin {
                client.batch_execute("BEGIN").await
            } else {
                Ok(())
            }
        };
        let run = async {
            if changes {
                client
                    .execute(&statement, params)
                    .await
                    .map(|count| (count, Vec::new()))
            } else {
                client
                    .query(&statement, params)
                    .await
                    .map(|rows| (rows.len() as u64, rows))
            }
        };
        let commit = async {
            if with_commit {
                client.batch_execute("COMMIT").await
            } else {
                Ok(())
            }
        };
        self.commit_sent = with_commit;
        // Polled in this order, so sent in this order.
        let (begun, result, committed) = join3(begin, run, commit).await;
        match begun
            .and(result)
            .and_then(|result| committed.map(|()| result))
        {
            Ok(result) => Ok(result),
            Err(error) => Err(self.classify(&error)),
        }
    }

    /// What a failure of the server means for the caller; marks the session where it is lost.
    fn classify(&mut self, error: &Error) -> StoreError {
        let Some(code) = error.code() else {
            if error.is_closed() || self.client.is_closed() || is_io(error) {
                self.lost = Some(error.to_string());
                return StoreError::Unavailable(error.to_string());
            }
            return StoreError::Database(error.to_string());
        };
        let message = error
            .as_db_error()
            .map_or_else(|| error.to_string(), |db| db.message().to_owned());
        match code.code() {
            _ if *code == SqlState::DISK_FULL => StoreError::DiskFull,
            // What must be there once is there already: somebody was faster.
            _ if *code == SqlState::UNIQUE_VIOLATION => StoreError::Conflict { what: message },
            // The server is going away or gave up on this transaction: nothing of it is committed,
            // and a fresh session may try again.
            class
                if class.starts_with("57P")
                    || class.starts_with("08")
                    || class.starts_with("40") =>
            {
                self.lost = Some(message.clone());
                StoreError::Unavailable(message)
            }
            class
                if class.starts_with("53")
                    || class.starts_with("55")
                    || class.starts_with("57") =>
            {
                StoreError::Unavailable(message)
            }
            class => StoreError::Database(format!("{message} (SQLSTATE {class})")),
        }
    }
}

fn is_io(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

impl Conn for Session {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn execute(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<u64> {
        let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|p| p as _).collect();
        self.run(sql, &params, false).await.map(|(count, _)| count)
    }

    async fn query(&mut self, sql: &'static str, params: &[Param<'_>]) -> Result<Vec<Row>> {
        let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|p| p as _).collect();
        let (_, rows) = self.run(sql, &params, false).await?;
        rows.iter().map(row).collect()
    }

    async fn write_task(&mut self, write: &TaskWrite, is_last: bool) -> Result<bool> {
        let keys: Vec<&str> = write.effects.iter().map(|e| e.key.as_str()).collect();
        let epochs: Vec<i64> = write
            .effects
            .iter()
            .map(|e| e.epoch.0.cast_signed())
            .collect();
        let workers: Vec<Option<Uuid>> = write
            .effects
            .iter()
            .map(|e| e.worker.map(woodward_core::WorkerId::as_uuid))
            .collect();
        let docs: Vec<&str> = write.effects.iter().map(|e| e.doc.as_str()).collect();
        let update = write.update_params();
        let event: [Param<'_>; 5] = [
            write.event.id.into(),
            write.project.into(),
            write.event.kind.into(),
            (&write.event.policy).into(),
            (&write.event.doc).into(),
        ];
        let (sql, extra): (_, Vec<Param<'_>>) = match &write.lease {
            LeaseChange::Keep => (WRITE_KEEP, vec![]),
            LeaseChange::Drop { resource } => (WRITE_DROP, vec![resource.into()]),
            LeaseChange::Take {
                resource,
                claim,
                length,
                ..
            } => (
                WRITE_TAKE,
                vec![resource.into(), (*claim).into(), (*length).into()],
            ),
        };
        let mut params: Vec<&(dyn ToSql + Sync)> =
            update.iter().chain(&event).map(|p| p as _).collect();
        params.extend_from_slice(&[&keys, &epochs, &workers, &docs]);
        params.extend(extra.iter().map(|p| p as &(dyn ToSql + Sync)));
        let with_commit = is_last && self.in_transaction;
        let (_, rows) = self.run(sql, &params, with_commit).await?;
        let written: i64 = rows.first().map_or(0, |row| row.get(0));
        Ok(written == 1)
    }
}

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(int) => int.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Id(id) => id.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::TEXT | Type::UUID)
    }

    to_sql_checked!();
}

fn row(row: &tokio_postgres::Row) -> Result<Row> {
    let values = row
        .columns()
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let value = match *column.type_() {
                Type::INT8 => row.try_get(index).map(|v: Option<i64>| v.map(Value::Int)),
                Type::TEXT => row
                    .try_get(index)
                    .map(|v: Option<String>| v.map(Value::Text)),
                Type::UUID => row.try_get(index).map(|v: Option<Uuid>| v.map(Value::Id)),
                ref other => {
                    return Err(StoreError::corrupt(
                        "row",
                        format!("a column of type {other}"),
                    ));
                }
            };
            value
                .map(|value| value.unwrap_or(Value::Null))
                .map_err(|error| StoreError::corrupt("row", error))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Row(values))
}
