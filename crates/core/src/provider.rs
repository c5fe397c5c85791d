//! Waiting for a model's provider: why, until when, and how that is worded.
//!
//! Pure. What an agent program reports while it retries by itself, and what a queued task waits for,
//! are worded in one place, so that they read alike.

use alloc::format;
use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::time::{Millis, Timestamp};

/// A reset that is further away than this is given as a span: a time of day would be ambiguous.
const TIME_OF_DAY_MAX: Millis = Millis::from_mins(20 * 60);

/// Why a provider does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderWaitReason {
    /// The account has used up what it may use for now.
    RateLimit,
    /// The provider has too much to do (HTTP 503, 529).
    Overloaded,
    /// Any other failure.
    Failed,
}

impl fmt::Display for ProviderWaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RateLimit => "rate limit",
            Self::Overloaded => "overloaded",
            Self::Failed => "request failed",
        })
    }
}

/// A wait for the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderWait {
    /// Why.
    pub reason: ProviderWaitReason,
    /// When the limit is lifted, if the provider said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    /// When the next request is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries_at: Option<Timestamp>,
}

impl ProviderWait {
    /// Whether and why, in words. `local_offset_ms` is how far the clock on the wall is ahead of UTC.
    pub fn text(&self, now: Timestamp, local_offset_ms: i64) -> String {
        let when = match (self.resets_at, self.retries_at) {
            (Some(at), _) if at > now && at.since(now) <= TIME_OF_DAY_MAX => {
                format!(", resets {}", time_of_day(at, local_offset_ms))
            }
            (Some(at), _) if at > now => format!(", resets in {}", at.since(now)),
            (_, Some(at)) if at > now => format!(", retries in {}", at.since(now)),
            _ => String::new(),
        };
        format!("waiting for the provider ({}{when})", self.reason)
    }
}

/// A moment as the clock on the wall shows it.
fn time_of_day(at: Timestamp, local_offset_ms: i64) -> String {
    const MINUTE_MS: i64 = 60_000;
    // Rounded up: a minute too early is refused again.
    let local = at.0.saturating_add(local_offset_ms);
    let minutes = local.saturating_add(MINUTE_MS - 1).div_euclid(MINUTE_MS);
    let of_day = minutes.rem_euclid(24 * 60);
    format!("{:02}:{:02}", of_day / 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_worded_by_what_is_known() {
        let now = Timestamp(14 * 3_600_000);
        let wait = |reason, resets: Option<u64>, retries: Option<u64>| {
            let at = |span: u64| now + Millis::from_secs(span);
            let wait = ProviderWait {
                reason,
                resets_at: resets.map(at),
                retries_at: retries.map(at),
            };
            wait.text(now, 0)
        };
        let limit = ProviderWaitReason::RateLimit;
        assert_eq!(
            wait(limit, Some(300), Some(5)),
            "waiting for the provider (rate limit, resets 14:05)"
        );
        assert_eq!(
            wait(limit, Some(301), None),
            "waiting for the provider (rate limit, resets 14:06)"
        );
        assert_eq!(
            wait(limit, Some(2 * 86_400), None),
            "waiting for the provider (rate limit, resets in 2 d)"
        );
        assert_eq!(
            wait(ProviderWaitReason::Overloaded, None, Some(7)),
            "waiting for the provider (overloaded, retries in 7 s)"
        );
        assert_eq!(
            wait(ProviderWaitReason::Failed, None, None),
            "waiting for the provider (request failed)"
        );
        let at = Timestamp(23 * 3_600_000 + 1_800_000);
        assert_eq!(time_of_day(at, 3_600_000), "00:30");
    }
}
