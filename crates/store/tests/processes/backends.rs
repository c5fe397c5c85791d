//! Where a database is, in a form that a child process can be told.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use woodward_store::{PostgresStore, SqliteOptions, SqliteStore, Store};
use woodward_testkit::postgres::PgAccess;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        })
    }
}

impl Backend {
    /// The address of a fresh database.
    pub(crate) fn fresh(self, directory: &Path) -> anyhow::Result<String> {
        Ok(match self {
            Self::Sqlite => format!("sqlite:{}", directory.join("woodward.db").display()),
            Self::Postgres => {
                let url = PgAccess::shared()
                    .map_err(|error| anyhow::anyhow!("{error}"))?
                    .create_database()?;
                format!("postgres:{url}")
            }
        })
    }
}

/// Opens a database that other processes use too.
pub(crate) async fn open(address: &str) -> anyhow::Result<Arc<dyn Store>> {
    let (kind, place) = address
        .split_once(':')
        .ok_or_else(|| anyhow::anyhow!("no database address: {address}"))?;
    Ok(match kind {
        "sqlite" => {
            let shared = SqliteOptions {
                exclusive: false,
                ..SqliteOptions::default()
            };
            Arc::new(SqliteStore::open_with(Path::new(place), shared)?)
        }
        _ => Arc::new(PostgresStore::connect(place).await?),
    })
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts")
}
