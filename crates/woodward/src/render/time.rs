//! Moments and ages as people read them. `now` and the time zone are always given.

use jiff::tz::TimeZone;
use woodward_core::{Millis, Timestamp};

/// How long ago, in the one unit that matters: `12s`, `4m`, `2h`, `3d`.
pub(crate) fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.since(then).0 / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long something took: `0.8s`, `12s`, `3m 20s`.
pub(crate) fn span(millis: Millis) -> String {
    match millis.0 {
        0..10_000 => format!("{}.{}s", millis.0 / 1_000, millis.0 % 1_000 / 100),
        _ => millis
            .to_string()
            .replace(" s", "s")
            .replace(" m", "m")
            .replace(" h", "h")
            .replace(" d", "d"),
    }
}

/// A moment to the second: `2026-01-31 09:05:00`.
pub(crate) fn moment(at: Timestamp, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(moment) => moment
            .to_zoned(zone.clone())
            .strftime("%Y-%m-%d %H:%M:%S")
            .to_string(),
        Err(_) => format!("{} ms", at.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let now = Timestamp(1_000_000_000_000);
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (7_199, "1h"),
            (172_800, "2d"),
        ] {
            assert_eq!(age(now, now - Millis::from_secs(seconds)), text);
        }
        assert_eq!(age(now, now + Millis(5)), "0s", "clocks may differ");
    }

    #[test]
    fn spans_are_short() {
        assert_eq!(span(Millis(850)), "0.8s");
        assert_eq!(span(Millis(12_900)), "12s");
        assert_eq!(span(Millis(200_000)), "3m 20s");
    }

    #[test]
    fn moments_are_in_the_zone_that_is_given() {
        let at = Timestamp(1_769_850_300_000);
        assert_eq!(moment(at, &TimeZone::UTC), "2026-01-31 09:05:00");
        assert_eq!(
            moment(Timestamp(i64::MAX), &TimeZone::UTC),
            format!("{} ms", i64::MAX)
        );
    }
}
