//! Runs named steps one after the other, with one line each, up to the first failure.
//!
//! A step that failed is never followed by another. What passed only the second time is named in the
//! last lines, so that nobody overlooks it.

use crate::again::{self, Verdict};
use crate::output;
use crate::process::Cmd;
use anyhow::Result;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

/// A step and how to run it.
pub(crate) struct Step {
    name: &'static str,
    action: Action,
}

enum Action {
    Child(Cmd),
    /// The arguments of `cargo`.
    Tests(&'static [&'static str]),
    Here {
        check: fn() -> Result<()>,
        rerun: &'static str,
    },
}

impl Step {
    /// A step that is a child process.
    pub(crate) fn child(name: &'static str, cmd: Cmd) -> Self {
        Self {
            name,
            action: Action::Child(cmd),
        }
    }

    /// A step of tests.
    pub(crate) fn tests(name: &'static str, cargo_test: &'static [&'static str]) -> Self {
        Self {
            name,
            action: Action::Tests(cargo_test),
        }
    }

    /// A step that is a function of ours, which `rerun` runs alone.
    pub(crate) fn here(name: &'static str, rerun: &'static str, check: fn() -> Result<()>) -> Self {
        Self {
            name,
            action: Action::Here { check, rerun },
        }
    }

    fn run(&self) -> Outcome {
        match &self.action {
            Action::Child(cmd) => match cmd.run() {
                Ok(code) if code.is_success() => Outcome::Passed,
                Ok(code) => Outcome::failed(code.into(), None, cmd),
                Err(error) => Outcome::failed(ExitCode::FAILURE, Some(error), cmd),
            },
            Action::Tests(arguments) => match again::run(arguments) {
                Ok(Verdict::Passed) => Outcome::Passed,
                Ok(Verdict::Flaky(names)) => Outcome::Flaky(names),
                Ok(Verdict::Failed(code)) => {
                    Outcome::failed(code.into(), None, &Cmd::cargo(arguments))
                }
                Err(error) => {
                    Outcome::failed(ExitCode::FAILURE, Some(error), &Cmd::cargo(arguments))
                }
            },
            Action::Here { check, rerun } => match check() {
                Ok(()) => Outcome::Passed,
                Err(error) => Outcome::failed(ExitCode::FAILURE, Some(error), rerun),
            },
        }
    }
}

enum Outcome {
    Passed,
    Flaky(BTreeSet<String>),
    Failed {
        code: ExitCode,
        error: Option<anyhow::Error>,
        rerun: String,
    },
}

impl Outcome {
    fn failed(code: ExitCode, error: Option<anyhow::Error>, rerun: &impl ToString) -> Self {
        Self::Failed {
            code,
            error,
            rerun: rerun.to_string(),
        }
    }
}

/// Runs all steps, or stops at the first failure and returns its exit code.
pub(crate) fn run(steps: &[Step]) -> ExitCode {
    let start = Instant::now();
    let mut flaky = BTreeSet::new();
    for step in steps {
        let step_start = Instant::now();
        let outcome = step.run();
        let name = step.name;
        let took_s = step_start.elapsed().as_secs_f64();
        match outcome {
            Outcome::Passed => output::answer(&format!("passed  {name:<8} {took_s:>7.1} s")),
            Outcome::Flaky(names) => {
                output::answer(&format!("FLAKY   {name:<8} {took_s:>7.1} s"));
                flaky.extend(names);
            }
            Outcome::Failed { code, error, rerun } => {
                if let Some(error) = error {
                    output::narrate(&format!("{error:#}"));
                }
                output::answer(&format!(
                    "FAILED  {name:<8} {took_s:>7.1} s   rerun: {rerun}"
                ));
                return code;
            }
        }
    }
    for name in flaky {
        output::answer(&format!(
            "FLAKY   {name}: it failed once and then passed; find out why"
        ));
    }
    output::answer(&format!(
        "passed  {:<8} {:>7.1} s",
        "all",
        start.elapsed().as_secs_f64()
    ));
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn the_first_failure_ends_the_run_with_its_code() {
        static REACHED: AtomicU32 = AtomicU32::new(0);
        fn reach() -> Result<()> {
            REACHED.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        let code = run(&[
            Step::here("one", "one", reach),
            Step::child("two", Cmd::new("sh").args(&["-c", "exit 4"])),
            Step::here("three", "three", reach),
        ]);
        assert_eq!(code, ExitCode::from(4));
        assert_eq!(REACHED.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_failed_check_says_how_to_run_it_alone() {
        let step = Step::here("deps", "cargo xtask deps", || anyhow::bail!("no"));
        let Outcome::Failed { rerun, .. } = step.run() else {
            panic!("a check that returns an error has failed");
        };
        assert_eq!(rerun, "cargo xtask deps");
    }
}
