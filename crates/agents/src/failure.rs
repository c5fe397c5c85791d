//! What a provider's failure means, from its HTTP status or from its words.
//!
//! Pure. Programs repeat what their provider said in many ways, but there are few providers: this is
//! the one place that knows their statuses and sentences. It is to be asked only about what a program
//! says is an error; an agent may write such sentences into any file.

use woodward_core::provider::{ProviderWait, ProviderWaitReason};
use woodward_core::{Millis, Timestamp};

use crate::conversation::tail;
use crate::event::{Ending, Event};

const NOTE_MAX: usize = 600;
/// A wait that is longer than this was misread.
const WAIT_MAX_S: f64 = 31.0 * 86_400.0;

/// How a turn ended that the provider refused with this status. `until` is the moment from which it
/// may be asked again, if it said so other than in `note`.
pub(crate) fn from_status(
    status: u16,
    note: &str,
    until: Option<Timestamp>,
    now: Timestamp,
) -> Ending {
    let words = note.to_ascii_lowercase();
    let note = shortened(note);
    match status {
        401 | 403 => Ending::LoggedOut { note },
        429 => Ending::RateLimited {
            until: until.or_else(|| moment(&words, now)),
            note,
        },
        400 | 413 | 422 if is_context(&words) => Ending::ContextFull,
        _ => Ending::ApiFailed {
            status: Some(status),
            note,
        },
    }
}

/// Whether a status says that the provider has too much to do, rather than that a request is wrong.
pub const fn is_overload(status: Option<u16>) -> bool {
    matches!(status, Some(502 | 503 | 504 | 529))
}

/// A program waits for its provider by itself. `next` is when it tries again.
pub(crate) fn retrying(
    status: Option<u16>,
    said: &str,
    next: Option<Timestamp>,
    now: Timestamp,
) -> Event {
    let ending = match status {
        Some(status) => Some(from_status(status, said, None, now)),
        None => from_text(said, now),
    };
    let (reason, resets_at) = match ending {
        Some(Ending::RateLimited { until, .. }) => (ProviderWaitReason::RateLimit, until),
        Some(Ending::ApiFailed { status, .. }) if is_overload(status) => {
            (ProviderWaitReason::Overloaded, None)
        }
        _ => (ProviderWaitReason::Failed, None),
    };
    Event::Retrying {
        note: shortened(said),
        wait: Some(ProviderWait {
            reason,
            resets_at,
            retries_at: next,
        }),
    }
}

/// How long a program may wait for its provider by itself before others should do its work.
const OWN_WAIT_MAX: Millis = Millis::from_mins(1);
/// How often it may try in vain.
const OWN_TRIES_MAX: u64 = 5;

/// Whether a program that waits for its provider by itself should be stopped, so that the task shows
/// that it waits and another agent can do the work: `tries` failed, and the next one is at `next`.
pub(crate) fn waits_too_long(tries: u64, next: Timestamp, now: Timestamp) -> bool {
    tries >= OWN_TRIES_MAX || next > now + OWN_WAIT_MAX
}

/// How a turn ended of which only an error's words are known; `None` if they are no provider's.
pub(crate) fn from_text(text: &str, now: Timestamp) -> Option<Ending> {
    let words = text.to_ascii_lowercase();
    let any = |list: &[&str]| list.iter().any(|part| words.contains(part));
    let note = || shortened(text);
    if is_context(&words) {
        return Some(Ending::ContextFull);
    }
    if any(LOGGED_OUT) {
        return Some(Ending::LoggedOut { note: note() });
    }
    if any(RATE_LIMITED) {
        return Some(Ending::RateLimited {
            until: moment(&words, now),
            note: note(),
        });
    }
    if let Some(variable) = missing_variable(text) {
        return Some(Ending::MissingVariable {
            variable,
            note: note(),
        });
    }
    if let Some(status) = status_in(&words) {
        return Some(from_status(status, text, None, now));
    }
    any(FAILED).then(|| Ending::ApiFailed {
        status: any(&["overloaded"]).then_some(529),
        note: note(),
    })
}

const CONTEXT_FULL: &[&str] = &[
    "prompt is too long",
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "context length",
    "exceeds the maximum number of tokens",
    "input is too long",
];

const LOGGED_OUT: &[&str] = &[
    "not logged in",
    "please run /login",
    "authentication_error",
    "authenticationerror",
    "authentication failed",
    "invalid api key",
    "invalid_api_key",
    "invalid x-api-key",
    "incorrect api key",
    "api key not valid",
    "no api key",
    "missing api key",
    "api key is missing",
    "unauthorized",
    "oauth token has expired",
    "token expired",
];

