//! How fast this machine is, compared with the one for which the budget of the tests is written.
//!
//! Virtual machines of one kind differ by more than a factor of two. It must never make a budget smaller:
//! faster machines have the same one.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// What the reference machine takes with the dev profile: two virtual cores of an AMD EPYC with AVX-512.
const REFERENCE: Duration = Duration::from_millis(90);
/// The budget is written for so many cores.
const CORES: usize = 2;
const ROUNDS: u64 = 16_000_000;
/// The shortest of several tries counts: it is the least disturbed one.
const TRIES: usize = 8;
/// A machine that is slower than this has another problem, which a longer budget would hide.
const SLOWNESS_MAX: f64 = 3.0;

/// How many times as long as the reference machine this one takes; 1 if it is faster.
pub(crate) fn slowness() -> f64 {
    let tries = (0..TRIES).map(|_| compute_on_all_cores());
    let shortest = tries.min().unwrap_or(REFERENCE);
    relative(shortest)
}

fn relative(took: Duration) -> f64 {
    let ratio = took.as_secs_f64() / REFERENCE.as_secs_f64();
    ratio.clamp(1.0, SLOWNESS_MAX)
}

fn compute_on_all_cores() -> Duration {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for seed in 0..CORES {
            scope.spawn(move || black_box(compute(seed as u64)));
        }
    });
    start.elapsed()
}

/// Multiplications that depend on each other, so that no processor does them side by side.
fn compute(seed: u64) -> u64 {
    (0..black_box(ROUNDS)).fold(seed, |hash, round| {
        (hash ^ round).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_grows_on_a_slower_machine_only_and_not_without_end() {
        let close = |ratio: f64, wanted: f64| (ratio - wanted).abs() < 1e-9;
        assert!(close(relative(REFERENCE * 2), 2.0));
        assert!(close(relative(REFERENCE / 2), 1.0));
        assert!(close(relative(REFERENCE * 50), SLOWNESS_MAX));
    }

    #[test]
    fn the_result_depends_on_the_seed() {
        assert_ne!(compute(0), compute(1));
    }
}
