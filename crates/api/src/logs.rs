//! Output of agents and gates.

use serde::{Deserialize, Serialize};
use woodward_core::{CommitId, GateName, RunId};

/// Whose output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// An agent's.
    Run(RunId),
    /// A gate's, on a commit.
    Gate {
        /// The gate.
        gate: GateName,
        /// The commit it looked at.
        commit: CommitId,
    },
    /// That of a command that sets up a task's worktree.
    Setup {
        /// The run that the worktree was prepared for.
        run: RunId,
        /// Which command, from 1.
        number: u32,
        /// The command.
        command: String,
        /// Whether no other setup command follows.
        last: bool,
    },
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogText {
    /// Whose it is.
    pub source: LogSource,
    /// Where in the output this piece begins, in bytes.
    pub offset: u64,
    /// Where the next piece begins.
    pub next: u64,
    /// Bytes before this piece that are no longer kept.
    pub dropped: u64,
    /// Whether nothing will follow.
    pub ended: bool,
    /// The time limit in milliseconds, if the process was stopped because it exceeded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out_ms: Option<u64>,
    /// Whether it is what an agent's host tells: one event a line, as JSON.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub events: bool,
    /// The text; bytes that are no UTF-8 are replaced. Control sequences are as the program wrote
    /// them: whoever shows it strips them.
    pub text: String,
}
