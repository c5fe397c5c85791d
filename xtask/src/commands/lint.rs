//! `cargo xtask lint`: all that is judged without running anything of ours.

use crate::commands::deps;
use crate::process::Cmd;
use crate::steps::{self, Step};
use std::process::ExitCode;

/// Check formatting, clippy's lints and the dependency rules
#[derive(clap::Args)]
pub(crate) struct Lint {}

impl Lint {
    pub(crate) fn run(&self) -> ExitCode {
        steps::run(&steps())
    }
}

/// The steps of this command, which `test` begins with.
pub(crate) fn steps() -> Vec<Step> {
    let clippy = "clippy --workspace --all-targets --locked -- -D warnings";
    vec![
        Step::child("fmt", Cmd::cargo(&["fmt", "--all", "--check"])),
        Step::child("clippy", Cmd::cargo(&clippy.split(' ').collect::<Vec<_>>())),
        Step::here("deps", "cargo xtask deps", deps::check),
    ]
}