const RATE_LIMITED: &[&str] = &[
    "rate limit",
    "rate_limit",
    "ratelimit",
    "rate-limited",
    "too many requests",
    "usage limit",
    "hit your limit",
    "hour limit",
    "weekly limit",
    "resource_exhausted",
    "quota exceeded",
    "insufficient_quota",
];

const FAILED: &[&str] = &[
    "overloaded",
    "internal server error",
    "internalservererror",
    "service unavailable",
    "serviceunavailable",
    "bad gateway",
    "gateway timeout",
    "api error",
    "apierror",
    "api connection error",
    "apiconnectionerror",
    "connection error",
    "connection refused",
    "econnrefused",
    "econnreset",
    "enotfound",
    "etimedout",
    "fetch failed",
    "stream error",
    "stream idle timeout",
];

/// The variable that a program says it needs and does not have.
fn missing_variable(text: &str) -> Option<String> {
    const BEFORE: &[&str] = &[
        "missing environment variable",
        "environment variable not found",
        "environment variable not set",
        "missing required environment variable",
        "please set the environment variable",
        "please set environment variable",
    ];
    const AFTER: &[&str] = &[
        " environment variable is not set",
        " environment variable is missing",
        " environment variable is required",
        " environment variable not set",
        " environment variable not found",
        " is not set in the environment",
    ];
    let words = text.to_ascii_lowercase();
    let is_name = |word: &&str| {
        let allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        word.len() > 2 && word.contains('_') && word.chars().all(allowed)
    };
    let parts = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        parts.map(str::to_owned).collect()
    };
    let after = BEFORE.iter().find_map(|phrase| {
        let at = words.find(phrase)? + phrase.len();
        let near: String = text.get(at..)?.chars().take(80).collect();
        parts(&near)
            .into_iter()
            .find(|word| is_name(&word.as_str()))
    });
    after.or_else(|| {
        AFTER.iter().find_map(|phrase| {
            let at = words.find(phrase)?;
            let before = parts(text.get(..at)?);
            let name = before.into_iter().rev().find(|word| !word.is_empty())?;
            Some(name).filter(|name| is_name(&name.as_str()))
        })
    })
}

fn is_context(words: &str) -> bool {
    CONTEXT_FULL.iter().any(|part| words.contains(part))
}

/// The HTTP status that a text names, if it says that it is one.
fn status_in(words: &str) -> Option<u16> {
    const BEFORE: &[&str] = &[
        "api error: ",
        "api error ",
        "status code ",
        "status code: ",
        "status: ",
        "status=",
        "status ",
        "\"code\":",
        "\"code\": ",
        "\"status\":",
        "\"status\": ",
        "\"statuscode\":",
        "error code: ",
        "http ",
        "http/1.1 ",
        "error: ",
        "error ",
    ];
    let number = |text: &str| {
        let digits = text.get(..3)?;
        let alone = !text[3..].starts_with(|c: char| c.is_ascii_alphanumeric());
        let status = digits.parse::<u16>().ok()?;
        (alone && (400..600).contains(&status)).then_some(status)
    };
    BEFORE
        .iter()
        .find_map(|before| {
            words
                .match_indices(before)
                .find_map(|(at, _)| number(&words[at + before.len()..]))
        })
        // `429 {"error": …}` and `500 status code (no body)`.
        .or_else(|| number(words.trim_start()))
        // `Request rejected (429)`.
        .or_else(|| {
            words.match_indices('(').find_map(|(at, _)| {
                let rest = &words[at + 1..];
                number(rest).filter(|_| rest[3..].starts_with(')'))
            })
        })
}

/// The moment from which a provider may be asked again, as its words (in lower case) say.
pub(crate) fn moment(words: &str, now: Timestamp) -> Option<Timestamp> {
    const SPANS: &[&str] = &[
        "try again in ",
        "retry in ",
        "retry after ",
        "retry-after: ",
        "retry-after ",
        "reset after ",
        "resets in ",
        "reset in ",
    ];
    let span = SPANS.iter().find_map(|before| {
        let at = words.find(before)?;
        span(&words[at + before.len()..])
    });
    if let Some(span) = span {
        return Some(now + span);
    }
    const MOMENTS: &[&str] = &[
        "resets at ",
        "reset at ",
        "reached|",
        "resetsat\":",
        "until ",
    ];
    MOMENTS.iter().find_map(|before| {
        let at = words.find(before)?;
        let rest = words[at + before.len()..].trim_start();
        utc(rest).or_else(|| unix(leading_digits(rest)))
    })
}

