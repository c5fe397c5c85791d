//! What is answered, before it is put in a dialect's words.

use serde_json::Value;
use std::time::Duration;

/// Tokens that a reply claims to have used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Tokens read that were in no cache.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from a cache, besides the input.
    pub cached: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input: 1000,
            output: 50,
            cached: 200,
        }
    }
}

/// A whole reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Usage,
    /// Between the beginning of the reply and the rest.
    pub(super) pause: Duration,
    /// The model's name, as it was asked for.
    pub(super) model: String,
    /// Different for every reply of a conversation, the same when a request is repeated.
    pub(super) number: u64,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) tool: String,
    /// The namespace under which the tool was offered, in dialects that have such.
    pub(super) namespace: Option<String>,
    pub(super) input: Value,
}

impl Reply {
    /// An id for a part of this reply.
    pub(super) fn id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}{:016x}{index:02x}", self.number)
    }
}
