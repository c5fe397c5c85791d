//! What a host is told before it starts.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use woodward_core::MessageId;

use crate::catalog::Kind;
use crate::permission::Rules;
use crate::stop::StopCheck;
use crate::usage::Usage;

/// Which conversation a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionId {
    /// A new one. Programs that allow it are told to use this id.
    New(String),
    /// One that is there already.
    Resume(String),
}

/// What to run and under which rules. The working directory and the environment are the host's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The adapter.
    pub kind: Kind,
    /// The program, and arguments that come before all others.
    pub program: Vec<String>,
    /// A person's own arguments, after all others.
    pub args: Vec<String>,
    /// The model; the program's own choice otherwise.
    pub model: Option<String>,
    /// The conversation.
    pub session: SessionId,
    /// The file with the prompt.
    pub prompt: PathBuf,
    /// The stored messages that the prompt contains: accepted when the prompt is.
    pub messages: Vec<MessageId>,
    /// What the agent may do without asking.
    pub rules: Rules,
    /// A directory of our own for this project and program, for settings files, and for a program's
    /// whole configuration where `own_config` says so.
    pub home: PathBuf,
    /// Whether the program's configuration is ours, made and seeded under `home`, instead of the
    /// person's own.
    pub own_config: bool,
    /// The repository's main checkout, for programs that ask whether they may trust it.
    pub root: PathBuf,
    /// The git directories that a sandboxed program must be able to write to commit.
    pub git_dirs: Vec<PathBuf>,
    /// What the conversation had used before this run.
    pub used_before: Usage,
    /// Whether the program runs in a terminal that people can attach to.
    pub terminal: bool,
    /// What is looked at before the agent stops, for programs that ask; `None` lets it stop.
    #[serde(default)]
    pub stop: Option<StopCheck>,
    /// For [`Kind::Command`]: how it is fed and read.
    #[serde(default)]
    pub command: crate::adapters::command::Row,
}
