//! JSON-RPC 2.0 with a program, one message a line.
//!
//! It knows no method by name. What is no message (a banner, half a line) is handed on as what it is,
//! never an error: programs print all kinds of things.

use std::collections::VecDeque;
use std::io;
use std::process::ExitStatus;

use serde_json::{Value, json};

use crate::lines::Line;
use crate::program::Program;

/// There is no such method.
pub(crate) const NO_METHOD: i64 = -32601;
/// The method does not take that.
pub(crate) const BAD_PARAMS: i64 = -32602;
/// What was heard while an answer was awaited, at most. A program that says more is read no faster.
const EARLY_MAX: usize = 10_000;

/// One thing that the other side said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// It wants an answer.
    Request {
        /// Whatever it calls its request: a number or a text.
        id: Value,
        /// The method.
        method: String,
        /// Its parameters.
        params: Value,
    },
    /// It wants no answer.
    Notice {
        /// The method.
        method: String,
        /// Its parameters.
        params: Value,
    },
    /// It answers a request of ours.
    Answer {
        /// Our number of the request.
        id: u64,
        /// What came of it.
        result: Result<Value, Fault>,
    },
    /// A line that is no message.
    Noise(String),
}

/// An error that was answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fault {
    /// Its number.
    pub(crate) code: i64,
    /// Its words.
    pub(crate) message: String,
    /// Whatever else was said.
    pub(crate) data: Value,
}

impl Fault {
    fn read(error: &Value) -> Self {
        Self {
            code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
            message: match error.get("message") {
                Some(Value::String(message)) => message.clone(),
                _ => error.to_string(),
            },
            data: error.get("data").cloned().unwrap_or_default(),
        }
    }
}

/// Reads a line.
pub(crate) fn read(line: &str) -> Heard {
    let Ok(Value::Object(mut said)) = serde_json::from_str(line) else {
        return Heard::Noise(line.to_owned());
    };
    let id = said.remove("id").filter(|id| !id.is_null());
    let params = said.remove("params").unwrap_or_default();
    match (said.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Heard::Request { id, method, params },
        (Some(Value::String(method)), None) => Heard::Notice { method, params },
        (None, Some(id)) => {
            // Some programs give numbers back as texts.
            let number = id.as_u64().or_else(|| id.as_str()?.parse().ok());
            let result = match (said.remove("error"), said.remove("result")) {
                (Some(error), _) if !error.is_null() => Err(Fault::read(&error)),
                (_, result) => Ok(result.unwrap_or_default()),
            };
            match number {
                Some(id) => Heard::Answer { id, result },
                None => Heard::Noise(line.to_owned()),
            }
        }
        _ => Heard::Noise(line.to_owned()),
    }
}

/// The other side.
#[derive(Debug)]
pub(crate) struct Peer {
    program: Program,
    requests: u64,
    early: VecDeque<Heard>,
}

impl Peer {
    /// Talks to a program that was started with a pipe to read from.
    pub(crate) fn new(program: Program) -> Self {
        Self {
            program,
            requests: 0,
            early: VecDeque::new(),
        }
    }

    /// Sends a request. Its number; the answer is heard later.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> io::Result<u64> {
        self.requests += 1;
        let id = self.requests;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message).await?;
        Ok(id)
    }

    /// Sends a request and waits for its answer; what else is said meanwhile is heard afterwards.
    /// `None` when the program is gone.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        params: Value,
    ) -> Option<Result<Value, Fault>> {
        let wanted = self.request(method, params).await.ok()?;
        loop {
            match self.hear_new().await? {
                Heard::Answer { id, result } if id == wanted => return Some(result),
                heard if self.early.len() < EARLY_MAX => self.early.push_back(heard),
                _ => {}
            }
        }
    }

    /// Says something that needs no answer.
    pub(crate) async fn notify(&mut self, method: &str, params: Value) -> io::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await
    }

    /// Answers a request.
    pub(crate) async fn answer(&mut self, id: &Value, result: Value) -> io::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await
    }

    /// Answers a request with an error.
    pub(crate) async fn refuse(&mut self, id: &Value, code: i64, message: &str) -> io::Result<()> {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
            .await
    }

    /// What is said next; `None` when the program says no more. Safe to be dropped and called again.
    pub(crate) async fn hear(&mut self) -> Option<Heard> {
        match self.early.pop_front() {
            Some(heard) => Some(heard),
            None => self.hear_new().await,
        }
    }

    /// Forgets what was said, and wants no answer, while an answer was awaited.
    pub(crate) fn forget_notices(&mut self) {
        self.early
            .retain(|heard| !matches!(heard, Heard::Notice { .. }));
    }

    async fn hear_new(&mut self) -> Option<Heard> {
        loop {
            return Some(match self.program.line().await? {
                Line::Whole(line) if line.trim().is_empty() => continue,
                Line::Whole(line) => read(&line),
                Line::TooLong(length) => Heard::Noise(format!("a line of {length} bytes")),
            });
        }
    }

    async fn send(&mut self, message: &Value) -> io::Result<()> {
        self.program.feed(&message.to_string()).await
    }

    /// Waits until the program has ended, and ends it if that takes too long.
    pub(crate) async fn end(&mut self) -> Option<ExitStatus> {
        self.program.end().await
    }

    /// Ends a program that does not end by itself when nothing more is said to it.
    pub(crate) async fn stop(&mut self) -> Option<ExitStatus> {
        self.program.signal(rustix::process::Signal::TERM);
        self.program.end().await
    }

    /// The end of what the program printed as errors and warnings.
    pub(crate) fn complaints(&self) -> String {
        self.program.complaints()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbers_or_texts() {
        let heard = read(r#"{"jsonrpc":"2.0","id":"a-1","method":"ask","params":{"x":1}}"#);
        let request = Heard::Request {
            id: json!("a-1"),
            method: "ask".into(),
            params: json!({"x": 1}),
        };
        assert_eq!(heard, request);
        assert_eq!(
            read(r#"{"id":"7","result":{}}"#),
            Heard::Answer {
                id: 7,
                result: Ok(json!({}))
            }
        );
    }

    #[test]
    fn an_error_is_an_answer() {
        let heard = read(r#"{"id":3,"error":{"code":-32000,"message":"no","data":{"s":1},"x":2}}"#);
        let Heard::Answer {
            id: 3,
            result: Err(fault),
        } = heard
        else {
            panic!("{heard:?}");
        };
        assert_eq!((fault.code, fault.message.as_str()), (-32000, "no"));
        assert_eq!(fault.data, json!({"s": 1}));
    }

    #[test]
    fn an_answer_without_an_error_is_none() {
        assert_eq!(
            read(r#"{"id":3,"error":null,"result":null}"#),
            Heard::Answer {
                id: 3,
                result: Ok(Value::Null)
            }
        );
    }

    #[test]
    fn what_is_no_message_is_noise() {
        for line in [
            "Welcome!",
            "{\"id\":1,\"resu",
            "[1]",
            "{\"a\":1}",
            "{\"id\":{}}",
        ] {
            assert_eq!(read(line), Heard::Noise(line.to_owned()));
        }
    }
}
