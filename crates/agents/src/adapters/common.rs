//! What all adapters need besides their language: bounded texts, and what to make of a program that
//! did not start or is gone. It knows no program by name.

use std::io;
use std::process::ExitStatus;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use woodward_core::{MessageId, Timestamp};

use crate::conversation::tail;
use crate::event::Ending;
use crate::failure;
use crate::files::fresh_uuid;
use crate::spec::Spec;

/// What is kept of each end of a tool's output.
const OUTPUT_END: usize = 2 << 10;
/// What is kept of an agent's words in one event.
const TEXT_MAX: usize = 64 << 10;
/// What is kept of a command, a path or a pattern.
const WHAT_MAX: usize = 2 << 10;
const NOTE_MAX: usize = 600;

/// The moment it is.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }))
}

/// An id for a question of the agent's.
pub(crate) fn fresh_question() -> MessageId {
    MessageId::new(fresh_uuid())
}

/// The beginning and the end of what a tool printed.
pub(crate) fn excerpt(output: &str) -> String {
    ends(output, OUTPUT_END)
}

/// An agent's words, bounded.
pub(crate) fn words(text: &str) -> String {
    ends(text, TEXT_MAX / 2)
}

/// A command, a path or a pattern, bounded.
pub(crate) fn what(text: &str) -> String {
    ends(text, WHAT_MAX / 2)
}

/// The end of a program's complaint, bounded.
pub(crate) fn note(text: &str) -> String {
    tail(text.trim(), NOTE_MAX).to_owned()
}

fn ends(text: &str, each: usize) -> String {
    // What is left out must be worth a sentence of its own.
    if text.len() <= 2 * each + 64 {
        return text.to_owned();
    }
    let head = head(text, each);
    let tail = tail(text, each);
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n… {left_out} bytes left out …\n{tail}")
}

/// The beginning of a text, cut between characters.
pub(crate) fn head(text: &str, max: usize) -> &str {
    let mut to = max.min(text.len());
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    &text[..to]
}

/// A value in one bounded line.
pub(crate) fn one_line(value: &Value) -> String {
    what(&match value {
        Value::String(text) => text.replace('\n', " "),
        Value::Null => String::new(),
        value => value.to_string(),
    })
}

/// Dollars as millionths; a figure that makes no sense is none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
pub(crate) fn micro_usd(usd: f64) -> Option<u64> {
    let sane = usd.is_finite() && (0.0..1e9).contains(&usd);
    sane.then(|| (usd * 1e6).round() as u64)
}

/// The text of a key; empty when there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What to make of a program that could not be started.
pub(crate) fn not_started(spec: &Spec, error: &io::Error) -> Ending {
    let facts = spec.kind.facts();
    let program = spec.program.first().map_or(facts.program, String::as_str);
    let note = match error.kind() {
        io::ErrorKind::NotFound if facts.install.is_empty() => {
            format!("`{program}` is not installed")
        }
        io::ErrorKind::NotFound => {
            format!("`{program}` is not installed: {}", facts.install)
        }
        _ => format!("`{program}` can't be started: {error}"),
    };
    Ending::Unfit { note }
}

/// What to make of a run whose prompt can't be read.
pub(crate) fn no_prompt(spec: &Spec, error: &io::Error) -> Ending {
    let note = format!(
        "the prompt {} can't be read: {error}",
        spec.prompt.display()
    );
    Ending::Crashed { note }
}

/// What to make of a program that is gone without saying how its turn ended, from its last words.
pub(crate) fn gone(status: Option<ExitStatus>, last_words: &str) -> Ending {
    let unfit = |line: &&str| {
        let line = line.to_ascii_lowercase();
        UNFIT.iter().any(|part| line.contains(part))
    };
    if let Some(line) = last_words.lines().find(unfit) {
        let note = note(line);
        return Ending::Unfit { note };
    }
    if let Some(ending) = failure::from_text(last_words, now()) {
        return ending;
    }
    let how = status.map_or_else(
        || String::from("it had to be killed"),
        |status| status.to_string(),
    );
    let note = match note(last_words) {
        said if said.is_empty() => format!("the program ended without a word ({how})"),
        said => format!("the program ended ({how}): {said}"),
    };
    Ending::Crashed { note }
}

/// What programs say of options that their version does not have.
const UNFIT: &[&str] = &[
    "unknown option",
    "unknown argument",
    "unknown flag",
    "unknown command",
    "unrecognized option",
    "unrecognized argument",
    "unrecognized subcommand",
    "unexpected argument",
    "no such option",
    "invalid choice",
    "is only supported with",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_keeps_both_ends() {
        let long = format!("first{}last", "ä".repeat(9_000));
        let kept = excerpt(&long);
        assert!(kept.starts_with("first") && kept.ends_with("last"));
        assert!(
            kept.contains("bytes left out") && kept.len() < 5_000,
            "{}",
            kept.len()
        );
        assert_eq!(excerpt("short"), "short");
    }

    #[test]
    fn a_program_that_is_gone_is_judged_by_its_words() {
        assert!(matches!(
            gone(None, "error: unknown option '--verbos'"),
            Ending::Unfit { .. }
        ));
        assert!(matches!(
            gone(None, "Not logged in · Please run /login"),
            Ending::LoggedOut { .. }
        ));
        assert!(matches!(
            gone(None, "Segmentation fault"),
            Ending::Crashed { .. }
        ));
        assert!(matches!(gone(None, ""), Ending::Crashed { .. }));
    }
}
