//! The host and its adapters with programs that small shell scripts play: any command, and bad luck.

mod command;
#[path = "../stage/mod.rs"]
mod stage;
mod unlucky;

use std::process::ExitCode;

fn main() -> ExitCode {
    stage::main([command::FACTS, unlucky::FACTS].concat())
}
