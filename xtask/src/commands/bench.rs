//! `cargo xtask bench`: the measurements, one row each.

use crate::process::Cmd;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::process::ExitCode;

struct Row {
    name: &'static str,
    package: &'static str,
    target: &'static str,
    measures: &'static str,
}

const BENCHES: &[Row] = &[Row {
    name: "store",
    package: "woodward-store",
    target: "store",
    measures: "claims and transitions a second on SQLite and PostgreSQL",
}];

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
        Ok(command(self.name.as_deref(), &self.args)?.run()?.into())
    }
}

fn command(name: Option<&str>, arguments: &[OsString]) -> Result<Cmd> {
    let Some(row) = BENCHES.iter().find(|row| Some(row.name) == name) else {
        let asked = match name {
            Some(name) => format!("there is no bench `{name}`"),
            None => "name a bench".to_owned(),
        };
        let known: String = BENCHES
            .iter()
            .map(|row| format!("\n  cargo xtask bench {}   {}", row.name, row.measures))
            .collect();
        bail!("{asked}; known are:{known}");
    };
    let bench = [
        "bench",
        "--locked",
        "-p",
        row.package,
        "--bench",
        row.target,
    ];
    Ok(Cmd::cargo(&bench).args(&["--"]).args(arguments))
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn a_known_bench_gets_its_arguments() {
        let cmd = command(Some("store"), &["--clients".into(), "64".into()]).unwrap();
        assert_eq!(
            cmd.to_string(),
            "cargo bench --locked -p woodward-store --bench store -- --clients 64"
        );
    }

    #[test]
    fn an_unknown_bench_lists_the_known_ones() {
        for name in [Some("stor"), None] {
            let text = command(name, &[]).unwrap_err().to_string();
            assert!(text.contains("cargo xtask bench store"), "{text}");
        }
    }
}
