//! What Woodward's tests start for themselves: real servers now, stand-ins for
//! agents and forges later.
//!
//! Dev only. No shipped crate may depend on it, and it must never depend on the
//! store: the store's own tests use it.

pub mod daemon;
pub mod patience;
pub mod postgres;
pub mod repo;

pub use daemon::{Ran, TestDaemon};
pub use repo::TestRepo;
