//! `cargo xtask bench`: the measurements, one row each.

use crate::commands::torture;
use crate::process::Cmd;
use crate::programs::Profile;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::process::ExitCode;

struct Row {
    name: &'static str,
    how: How,
    measures: &'static str,
}

enum How {
    /// A cargo bench.
    Bench {
        package: &'static str,
        target: &'static str,
    },
    /// A command of the torturer, which needs the daemon beside it, in this build unless told otherwise.
    Daemon(Profile),
}

const BENCHES: &[Row] = &[
    Row {
        name: "store",
        how: How::Bench {
            package: "woodward-store",
            target: "store",
        },
        measures: "claims and transitions a second on SQLite and PostgreSQL",
    },
    Row {
        name: "radar",
        how: How::Bench {
            package: "woodward-engine",
            target: "radar",
        },
        measures: "the conflict radar against git merge-tree: cost, precision, recall",
    },
    Row {
        name: "lifecycle",
        how: How::Daemon(Profile::Dist),
        measures: "tasks from creation to landed against bare git, start-up, idling, many tasks",
    },
    Row {
        name: "queue",
        how: How::Daemon(Profile::Release),
        measures: "the merge queue against landing one by one and what the formula promises; a plot",
    },
    Row {
        name: "gates",
        how: How::Daemon(Profile::Release),
        measures: "a gate that does nothing, and one whose verdict is known, against `sh -c true`",
    },
];

/// Run a measurement, e.g. `cargo xtask bench store`
///
/// All arguments after the name go to it. Without a name, lists what can be measured.
#[derive(clap::Args)]
pub(crate) struct Bench {
    /// The build to measure; `lifecycle` takes what is packaged, `queue` and `gates` the release
    #[arg(long, value_enum)]
    profile: Option<Profile>,
    /// What to measure
    name: Option<String>,
    /// Arguments of the measurement
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

impl Bench {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        let row = row(self.name.as_deref())?;
        match row.how {
            How::Bench { .. } if self.profile.is_some() => bail!(
                "`{}` is always built with cargo's own profile for benches; leave `--profile` out",
                row.name
            ),
            How::Bench { package, target } => {
                Ok(command(package, target, &self.args).run()?.into())
            }
            How::Daemon(usual) => torture::run(row.name, &self.args, self.profile.unwrap_or(usual)),
        }
    }
}

fn row(name: Option<&str>) -> Result<&'static Row> {
    let Some(row) = BENCHES.iter().find(|row| Some(row.name) == name) else {
        let asked = match name {
            Some(name) => format!("there is no bench `{name}`"),
            None => "name a bench".to_owned(),
        };
        let known: String = BENCHES
            .iter()
            .map(|row| format!("\n  cargo xtask bench {:<9}  {}", row.name, row.measures))
            .collect();
        bail!("{asked}; known are:{known}");
    };
    Ok(row)
}

fn command(package: &str, target: &str, arguments: &[OsString]) -> Cmd {
    Cmd::cargo(&["bench", "--locked", "-p", package, "--bench", target])
        .args(&["--"])
        .args(arguments)
}

#[cfg(test)]
mod tests {
    use super::{Bench, How, Profile, command, row};
    use crate::Cli;
    use crate::commands::Command;
    use clap::Parser;

    #[test]
    fn the_profile_is_told_before_or_after_the_name_and_not_passed_on() {
        let after = ["lifecycle", "--profile", "release", "--tasks", "400"];
        let before = ["--profile", "release", "lifecycle", "--tasks", "400"];
        for arguments in [after, before] {
            let line = ["cargo xtask", "bench"].into_iter().chain(arguments);
            let Command::Bench(bench) = Cli::try_parse_from(line).unwrap().command else {
                panic!("`bench` is the bench");
            };
            assert_eq!(bench.profile, Some(Profile::Release));
            assert_eq!(bench.args, ["--tasks", "400"]);
        }
        let usual = row(Some("lifecycle")).map(|row| matches!(row.how, How::Daemon(Profile::Dist)));
        assert!(usual.unwrap(), "what is packaged is measured");
    }

    #[test]
    fn a_bench_of_cargo_has_no_profile() {
        let bench = Bench {
            profile: Some(Profile::Dist),
            name: Some("store".into()),
            args: Vec::new(),
        };
        let refused = bench.run().expect_err("it can't be told").to_string();
        assert!(refused.contains("leave `--profile` out"), "{refused}");
    }

    #[test]
    fn a_known_bench_gets_its_arguments() {
        let cmd = command(
            "woodward-store",
            "store",
            &["--clients".into(), "64".into()],
        );
        assert_eq!(
            cmd.to_string(),
            "cargo bench --locked -p woodward-store --bench store -- --clients 64"
        );
    }

    #[test]
    fn an_unknown_bench_lists_the_known_ones() {
        for name in [Some("stor"), None] {
            let text = row(name).err().map(|error| error.to_string());
            let text = text.unwrap_or_default();
            assert!(text.contains("cargo xtask bench store"), "{text}");
        }
    }
}
