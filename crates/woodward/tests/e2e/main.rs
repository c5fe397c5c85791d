//! The real program from one end to the other: real daemon, real git, real agents.

mod agents;
mod cast;
mod config;
mod daemon;
mod disks;
mod events;
mod input;
mod merge;
mod order;
mod processes;
mod reactions;
mod recover;
mod repositories;
mod scene;
mod walk;
