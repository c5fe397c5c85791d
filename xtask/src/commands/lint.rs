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
    let clippy = |targets: &str| {
        let line = format!("clippy {targets} --locked -- -D warnings");
        Step::child("clippy", Cmd::cargo(&line.split(' ').collect::<Vec<_>>()))
    };
    vec![
        Step::child("fmt", Cmd::cargo(&["fmt", "--all", "--check"])),
        clippy("--workspace --all-targets"),
        // `--all-targets` means those that plain `cargo test` runs, which this is not.
        clippy("-p woodward --test agents --test terminal"),
        clippy("-p woodward-agents --test peers --test streams"),
        Step::here("deps", "cargo xtask deps", deps::check),
    ]
}
