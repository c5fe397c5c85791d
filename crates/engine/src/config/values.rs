//! The kinds of scalar that the file has: lengths of time, sizes, counts, environment variables.
//!
//! Each knows its text, its bounds and its schema, so that the three can't disagree.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use woodward_core::Millis;

use super::de::AS_WRITTEN;
use super::error::printable;

/// A visitor of scalars as they are written. A message's second line is the hint.
pub(super) struct Written<T> {
    pub(super) expected: &'static str,
    pub(super) parse: fn(&str) -> Result<T, String>,
}

impl<T> Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

/// A type that is read from a scalar as it is written.
macro_rules! written {
    ($name:ty, $expected:literal, $parse:expr) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let visitor = Written {
                    expected: $expected,
                    parse: $parse,
                };
                deserializer.deserialize_newtype_struct(AS_WRITTEN, visitor)
            }
        }
    };
}

/// The longest length of time.
const SPAN_MAX: Millis = Millis::from_days(30);

const SPAN_PATTERN: &str = "^([0-9]+(ms|s|m|h|d))+$";

const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// A length of time: `500ms`, `90s`, `10m`, `2h`, `1d`, `1h30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimeSpan(pub(super) Millis);

impl TimeSpan {
    fn parse(text: &str) -> Result<Self, String> {
        let bad = |why: &str| {
            let shown = printable(text, 40);
            format!(
                "`{shown}` {why}\nwrite a number and a unit: `500ms`, `90s`, `10m`, `2h` or `1d`"
            )
        };
        let mut rest = text;
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, tail) = rest.split_at(digits);
            let letters = tail
                .find(|c: char| !c.is_ascii_lowercase())
                .unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(letters);
            let millis = UNITS.iter().find(|(name, _)| *name == unit);
            let (Ok(number), Some((_, millis))) = (number.parse::<u64>(), millis) else {
                return Err(bad("is not a length of time"));
            };
            total = total.saturating_add(number.saturating_mul(*millis));
            rest = tail;
        }
        match total {
            0 => Err(bad("is no time at all")),
            _ if total > SPAN_MAX.0 => Err(bad("is more than 30 days")),
            _ => Ok(Self(Millis(total))),
        }
    }
}

written!(TimeSpan, "a length of time such as `10m`", TimeSpan::parse);

impl fmt::Display for TimeSpan {
    /// As the file has it, in the largest unit that divides it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS
            .iter()
            .find(|(_, millis)| self.0.0.is_multiple_of(*millis));
        let (unit, millis) = whole.unwrap_or(&("ms", 1));
        write!(f, "{}{unit}", self.0.0 / millis)
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for TimeSpan {
    fn schema_name() -> Cow<'static, str> {
        "TimeSpan".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time: 500ms, 90s, 10m, 2h, 1d, 1h30m. At most 30 days.",
            "type": "string",
            "pattern": SPAN_PATTERN,
        })
    }
}

/// A length of time, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanOrOff(pub(super) Option<TimeSpan>);

written!(SpanOrOff, "a length of time or `off`", |text| match text {
    "off" => Ok(SpanOrOff(None)),
    _ => TimeSpan::parse(text)
        .map(|span| SpanOrOff(Some(span)))
        .map_err(|message| message + ", or `off`"),
});

impl Serialize for SpanOrOff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(span) => span.serialize(serializer),
            None => serializer.serialize_str("off"),
        }
    }
}

impl JsonSchema for SpanOrOff {
    fn schema_name() -> Cow<'static, str> {
        "TimeSpanOrOff".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let span = generator.subschema_for::<TimeSpan>();
        json_schema!({
            "description": "A length of time, or `off`.",
            "anyOf": [span, { "const": "off" }],
        })
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Count<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Count<MIN, MAX> {
    const IN_ORDER: () = assert!(MIN <= MAX);

    /// A number, moved into the bounds.
    pub(super) const fn new(number: u32) -> Self {
        let () = Self::IN_ORDER;
        Self(if number < MIN {
            MIN
        } else if number > MAX {
            MAX
        } else {
            number
        })
    }

    /// The number.
    pub(super) const fn value(self) -> u32 {
        self.0
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text.parse::<u32>() {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(Self(number)),
            _ => Err(format!(
                "`{}` is not a whole number from {MIN} to {MAX}",
                printable(text, 40)
            )),
        }
    }
}

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Count<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = Written {
            expected: "a whole number",
            parse: Self::parse,
        };
        deserializer.deserialize_newtype_struct(AS_WRITTEN, visitor)
    }
}

