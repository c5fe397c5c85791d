//! How long things take, as ratios to bare git on the same machine in the same minutes.
//!
//! Ours and raw in turn, medians of the rounds' own ratios: each compares two neighbours in time. No
//! absolute time is a target.

mod measure;
mod place;
mod scale;

use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::report::{Report, median, millis, narrate};
use measure::Pair;
use place::Place;

/// Tasks of one round.
pub(crate) const TASKS: usize = 10;
const TASKS_LISTED: usize = 20;
const MEMORY_MAX_MB: f64 = 20.0;
const IDLE_MAX_PERCENT: f64 = 0.2;

/// Measure tasks from creation to landed, start-up, `status`, `--help` and idling against bare git
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often everything is measured
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The sizes of the repositories, in files
    #[arg(long, value_delimiter = ',', default_values_t = [300, 5_000])]
    files: Vec<usize>,
    /// How long the idle daemon is watched, in seconds
    #[arg(long, default_value_t = 20)]
    idle: u64,
    /// How many tasks one daemon lands while its memory is watched; 0 leaves that out
    #[arg(long, default_value_t = 1_000)]
    tasks: usize,
    /// Also show where the time of one task goes
    #[arg(long)]
    trace: bool,
}

pub(crate) async fn run(options: &Options) -> Result<Report> {
    let mut report = Report::default();
    // Deleted when all is measured: ext4 is slow to create files for minutes after many were deleted.
    let mut stages = Vec::new();
    if options.tasks > 0 {
        stages.extend(scale::run(&mut report, options.tasks, options.rounds * 4).await?);
    }
    for &files in &options.files {
        narrate(&format!("a repository of {files} files"));
        let mut place = Place::new(files).await?;
        // First, so that this is what a daemon takes whose agents were its first.
        if files != 300 {
            report_idle(&mut report, &mut place, Duration::from_secs(options.idle)).await?;
        }
        let lives = measure::lives(&mut place, options.rounds).await?;
        let name = format!("{TASKS} tasks created to landed, {files} files");
        ratio(&mut report, &name, "bare git", &lives, 1.5);
        if options.trace {
            for line in measure::trace(&place).await? {
                report.tell(&line, "");
            }
        }
        let starts = measure::starts(&mut place, options.rounds).await?;
        let name = format!("{TASKS} tasks created until all agents run, {files} files");
        ratio(&mut report, &name, "worktree add", &starts, 1.3);
        if files == 300 {
            let asked = options.rounds * 6;
            let status = measure::status(&mut place, TASKS_LISTED, asked).await?;
            let name = format!("woodward status, {TASKS_LISTED} tasks");
            ratio(&mut report, &name, "worktree list", &status, 4.0);
            let help = measure::help(&place, asked)?;
            ratio(&mut report, "woodward --help", "git --help", &help, 3.0);
        }
        stages.push(place.end().await?);
    }
    Ok(report)
}

async fn report_idle(report: &mut Report, place: &mut Place, watched: Duration) -> Result<()> {
    let idle = measure::idle(place, watched).await?;
    let name = |what: &str| format!("daemon idle with {TASKS} agents: {what}");
    let (megabytes, percent) = (idle.resident_mb, idle.share_percent);
    let value = format!("{megabytes:.1} MB");
    report.narrate_target(
        &name("resident"),
        value,
        "≤ 20 MB",
        megabytes <= MEMORY_MAX_MB,
    );
    let value = format!("{percent:.2} %");
    report.narrate_target(
        &name("of a core"),
        value,
        "≤ 0.2 %",
        percent <= IDLE_MAX_PERCENT,
    );
    let value = format!("{} ({} renewals)", idle.operations, idle.renewals);
    let is_quiet = idle.operations == 0;
    report.narrate_target(
        &name("database operations"),
        value,
        "0 besides renewals",
        is_quiet,
    );
    Ok(())
}

fn ratio(report: &mut Report, name: &str, raw_name: &str, pairs: &[Pair], max: f64) {
    let ratios: Vec<f64> = pairs.iter().map(Pair::ratio).collect();
    let middle = |part: fn(&Pair) -> Duration| {
        let all: Vec<f64> = pairs.iter().map(|pair| part(pair).as_secs_f64()).collect();
        Duration::from_secs_f64(median(&all))
    };
    let found = median(&ratios);
    let value = format!(
        "{found:.2}× ({} against {} of {raw_name})",
        millis(middle(|pair| pair.ours)),
        millis(middle(|pair| pair.raw)),
    );
    report.narrate_target(name, value, &format!("≤ {max}×"), found <= max);
}
