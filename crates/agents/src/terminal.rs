//! Agent programs in a terminal that people can attach to.
//!
//! The terminal is a PTY that the run's host owns, so the program outlives the daemon, a tmux server
//! and every client. The host is the terminal: it keeps the screen ([`screen`]), answers what programs
//! ask of a terminal, and paints what it shows for its clients ([`hub`]). What a program prints never
//! reaches a person's terminal as it is. Follow-ups are written to the PTY by the host itself, so
//! nothing that a client does (copy mode, a stuck connection) can swallow them; and that they arrived
//! is never read off the screen, but from what the program writes elsewhere ([`claude`], [`codex`]).
//!
//! | file of the run directory | meaning |
//! |---|---|
//! | `attach.sock` | where clients attach, see [`frame`] |
//! | `terminal.log`, `terminal.log.old` | what the program printed, bounded |
//! | `hooks/` | what Claude Code's hooks said, see [`hook`] |

mod attach;
mod claude;
mod codex;
mod conduct;
mod deliver;
mod follow;
mod frame;
pub mod hook;
mod hub;
mod log;
mod plain;
mod pty;
mod screen;
mod select_entry;
mod settle_dialog;
mod socket;
mod startup;
mod startup_dialog;
pub mod tmux;

use std::path::Path;

use crate::catalog::Kind;
use crate::event::Ending;
use crate::spec::Spec;
use crate::wire::Wire;

pub use attach::{AttachError, LeaveKey, Left, Options, attach, view};
pub use pty::{ENTER, enter};
pub use socket::is_there;

/// The word by which Woodward starts the client in a tmux pane: no word that a person types.
pub const VIEW: &str = "view-terminal";

/// Holds a conversation with a program in a terminal until that is gone.
pub(crate) async fn converse(dir: &Path, spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    match spec.kind {
        Kind::ClaudeCode => claude::converse(dir, spec, wire).await,
        Kind::Codex => codex::converse(dir, spec, wire).await,
        _ => plain::converse(dir, spec, wire).await,
    }
}
