//! Time and chance as data.
//!
//! Nothing here reads a clock or rolls a die: both arrive in events, so that replaying a log gives
//! the same answer tomorrow.

use core::fmt;
use core::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since 1970-01-01 UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// A length of time in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

/// One random number in `0..2^32`, rolled by whoever recorded the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Roll(pub u32);

impl Timestamp {
    /// How long ago `earlier` was; zero if it lies ahead (clocks of two machines may differ).
    pub const fn since(self, earlier: Self) -> Millis {
        let delta = self.0.saturating_sub(earlier.0);
        Millis(if delta < 0 { 0 } else { delta.unsigned_abs() })
    }
}

impl Add<Millis> for Timestamp {
    type Output = Self;

    fn add(self, span: Millis) -> Self {
        Self(self.0.saturating_add_unsigned(span.0))
    }
}

impl Sub<Millis> for Timestamp {
    type Output = Self;

    fn sub(self, span: Millis) -> Self {
        Self(self.0.saturating_sub_unsigned(span.0))
    }
}

impl Millis {
    /// Whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// Whole minutes.
    pub const fn from_mins(minutes: u64) -> Self {
        Self::from_secs(minutes.saturating_mul(60))
    }

    /// Whole days.
    pub const fn from_days(days: u64) -> Self {
        Self::from_mins(days.saturating_mul(24 * 60))
    }
}

impl fmt::Display for Millis {
    /// The two largest units that matter: `850 ms`, `12 s`, `3 m 20 s`, `2 h 5 m`, `4 d 1 h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1_000;
        let (big, big_unit, small, small_unit) = match seconds {
            0 => return write!(f, "{} ms", self.0),
            1..60 => return write!(f, "{seconds} s"),
            60..3_600 => (seconds / 60, "m", seconds % 60, "s"),
            3_600..86_400 => (seconds / 3_600, "h", seconds % 3_600 / 60, "m"),
            _ => (seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
        };
        write!(f, "{big} {big_unit}")?;
        if small > 0 {
            write!(f, " {small} {small_unit}")?;
        }
        Ok(())
    }
}

impl Roll {
    /// A number in `0..bound` (0 for a bound of 0), as evenly spread as 32 bits allow.
    pub const fn below(self, bound: u64) -> u64 {
        ((self.0 as u128 * bound as u128) >> 32) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn spans_print_their_two_largest_units() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (12_000, "12 s"),
            (200_000, "3 m 20 s"),
            (3_600_000, "1 h"),
            (7_500_000, "2 h 5 m"),
            (349_200_000, "4 d 1 h"),
        ] {
            assert_eq!(Millis(millis).to_string(), text);
        }
    }

    #[test]
    fn a_roll_stays_below_its_bound() {
        assert_eq!(Roll(u32::MAX).below(10), 9);
        assert_eq!(Roll(0).below(10), 0);
        assert_eq!(Roll(u32::MAX).below(0), 0);
        assert!(Roll(u32::MAX).below(u64::MAX) < u64::MAX);
    }

    #[test]
    fn since_is_never_negative() {
        assert_eq!(Timestamp(5).since(Timestamp(9)), Millis(0));
        assert_eq!(
            Timestamp(i64::MIN).since(Timestamp(i64::MAX)),
            Millis(0),
            "no overflow at the ends"
        );
    }
}
