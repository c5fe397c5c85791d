//! What can go wrong, typed by what the caller must decide, each with the next thing to do.

use std::path::PathBuf;

use thiserror::Error;
use woodward_core::event::Fault;
use woodward_core::hint::{Hint, NextCommand};
use woodward_core::{Epoch, IllegalTransition, IntentId, TaskName, WorkerId};

/// The result of a store operation.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store operation did not happen.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The write was made under a claim that is no longer current. Nothing was changed.
    #[error("{what} is no longer held: the write carries epoch {carried}, current is {current}")]
    Stale {
        /// What the claim was on.
        what: String,
        /// The epoch the write carried.
        carried: Epoch,
        /// The epoch that counts.
        current: Epoch,
    },
    /// Somebody else changed the row first. Nothing was changed; load it and decide again.
    #[error("{what} changed in the meantime")]
    Conflict {
        /// Which row.
        what: String,
    },
    /// There is no such thing.
    #[error("there is no {what}")]
    NotFound {
        /// What.
        what: String,
    },
    /// An open task of the project has this name.
    #[error("an open task is named `{name}` already")]
    NameTaken {
        /// The name.
        name: TaskName,
    },
    /// An idempotency key was used for something else.
    #[error("the key `{key}` was used before, for task `{name}`")]
    KeyReused {
        /// The key.
        key: String,
        /// The task it made.
        name: TaskName,
    },
    /// The tasks would wait for each other for ever.
    #[error("these tasks would wait for each other: {}", .names.iter().map(TaskName::as_str).collect::<Vec<_>>().join(" → "))]
    Cycle {
        /// The cycle, from a task back to itself.
        names: Vec<TaskName>,
    },
    /// The decision core refuses.
    #[error(transparent)]
    Illegal(#[from] IllegalTransition),
    /// Somebody else holds the resource.
    #[error("{resource} is held by worker {holder}")]
    Held {
        /// The resource.
        resource: String,
        /// Its holder.
        holder: WorkerId,
    },
    /// Another landing on this branch is not finished.
    #[error("branch `{branch}` has an unfinished landing ({intent})")]
    IntentPending {
        /// The branch.
        branch: String,
        /// The unfinished landing.
        intent: IntentId,
    },
    /// Something exceeds a limit.
    #[error("{what} is too large: {size}, at most {max}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large.
        size: usize,
        /// How large it may be.
        max: usize,
    },
    /// Another daemon works on this database.
    #[error("{} is in use by another daemon (process {pid})", path.display())]
    InUse {
        /// The database.
        path: PathBuf,
        /// The other's process id, or `?`.
        pid: String,
    },
    /// SQLite's shared memory does not work on this file system.
    #[error("{} is on a network file system ({kind}), where SQLite loses data", path.display())]
    NetworkFileSystem {
        /// The database.
        path: PathBuf,
        /// The kind of file system.
        kind: &'static str,
    },
    /// The database was written by a newer Woodward.
    #[error("the database has schema {found}; this Woodward knows up to {known}")]
    NewerSchema {
        /// What it has.
        found: i64,
        /// What this binary knows.
        known: i64,
    },
    /// The connection broke while committing and the outcome could not be found out.
    #[error("the connection to the database broke while committing; the outcome is unknown")]
    CommitUnknown,
    /// The database can't be reached or is busy; trying again may help.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The disk is full. Nothing was changed.
    #[error("the disk is full")]
    DiskFull,
    /// A write could not be made durable. The store has stopped: what was acknowledged before is
    /// safe, nothing after it was acknowledged.
    #[error("the database could not be written safely: {0}")]
    Poisoned(String),
    /// A stored text could not be understood.
    #[error("a stored {what} could not be read: {reason}")]
    Corrupt {
        /// What was read.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Anything else the database said.
    #[error("the database refused: {0}")]
    Database(String),
}

impl StoreError {
    /// What the caller must decide.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Unavailable(_) | Self::CommitUnknown | Self::Conflict { .. } => Fault::Transient,
            Self::InUse { .. }
            | Self::NetworkFileSystem { .. }
            | Self::NewerSchema { .. }
            | Self::DiskFull
            | Self::Poisoned(_) => Fault::NeedsPerson,
            _ => Fault::Permanent,
        }
    }

    /// What a person can do about it, where there is something.
    pub fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::NotFound { .. } => NextCommand::StatusAll.purpose("list what there is"),
            Self::NameTaken { name } | Self::KeyReused { name, .. } => {
                let task = name.clone();
                NextCommand::Show { task }.purpose("look at it")
            }
            Self::Cycle { .. } => "leave out one `--after` of the cycle".into(),
            Self::Held { .. } | Self::IntentPending { .. } => {
                NextCommand::Status.purpose("wait for it to end, or look")
            }
            Self::InUse { pid, .. } => {
                let purpose = format!("use the running daemon, or stop process {pid} first");
                NextCommand::Down.purpose(purpose)
            }
            Self::NetworkFileSystem { .. } => {
                "put the state on a local disk (WOODWARD_STATE_DIR), or use PostgreSQL".into()
            }
            Self::NewerSchema { .. } => "use the newer woodward that wrote it".into(),
            Self::CommitUnknown | Self::Unavailable(_) => {
                NextCommand::Doctor.purpose("check that the database runs, then try again")
            }
            Self::DiskFull => "free some space; nothing was lost".into(),
            Self::Poisoned(_) => NextCommand::Restart.purpose("check the disk, then restart"),
            Self::Corrupt { .. } => NextCommand::Doctor.purpose("see what is wrong"),
            _ => return None,
        })
    }

    pub(crate) fn corrupt(what: &'static str, reason: impl ToString) -> Self {
        Self::Corrupt {
            what,
            reason: reason.to_string(),
        }
    }
}
