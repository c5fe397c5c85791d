//! The four APIs: how each asks, answers, streams and fails. They translate and decide nothing.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use super::conversation::Conversation;
use super::faults::Failure;
use super::reply::Reply;
use serde_json::{Value, json};

/// An API that the stand-in speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Chat Completions.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Google's Gemini.
    Gemini,
}

impl Dialect {
    /// The dialect that a request's path belongs to.
    pub(super) fn of(path: &str) -> Option<Self> {
        let is = |end: &str| path.ends_with(end);
        if is("/v1/messages") {
            Some(Self::Anthropic)
        } else if is("/chat/completions") {
            Some(Self::Chat)
        } else if is("/responses") {
            Some(Self::Responses)
        } else if is(":generateContent") || is(":streamGenerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    /// The request in the form for all.
    pub(super) fn read(self, path: &str, body: &Value) -> Conversation {
        match self {
            Self::Anthropic => anthropic::read(body),
            Self::Chat => chat::read(body),
            Self::Responses => responses::read(body),
            Self::Gemini => gemini::read(path, body),
        }
    }

    /// The reply as one body.
    pub(super) fn whole(self, reply: &Reply) -> Value {
        match self {
            Self::Anthropic => anthropic::whole(reply),
            Self::Chat => chat::whole(reply),
            Self::Responses => responses::whole(reply, "completed"),
            Self::Gemini => gemini::whole(reply),
        }
    }

    /// The reply as server-sent events. The first can be sent before the reply is known.
    pub(super) fn events(self, reply: &Reply, request: &Value) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic::events(reply),
            Self::Chat => chat::events(reply, request),
            Self::Responses => responses::events(reply),
            Self::Gemini => gemini::events(reply),
        }
    }

    /// A failure as events, where the dialect has begun to stream before it can fail.
    pub(super) fn failed_events(self, reply: &Reply, failure: &Failure) -> Option<Vec<String>> {
        let is_late = self == Self::Responses && failure.is_overflow;
        is_late.then(|| responses::overflow(reply, failure))
    }

    /// The body and the headers of a failure.
    pub(super) fn failure(self, failure: &Failure) -> (Value, Vec<(&'static str, String)>) {
        let mut headers = match self {
            Self::Anthropic => anthropic::limit_headers(failure),
            Self::Chat | Self::Responses => chat::limit_headers(failure),
            Self::Gemini => Vec::new(),
        };
        if let Some(seconds) = failure.reset_s {
            headers.push(("retry-after", seconds.to_string()));
        }
        if failure.forbids_retry {
            headers.push(("x-should-retry", "false".to_owned()));
        }
        let body = match self {
            Self::Anthropic => anthropic::failure(failure),
            Self::Chat => chat::failure(failure),
            Self::Responses => responses::failure(failure),
            Self::Gemini => gemini::failure(failure),
        };
        (body, headers)
    }
}

/// A named event.
fn named(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// An event without a name.
fn nameless(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// A text in the pieces that a model would send.
fn pieces(text: &str) -> Vec<String> {
    const PIECE: usize = 24;
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(PIECE)
        .map(|piece| piece.iter().collect())
        .collect()
}

/// The text of something that is a string or a list of parts with texts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A list, empty when there is none.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The list of models, in a form that all clients of both vendors accept.
pub(super) fn models() -> Value {
    json!({
        "object": "list",
        "data": [{
            "id": "stand-in", "object": "model", "type": "model", "display_name": "Stand-in",
            "created": 0, "created_at": "2026-01-01T00:00:00Z", "owned_by": "stand-in"
        }],
        "models": [{"name": "models/stand-in", "supportedGenerationMethods": ["generateContent"]}],
        "has_more": false
    })
}
