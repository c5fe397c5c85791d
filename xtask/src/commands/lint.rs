//! `cargo xtask lint`: all that is judged without running anything of ours.

use crate::commands::deps::{self, Deps};
use crate::doctests;
use crate::process::Cmd;
use crate::steps::{Failed, Share, Steps};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitCode;

/// `--test '*'` also takes those with `test = false`, which `--all-targets` leaves out.
const CLIPPY: &[&str] = &[
    "clippy",
    "--workspace",
    "--locked",
    "--lib",
    "--bins",
    "--examples",
    "--benches",
    "--test",
    "*",
    "--",
    "-D",
    "warnings",
];

/// Check formatting, clippy's lints, and the dependency rules
#[derive(clap::Args)]
pub(crate) struct Lint {
    #[command(flatten)]
    deps: Deps,
}

impl Lint {
    pub(crate) fn run(&self) -> ExitCode {
        let mut steps = Steps::new();
        let unlimited = Shares {
            format: Share::Unlimited,
            clippy: Share::Unlimited,
            deps: Share::Unlimited,
        };
        let sources = check_sources(&mut steps, unlimited, self.deps.advisory_db());
        match sources.and_then(|()| run_clippy(&mut steps, unlimited)) {
            Ok(()) => steps.finish(),
            Err(Failed) => ExitCode::FAILURE,
        }
    }
}

/// What each step may take.
#[derive(Clone, Copy)]
pub(crate) struct Shares {
    pub(crate) format: Share,
    pub(crate) clippy: Share,
    pub(crate) deps: Share,
}

/// The steps that need no build of ours.
pub(crate) fn check_sources(
    steps: &mut Steps,
    shares: Shares,
    advisory_db: Option<&Path>,
) -> Result<(), Failed> {
    let format = Cmd::cargo(&["fmt", "--all", "--check"]);
    steps.run("format", shares.format, &format.to_string(), || {
        pass(&format)
    })?;
    steps.run("deps", shares.deps, "cargo xtask lint", || {
        doctests::check()?;
        deps::check(advisory_db)
    })
}

/// One pass of clippy over everything.
pub(crate) fn run_clippy(steps: &mut Steps, shares: Shares) -> Result<(), Failed> {
    let clippy = Cmd::cargo(CLIPPY);
    steps.run("clippy", shares.clippy, &clippy.to_string(), || {
        pass(&clippy)
    })
}

fn pass(cmd: &Cmd) -> Result<()> {
    match cmd.run()?.is_success() {
        true => Ok(()),
        false => bail!("`{cmd}` failed"),
    }
}
