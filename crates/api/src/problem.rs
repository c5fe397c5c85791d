//! What went wrong, for a person and for a program.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use woodward_core::hint::Hint;

/// What kind of trouble it is. The CLI's exit codes follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// What was asked for makes no sense.
    Usage,
    /// There is no such thing, or more than one.
    NotFound,
    /// It can't be done in the state things are in.
    WrongState,
    /// A gate failed.
    GateFailed,
    /// Changes do not fit together.
    Conflict,
    /// Only a person can help.
    NeedsPerson,
    /// Whoever asks can't prove that they may.
    Forbidden,
    /// A limit was reached.
    Limit,
    /// Something needed is not there; trying again may help.
    Unavailable,
    /// A bug of ours.
    Internal,
}

/// An error as every answer of the API and every command reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{message}")]
pub struct Problem {
    /// What kind.
    pub code: Code,
    /// What failed, on which object.
    pub message: String,
    /// What to do next, best first; each a sentence or a command to type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

impl Problem {
    /// A problem without a hint yet.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// The same with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hints.push(hint.into().to_string());
        self
    }
}
