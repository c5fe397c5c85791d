//! What grows with the number of tasks: the daemon's memory, `status`, the time of a task.

use std::time::{Duration, Instant};

use anyhow::Result;
use woodward_core::policy::ReviewRule;

use super::measure::{self, Pair};
use super::place::Place;
use crate::report::{Report, median, millis, narrate};
use crate::stage::Stage;

/// Tasks that have landed when the daemon's memory is first measured.
const FEW: usize = 100;
/// Tasks whose time is measured.
const TIMED: usize = 300;
const TASK_MAX: Duration = Duration::from_millis(40);
const MEMORY_RATIO_MAX: f64 = 1.15;
const STATUS_RATIO_MAX: f64 = 2.0;
/// The daemon creates no more tasks by one request.
const CREATED_MAX: usize = 1_000;
const DRAFTS_FEW: usize = 20;
const DRAFTS_MANY: usize = 1_000;
/// How long the daemon gets to come to rest before its memory or `status` is measured.
const REST: Duration = Duration::from_secs(5);

/// Lands `tasks` tasks and lists drafts. Returns the files that this has made.
pub(super) async fn run(
    report: &mut Report,
    tasks: usize,
    status_times: usize,
) -> Result<[Stage; 2]> {
    narrate(&format!("{tasks} tasks, one daemon"));
    let mut place = Place::new(300).await?;
    land(&mut place, FEW).await?;
    let few = at_rest(&place).await?;
    let took = land(&mut place, TIMED).await?;
    let each = took / u32::try_from(TIMED)?;
    let name = format!("{TIMED} tasks created to landed: each");
    report.narrate_target(&name, millis(each), "≤ 40 ms", each <= TASK_MAX);
    let rest = tasks.saturating_sub(FEW + TIMED);
    if rest > 0 {
        land(&mut place, rest).await?;
    }
    let many = at_rest(&place).await?;
    let ratio = many / few;
    let name = format!("daemon after {tasks} tasks, against {FEW} tasks: resident");
    let value = format!("{ratio:.2}× ({many:.1} MB against {few:.1} MB)");
    report.narrate_target(&name, value, "≤ 1.15×", ratio <= MEMORY_RATIO_MAX);
    let landed = place.end().await?;

    let mut place = Place::new(300).await?;
    place.create_drafts(DRAFTS_FEW).await?;
    tokio::time::sleep(REST).await;
    let few = measure::status_times(&place, status_times)?;
    place.create_drafts(DRAFTS_MANY - DRAFTS_FEW).await?;
    tokio::time::sleep(REST).await;
    let many = measure::status_times(&place, status_times)?;
    let pair = Pair {
        ours: middle(&many),
        raw: middle(&few),
    };
    let name = format!("woodward status, {DRAFTS_MANY} tasks against {DRAFTS_FEW}");
    let value = format!(
        "{:.2}× ({} against {})",
        pair.ratio(),
        millis(pair.ours),
        millis(pair.raw)
    );
    report.narrate_target(&name, value, "≤ 2×", pair.ratio() <= STATUS_RATIO_MAX);
    Ok([landed, place.end().await?])
}

/// How long so many trivial tasks take from created to landed.
async fn land(place: &mut Place, count: usize) -> Result<Duration> {
    let names = place.names(count);
    let begun = Instant::now();
    for names in names.chunks(CREATED_MAX) {
        place.create(names, "quick", ReviewRule::Never).await?;
        place.until_all_done().await?;
    }
    let took = begun.elapsed();
    measure::settle(place).await?;
    Ok(took)
}

async fn at_rest(place: &Place) -> Result<f64> {
    tokio::time::sleep(REST).await;
    measure::resident_mb(place.daemon_pid())
}

fn middle(all: &[Duration]) -> Duration {
    let seconds: Vec<f64> = all.iter().map(Duration::as_secs_f64).collect();
    Duration::from_secs_f64(median(&seconds))
}
