//! `cargo xtask`: everything a contributor or CI runs, as plain Rust.
//!
//! It must never be needed to build or run Woodward itself, and never depend on
//! a crate of ours: it judges them.

mod agents;
mod cache;
mod capabilities;
mod commands;
mod deny;
mod deps;
mod doctests;
mod draft;
mod load;
mod machine;
mod output;
mod process;
mod programs;
mod runner;
#[cfg(test)]
mod scratch;
mod sources;
mod steps;
mod stolen;

use clap::Parser;
use std::process::ExitCode;

/// Woodward's chores: set up, test, simulate, measure, check dependencies.
///
/// Run `cargo xtask test --fast` while you work and `cargo xtask test` before you push;
/// the latter is all that CI runs.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(code) => code,
        Err(error) => {
            output::narrate(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
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
