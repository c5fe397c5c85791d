//! Time that a virtual machine's host takes away while programs here want to run.
//!
//! Only reads what the kernel counts. Where it counts nothing, no time was stolen.

use std::time::Duration;

/// The kernel counts processor time in this many ticks a second.
const TICKS_PER_SECOND: u64 = 100;
/// The position of the stolen ticks in the first line of `/proc/stat`, behind the word `cpu`.
const STEAL_FIELD: usize = 7;

/// A moment, by the time stolen until then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StolenTime {
    per_core: Duration,
}

impl StolenTime {
    pub(crate) fn now() -> Self {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Self {
            per_core: per_core(&stat).unwrap_or_default(),
        }
    }

    /// How much time each core has lost since then, on average.
    pub(crate) fn elapsed(self) -> Duration {
        Self::now().per_core.saturating_sub(self.per_core)
    }
}

/// The first line has the sums over all cores, each following line one core.
fn per_core(stat: &str) -> Option<Duration> {
    let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let cores = u64::try_from(stat.lines().filter(is_core).count()).ok()?;
    let sums = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: u64 = sums.split_whitespace().nth(STEAL_FIELD)?.parse().ok()?;
    let millis = ticks.checked_mul(1_000 / TICKS_PER_SECOND)?;
    Some(Duration::from_millis(millis.checked_div(cores)?))
}

#[cfg(test)]
mod tests {
    use super::per_core;
    use std::time::Duration;

    #[test]
    fn stolen_ticks_are_divided_by_the_cores() {
        let stat = "cpu  9 0 9 9 0 0 1 300 0 0\n\
                    cpu0 4 0 4 4 0 0 1 100 0 0\n\
                    cpu1 5 0 5 5 0 0 0 200 0 0\n\
                    intr 7\n";
        assert_eq!(per_core(stat), Some(Duration::from_millis(1_500)));
    }

    #[test]
    fn a_kernel_that_counts_nothing_has_none() {
        assert_eq!(per_core(""), None);
        assert_eq!(per_core("cpu  9 0 9 9\ncpu0 9 0 9 9\n"), None);
        assert_eq!(per_core("cpu  9 0 9 9 0 0 1 300 0 0\n"), None);
    }
}
