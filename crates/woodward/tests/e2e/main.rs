//! The real program from one end to the other: real daemon, real git, real agents.

mod agents;
mod blame;
mod cast;
mod commits;
mod config;
mod daemon;
mod desktop;
mod disks;
mod events;
mod gates;
mod input;
mod looks;
mod merge;
mod notify;
mod order;
mod processes;
mod queue;
mod radar;
mod reactions;
mod recover;
mod remote;
mod repositories;
mod rewritten;
mod scene;
mod trouble;
mod walk;
