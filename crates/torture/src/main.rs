//! The real daemon with real git and real processes under kills, stampedes and the clock.
//!
//! Dev only. It starts its own daemon in a scratch directory, touches no process but those that carry
//! its marks, and ends with a table and an exit code.

mod burn;
mod daemon;
mod gates;
mod judge;
mod lifecycle;
mod queue;
mod replay;
mod report;
mod script;
mod stage;
mod stampede;
mod torture;
mod victims;
mod watch;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

/// Woodward under torture.
#[derive(Debug, Parser)]
#[command(name = "woodward-torture")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Torture(torture::Options),
    Stampede(stampede::Options),
    Lifecycle(lifecycle::Options),
    Gates(gates::Options),
    Queue(queue::Options),
    Replay(replay::Options),
    #[command(hide = true)]
    Burn(burn::Options),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report::narrate(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether everything was as it should be.
fn run(cli: Cli) -> Result<bool> {
    if let Command::Burn(options) = &cli.command {
        burn::run(options);
        return Ok(true);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("no runtime")?;
    let report = runtime.block_on(async {
        match cli.command {
            Command::Torture(options) => torture::run(&options).await,
            Command::Stampede(options) => stampede::run(&options).await,
            Command::Lifecycle(options) => lifecycle::run(&options).await,
            Command::Gates(options) => gates::run(&options).await,
            Command::Queue(options) => queue::run(&options).await,
            Command::Replay(options) => replay::run(&options).await,
            Command::Burn(_) => Ok(report::Report::default()),
        }
    })?;
    report.print();
    Ok(report.is_good())
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
