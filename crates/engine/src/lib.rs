//! Woodward's hands: everything that touches the world.
//!
//! The engine takes decisions from `woodward_core`, keeps them in `woodward_store`, and performs
//! their effects: git, processes, agents, gates, landing. It never decides what a task becomes.

mod agent;
mod clock;
pub mod config;
mod directory_watch;
mod disk;
mod dispatch;
mod drive;
mod effects;
pub mod engine;
mod environment;
mod error;
mod evidence;
mod files;
mod gate;
pub mod git;
mod git_trace;
mod handover;
mod land;
mod notify;
mod outside;
pub mod paths;
mod project;
mod prompt;
pub mod radar;
mod reaction;
mod refused;
mod removed;
mod renew;
mod retain;
mod run_env;
pub mod service;
mod setup;
mod start;
pub mod supervise;
mod tail;
mod targets;
mod task_cache;
mod task_lists;
mod words;
mod worktree_trust;

pub use error::{EngineError, Result};
#[doc(hidden)]
pub use gate::Measured;
pub use project::CONFIG_FILE;
