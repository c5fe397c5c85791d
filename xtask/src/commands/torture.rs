//! `cargo xtask torture` and `cargo xtask stampede`: the real daemon, killed and overrun.
//!
//! It knows none of their options: all of them pass through.

use crate::programs::{self, Profile};
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// Kill daemon, supervisors, agents and git at random moments, e.g. `cargo xtask torture --kills 200`
///
/// All arguments go to it; `cargo xtask torture --help` shows its own help.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Torture {
    /// Arguments of the torture
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Create many tasks at once, e.g. `cargo xtask stampede --tasks 64`
///
/// All arguments go to it; `cargo xtask stampede --help` shows its own help.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Stampede {
    /// Arguments of the stampede
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl Torture {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        run("torture", &self.args, Profile::Dev)
    }
}

impl Stampede {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        run("stampede", &self.args, Profile::Dev)
    }
}

/// Runs one of the torture program's commands.
pub(crate) fn run(name: &str, arguments: &[OsString], profile: Profile) -> Result<ExitCode> {
    let name = OsStr::new(name);
    let arguments: Vec<&OsStr> = std::iter::once(name)
        .chain(arguments.iter().map(OsString::as_os_str))
        .collect();
    programs::run("woodward-torture", "cargo xtask", &arguments, profile)
}

#[cfg(test)]
mod tests {
    use crate::Cli;
    use crate::commands::Command;
    use clap::Parser;

    #[test]
    fn every_argument_passes_through() {
        for arguments in [&["--kills", "7", "--help"][..], &["--postgres"], &[]] {
            let line = ["cargo xtask", "torture"].iter().chain(arguments);
            let Command::Torture(torture) = Cli::try_parse_from(line).unwrap().command else {
                panic!("`torture` is the torture");
            };
            assert_eq!(torture.args, arguments);
        }
    }
}