/// A moment in seconds or milliseconds since 1970.
pub(crate) fn unix(digits: &str) -> Option<Timestamp> {
    let value = digits.parse::<i64>().ok()?;
    match digits.len() {
        10 => Some(Timestamp(value.checked_mul(1_000)?)),
        13 => Some(Timestamp(value)),
        _ => None,
    }
}

fn leading_digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit());
    &text[..end.unwrap_or(text.len())]
}

/// `20s`, `1m30.5s`, `500ms`, `2 minutes`, `30`: a number alone is seconds.
fn span(text: &str) -> Option<Millis> {
    let mut rest = text.trim_start();
    let mut seconds = 0.0;
    let mut any = false;
    loop {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        let Ok(value) = number.trim_end_matches('.').parse::<f64>() else {
            break;
        };
        let unit_text = after.trim_start();
        let end = unit_text.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after_unit) = unit_text.split_at(end.unwrap_or(unit_text.len()));
        let factor = match unit {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            _ if any => break,
            _ => {
                seconds += value;
                any = true;
                break;
            }
        };
        seconds += value * factor;
        any = true;
        rest = after_unit.trim_start();
    }
    let sane = any && seconds.is_finite() && (0.0..=WAIT_MAX_S).contains(&seconds);
    // Rounded up: too early is refused again.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was just checked"
    )]
    sane.then(|| Millis((seconds * 1_000.0).ceil() as u64))
}

