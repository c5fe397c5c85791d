//! Woodward's decisions.
//!
//! Everything Woodward decides is decided here, by pure functions over plain data: how a task
//! changes ([`step`]), which tasks may start ([`schedule`]), how long to wait ([`backoff`]), whether
//! another fix cycle is worth it ([`fix`]), what a person should do next ([`attention`]), what to
//! do about a half-finished landing ([`landing`]), what a person is told ([`notice`]), where the changes
//! of two tasks meet ([`radar`]).
//!
//! This crate never touches the world. It has no clock, no randomness, no file system, no network,
//! no threads: it is `no_std`, and its dependency list is checked by `cargo xtask deps`. Time and
//! random numbers arrive inside events.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod attention;
pub mod backoff;
pub mod budget;
pub mod change_base;
pub mod disk;
pub mod effect;
pub mod event;
pub mod fix;
pub mod gate;
pub mod graph;
pub mod hint;
pub mod id;
pub mod landing;
pub mod lease;
pub mod moved_branch;
pub mod name;
pub mod notice;
pub mod policy;
pub mod provider;
pub mod queue;
pub mod radar;
pub mod reaction;
pub mod regenerate;
pub mod risk;
pub mod schedule;
pub mod state;
pub mod step;
pub mod task;
pub mod text;
pub mod time;

pub use effect::{Action, Effect, EffectKey};
pub use event::{Actor, Event, Fact};
pub use id::{
    ClaimId, CommitId, Epoch, EventId, EventSeq, IntentId, MessageId, ProjectId, RunId, TaskId,
    TreeId, Version, WorkerId,
};
pub use name::{AgentName, ChannelName, GateName, ProjectName, TaskName};
pub use policy::Policy;
pub use state::{State, StateKind};
pub use step::{IllegalTransition, Refusal, Transition, step};
pub use task::{NewTask, Task, TaskSpec};
pub use text::Note;
pub use time::{Millis, Roll, Timestamp};
