//! Our own development programs: the simulation and the torture.
//!
//! One build of the whole workspace makes all of them, so that they come from the same sources with the
//! same features. A program is never run before it was built.

use crate::process::{Cmd, target_directory};
use anyhow::Result;
use std::ffi::OsStr;
use std::process::ExitCode;

/// Which build is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Profile {
    /// What tests run
    Dev,
    /// What a newcomer builds
    Release,
    /// What is packaged
    Dist,
}

impl Profile {
    const fn directory(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
            Self::Dist => "dist",
        }
    }

    /// As cargo calls it.
    const fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Release => "release",
            Self::Dist => "dist",
        }
    }
}

/// Builds all programs and runs one of them; `shown` is what a person types for it.
pub(crate) fn run<A: AsRef<OsStr>>(
    program: &str,
    shown: &str,
    arguments: &[A],
    profile: Profile,
) -> Result<ExitCode> {
    let built = build(profile).run()?;
    if !built.is_success() {
        return Ok(built.into());
    }
    let command = command(program, shown, arguments, profile);
    Ok(command.run()?.into())
}

fn build(profile: Profile) -> Cmd {
    Cmd::cargo(&["build", "--locked", "--workspace", "--bins"]).args(&["--profile", profile.name()])
}

fn command<A: AsRef<OsStr>>(program: &str, shown: &str, arguments: &[A], profile: Profile) -> Cmd {
    let path = target_directory().join(profile.directory()).join(program);
    Cmd::new(&path.to_string_lossy())
        .args(arguments)
        .shown_as(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_as_what_to_type() {
        let arguments = ["torture", "--kills", "5"];
        let torture = command("woodward-torture", "cargo xtask", &arguments, Profile::Dev);
        assert_eq!(torture.to_string(), "cargo xtask torture --kills 5");
    }

    #[test]
    fn all_programs_are_built_together() {
        for (profile, name) in [(Profile::Dev, "dev"), (Profile::Dist, "dist")] {
            let expected = format!("cargo build --locked --workspace --bins --profile {name}");
            assert_eq!(build(profile).to_string(), expected);
        }
    }
}
