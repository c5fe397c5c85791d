//! `cargo xtask sim`: the deterministic simulation.
//!
//! It knows none of the simulation's options: all of them pass through.

use crate::programs::{self, Profile};
use anyhow::Result;
use std::ffi::OsString;
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
        programs::run("woodward-sim", "cargo xtask sim", &self.args, Profile::Dev)
    }
}

#[cfg(test)]
mod tests {
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
}