/// `2026-11-16T05:00:00Z`, also with a blank between and with fractions; only UTC.
fn utc(text: &str) -> Option<Timestamp> {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let mark = |at: usize, marks: &[u8]| text.as_bytes().get(at).is_some_and(|b| marks.contains(b));
    let shaped =
        mark(4, b"-") && mark(7, b"-") && mark(10, b"tT ") && mark(13, b":") && mark(16, b":");
    if !shaped {
        return None;
    }
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    let rest = text
        .get(19..)?
        .trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let in_utc = rest.starts_with(['z', 'Z'])
        || rest.starts_with("+00:00")
        || rest.trim_start().starts_with("utc");
    let sane = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60;
    if !(in_utc && sane) {
        return None;
    }
    // Days from 1970, counted in years that begin in March.
    let shifted = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted.div_euclid(4) - shifted.div_euclid(100)
        + shifted.div_euclid(400)
        + of_year
        - 719_468;
    Some(Timestamp(
        (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000,
    ))
}

/// The end of what was said: that is where programs put the reason.
fn shortened(note: &str) -> String {
    tail(note.trim(), NOTE_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn until(text: &str) -> Option<i64> {
        match from_text(text, NOW) {
            Some(Ending::RateLimited { until, .. }) => until.map(|at| at.0 - NOW.0),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_short_wait_is_the_programs_own_business() {
        let now = Timestamp(1_000_000);
        assert!(!waits_too_long(1, now + Millis(5_000), now));
        assert!(waits_too_long(1, now + Millis::from_mins(2), now));
        assert!(waits_too_long(5, now + Millis(5_000), now));
    }

    #[test]
    fn a_wait_says_why_and_until_when() {
        let wait = |status, said: &str| match retrying(status, said, None, NOW) {
            Event::Retrying {
                wait: Some(wait), ..
            } => (wait.reason, wait.resets_at.map(|at| at.0 - NOW.0)),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            wait(None, "Too Many Requests, retry after 12"),
            (ProviderWaitReason::RateLimit, Some(12_000))
        );
        assert_eq!(
            wait(Some(529), "try later"),
            (ProviderWaitReason::Overloaded, None)
        );
        assert_eq!(wait(Some(500), "oops"), (ProviderWaitReason::Failed, None));
        assert_eq!(wait(None, "odd"), (ProviderWaitReason::Failed, None));
    }

    #[test]
    fn each_status_is_its_own_ending() {
        let ending = |status, note| from_status(status, note, None, NOW);
        assert!(matches!(ending(401, "bad key"), Ending::LoggedOut { .. }));
        assert!(matches!(
            ending(429, "slow down"),
            Ending::RateLimited { until: None, .. }
        ));
        assert!(matches!(
            ending(529, "Overloaded"),
            Ending::ApiFailed {
                status: Some(529),
                ..
            }
        ));
        assert!(matches!(
            ending(500, "oops"),
            Ending::ApiFailed {
                status: Some(500),
                ..
            }
        ));
        assert_eq!(
            ending(400, "prompt is too long: 210000 tokens > 200000 maximum"),
            Ending::ContextFull
        );
        assert!(matches!(
            ending(400, "bad request"),
            Ending::ApiFailed {
                status: Some(400),
                ..
            }
        ));
    }

    #[test]
    fn a_header_wins_over_words() {
        let ending = from_status(429, "try again in 20s", Some(Timestamp(7)), NOW);
        assert!(matches!(
            ending,
            Ending::RateLimited {
                until: Some(Timestamp(7)),
                ..
            }
        ));
    }

    #[test]
    fn words_say_until_when() {
        assert_eq!(
            until("Rate limit reached. Please try again in 1m30.5s."),
            Some(90_500)
        );
        assert_eq!(
            until("rate_limit_error: retry after 30 seconds"),
            Some(30_000)
        );
        assert_eq!(until("Too Many Requests, retry after 12"), Some(12_000));
        assert_eq!(until("rate limit: try again in 500ms"), Some(500));
        assert_eq!(
            until("Claude AI usage limit reached|1800003600"),
            Some(3_600_000)
        );
        assert_eq!(
            until("usage limit, resets at 2027-01-15T09:00:00Z"),
            Some(3_600_000)
        );
        assert_eq!(
            until("You've hit your limit · resets 3pm (Europe/Berlin)"),
            None
        );
        assert_eq!(until("rate limit, try again in a while"), None);
        assert_eq!(until("rate limit, try again in 99999999999999 h"), None);
    }

    #[test]
    fn words_alone_are_enough() {
        let of = |text: &str| from_text(text, NOW);
        assert!(matches!(
            of("Not logged in · Please run /login"),
            Some(Ending::LoggedOut { .. })
        ));
        assert!(matches!(
            of("litellm.AuthenticationError: OpenAIException - bad key"),
            Some(Ending::LoggedOut { .. })
        ));
        assert!(matches!(
            of("API Error: 503 upstream"),
            Some(Ending::ApiFailed {
                status: Some(503),
                ..
            })
        ));
        assert!(matches!(
            of("500 status code (no body)"),
            Some(Ending::ApiFailed {
                status: Some(500),
                ..
            })
        ));
        assert!(matches!(
            of("Overloaded"),
            Some(Ending::ApiFailed {
                status: Some(529),
                ..
            })
        ));
        assert_eq!(
            of("this model's maximum context length is 8192 tokens"),
            Some(Ending::ContextFull)
        );
        for limited in [
            "429",
            "429 status code (no body)",
            "API Error: Request rejected (429) · slow down",
            "HTTP 429: slow down",
            "last status: 429",
            "request failed with status code 429",
            r#"{"error":{"code":429,"message":"slow down"}}"#,
            "unexpected status 429 Unknown",
        ] {
            let ending = of(limited);
            let is_limit = matches!(ending, Some(Ending::RateLimited { .. }));
            assert!(is_limit, "{limited}: {ending:?}");
        }
        for (said, variable) in [
            (
                "Missing environment variable: `STAND_IN_KEY`.",
                "STAND_IN_KEY",
            ),
            (
                "OPENAI_API_KEY environment variable is not set",
                "OPENAI_API_KEY",
            ),
            (
                "error: environment variable not found: GOOSE_PROVIDER",
                "GOOSE_PROVIDER",
            ),
        ] {
            let ending = of(said);
            let Some(Ending::MissingVariable {
                variable: found, ..
            }) = &ending
            else {
                panic!("{said}: {ending:?}");
            };
            assert_eq!(found, variable);
        }
        assert_eq!(of("set an environment variable if you like"), None);
        assert_eq!(of("the file src/a.rs has 500 lines"), None);
        assert_eq!(of(""), None);
        assert_eq!(of("error: ä"), None);
    }

    #[test]
    fn a_note_is_bounded() {
        let Some(Ending::LoggedOut { note }) =
            from_text(&format!("{} unauthorized", "x".repeat(9_000)), NOW)
        else {
            panic!("it names a missing login");
        };
        assert!(note.len() <= NOTE_MAX && note.ends_with("unauthorized"));
    }
}
