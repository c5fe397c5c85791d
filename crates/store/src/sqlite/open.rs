//! Opening connections with the settings that durability rests on, and migrating.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::conn::classify;
use crate::error::Result;
use crate::migrate::{self, SQLITE};

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Whether to be the only daemon on it. Diagnostics and tests may share: SQLite's own locks keep
    /// that correct, only slower.
    pub exclusive: bool,
    /// How many threads read.
    pub readers: usize,
    /// How long to wait for another process's write.
    pub busy_timeout: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            exclusive: true,
            readers: 2,
            busy_timeout: Duration::from_secs(30),
        }
    }
}

/// Statements that stay prepared; more than there are.
const STATEMENTS: usize = 128;

/// A reader keeps so many kibibytes of pages. What it does not keep, the kernel's page cache has.
const READER_CACHE: &str = "PRAGMA cache_size = -512;";

/// `synchronous=FULL`: a commit is on disk before it is acknowledged. Group commit makes it cheap.
const DURABLE: &str = "PRAGMA journal_mode = WAL;
     PRAGMA synchronous = FULL;
     PRAGMA foreign_keys = ON;
     PRAGMA wal_autocheckpoint = 1000;
     PRAGMA journal_size_limit = 67108864;
     PRAGMA cache_size = -1024;
     PRAGMA temp_store = MEMORY;";

pub(super) fn writer(path: &Path, options: &SqliteOptions) -> Result<Connection> {
    let mut connection = Connection::open(path).map_err(classify)?;
    prepare(&connection, options)?;
    connection.execute_batch(DURABLE).map_err(classify)?;
    run_migrations(&mut connection)?;
    Ok(connection)
}

pub(super) fn reader(path: &Path, options: &SqliteOptions) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(classify)?;
    prepare(&connection, options)?;
    connection.execute_batch(READER_CACHE).map_err(classify)?;
    Ok(connection)
}

fn prepare(connection: &Connection, options: &SqliteOptions) -> Result<()> {
    connection
        .busy_timeout(options.busy_timeout)
        .map_err(classify)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection
        .create_scalar_function("now_ms", 0, FunctionFlags::SQLITE_UTF8, |_| Ok(now_ms()))
        .map_err(classify)
}

/// The database's clock. An embedded database has its machine's.
fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
}

fn run_migrations(connection: &mut Connection) -> Result<()> {
    let version = |connection: &Connection| {
        connection
            .query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
            .map_err(classify)
    };
    if migrate::missing(SQLITE, version(connection)?)?.is_empty() {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(classify)?;
    // Another process may have migrated while we waited for the lock.
    for migration in migrate::missing(SQLITE, version(&transaction)?)? {
        transaction.execute_batch(migration.sql).map_err(classify)?;
        transaction
            .pragma_update(None, "user_version", migration.version)
            .map_err(classify)?;
    }
    transaction.commit().map_err(classify)
}
