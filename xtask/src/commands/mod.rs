//! The commands, one file a verb.

mod bench;
mod deps;
mod fixtures;
mod lint;
mod replay;
mod setup;
mod sim;
mod test;
mod torture;

use crate::runner::KillLeftovers;
use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;

/// What `cargo xtask` can do.
#[derive(Subcommand)]
pub(crate) enum Command {
    Setup(setup::Setup),
    Test(test::Test),
    Lint(lint::Lint),
    Sim(sim::Sim),
    Torture(torture::Torture),
    Stampede(torture::Stampede),
    Bench(bench::Bench),
    Replay(replay::Replay),
    Fixtures(fixtures::Fixtures),
    Deps(deps::Deps),
    #[command(hide = true)]
    KillLeftovers(KillLeftovers),
}

impl Command {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        match self {
            Self::Setup(command) => command.run(),
            Self::Test(command) => command.run(),
            Self::Lint(command) => Ok(command.run()),
            Self::Sim(command) => command.run(),
            Self::Torture(command) => command.run(),
            Self::Stampede(command) => command.run(),
            Self::Bench(command) => command.run(),
            Self::Replay(command) => command.run(),
            Self::Fixtures(command) => command.run(),
            Self::Deps(command) => command.run(),
            Self::KillLeftovers(command) => Ok(command.run()),
        }
    }
}
