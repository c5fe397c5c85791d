//! Cron expressions: minute, hour, day of the month, month, day of the week, in UTC.
//!
//! `*`, numbers, names (`mon`, `jan`), lists `1,2`, ranges `1-5`, steps `*/10`, and `@hourly`,
//! `@daily`, `@weekly`, `@monthly`. As everywhere, a day matches when either of the two kinds of day
//! does, if both are restricted. Nothing here reads a clock.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::time::Timestamp;

const MINUTE: i64 = 60_000;
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A parsed expression: which values of each field match, as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether either kind of day is restricted.
    any_day: bool,
    any_weekday: bool,
}

struct Field {
    what: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
    /// The number of the first name.
    first: u32,
}

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            other => other,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = *fields else {
            return Err(format!(
                "it has {} fields instead of 5 (minute, hour, day, month, day of the week)",
                fields.len()
            ));
        };
        let field = |what, min, max| Field {
            what,
            min,
            max,
            names: &[],
            first: 0,
        };
        let months = Field {
            names: &MONTHS,
            first: 1,
            ..field("month", 1, 12)
        };
        let weekdays = Field {
            names: &DAYS,
            ..field("day of the week", 0, 7)
        };
        let mut on = weekdays.parse(weekday)?;
        // Sunday has two numbers.
        if on & (1 << 7) != 0 {
            on = (on | 1) & !(1 << 7);
        }
        let cron = Self {
            minutes: field("minute", 0, 59).parse(minute)?,
            hours: field("hour", 0, 23).parse(hour)?,
            days: field("day", 1, 31).parse(day)?,
            months: months.parse(month)?,
            weekdays: on,
            any_day: day.starts_with('*'),
            any_weekday: weekday.starts_with('*'),
        };
        if cron.never() {
            return Err(String::from("there is no such day"));
        }
        Ok(cron)
    }

    /// Whether no month that matches has a day that does.
    fn never(&self) -> bool {
        let by_weekday = !self.any_weekday;
        let longest = |month: u32| match month {
            2 => 29,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        !by_weekday
            && !(1..=12).any(|month| {
                self.months & (1 << month) != 0
                    && (1..=longest(month)).any(|day| self.days & (1 << day) != 0)
            })
    }

    /// Whether the minute that a moment lies in matches.
    pub fn matches(&self, at: Timestamp) -> bool {
        let minutes = at.0.div_euclid(MINUTE);
        let days = minutes.div_euclid(24 * 60);
        let in_day = minutes.rem_euclid(24 * 60);
        let has = |bits: u64, value: i64| bits & (1 << value) != 0;
        let (month, day) = civil(days);
        // The first day of 1970 was a Thursday.
        let weekday = (days + 4).rem_euclid(7);
        let by_day = has(self.days, day);
        let by_weekday = has(self.weekdays, weekday);
        let right_day = match (self.any_day, self.any_weekday) {
            (false, false) => by_day || by_weekday,
            _ => by_day && by_weekday,
        };
        has(self.minutes, in_day % 60)
            && has(self.hours, in_day / 60)
            && has(self.months, month)
            && right_day
    }

    /// The last minute that matches, at `now` or up to `back` minutes before.
    pub fn last(&self, now: Timestamp, back: u32) -> Option<Timestamp> {
        let start = now.0 - now.0.rem_euclid(MINUTE);
        (0..=i64::from(back))
            .map(|minutes| Timestamp(start - minutes * MINUTE))
            .find(|at| self.matches(*at))
    }
}

impl Field {
    fn parse(&self, text: &str) -> Result<u64, String> {
        let mut bits = 0;
        for part in text.split(',') {
            bits |= self.part(part)?;
        }
        Ok(bits)
    }

