//! What can go wrong with git, and what to do about it.
//!
//! Kinds are told apart by exit codes and by what is on the disk, never by git's prose; that is
//! only shown to people.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use woodward_core::CommitId;
use woodward_core::hint::{Hint, NextCommand, Word};

/// Why a git operation failed.
#[derive(Debug, Error)]
pub enum GitError {
    /// No git to run.
    #[error("git could not be started: {0}")]
    Missing(#[source] io::Error),
    /// Git ran and said no.
    #[error("`git {verb}` in {} ended with {}: {stderr}", dir.display(), exit(*code))]
    Failed {
        /// The subcommand.
        verb: String,
        /// Where it ran.
        dir: PathBuf,
        /// Its exit code; `None` when a signal ended it.
        code: Option<i32>,
        /// The end of what it said, for people.
        stderr: String,
    },
    /// Git took too long and was ended.
    #[error("`git {verb}` in {} was ended after {seconds} s", dir.display())]
    TimedOut {
        /// The subcommand.
        verb: String,
        /// Where it ran.
        dir: PathBuf,
        /// The limit.
        seconds: u64,
    },
    /// Git printed more than we are ready to keep.
    #[error("`git {verb}` in {} printed more than {limit} bytes", dir.display())]
    TooMuch {
        /// The subcommand.
        verb: String,
        /// Where it ran.
        dir: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// Git answered in a form that we don't know.
    #[error("`git {verb}` answered in an unknown form: {what}")]
    Unexpected {
        /// The subcommand.
        verb: &'static str,
        /// What was wrong with it.
        what: String,
    },
    /// A file operation failed.
    #[error("could not {what} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No such revision.
    #[error("`{rev}` is not a commit in {}", repo.display())]
    NoSuchCommit {
        /// What was asked for.
        rev: String,
        /// The repository.
        repo: PathBuf,
    },
    /// A name that git or we can't accept.
    #[error("`{name}` can't be used as {what}")]
    BadName {
        /// The name.
        name: String,
        /// What it should have been.
        what: &'static str,
    },
    /// Somebody else's directory is where a worktree should be.
    #[error("{} exists and is not this task's worktree", .0.display())]
    PathTaken(PathBuf),
    /// Somebody else's branch has the name.
    #[error(
        "branch `{branch}` exists already (at {}) and was not made for this worktree",
        short(tip)
    )]
    BranchTaken {
        /// The branch.
        branch: String,
        /// Where it is.
        tip: CommitId,
    },
    /// The worktree's directory is not there any more.
    #[error("the worktree {} is gone", .0.display())]
    Gone(PathBuf),
    /// A lock that a living process holds, or may hold.
    #[error("{} is held by {holder}", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who holds it.
        holder: String,
    },
    /// A file that can't be copied or restored where it was asked to go.
    #[error("{} is refused: {why}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// The rule.
        why: &'static str,
    },
    /// A limit of ours was reached.
    #[error("{what}: more than {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// No branch to start from was found.
    #[error("{} is on no branch, and has neither `main` nor `master`", repo.display())]
    NoBase {
        /// The repository.
        repo: PathBuf,
        /// The branch that was committed to last, if there is any.
        branch: Option<String>,
    },
}

impl GitError {
    /// The next thing to do, where there is one.
    pub fn hint(&self) -> Option<Hint> {
        let advice: String = match self {
            Self::NoBase { branch, .. } => {
                return Some(match branch {
                    Some(branch) => {
                        let branch = Word::from(branch);
                        NextCommand::InitWithBase { branch }.into()
                    }
                    None => "make a branch: git switch -c main".into(),
                });
            }
            Self::Missing(_) => "install git 2.38 or newer and make sure it is on PATH".into(),
            Self::NoSuchCommit { repo, .. } => format!(
                "see which revisions there are: git -C {} log --oneline --all -n 20",
                repo.display()
            ),
            Self::PathTaken(path) => format!(
                "move it away, or give the task another name: mv {0} {0}.old",
                path.display()
            ),
            Self::BranchTaken { branch, .. } => format!(
                "rename it, or give the task another name: git branch -m {branch} {branch}-old"
            ),
            Self::Gone(_) => "the commits are still on the task's branch".into(),
            Self::Locked { path, .. } => format!(
                "wait for that process to end; if none is left: rm {}",
                path.display()
            ),
            Self::TimedOut { .. } => "try again when the machine is less busy".into(),
            _ => return None,
        };
        Some(advice.into())
    }

    pub(crate) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            what,
            path: path.to_owned(),
            source,
        }
    }
}

fn exit(code: Option<i32>) -> String {
    code.map_or_else(|| "a signal".into(), |code| format!("exit code {code}"))
}

/// The first digits of an object name, for people.
pub(crate) fn short(commit: &CommitId) -> &str {
    commit.as_str().get(..10).unwrap_or_default()
}

/// Attaches a path and a verb to an I/O error.
pub(crate) trait At<T> {
    /// Says what was tried on which file.
    fn at(self, what: &'static str, path: &Path) -> Result<T, GitError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, what: &'static str, path: &Path) -> Result<T, GitError> {
        self.map_err(|source| GitError::io(what, path, source))
    }
}
