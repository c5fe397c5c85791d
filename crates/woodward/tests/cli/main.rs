//! The program as people start it, against a stand-in for the daemon.

mod agents;
mod answers;
mod create;
mod deeds;
mod errors;
mod place;
#[path = "../../src/render/sample.rs"]
mod sample;
mod setup;
mod standin;
mod terminal;
mod waiting;
mod walk;

use woodward_api::Done;
use woodward_core::StateKind;
use woodward_core::attention::Level;

/// Something that was done to a task.
fn done(name: &str, message: &str, hints: &[&str]) -> Done {
    Done {
        task: sample::task(1, name, StateKind::Queued, Level::Waiting, 0),
        message: message.into(),
        hints: hints.iter().map(|&hint| hint.into()).collect(),
    }
}
