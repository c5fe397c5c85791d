//! Deterministic simulation of Woodward.
//!
//! Many tasks, several workers and landers, virtual time, a model of git whose refs move by
//! compare-and-swap; crashes between any two acts, late, doubled and reordered reports, workers
//! that come back from beyond their lease. [`sim::run`] plays the history of one seed and an
//! oracle judges it; [`model::Model`] is the reference model of the store.
//!
//! Nothing here reads a clock, the environment or the operating system's randomness, and nothing
//! depends on the order of a hash map: a seed gives the same history always.

pub mod guards;
pub mod lifts;
pub mod model;
pub mod oracle;
pub mod sim;
pub mod stats;
pub mod trace;

mod agents;
mod end;
mod env;
mod faults;
mod gates;
mod git;
mod ids;
mod lander;
mod machines;
mod network;
mod outsider;
mod person;
mod reaper;
mod rng;
mod worker;
