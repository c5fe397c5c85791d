//! What can go wrong in the engine, typed by what the caller must decide.

use std::io;

use thiserror::Error;
use woodward_api::{Code, Problem};
use woodward_core::disk::DiskFull;
use woodward_core::event::Fault;
use woodward_core::hint::{Hint, NextCommand};
use woodward_core::{IllegalTransition, Note, Refusal};
use woodward_store::StoreError;

use crate::config::{ConfigError, NoAgent};
use crate::git::{GitError, OpenError};
use crate::refused;
use crate::setup::SetupFailed;
use crate::supervise;

/// The result of an engine operation.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// Why something was not done.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The database says no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Git says no.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is no usable repository.
    #[error(transparent)]
    Repository(#[from] OpenError),
    /// No agent can be had.
    #[error(transparent)]
    Agent(#[from] NoAgent),
    /// A process could not be started, watched or stopped.
    #[error(transparent)]
    Process(#[from] supervise::Error),
    /// The project's configuration makes no sense.
    #[error(transparent)]
    Config(#[from] Box<ConfigError>),
    /// A file could not be read or written.
    #[error("{what}: {source}")]
    File {
        /// Which, and what for.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A disk is full.
    #[error("{0}")]
    DiskFull(DiskFull),
    /// A setup command of a worktree failed.
    #[error(transparent)]
    Setup(#[from] SetupFailed),
    /// A person asked for something that can't be had.
    #[error(transparent)]
    Problem(#[from] Problem),
}

impl From<ConfigError> for EngineError {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}

impl EngineError {
    /// Says what a file was needed for.
    pub(crate) fn file(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::File { what, source }
    }

    /// It was told to stop.
    pub(crate) fn interrupted() -> Self {
        Self::File {
            what: "interrupted".into(),
            source: io::ErrorKind::Interrupted.into(),
        }
    }

    /// Whether a write was refused because its claim is no longer current.
    pub(crate) const fn is_stale(&self) -> bool {
        matches!(
            self,
            Self::Store(
                StoreError::Stale { .. }
                    | StoreError::Illegal(IllegalTransition {
                        refusal: Refusal::StaleClaim { .. } | Refusal::NoRight,
                        ..
                    })
            )
        )
    }

    /// Whether what was said had been said before.
    pub(crate) const fn is_repeated(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::Illegal(IllegalTransition {
                refusal: Refusal::AlreadyApplied | Refusal::Outdated(_) | Refusal::WrongState,
                ..
            }))
        )
    }

    /// What went wrong and what to do about it, in one line.
    pub(crate) fn into_note(self) -> Note {
        let problem = Problem::from(self);
        let mut note = problem.message;
        for hint in problem.hints {
            note.push_str("; ");
            note.push_str(&hint);
        }
        Note::from(note)
    }

    /// What the caller must decide.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Store(error) => error.fault(),
            Self::Git(error) => git_fault(error),
            Self::Process(_) | Self::File { .. } | Self::DiskFull(_) | Self::Setup(_) => {
                Fault::Transient
            }
            Self::Config(_) | Self::Repository(_) | Self::Agent(_) => Fault::NeedsPerson,
            Self::Problem(_) => Fault::Permanent,
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        let with = |code, hint: Option<Hint>| {
            let problem = Self::new(code, message.clone());
            match hint {
                Some(hint) => problem.hint(hint),
                None => problem,
            }
        };
        match &error {
            EngineError::Problem(problem) => problem.clone(),
            EngineError::Store(StoreError::Illegal(illegal)) => refused::problem(illegal),
            EngineError::Store(store) => with(store_code(store), store.hint()),
            EngineError::Git(git) => with(Code::Unavailable, git.hint()),
            EngineError::Process(_) => with(
                Code::Unavailable,
                Some(NextCommand::Doctor.purpose("see what is wrong")),
            ),
            EngineError::Config(config) => {
                let advice = config.hint().map(str::to_owned);
                with(Code::Usage, advice.map(Hint::from))
            }
            EngineError::Repository(open) => with(Code::Usage, open.hint()),
            EngineError::Agent(agent) => with(Code::Usage, Some(agent.hint().into())),
            EngineError::DiskFull(_) => with(
                Code::Unavailable,
                Some(NextCommand::Doctor.purpose("free some space; see how much there is")),
            ),
            EngineError::Setup(_) => with(
                Code::Unavailable,
                Some("repair `worktree.setup` in woodward.yaml and commit it".into()),
            ),
            EngineError::File { .. } => with(
                Code::Unavailable,
                Some(NextCommand::Doctor.purpose("check the disk and its permissions")),
            ),
        }
    }
}

/// What to do about a refusal of git's.
const fn git_fault(error: &GitError) -> Fault {
    match error {
        GitError::PathTaken(_)
        | GitError::BranchTaken { .. }
        | GitError::NoBase { .. }
        | GitError::Refused { .. }
        | GitError::Missing(_)
        | GitError::NoSuchCommit { .. } => Fault::NeedsPerson,
        GitError::BadName { .. } | GitError::Limit { .. } | GitError::Gone(_) => Fault::Permanent,
        _ => Fault::Transient,
    }
}

const fn store_code(error: &StoreError) -> Code {
    match error {
        StoreError::NotFound { .. } => Code::NotFound,
        StoreError::NameTaken { .. }
        | StoreError::KeyReused { .. }
        | StoreError::Cycle { .. }
        | StoreError::TooLarge { .. } => Code::Usage,
        StoreError::Illegal(_) | StoreError::Stale { .. } | StoreError::Held { .. } => {
            Code::WrongState
        }
        StoreError::IntentPending { .. } | StoreError::Conflict { .. } => Code::WrongState,
        StoreError::DiskFull
        | StoreError::Unavailable(_)
        | StoreError::CommitUnknown
        | StoreError::InUse { .. } => Code::Unavailable,
        _ => Code::Internal,
    }
}
