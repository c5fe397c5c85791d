//! The agent programs that people use, each behind the same port.
//!
//! Every run of a known program has a *host*: this same binary, started under the run's supervisor
//! as a hidden subcommand that calls [`host::run`]. The host starts the program, speaks its language,
//! decides what the project's rules decide, and keeps the [`Conversation`] in the run's directory.
//! The daemon only reads that file and puts [`Letter`]s into the run's inbox; it may die and come back
//! at any moment without the conversation noticing.
//!
//! | file of the run directory | written by | meaning |
//! |---|---|---|
//! | `agent.json` | daemon, before the start | the [`Spec`]: what to run and under which rules |
//! | `conversation.json` | host | where the conversation stands, see [`Conversation`] |
//! | `inbox/<time>-<id>.json` | daemon | one [`Letter`] each, never changed |
//! | `remarks/<time>-<id>.json` | what the program starts of ours | a line for the log each, removed when read |
//! | `waiting` | whoever waits for a person | a lock while it waits, and how long it took |
//! | `raw.ndjson` | host | what was really said in both directions, bounded |
//! | standard output | host | the normalised [`Event`]s, one a line, for people |
//!
//! What a program prints is hostile input: unknown events and keys are data, lines are bounded, and
//! nothing of it is ever a command. Nothing here knows tasks, the database or git's history.

pub mod adapters;
pub mod catalog;
mod conversation;
mod event;
mod failure;
pub mod files;
pub mod host;
mod jsonrpc;
mod letter;
mod lines;
pub mod permission;
mod program;
pub mod render;
mod spec;
mod stop;
pub mod terminal;
mod usage;
mod waiting;
mod wire;

pub use catalog::{Facts, Kind};
pub use conversation::{Conversation, Delivered};
pub use event::{
    ALLOW, ALLOW_ALWAYS, DENY, Ending, Event, PlanItem, PlanStatus, Question, Reply, ToolKind,
};
pub use failure::is_overload;
pub use letter::Letter;
pub use spec::{SessionId, Spec, asks_to_trust_worktrees, commit_directories, fits_terminal};
pub use stop::{QuickGate, StopCheck};
pub use usage::{Usage, UsageKind};
pub use waiting::{Waited, Waiting};