    fn part(&self, text: &str) -> Result<u64, String> {
        let what = self.what;
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => {
                let step: u32 = step
                    .parse()
                    .ok()
                    .filter(|step| (1..=self.max).contains(step))
                    .ok_or_else(|| format!("`{step}` is no step for the {what}"))?;
                (range, Some(step))
            }
            None => (text, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.min, self.max),
            Some((from, to)) => (self.value(from)?, self.value(to)?),
            None => {
                let from = self.value(range)?;
                (from, if step.is_some() { self.max } else { from })
            }
        };
        if from > to {
            return Err(format!("`{range}` of the {what} ends before it begins"));
        }
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(1);
        Ok((from..=to).step_by(step).fold(0, |bits, n| bits | 1 << n))
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let named = self
            .names
            .iter()
            .position(|name| text.eq_ignore_ascii_case(name))
            .and_then(|at| u32::try_from(at).ok());
        let number = match named {
            Some(at) => Some(at + self.first),
            None => text.parse().ok(),
        };
        number
            .filter(|n| (self.min..=self.max).contains(n))
            .ok_or_else(|| {
                format!(
                    "`{text}` is no {} ({} to {})",
                    self.what, self.min, self.max
                )
            })
    }
}

/// Month and day of a day since 1970, by the proleptic Gregorian calendar. (Years begin in March, so
/// that the leap day is the last one.)
fn civil(days: i64) -> (i64, i64) {
    let shifted = days + 719_468;
    let in_era = shifted.rem_euclid(146_097);
    let year = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    (if month < 10 { month + 3 } else { month - 9 }, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A moment of 2024-02-29 (a Thursday) or of `days` later.
    fn at(days: i64, hour: i64, minute: i64) -> Timestamp {
        let leap_day = 19_782;
        Timestamp(((leap_day + days) * 24 * 60 + hour * 60 + minute) * MINUTE + 12_345)
    }

    fn cron(text: &str) -> Cron {
        Cron::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn days_of_the_calendar_are_known() {
        assert_eq!(civil(0), (1, 1));
        assert_eq!(civil(19_782), (2, 29));
        assert_eq!(civil(19_783), (3, 1));
        assert_eq!(civil(-1), (12, 31));
        assert_eq!(civil(11_016), (2, 29), "2000 was a leap year");
    }

    #[test]
    fn expressions_match_their_minutes_and_no_others() {
        for (text, when, expected) in [
            ("* * * * *", at(0, 0, 0), true),
            ("0 6 * * 1-5", at(0, 6, 0), true),
            ("0 6 * * 1-5", at(0, 6, 1), false),
            ("0 6 * * 1-5", at(2, 6, 0), false),
            ("0 6 * * mon-fri", at(4, 6, 0), true),
            ("*/15 * * * *", at(0, 3, 45), true),
            ("*/15 * * * *", at(0, 3, 46), false),
            ("5/20 * * * *", at(0, 3, 25), true),
            ("0 0 29 feb *", at(0, 0, 0), true),
            ("0 0 29 feb *", at(1, 0, 0), false),
            ("0 0 * * 0", at(3, 0, 0), true),
            ("0 0 * * 7", at(3, 0, 0), true),
            ("0 0 1 * fri", at(1, 0, 0), true),
            ("0 0 13 * fri", at(1, 0, 0), true),
            ("0 0 13 * fri", at(13, 0, 0), true),
            ("0 0 13 * fri", at(2, 0, 0), false),
            ("0,30 8-17/3 * * *", at(0, 11, 30), true),
            ("0,30 8-17/3 * * *", at(0, 12, 30), false),
            ("@daily", at(0, 0, 0), true),
            ("@hourly", at(0, 9, 0), true),
        ] {
            assert_eq!(cron(text).matches(when), expected, "{text} at {when:?}");
        }
    }

    #[test]
    fn the_last_match_is_found_and_is_the_same_however_often_one_looks() {
        let daily = cron("0 6 * * *");
        let first = daily.last(at(0, 6, 0), 10);
        assert_eq!(daily.last(at(0, 6, 9), 10), first);
        assert_eq!(first.map(|at| at.0 % MINUTE), Some(0));
        assert_eq!(daily.last(at(0, 6, 11), 10), None);
        assert_eq!(daily.last(at(0, 5, 59), 10), None);
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        for (text, why) in [
            ("", "0 fields"),
            ("* * * *", "4 fields"),
            ("60 * * * *", "`60` is no minute (0 to 59)"),
            ("* 24 * * *", "is no hour"),
            ("* * 0 * *", "is no day"),
            ("* * * 13 *", "is no month"),
            ("* * * * 8", "is no day of the week"),
            ("5-1 * * * *", "ends before it begins"),
            ("*/0 * * * *", "is no step"),
            ("x * * * *", "`x` is no minute"),
            ("0 0 31 feb *", "no such day"),
        ] {
            let error = Cron::parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
