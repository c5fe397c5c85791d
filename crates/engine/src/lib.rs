//! Woodward's hands: everything that touches the world.
//!
//! The engine takes decisions from `woodward_core`, keeps them in `woodward_store`, and performs
//! their effects: git, processes, agents, gates, landing. It never decides what a task becomes.

pub mod config;
pub mod git;
pub mod paths;
pub mod supervise;
