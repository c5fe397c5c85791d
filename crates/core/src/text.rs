//! Bounded text.
//!
//! Reasons and questions come from agents, gates and people. They are stored with every event, so
//! they are cut here, once, and nothing longer ever reaches a row. Long texts (prompts, logs) are
//! not notes: they live in messages and files.

use alloc::format;
use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

/// A short text of at most [`Note::BYTES_MAX`] bytes; a longer one keeps its head and its tail.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Note(String);

const ELLIPSIS: &str = " […] ";

impl Note {
    /// The most a note holds.
    pub const BYTES_MAX: usize = 2_048;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The largest character boundary at or below `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&i| text.is_char_boundary(i))
        .unwrap_or(0)
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        if text.len() <= Self::BYTES_MAX {
            return Self(text);
        }
        let half = (Self::BYTES_MAX - ELLIPSIS.len()) / 2;
        let head = floor_boundary(&text, half);
        let tail = (text.len() - half..text.len())
            .find(|&i| text.is_char_boundary(i))
            .unwrap_or(text.len());
        let mut cut = String::with_capacity(Self::BYTES_MAX);
        cut.push_str(&text[..head]);
        cut.push_str(ELLIPSIS);
        cut.push_str(&text[tail..]);
        Self(cut)
    }
}

/// A number of bytes in decimal units, rounded down: `980 B`, `1.5 MB`, `12 MB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => return write!(f, "{} B", self.0),
            1_000..1_000_000 => (1_000, "kB"),
            1_000_000..1_000_000_000 => (1_000_000, "MB"),
            1_000_000_000..1_000_000_000_000 => (1_000_000_000, "GB"),
            _ => (1_000_000_000_000, "TB"),
        };
        let (whole, tenth) = (self.0 / unit, self.0 % unit / (unit / 10));
        match tenth {
            1.. if whole < 10 => write!(f, "{whole}.{tenth} {name}"),
            _ => write!(f, "{whole} {name}"),
        }
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Self {
        Self::from(String::from(text))
    }
}

impl From<Note> for String {
    fn from(note: Note) -> Self {
        note.0
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fences a text with more backticks than it has in a row, so that it can't close its own fence.
pub fn fenced(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn sizes_are_short_and_rounded_down() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1 kB"),
            (1_590_000, "1.5 MB"),
            (12_999_999, "12 MB"),
            (3_000_000_000, "3 GB"),
            (u64::MAX, "18446744 TB"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), text);
        }
    }

    #[test]
    fn a_long_note_keeps_head_and_tail_and_whole_characters() {
        let note = Note::from("ä".repeat(5_000) + "end");
        assert!(note.as_str().len() <= Note::BYTES_MAX);
        assert!(note.as_str().starts_with('ä') && note.as_str().ends_with("end"));
        assert!(note.as_str().contains(ELLIPSIS));
    }

    #[test]
    fn a_short_note_is_kept_as_it_is() {
        assert_eq!(Note::from("exit 101").as_str(), "exit 101");
    }
}
