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
    /// A command of the torturer, which needs the daemon beside it.
    Daemon,
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
        how: How::Daemon,
        measures: "tasks from creation to landed against bare git, start-up, idling",
    },
    Row {
        name: "queue",
        how: How::Daemon,
        measures: "the merge queue against landing one by one and what the formula promises; a plot",
    },
    Row {
        name: "gates",
        how: How::Daemon,
        measures: "a gate that does nothing, and one whose verdict is known, against `sh -c true`",
    },
];

/// Run a measurement, e.g. `cargo xtask bench store`
///
/// All arguments after the name go to it. Without a name, lists what can be measured.
#[derive(clap::Args)]
pub(crate) struct Bench {
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
            How::Bench { package, target } => {
                Ok(command(package, target, &self.args).run()?.into())
            }
            How::Daemon => torture::run(row.name, &self.args, Profile::Release),
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
    use super::{command, row};

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
