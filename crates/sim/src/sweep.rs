//! Plays many seeds on all cores and keeps the smallest that broke a promise.
//!
//! Which core plays which seed must not matter to what is reported.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Result, anyhow};
use woodward_sim::sim::{self, Options};
use woodward_sim::stats::Stats;

use crate::output;

/// Which seeds.
#[derive(Clone, Copy)]
pub(crate) struct Seeds {
    pub(crate) from: u64,
    pub(crate) count: u64,
}

/// What a sweep found.
#[derive(Default)]
pub(crate) struct Swept {
    pub(crate) seeds: u64,
    pub(crate) stats: Stats,
    /// The smallest seed that broke a promise.
    pub(crate) failed: Option<u64>,
}

/// Seeds a core takes at a time.
const CHUNK: u64 = 32;

/// Plays `seeds`, and stops soon after the first broken promise.
pub(crate) fn sweep(seeds: Seeds, options: Options, progress: bool) -> Result<Swept> {
    let next = AtomicU64::new(0);
    let failed = AtomicU64::new(u64::MAX);
    let total = Mutex::new(Swept::default());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let play = || {
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            // Smaller seeds than the failed one are still played, so the smallest is reported.
            if start >= seeds.count || seeds.from + start > failed.load(Ordering::Relaxed) {
                return;
            }
            let chunk = play_chunk(seeds, start, options);
            if let Some(seed) = chunk.failed {
                failed.fetch_min(seed, Ordering::Relaxed);
            }
            let Ok(mut total) = total.lock() else { return };
            let before = total.seeds;
            total.add(&chunk);
            if progress {
                output::progress(before, total.seeds, seeds.count);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(play);
        }
    });
    total
        .into_inner()
        .map_err(|_| anyhow!("a thread of the simulation panicked; its message is above"))
}

fn play_chunk(seeds: Seeds, start: u64, options: Options) -> Swept {
    let mut chunk = Swept::default();
    for seed in start..seeds.count.min(start + CHUNK) {
        let history = sim::run(seeds.from + seed, options);
        chunk.seeds += 1;
        chunk.stats.add(&history.stats);
        if history.violation.is_some() {
            chunk.failed = Some(history.seed);
            break;
        }
    }
    chunk
}

impl Swept {
    fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.stats.add(&other.stats);
        self.failed = match (self.failed, other.failed) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}
