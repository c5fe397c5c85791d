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
    /// Whether it is what an agent's host tells: one event a line, as JSON.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub events: bool,
    /// The text; bytes that are no UTF-8 are replaced. Control sequences are as the program wrote
    /// them: whoever shows it strips them.
    pub text: String,
}
