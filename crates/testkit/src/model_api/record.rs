//! What arrived, for tests to look at. Bounded: the oldest is forgotten first.

use super::{Conversation, Dialect};
use serde_json::Value;
use std::collections::VecDeque;

/// Requests kept at most.
const COUNT_MAX: usize = 2000;
/// Bytes of their bodies kept at most.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// A request that arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Which API was used; none for lists of models and the like.
    pub dialect: Option<Dialect>,
    /// The HTTP method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, or `Null` when it was no JSON.
    pub body: Value,
    /// The body in one form for all dialects.
    pub conversation: Conversation,
    /// What was answered in one line: `text`, `call Write`, `fault 429`, …
    pub answer: String,
    pub(super) bytes: usize,
}

impl Recorded {
    /// Whether some text of the user contains this.
    pub fn user_says(&self, text: &str) -> bool {
        self.conversation
            .user_texts()
            .any(|said| said.contains(text))
    }

    /// Whether some answer of a tool contains this.
    pub fn tool_says(&self, text: &str) -> bool {
        self.conversation.results().any(|said| said.contains(text))
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The newest requests.
#[derive(Debug, Default)]
pub(super) struct Records {
    kept: VecDeque<Recorded>,
    bytes: usize,
}

impl Records {
    pub(super) fn push(&mut self, request: Recorded) {
        self.bytes += request.bytes;
        self.kept.push_back(request);
        while self.kept.len() > COUNT_MAX || self.bytes > BYTES_MAX {
            match self.kept.pop_front() {
                Some(oldest) => self.bytes -= oldest.bytes,
                None => break,
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Recorded> {
        self.kept.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: usize, bytes: usize) -> Recorded {
        Recorded {
            dialect: None,
            method: "GET".into(),
            path: path.to_string(),
            headers: Vec::new(),
            body: Value::Null,
            conversation: Conversation::default(),
            answer: String::new(),
            bytes,
        }
    }

    #[test]
    fn the_oldest_is_forgotten_first_by_number_and_by_size() {
        let mut records = Records::default();
        for number in 0..=COUNT_MAX {
            records.push(request(number, 1));
        }
        assert_eq!(records.iter().count(), COUNT_MAX);
        assert_eq!(records.iter().next().unwrap().path, "1");

        records.push(request(7, BYTES_MAX - 1));
        let paths: Vec<_> = records.iter().map(|kept| kept.path.as_str()).collect();
        assert_eq!(paths, [&COUNT_MAX.to_string(), "7"]);
    }
}
