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
    for &files in &options.files {
        narrate(&format!("a repository of {files} files"));
        let mut place = Place::new(files).await?;
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
        } else {
            let watched = Duration::from_secs(options.idle);
            let idle = measure::idle(&mut place, watched).await?;
            let name = format!("daemon idle with {TASKS} agents: resident");
            report.want(
                &name,
                format!("{:.1} MB", idle.resident_mb),
                "≤ 20 MB",
                idle.resident_mb <= MEMORY_MAX_MB,
            );
            let name = format!("daemon idle with {TASKS} agents: of a core");
            report.want(
                &name,
                format!("{:.2} %", idle.share_percent),
                "≤ 0.2 %",
                idle.share_percent <= IDLE_MAX_PERCENT,
            );
            let name = format!("daemon idle with {TASKS} agents: database operations");
            report.want(
                &name,
                format!("{} ({} renewals)", idle.operations, idle.renewals),
                "0 besides renewals",
                idle.operations == 0,
            );
        }
        place.end().await?;
    }
    if options.tasks > 0 {
        scale::run(&mut report, options.tasks, options.rounds * 4).await?;
    }
    Ok(report)
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
    narrate(&format!("{name}: {value}"));
    report.want(name, value, &format!("≤ {max}×"), found <= max);
}
