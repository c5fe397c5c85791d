//! Where a run is, for those who want to look at its terminal themselves.

use serde::{Deserialize, Serialize};
use woodward_core::{RunId, TaskName};

/// Where a task's last run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlace {
    /// The task.
    pub task: TaskName,
    /// The run.
    pub run: RunId,
    /// Its directory on the daemon's machine.
    pub directory: String,
    /// Whether it runs now.
    pub running: bool,
    /// Whether there is a conversation that could be taken over.
    pub conversation: bool,
    /// Whether its program is in a terminal that can be attached to.
    pub terminal: bool,
    /// Whether the project wants a tmux session for each run.
    pub tmux: bool,
    /// The tmux server that its session is on.
    pub tmux_socket: String,
    /// The session's name.
    pub tmux_session: String,
}
