//! What Woodward's tests start for themselves: real servers, real agent programs, and a
//! stand-in for the model that those talk to.
//!
//! Dev only. No shipped crate may depend on it, and it must never depend on the
//! store: the store's own tests use it.

pub mod agents;
pub mod daemon;
pub mod model_api;
pub mod patience;
pub mod postgres;
pub mod program;
pub mod receiver;
pub mod repo;

pub use daemon::{Ran, TestDaemon};
pub use program::write_program;
pub use receiver::Receiver;
pub use repo::TestRepo;
