//! `cargo xtask torture` and `cargo xtask stampede`: the real daemon, killed and overrun.
//!
//! The daemon and its torturer are built together, so that both come from the same sources. This
//! knows none of their options: all of them pass through.

use crate::process::{Cmd, target_directory};
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// Which build is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Dev,
    Release,
}

impl Profile {
    const fn directory(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }
}

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

/// Builds both programs and runs the torturer's command.
pub(crate) fn run(name: &str, arguments: &[OsString], profile: Profile) -> Result<ExitCode> {
    let built = build(profile).run()?;
    if !built.is_success() {
        return Ok(built.into());
    }
    Ok(command(name, arguments, profile).run()?.into())
}

/// One build of both: built apart, they would be built with other features of the same crates.
pub(crate) fn build(profile: Profile) -> Cmd {
    let build = Cmd::cargo(&["build", "--locked", "--workspace", "--bins"]);
    match profile {
        Profile::Dev => build,
        Profile::Release => build.args(&["--release"]),
    }
}

/// The torturer's command, once both are built.
pub(crate) fn command<A: AsRef<OsStr>>(name: &str, arguments: &[A], profile: Profile) -> Cmd {
    let program = target_directory()
        .join(profile.directory())
        .join("woodward-torture");
    Cmd::new(&program.to_string_lossy())
        .args(&[name])
        .args(arguments)
        .shown_as("cargo xtask")
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn it_is_shown_as_what_to_type() {
        let torture = command("torture", &["--kills", "5"], Profile::Dev);
        assert_eq!(torture.to_string(), "cargo xtask torture --kills 5");
        assert!(build(Profile::Release).to_string().ends_with("--release"));
    }
}
