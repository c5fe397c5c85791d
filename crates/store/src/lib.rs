//! Woodward's durable state: one behaviour on two databases.
//!
//! [`Store`] is what the engine sees. SQLite (embedded, the default) and PostgreSQL (for several
//! machines) run the same operations in [`ops`], written once against a small connection trait;
//! only what really differs between the two is written twice. A behaviour exists only if the
//! conformance suite exercises it on both.
//!
//! What holds for every write:
//! - one transition is one transaction: compare-and-set of the task, its event, its effects;
//! - a write on behalf of a claim carries its epoch, and a stale one changes nothing and says so;
//! - whether a lease has run out is judged by the database's clock;
//! - an answer is given only after the commit is durable, and a commit whose answer was lost is
//!   looked up, never blindly repeated.
//!
//! This crate never decides: it asks `woodward_core`. It never touches git, processes or agents.

mod activity;
mod conn;
mod error;
#[cfg(feature = "exercise")]
pub mod exercise;
mod ids;
mod migrate;
mod ops;
mod policies;
mod postgres;
mod records;
mod sqlite;
mod store;
mod wake;

pub use activity::Activity;
pub use error::{Result, StoreError};
pub use ids::fresh_uuid;
pub use migrate::SCHEMA_VERSION;
pub use postgres::{PostgresOptions, PostgresStore};
pub use records::*;
pub use sqlite::{SqliteOptions, SqliteStore};
pub use store::Store;
pub use wake::Wakeups;

/// The statements of a claim and of a transition, for the benchmark that runs them bare.
#[cfg(feature = "exercise")]
pub mod raw_sql {
    use crate::ops::{claim, write};
    use crate::postgres::conn;

    /// SQLite: picks the next tasks in line.
    pub const SQLITE_PICK: &str = claim::PICK_SQLITE;
    /// SQLite: the statements of one transition, in order.
    pub const SQLITE_UPDATE_TASK: &str = write::UPDATE_TASK;
    #[doc(hidden)]
    pub const SQLITE_INSERT_EVENT: &str = write::INSERT_EVENT;
    #[doc(hidden)]
    pub const SQLITE_TAKE_LEASE: &str = write::TAKE_LEASE;
    #[doc(hidden)]
    pub const SQLITE_DROP_LEASE: &str = write::DROP_LEASE;
    #[doc(hidden)]
    pub const SQLITE_INSERT_EFFECT: &str = write::INSERT_EFFECT;
    /// PostgreSQL: picks the next tasks in line.
    pub const POSTGRES_PICK: &str = claim::PICK_POSTGRES;
    /// PostgreSQL: a transition that takes a lease.
    pub const POSTGRES_TAKE: &str = conn::WRITE_TAKE;
    /// PostgreSQL: a transition that drops its lease.
    pub const POSTGRES_DROP: &str = conn::WRITE_DROP;
}
