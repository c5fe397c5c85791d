//! What Woodward's tests start for themselves: a project under a real daemon, real servers, real agent
//! programs, and a stand-in for the model that those talk to.
//!
//! Dev only. No shipped crate may depend on it, and it must never depend on the
//! store: the store's own tests use it.

pub mod agent_run;
pub mod agent_workspace;
pub mod agents;
pub mod daemon;
pub mod homes;
pub mod model_api;
pub mod patience;
pub mod postgres;
pub mod process;
pub mod program;
pub mod project;
pub mod receiver;
pub mod repo;

pub use daemon::{Ran, TestDaemon};
pub use program::write_program;
pub use project::TestProject;
pub use receiver::Receiver;
pub use repo::TestRepo;
