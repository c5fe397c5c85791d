//! The step table: each step's time against its share of the budget.
//!
//! A step that failed is never followed by another. A run whose steps all passed but took longer than
//! their shares has failed, too: time that nobody watches is lost a minute at a time. Time during which
//! a virtual machine's host ran something else does not count.

use crate::output;
use crate::stolen::StolenTime;
use anyhow::Result;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Less stolen time than this is not worth a remark.
const SHOWN_MIN: Duration = Duration::from_secs(5);

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
    /// The part of it that the host of this virtual machine took away.
    stolen: Duration,
    share: Share,
}

impl Row {
    fn is_too_slow(&self) -> bool {
        self.share
            .is_exceeded_by(self.took.saturating_sub(self.stolen))
    }
}

/// The steps so far.
pub(crate) struct Steps {
    start: Instant,
    stolen_before: StolenTime,
    rows: Vec<Row>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            stolen_before: StolenTime::now(),
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
        let (start, stolen_before) = (Instant::now(), StolenTime::now());
        let outcome = step();
        let row = Row {
            name,
            took: start.elapsed(),
            stolen: stolen_before.elapsed(),
            share,
        };
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
        let stolen = self.stolen_before.elapsed();
        let (table, is_within) = table(&self.rows, self.start.elapsed(), stolen);
        output::answer(&table);
        match is_within {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}

/// The table, and whether every step kept its share.
fn table(rows: &[Row], took: Duration, stolen: Duration) -> (String, bool) {
    let mut text = String::new();
    let mut is_within = true;
    for row in rows {
        is_within &= !row.is_too_slow();
        let _ = writeln!(text, "{}", line(verdict(!row.is_too_slow()), row));
    }
    let shares = rows.iter().map(|row| match row.share {
        Share::Unlimited => None,
        Share::Seconds(seconds) => Some(seconds),
    });
    let all = Row {
        name: "all",
        took,
        stolen,
        share: match shares.sum::<Option<u64>>() {
            Some(seconds) => Share::Seconds(seconds),
            None => Share::Unlimited,
        },
    };
    text.push_str(&line(verdict(is_within), &all));
    (text, is_within)
}

fn verdict(is_within: bool) -> &'static str {
    match is_within {
        true => "passed",
        false => "TOO SLOW",
    }
}

fn line(word: &str, row: &Row) -> String {
    let (name, took_s) = (row.name, row.took.as_secs_f64());
    let mut line = format!("{word:<8} {name:<8} {took_s:>7.1} s");
    if let Share::Seconds(share_s) = row.share {
        let _ = write!(line, " of {share_s:>4} s");
    }
    if row.stolen >= SHOWN_MIN {
        let _ = write!(
            line,
            ", {:.0} s stolen by the host",
            row.stolen.as_secs_f64()
        );
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, seconds: u64, share: Share) -> Row {
        Row {
            name,
            took: Duration::from_secs(seconds),
            stolen: Duration::ZERO,
            share,
        }
    }

    #[test]
    fn a_step_beyond_its_share_fails_the_run() {
        let rows = [
            row("build", 90, Share::Seconds(100)),
            row("tests", 301, Share::Seconds(300)),
        ];
        let (text, is_within) = table(&rows, Duration::from_secs(391), Duration::ZERO);
        assert!(!is_within);
        assert_eq!(
            text,
            "passed   build       90.0 s of  100 s\n\
             TOO SLOW tests      301.0 s of  300 s\n\
             TOO SLOW all        391.0 s of  400 s"
        );
    }

    #[test]
    fn time_that_the_host_took_away_does_not_count() {
        let stolen = Duration::from_secs(40);
        let mut rows = [row("tests", 330, Share::Seconds(300))];
        rows[0].stolen = stolen;
        let (text, is_within) = table(&rows, Duration::from_secs(330), stolen);
        assert!(is_within);
        assert_eq!(
            text,
            "passed   tests      330.0 s of  300 s, 40 s stolen by the host\n\
             passed   all        330.0 s of  300 s, 40 s stolen by the host"
        );
        rows[0].stolen = Duration::from_secs(29);
        assert!(!table(&rows, Duration::from_secs(330), stolen).1);
    }

    #[test]
    fn a_part_that_is_run_alone_may_take_its_time() {
        let rows = [row("lint", 9, Share::Unlimited)];
        let (text, is_within) = table(&rows, Duration::from_secs(9), Duration::ZERO);
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
