//! Real programs behind the adapters that read streams, against a stand-in for the model.

mod aider;
mod claude;
mod pi;
mod real;
#[path = "../stage/mod.rs"]
mod stage;

use std::process::ExitCode;

fn main() -> ExitCode {
    stage::main([claude::FACTS, pi::FACTS, aider::FACTS].concat())
}
