//! What can go wrong with a test's PostgreSQL server, in words a person can act on.

use std::io;
use std::path::{Path, PathBuf};

/// Why a test's PostgreSQL server could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    /// No single directory holds all the programs that are needed.
    #[error(
        "no directory holds all of PostgreSQL's {needed}; looked in {searched}. \
         Run `cargo xtask setup`"
    )]
    MissingBinaries {
        /// The programs that are needed together.
        needed: String,
        /// The directories looked into.
        searched: String,
    },

    /// PostgreSQL refuses to run as root and there is nobody else to run as.
    #[error(
        "PostgreSQL does not run as root, and /etc/passwd has none of the users {tried}. \
         Run `cargo xtask setup`, or run the tests as another user"
    )]
    NoAccount {
        /// The users that would have done.
        tried: String,
    },

    /// The operating system refused something.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The attempted action, as a verb phrase.
        doing: &'static str,
        /// What it was attempted on.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },

    /// The variable that names the shared server of a test run can't be read.
    #[error(
        "{name} is `{value}` and not `PORT USER DIRECTORY`; unset it: the tests then start a server"
    )]
    MalformedVariable {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },

    /// One of PostgreSQL's programs ran and failed.
    #[error("{program} failed on {object} ({status}):\n{output}")]
    ProgramFailed {
        /// The program.
        program: &'static str,
        /// The directory or database it worked on.
        object: String,
        /// How it ended.
        status: String,
        /// What it wrote to stderr.
        output: String,
    },

    /// Somebody else took the port between choosing and using it.
    #[error(
        "port {port} on 127.0.0.1 is taken by another process; \
         `ss -ltnp 'sport = :{port}'` shows which"
    )]
    PortTaken {
        /// The port.
        port: u16,
    },

    /// The server ended, or did not accept a connection in time.
    #[error(
        "the PostgreSQL server in {} on port {port} {what}; the end of its log:\n{log}",
        directory.display()
    )]
    NotReady {
        /// The server's own temporary directory.
        directory: PathBuf,
        /// Its port.
        port: u16,
        /// What happened instead of readiness.
        what: String,
        /// The tail of its log.
        log: String,
    },
}

impl PgError {
    /// For `map_err`: names the action and its object.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }
}
