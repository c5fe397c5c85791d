//! `cargo xtask replay`: real commits as parallel tasks of the real daemon.

use crate::commands::torture;
use crate::programs::Profile;
use anyhow::Result;
use std::ffi::OsString;
use std::process::ExitCode;

/// Land the last commits of a local clone as parallel tasks, e.g. `cargo xtask replay ../project --commits 60`
///
/// The clone is only read. All arguments go to it; `cargo xtask replay --help` shows its own help.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Replay {
    /// Arguments of the replay
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl Replay {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        torture::run("replay", &self.args, Profile::Release)
    }
}
