//! Why a request got no answer, by what the caller can do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::Problem;

/// Why a request got no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nobody listens, or nobody any more: nothing was done, so the same request may be sent again.
    #[error("no daemon listens at {}: {source}", socket.display())]
    Unreachable {
        /// Where one should.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection ended or stayed silent after the request had been sent: whether it was acted
    /// on is unknown.
    #[error("the daemon gave no answer to {request}: {why}")]
    Lost {
        /// Which request.
        request: String,
        /// How it was lost.
        why: String,
    },
    /// The daemon said no.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// What came back makes no sense, for instance from a daemon of another version.
    #[error("the answer to {request} can't be read: {why}")]
    BadAnswer {
        /// Which request.
        request: String,
        /// What is wrong with it.
        why: String,
    },
}

impl ClientError {
    /// Whether a daemon that is gone or just starting explains it, so that trying again may help.
    pub const fn is_daemon_gone(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Lost { .. })
    }
}
