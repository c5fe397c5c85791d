//! Runs every test of the workspace in a process of its own, many at a time.
//!
//! `cargo test` runs one binary after the other and knows no time limit. Here all tests of all
//! binaries share one pool, a test that hangs is ended with its children, and one that fails is run
//! once more, alone: if it passes then, it is reported as flaky. It must never count a test as passed
//! whose process did not end with success.

mod binaries;
mod guard;
mod history;
mod job;
mod junit;
mod pool;
mod postgres;
mod report;
mod space;

pub(crate) use binaries::{Build, build, command as build_command};
pub(crate) use guard::{KillLeftovers, ProcessGuard};
pub(crate) use job::{Group, Job};
pub(crate) use postgres::SharedPostgres;
pub(crate) use report::Report;
pub(crate) use space::Space;

use crate::process::target_directory;
use anyhow::Result;
use history::History;
use pool::Pool;
use std::path::Path;

/// More failures than this are not run again: something is broken.
const RETRIES_MAX: usize = 3;

/// The results of the last run that had a flaky test.
const FLAKY_RESULTS: &str = "junit-flaky.xml";

/// How a set of jobs is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// A test that fails has failed.
    Never,
    /// A few that fail are run once more, alone.
    Once,
}

/// Runs all jobs and says how each ended.
///
/// `directory` gets the output of the tests and `junit.xml`. Durations are kept beside the build, for
/// the next run of any clone that uses it.
pub(crate) fn run(
    jobs: &[Job],
    directory: &Path,
    retry: Retry,
    guard: &ProcessGuard,
) -> Result<Report> {
    std::fs::create_dir_all(directory)?;
    let mut history = History::read(target_directory().join("test-durations.json"));
    let pool = Pool::new(directory, guard);
    let mut report = Report::new(pool.run(&history.longest_first(jobs)));
    let failed: Vec<&Job> = report.failed().filter_map(|id| find(jobs, id)).collect();
    if retry == Retry::Once && failed.len() <= RETRIES_MAX {
        for job in failed {
            crate::output::narrate(&format!("once more, alone: {}", job.id));
            report.second(pool.run(&[job]));
        }
    }
    history.learn(&report);
    history.write()?;
    junit::write(&report, &directory.join("junit.xml"))?;
    if report.flaky().next().is_some() {
        // It outlives the clone: a run that passed is soon forgotten, and why it nearly failed with it.
        junit::write(&report, &target_directory().join(FLAKY_RESULTS))?;
    }
    Ok(report)
}

fn find<'a>(jobs: &'a [Job], id: &str) -> Option<&'a Job> {
    jobs.iter().find(|job| job.id == id)
}
