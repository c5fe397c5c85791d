//! Why a command failed: what a person reads, what to type next, and the exit code.

use std::io;

use woodward_api::client::ClientError;
use woodward_api::{Code, Problem};
use woodward_core::hint::{Hint, NextCommand};
use woodward_core::name::BadName;

use crate::exit::Exit;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the program ends.
    pub(crate) exit: Exit,
    /// What is said; `None` when there is nobody left to read it, or all was said before.
    pub(crate) problem: Option<Problem>,
}

/// What most of this program gives back.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// What happened, in one sentence.
    pub(crate) fn message(&self) -> &str {
        let problem = self.problem.as_ref();
        problem.map_or("it was interrupted", |problem| &problem.message)
    }

    /// A failure with its reason.
    pub(crate) fn new(exit: Exit, problem: Problem) -> Self {
        Self {
            exit,
            problem: Some(problem),
        }
    }

    /// A failure that has been told already.
    pub(crate) const fn told(exit: Exit) -> Self {
        Self {
            exit,
            problem: None,
        }
    }

    /// The command line makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Problem::new(Code::Usage, message).into()
    }

    /// It did not work.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, Problem::new(Code::Unavailable, message))
    }

    /// Whether what was asked for does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        let code = self.problem.as_ref().map(|problem| problem.code);
        code == Some(Code::NotFound)
    }

    /// The same with one more hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.problem = self.problem.map(|problem| problem.hint(hint));
        self
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::new(problem.code.into(), problem)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Problem(problem) => problem.into(),
            ClientError::Unreachable { .. } => Self::new(
                Exit::Unreachable,
                Problem::new(Code::Unavailable, error.to_string()).hint(NextCommand::Up),
            ),
            ClientError::Lost { .. } => Self::new(
                Exit::Unreachable,
                Problem::new(Code::Unavailable, error.to_string())
                    .hint(NextCommand::Status.purpose("see whether it was done")),
            ),
            ClientError::BadAnswer { .. } => Self::new(
                Exit::Internal,
                Problem::new(Code::Internal, error.to_string())
                    .hint(NextCommand::Restart.purpose("if the daemon is of another version")),
            ),
        }
    }
}

impl From<BadName> for Failure {
    fn from(bad: BadName) -> Self {
        let failure = Self::usage(bad.to_string());
        match bad.suggestion {
            Some(better) => failure.hint(format!("a name that works: {better}")),
            None => failure.hint("a name that works: fix-login"),
        }
    }
}

impl From<io::Error> for Failure {
    /// Only of writing to stdout and stderr: files name themselves in their errors.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            // Whoever reads has had enough, as `head` does: no failure.
            Self::told(Exit::Ok)
        } else {
            Self::failed(format!("the answer can't be written: {error}"))
        }
    }
}