impl<const MIN: u32, const MAX: u32> JsonSchema for Count<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("Count{MIN}To{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// A number of bytes: `1048576`, `64KiB`, `64MiB`, `1GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteCount(pub(super) u64);

const SIZES: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("", 1),
];

impl ByteCount {
    const MIN: u64 = 64 << 10;
    const MAX: u64 = 16 << 30;

    fn parse(text: &str) -> Result<Self, String> {
        let split = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let size = SIZES.iter().find(|(name, _)| *name == unit.trim());
        let bytes = match (number.parse::<u64>(), size) {
            (Ok(number), Some((_, size))) => number.saturating_mul(*size),
            _ => 0,
        };
        if (Self::MIN..=Self::MAX).contains(&bytes) {
            return Ok(Self(bytes));
        }
        Err(format!(
            "`{}` is not a size from 64KiB to 16GiB\nwrite it as `64MiB`, `1GiB` or in bytes",
            printable(text, 40)
        ))
    }
}

written!(ByteCount, "a size such as `64MiB`", ByteCount::parse);

impl Serialize for ByteCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = SIZES.iter().find(|(_, size)| self.0.is_multiple_of(*size));
        let (unit, size) = whole.unwrap_or(&("", 1));
        serializer.collect_str(&format_args!("{}{unit}", self.0 / size))
    }
}

impl JsonSchema for ByteCount {
    fn schema_name() -> Cow<'static, str> {
        "ByteCount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of bytes: 1048576, 64KiB, 64MiB, 1GiB.",
            "anyOf": [
                { "type": "string", "pattern": "^[0-9]+ ?(KiB|MiB|GiB)?$" },
                { "type": "integer", "minimum": Self::MIN, "maximum": Self::MAX },
            ],
        })
    }
}

/// A sum of US dollars, kept in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usd {
    /// Millionths of a dollar.
    pub(super) micro: u64,
}

impl Usd {
    fn parse(text: &str) -> Result<Self, String> {
        let bad = || {
            let shown = printable(text, 40);
            format!("`{shown}` is not a sum of dollars up to 1000000\nwrite it as `5` or `2.50`")
        };
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 6 || whole.len() > 7 {
            return Err(bad());
        }
        let whole: u64 = whole.parse().map_err(|_| bad())?;
        let part: u64 = format!("{part:0<6}").parse().map_err(|_| bad())?;
        let micro = whole * 1_000_000 + part;
        if micro == 0 || micro > 1_000_000_000_000 {
            return Err(bad());
        }
        Ok(Self { micro })
    }
}

written!(Usd, "a sum of dollars", Usd::parse);

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (whole, part) = (self.micro / 1_000_000, self.micro % 1_000_000);
        serializer.collect_str(&format_args!("{whole}.{part:06}"))
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A sum of US dollars, such as 5 or 2.50.",
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1_000_000,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_and_written_alike() {
        for (text, millis) in [
            ("500ms", 500),
            ("90s", 90_000),
            ("10m", 600_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
        ] {
            let span = TimeSpan::parse(text).unwrap();
            assert_eq!((span.0.0, span.to_string().as_str()), (millis, text));
        }
        assert_eq!(TimeSpan::parse("1h30m").unwrap().to_string(), "90m");
        for bad in [
            "",
            "10",
            "m",
            "10 m",
            "10M",
            "-1s",
            "1.5h",
            "0s",
            "31d",
            "9999999999999999999d",
        ] {
            assert!(TimeSpan::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn dollars_are_exact() {
        assert_eq!(Usd::parse("2.50").unwrap().micro, 2_500_000);
        assert_eq!(Usd::parse("0.000001").unwrap().micro, 1);
        for bad in ["", "0", "-1", "1e3", "1.", ".5", "1.0000001", "1000001"] {
            assert!(Usd::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_bounds() {
        assert_eq!(ByteCount::parse("64MiB").unwrap().0, 64 << 20);
        assert_eq!(ByteCount::parse("65536").unwrap().0, 65_536);
        for bad in ["", "1", "64MB", "17GiB", "-1", "9999999999999999999999GiB"] {
            assert!(ByteCount::parse(bad).is_err(), "{bad}");
        }
    }
}
