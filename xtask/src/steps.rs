//! The step table: each step's time against its share of the budget.
//!
//! A step that failed is never followed by another. A run whose steps all passed but took longer than
//! their shares has failed, too: time that nobody watches is lost a minute at a time.

use crate::output;
use anyhow::Result;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A step failed and was reported.
#[derive(Debug)]
pub(crate) struct Failed;

/// What a step may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Nobody counts: a part is run alone.
    Unlimited,
    Seconds(u64),
}

impl Share {
    fn is_exceeded_by(self, took: Duration) -> bool {
        match self {
            Self::Unlimited => false,
            Self::Seconds(seconds) => took > Duration::from_secs(seconds),
        }
    }
}

struct Row {
    name: &'static str,
    took: Duration,
    share: Share,
}

/// The steps so far.
pub(crate) struct Steps {
    start: Instant,
    rows: Vec<Row>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            rows: Vec::new(),
        }
    }

    /// Runs a step, which `rerun` runs alone, and reports it.
    pub(crate) fn run<T>(
        &mut self,
        name: &'static str,
        share: Share,
        rerun: &str,
        step: impl FnOnce() -> Result<T>,
    ) -> Result<T, Failed> {
        let start = Instant::now();
        let outcome = step();
        let took = start.elapsed();
        let row = Row { name, took, share };
        match outcome {
            Ok(value) => {
                output::narrate(&line("passed", &row));
                self.rows.push(row);
                Ok(value)
            }
            Err(error) => {
                output::narrate(&format!("{error:#}"));
                output::answer(&format!("{}   rerun: {rerun}", line("FAILED", &row)));
                Err(Failed)
            }
        }
    }

    /// Prints the table and says whether the run was good.
    pub(crate) fn finish(self) -> ExitCode {
        let (table, is_within) = table(&self.rows, self.start.elapsed());
        output::answer(&table);
        match is_within {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}

/// The table, and whether every step kept its share.
fn table(rows: &[Row], took: Duration) -> (String, bool) {
    let mut text = String::new();
    let mut is_within = true;
    for row in rows {
        let is_exceeded = row.share.is_exceeded_by(row.took);
        is_within &= !is_exceeded;
        let word = match is_exceeded {
            true => "TOO SLOW",
            false => "passed",
        };
        let _ = writeln!(text, "{}", line(word, row));
    }
    let word = match is_within {
        true => "passed",
        false => "TOO SLOW",
    };
    let shares = rows.iter().map(|row| match row.share {
        Share::Unlimited => None,
        Share::Seconds(seconds) => Some(seconds),
    });
    let all = Row {
        name: "all",
        took,
        share: match shares.sum::<Option<u64>>() {
            Some(seconds) => Share::Seconds(seconds),
            None => Share::Unlimited,
        },
    };
    text.push_str(&line(word, &all));
    (text, is_within)
}

fn line(word: &str, row: &Row) -> String {
    let (name, took_s) = (row.name, row.took.as_secs_f64());
    match row.share {
        Share::Unlimited => format!("{word:<8} {name:<8} {took_s:>7.1} s"),
        Share::Seconds(share_s) => format!("{word:<8} {name:<8} {took_s:>7.1} s of {share_s:>4} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, seconds: u64, share: Share) -> Row {
        Row {
            name,
            took: Duration::from_secs(seconds),
            share,
        }
    }

    #[test]
    fn a_step_beyond_its_share_fails_the_run() {
        let rows = [
            row("build", 90, Share::Seconds(100)),
            row("tests", 301, Share::Seconds(300)),
        ];
        let (text, is_within) = table(&rows, Duration::from_secs(391));
        assert!(!is_within);
        assert_eq!(
            text,
            "passed   build       90.0 s of  100 s\n\
             TOO SLOW tests      301.0 s of  300 s\n\
             TOO SLOW all        391.0 s of  400 s"
        );
    }

    #[test]
    fn a_part_that_is_run_alone_may_take_its_time() {
        let (text, is_within) = table(&[row("lint", 9, Share::Unlimited)], Duration::from_secs(9));
        assert!(is_within, "{text}");
    }

    #[test]
    fn a_failed_step_is_an_error() {
        let mut steps = Steps::new();
        let failed = steps.run(
            "deps",
            Share::Unlimited,
            "cargo xtask deps",
            || -> Result<()> { anyhow::bail!("no") },
        );
        assert!(failed.is_err());
        assert!(steps.run("lint", Share::Unlimited, "", || Ok(())).is_ok());
    }
}
