//! `cargo xtask sim`: the deterministic simulation, optimised.
//!
//! It knows none of the simulation's options: all of them pass through.

use crate::process::Cmd;
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// Run the simulation, e.g. `cargo xtask sim --seeds 1000`
///
/// All arguments go to it; `cargo xtask sim --help` shows its own help.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Sim {
    /// Arguments of the simulation
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl Sim {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        Ok(command(&self.args).run()?.into())
    }
}

/// The simulation with these arguments.
pub(crate) fn command<A: AsRef<OsStr>>(arguments: &[A]) -> Cmd {
    Cmd::cargo(&["run", "--release", "--locked", "-p", "woodward-sim", "--"]).args(arguments)
}

#[cfg(test)]
mod tests {
    use super::command;
    use crate::Cli;
    use crate::commands::Command;
    use clap::Parser;

    #[test]
    fn every_argument_passes_through() {
        for arguments in [
            &["--seed", "7", "--help"][..],
            &["--help"],
            &["-v", "--", "x"],
            &[],
        ] {
            let line = ["cargo xtask", "sim"].iter().chain(arguments);
            let Command::Sim(sim) = Cli::try_parse_from(line).unwrap().command else {
                panic!("`sim` is the simulation");
            };
            assert_eq!(sim.args, arguments);
        }
    }

    #[test]
    fn it_is_run_optimised_and_locked() {
        assert_eq!(
            command(&["--seeds", "5"]).to_string(),
            "cargo run --release --locked -p woodward-sim -- --seeds 5"
        );
    }
}
