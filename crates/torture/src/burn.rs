//! A gate that computes: it uses a core for a known time, by the processor's clock and not by the wall's.
//!
//! A fixed number of turns of a loop would take as long as the machine pleases.

use std::hint::black_box;
use std::time::Duration;

use clap::Args;
use rustix::time::{ClockId, clock_gettime};

/// Turns between two looks at the clock: some tens of microseconds.
const TURNS: u64 = 100_000;

/// Use a core for so long
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Milliseconds of processor time
    millis: u64,
}

/// Burns it.
pub(crate) fn run(options: &Options) {
    let wanted = Duration::from_millis(options.millis);
    let mut value = 0_u64;
    while used() < wanted {
        for turn in 0..TURNS {
            value = black_box(value.wrapping_mul(31).wrapping_add(turn));
        }
    }
}

/// What this process has used so far.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_uses_what_it_says() {
        let before = used();
        let wanted = before + Duration::from_millis(20);
        run(&Options {
            millis: u64::try_from(wanted.as_millis()).unwrap(),
        });
        assert!(used() - before >= Duration::from_millis(19));
    }
}
