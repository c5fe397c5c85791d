//! The only place that prints: answers on stdout, narration on stderr.

use std::io::Write;
use std::time::Duration;

use woodward_sim::sim::History;
use woodward_sim::stats::Stats;
use woodward_sim::trace;

use crate::sweep::Swept;

/// Prints a line of the answer. A reader that has gone away (`| head`) is no error of ours.
macro_rules! answer {
    ($($text:tt)*) => {{
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Lines of a failed history that are worth reading first.
const LAST_LINES: usize = 30;

/// One line for each tenth of the way.
#[expect(clippy::print_stderr, reason = "this module is the door for printing")]
pub(crate) fn progress(before: u64, now: u64, count: u64) {
    let tenth = |seeds: u64| seeds * 10 / count.max(1);
    if tenth(now) > tenth(before) && now < count {
        eprintln!("{now} of {count} seeds");
    }
}

/// The counts of a whole sweep.
pub(crate) fn summary(swept: &Swept, elapsed: Duration) {
    let Swept {
        seeds,
        stats,
        failed,
    } = swept;
    answer!("seeds: {seeds}");
    counts(stats);
    answer!("elapsed: {:.1} s", elapsed.as_secs_f64());
    answer!("violations: {}", u8::from(failed.is_some()));
}

fn counts(stats: &Stats) {
    answer!("events applied: {}", stats.events);
    answer!("tasks created: {}, landed: {}", stats.tasks, stats.landed);
    answer!(
        "crashes injected: {}, stalls: {}, leases run out: {}",
        stats.crashes,
        stats.stalls,
        stats.expired
    );
    answer!("stale writes refused: {}", stats.stale_refused);
    answer!(
        "intents recovered: {} landed, {} moved, {} void",
        stats.recovered_landed,
        stats.recovered_moved,
        stats.recovered_void
    );
    answer!(
        "pushes past Woodward: {}, swaps of main lost: {}",
        stats.foreign_pushes,
        stats.swaps_lost
    );
    answer!("duplicated deliveries: {}", stats.duplicates);
}

/// The oracle sees that a guard is missing.
pub(crate) fn noticed(seed: u64, after: u64) {
    answer!("the guard is off; seed {seed} noticed, after {after} seeds");
}

/// What was broken, how it came about, and how to see it again.
pub(crate) fn violation(history: &History, replay: &str) {
    answer!();
    answer!("seed: {}", history.seed);
    if let Some(violation) = &history.violation {
        answer!("invariant: {}", violation.invariant);
        answer!("detail: {}", violation.detail);
    }
    answer!();
    let hidden = history.trace.len().saturating_sub(LAST_LINES);
    if hidden > 0 {
        answer!("… {hidden} lines before");
    }
    for line in &history.trace[hidden..] {
        answer!("{line}");
    }
    answer!();
    answer!("replay: {replay}");
}

/// The oracle is blind.
pub(crate) fn unnoticed(seeds: u64) {
    answer!("the guard is off and {seeds} seeds did not notice: the oracle is blind to it");
}

/// One history from its first line to its last.
pub(crate) fn story(history: &History) {
    for line in &history.trace {
        answer!("{line}");
    }
    answer!();
    answer!("seed: {}", history.seed);
    counts(&history.stats);
    answer!("trace hash: {:016x}", trace::hash(&history.trace));
    match &history.violation {
        None => answer!("violations: 0"),
        Some(violation) => {
            answer!("violations: 1");
            answer!("invariant: {}", violation.invariant);
            answer!("detail: {}", violation.detail);
        }
    }
}
