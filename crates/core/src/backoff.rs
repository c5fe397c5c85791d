//! How long to wait before the next attempt.
//!
//! Full jitter: the wait is evenly spread between zero and a ceiling that doubles, so that many
//! tasks that failed together do not come back together. A rate limit is not an attempt: it waits
//! until its reset time.

use serde::{Deserialize, Serialize};

use crate::time::{Millis, Roll, Timestamp};

/// Base and cap of the doubling ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// The ceiling after the first failure.
    pub base: Millis,
    /// No wait is ever longer.
    pub cap: Millis,
    /// The shortest wait after a rate limit, whatever reset time the provider claims.
    pub rate_limit_floor: Millis,
}

/// How much longer the first wait for an overloaded provider may be than after another failure.
const PROVIDER_FACTOR: u64 = 6;
/// How long a provider may be overloaded before that counts as a failed attempt.
pub const PROVIDER_PATIENCE: Millis = Millis::from_mins(4 * 60);

impl Default for Backoff {
    fn default() -> Self {
        Self {
            base: Millis::from_secs(10),
            cap: Millis::from_mins(30),
            rate_limit_floor: Millis::from_secs(5),
        }
    }
}

impl Backoff {
    /// The longest wait after the `failures`-th failure in a row (the first is 1).
    pub fn ceiling(&self, failures: u32) -> Millis {
        let doublings = failures.saturating_sub(1).min(63);
        Millis(
            self.base
                .0
                .saturating_mul(1_u64 << doublings)
                .min(self.cap.0),
        )
    }

    /// The wait after the `failures`-th failure in a row, spread by `roll` over `0..=ceiling`.
    pub fn wait(&self, failures: u32, roll: Roll) -> Millis {
        Millis(roll.below(self.ceiling(failures).0.saturating_add(1)))
    }

    /// The wait after the `failures`-th time in a row that the provider was overloaded. Longer than
    /// after an ordinary failure, and never close to zero: an overload lasts minutes.
    pub fn provider_wait(&self, failures: u32, roll: Roll) -> Millis {
        let base = self.base.0.saturating_mul(PROVIDER_FACTOR);
        let doublings = failures.saturating_sub(1).min(63);
        let ceiling = base.saturating_mul(1_u64 << doublings).min(self.cap.0);
        let half = ceiling / 2;
        Millis(half.saturating_add(roll.below((ceiling - half).saturating_add(1))))
    }

    /// When to go on after a rate limit that is said to end at `reset`.
    pub fn after_rate_limit(&self, now: Timestamp, reset: Timestamp) -> Timestamp {
        reset.max(now + self.rate_limit_floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        let backoff = Backoff::default();
        let seconds = |n| backoff.ceiling(n).0 / 1_000;
        assert_eq!(
            [1, 2, 3, 4, 8, 9, 200].map(seconds),
            [10, 20, 40, 80, 1_280, 1_800, 1_800]
        );
    }

    #[test]
    fn a_reset_in_the_past_still_waits_a_little() {
        let backoff = Backoff::default();
        let now = Timestamp(1_000_000);
        assert_eq!(
            backoff.after_rate_limit(now, Timestamp(0)),
            Timestamp(1_005_000)
        );
        assert_eq!(
            backoff.after_rate_limit(now, Timestamp(9_000_000)),
            Timestamp(9_000_000)
        );
    }

    #[test]
    fn an_overloaded_provider_is_given_minutes() {
        let backoff = Backoff::default();
        let seconds = |failures, roll| backoff.provider_wait(failures, Roll(roll)).0 / 1_000;
        assert_eq!([1, 2, 3, 9].map(|n| seconds(n, 0)), [30, 60, 120, 900]);
        assert_eq!(
            [1, 2, 3, 9].map(|n| seconds(n, u32::MAX)),
            [60, 120, 240, 1_800]
        );
    }

    proptest! {
        #[test]
        fn a_wait_never_exceeds_its_ceiling(failures: u32, roll: u32, base in 0_u64..1 << 40, cap in 0_u64..1 << 40) {
            let backoff = Backoff { base: Millis(base), cap: Millis(cap), ..Backoff::default() };
            let wait = backoff.wait(failures, Roll(roll));
            prop_assert!(wait <= backoff.ceiling(failures));
            prop_assert!(wait <= backoff.cap);
        }

        #[test]
        fn a_higher_roll_never_waits_less(failures in 1_u32..80, a: u32, b: u32) {
            let backoff = Backoff::default();
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(backoff.wait(failures, Roll(low)) <= backoff.wait(failures, Roll(high)));
        }
    }
}
