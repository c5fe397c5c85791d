//! Telling one failure from another: a number that stays the same while the failure does. Pure.
//!
//! Line numbers, durations, addresses and process ids change from run to run and from commit to
//! commit; what a failure is called and what it says does not.

use woodward_core::Note;
use woodward_store::GateFailure;

use super::read::{Failed, Reading};
use crate::paths::fnv;

/// Lines of the end of an output that no program is known to have printed.
const LINES: usize = 8;

/// What failed, each with its number. Where nothing can be told apart, the end of the output is the
/// failure.
pub(crate) fn failures(reading: &Reading, output: &str) -> Vec<GateFailure> {
    if reading.failures.is_empty() {
        let said = output
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let mut last: Vec<&str> = said.rev().take(LINES).collect();
        last.reverse();
        let message = last.join("\n");
        return vec![GateFailure {
            name: Note::from("the command"),
            print: number("", &message),
            message: last.last().map(|line| Note::from(*line)),
            known: false,
        }];
    }
    let failure = |failed: &Failed| GateFailure {
        name: Note::from(failed.name.as_str()),
        message: Some(failed.message.as_str())
            .filter(|message| !message.is_empty())
            .map(Note::from),
        print: number(&failed.name, &failed.message),
        known: false,
    };
    reading.failures.iter().map(failure).collect()
}

/// The number of a name and of what is said, without what changes by itself.
fn number(name: &str, message: &str) -> u64 {
    let text = format!("{name}\n{}", steady(message));
    fnv(text.as_bytes())
}

/// Without numbers, colours and spacing.
fn steady(text: &str) -> String {
    let mut steady = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A colour: up to its letter.
            while chars.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
        } else if c.is_ascii_digit() {
            let is_hex = c == '0' && chars.peek() == Some(&'x');
            while chars
                .peek()
                .is_some_and(|c| c.is_ascii_digit() || (is_hex && c.is_ascii_alphanumeric()))
            {
                chars.next();
            }
            steady.push('#');
        } else if c.is_whitespace() {
            if !steady.ends_with(' ') {
                steady.push(' ');
            }
        } else {
            steady.push(c);
        }
    }
    steady
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_by_itself_makes_no_other_failure() {
        let one = number("cart", "at src/cart.rs:12:5 after 0.31s: 0x7ffd10 is gone");
        let same = number(
            "cart",
            "at  src/cart.rs:99:17 after 12.5s:\n0x00aaff is gone",
        );
        assert_eq!(one, same);
        assert_eq!(
            number("a", "\u{1b}[31mleft\u{1b}[0m is 1"),
            number("a", "left is 2")
        );
        assert_ne!(one, number("cart", "at src/cart.rs:12:5: it is here"));
        assert_ne!(
            one,
            number("wagon", "at src/cart.rs:12:5 after 0.31s: 0x7ffd10 is gone")
        );
    }

    #[test]
    fn an_output_that_nobody_knows_fails_by_its_end() {
        let reading = Reading::default();
        let one = failures(&reading, "starting at 12:04\nall is lost\n\n");
        assert_eq!(one.len(), 1);
        assert_eq!(one[0].message, Some(Note::from("all is lost")));
        assert_eq!(one, failures(&reading, "starting at 13:55\nall is lost"));
        assert_ne!(
            one[0].print,
            failures(&reading, "starting at 13:55\nall is well")[0].print
        );
    }
}
