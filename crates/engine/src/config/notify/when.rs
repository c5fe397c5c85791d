//! When a person is told: quiet hours, digests, and what happens when a channel fails.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use woodward_core::Millis;
use woodward_core::backoff::Backoff;
use woodward_core::notice::{Digest, QuietHours, TimeOfDay};

use crate::config::de::AS_WRITTEN;
use crate::config::error::printable;
use crate::config::values::{Count, TimeSpan, Written};

/// When you do not want to be told. The end may be on the next day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "QuietHours")]
pub(super) struct QuietFile {
    /// The beginning, where the daemon runs: `22:00`.
    from: TimeFile,
    /// The end: `07:00`.
    to: TimeFile,
    /// Whether what is urgent comes through. By default it does not.
    #[serde(default)]
    urgent: bool,
}

impl QuietFile {
    /// What it means.
    pub(super) const fn settled(&self) -> QuietHours {
        QuietHours {
            from: self.from.0,
            to: self.to.0,
            urgent: self.urgent,
        }
    }
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeFile(TimeOfDay);

impl TimeFile {
    fn parse(text: &str) -> Result<Self, String> {
        let parts = || {
            let (hour, minute) = text.split_once(':')?;
            let digits = |part: &str| {
                let plain = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
                plain.then(|| part.parse::<u16>().ok()).flatten()
            };
            TimeOfDay::new(digits(hour)?, digits(minute)?)
        };
        parts().map(Self).ok_or_else(|| {
            let shown = printable(text, 40);
            format!("`{shown}` is no time of day\nwrite hours and minutes: `\"22:00\"`")
        })
    }
}

impl Serialize for TimeFile {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (hour, minute) = self.0.parts();
        serializer.collect_str(&format_args!("{hour:02}:{minute:02}"))
    }
}

impl<'de> Deserialize<'de> for TimeFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = Written {
            expected: "a time of day",
            parse: Self::parse,
        };
        deserializer.deserialize_newtype_struct(AS_WRITTEN, visitor)
    }
}

impl JsonSchema for TimeFile {
    fn schema_name() -> Cow<'static, str> {
        "TimeOfDay".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A time of day: `22:00`.",
            "type": "string",
            "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$",
        })
    }
}

/// When notices are put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Digest")]
pub(super) struct DigestFile {
    /// So many come one by one within the time; what follows comes as one.
    singles: Count<1, 1000>,
    /// The time.
    within: TimeSpan,
}

impl Default for DigestFile {
    fn default() -> Self {
        Self {
            singles: Count::new(Digest::default().singles_max),
            within: TimeSpan(Digest::default().within),
        }
    }
}

impl DigestFile {
    /// What it means.
    pub(super) fn settled(&self) -> Digest {
        Digest {
            singles_max: self.singles.value(),
            within: self.within.0,
            ..Digest::default()
        }
    }
}

/// What happens when a channel fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "NotifyRetry")]
pub(super) struct RetryFile {
    /// The longest wait after a first failure; it doubles with every further one.
    backoff: TimeSpan,
    /// The longest wait after any failure.
    backoff_max: TimeSpan,
    /// After so long a notice is given up.
    give_up_after: TimeSpan,
}

impl Default for RetryFile {
    fn default() -> Self {
        let usual = Retry::default();
        Self {
            backoff: TimeSpan(usual.backoff.base),
            backoff_max: TimeSpan(usual.backoff.cap),
            give_up_after: TimeSpan(usual.give_up_after),
        }
    }
}

impl RetryFile {
    /// What it means.
    pub(super) fn settled(&self) -> Retry {
        Retry {
            backoff: Backoff {
                base: self.backoff.0,
                cap: self.backoff_max.0,
                ..Backoff::default()
            },
            give_up_after: self.give_up_after.0,
        }
    }
}

/// What happens when a channel fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How long to wait before the next try.
    pub backoff: Backoff,
    /// After so long a notice is given up.
    pub give_up_after: Millis,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            backoff: Backoff {
                base: Millis::from_secs(2),
                cap: Millis::from_mins(5),
                ..Backoff::default()
            },
            give_up_after: Millis::from_days(1),
        }
    }
}
