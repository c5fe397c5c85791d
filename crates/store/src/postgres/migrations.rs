//! Bringing a PostgreSQL database's schema forward, one process at a time.

use super::conn::Session;
use super::pool::{Pool, describe};
use crate::error::{Result, StoreError};
use crate::migrate::{self, POSTGRES};

/// The advisory lock under which a database is migrated; any number that nobody else uses.
const LOCK: i64 = 0x776f_6f64_7761_7264;

pub(super) async fn run(pool: &Pool) -> Result<()> {
    let mut link = pool.take().await.map_err(StoreError::Unavailable)?;
    let outcome = link.with_session(migrate).await;
    pool.give_back(link);
    outcome
}

async fn migrate(session: &mut Session) -> Result<()> {
    let refused = |error: tokio_postgres::Error| StoreError::Database(describe(&error));
    let transaction = session.client().transaction().await.map_err(refused)?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await
        .map_err(refused)?;
    transaction
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS schema_version (
                 version bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())",
        )
        .await
        .map_err(refused)?;
    let found: i64 = transaction
        .query_one("SELECT coalesce(max(version), 0) FROM schema_version", &[])
        .await
        .map_err(refused)?
        .get(0);
    for migration in migrate::missing(POSTGRES, found)? {
        transaction
            .batch_execute(migration.sql)
            .await
            .map_err(refused)?;
        transaction
            .execute(
                "INSERT INTO schema_version (version) VALUES ($1)",
                &[&migration.version],
            )
            .await
            .map_err(refused)?;
    }
    transaction.commit().await.map_err(refused)
}
