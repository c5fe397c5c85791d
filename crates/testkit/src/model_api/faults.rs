//! What a failing reply says, before a dialect words it.

use super::script::{Fault, FaultKind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An HTTP failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) status: u16,
    pub(super) message: String,
    pub(super) is_overflow: bool,
    pub(super) reset_s: Option<u64>,
    /// The same as a moment.
    pub(super) reset_epoch_s: Option<u64>,
    pub(super) forbids_retry: bool,
}

impl Failure {
    /// The failure of a fault that has a status; the others are no HTTP failures.
    pub(super) fn of(fault: &Fault, now: SystemTime) -> Option<Self> {
        let (status, is_overflow) = match fault.kind {
            FaultKind::Status(status) => (status, false),
            FaultKind::Overflow => (400, true),
            FaultKind::Stall | FaultKind::Cut | FaultKind::Garbage => return None,
        };
        let now_s = now
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO)
            .as_secs();
        Some(Self {
            status,
            message: match status {
                // What OpenAI says; clients look for these words.
                401 => {
                    "Incorrect API key provided: the stand-in model fails with 401, as it was told"
                        .into()
                }
                _ => format!("the stand-in model fails with {status}, as it was told"),
            },
            is_overflow,
            reset_s: fault.reset_s,
            reset_epoch_s: fault.reset_s.map(|seconds| now_s.saturating_add(seconds)),
            forbids_retry: fault.forbids_retry,
        })
    }

    /// A request that can't be served.
    pub(super) fn bad_request(message: String) -> Self {
        Self {
            status: 400,
            message,
            is_overflow: false,
            reset_s: None,
            reset_epoch_s: None,
            forbids_retry: true,
        }
    }

    /// The message, or this one when the context is too long.
    pub(super) fn message_or(&self, overflow: &str) -> String {
        match self.is_overflow {
            true => overflow.to_owned(),
            false => self.message.clone(),
        }
    }
}

/// A moment as RFC 3339 says it.
pub(super) fn utc(epoch_s: u64) -> String {
    let (days, second) = (epoch_s / 86_400, epoch_s % 86_400);
    // Years that begin in March have their leap day at the end.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = match month_from_march < 10 {
        true => month_from_march + 3,
        false => month_from_march - 9,
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn moments_are_written_as_dates() {
        for (epoch_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_790_000_000, "2026-09-21T14:13:20Z"),
        ] {
            assert_eq!(utc(epoch_s), text);
        }
    }
}
