//! Making a checkout ready to be worked in: copying what git does not keep, and running the project's
//! setup commands.
//!
//! Never a command of anybody's branch: the rules are the trusted base's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio_util::sync::CancellationToken;
use woodward_core::hint::NextCommand;
use woodward_core::{Millis, Note, TaskName};

use crate::config::Config;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::git::{self, Skip};
use crate::project::Project;
use crate::supervise::{self, Cause, Launch, Seen};

/// How much of a failing setup's output a person is shown.
const OUTPUT_MAX: usize = 1_500;

/// Where setup happens, and under which name.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    /// The checkout.
    pub(crate) path: &'a Path,
    /// Each command's run directory is this and its number.
    pub(crate) dir: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
    /// The beginning of each command's mark.
    pub(crate) mark: String,
}

/// Copies what the project names and runs its setup commands.
pub(crate) async fn run(
    inner: &Inner,
    project: &Project,
    config: &Config,
    setup: &Setup<'_>,
    cancel: &CancellationToken,
) -> Result<()> {
    let wishes = &config.worktree;
    let copied = git::copy_ignored(project.root(), setup.path, &wishes.copy).await?;
    for (missing, _) in copied
        .skipped
        .iter()
        .filter(|(_, why)| *why == Skip::Missing)
    {
        tracing::info!(path = %missing.display(), "nothing to copy");
    }
    for (number, command) in wishes.setup.iter().enumerate() {
        let mut dir = setup.dir.clone().into_os_string();
        dir.push(format!("{}", number + 1));
        let dir = PathBuf::from(dir);
        let launch = Launch {
            command: command.argv(),
            cwd: setup.path.to_owned(),
            env: setup.env.clone(),
            stdin: None,
            mark: format!("{}-setup-{number}", setup.mark),
            output_max_bytes: config.log_bytes_max,
            time_limit_ms: Some(wishes.setup_timeout.0),
            stall_limit_ms: None,
            term_grace_ms: 5_000,
            jobs: None,
            repeatable: false,
        };
        supervise::launch(&dir, &launch, &inner.options.supervisor).await?;
        let ended = cancel.run_until_cancelled(supervise::ended(&dir)).await;
        // Whoever took the right to it away stops it; the next engine takes it up.
        let Some(seen) = ended else {
            return Err(EngineError::interrupted());
        };
        let cause = match seen? {
            Seen::Ended(exit) => Some(exit.cause),
            _ => None,
        };
        if cause != Some(Cause::Exited(0)) {
            return Err(EngineError::Setup(SetupFailed {
                command: command.shown(),
                ended: ended_text(cause.as_ref(), wishes.setup_timeout),
                output: supervise::output::head_and_tail(&dir, 0, OUTPUT_MAX)?,
            }));
        }
    }
    Ok(())
}

/// A setup command that did not succeed.
#[derive(Debug, Error)]
#[error("setup command `{command}` {ended}: {output}")]
pub struct SetupFailed {
    /// The command.
    command: String,
    /// How it ended.
    ended: String,
    /// The end of its output.
    output: String,
}

impl SetupFailed {
    /// The same for a person, with the command that shows the whole output.
    pub(crate) fn note(&self, task: &TaskName) -> Note {
        let Self {
            command,
            ended,
            output,
        } = self;
        let logs = NextCommand::LogsSetup { task: task.clone() };
        Note::from(format!(
            "setup command `{command}` {ended} (whole output: {logs}): {output}"
        ))
    }
}

fn ended_text(cause: Option<&Cause>, limit: Millis) -> String {
    match cause {
        Some(Cause::Exited(code)) => format!("exited with code {code}"),
        Some(Cause::Signalled(signal)) => format!("was ended by signal {signal}"),
        Some(Cause::TimedOut) => format!("timed out after {limit}"),
        Some(Cause::Stalled) => "printed nothing for too long".into(),
        Some(Cause::Stopped) => "was stopped".into(),
        Some(Cause::NotStarted(why)) => format!("could not be started ({why})"),
        None => "was lost".into(),
    }
}

/// The directory of a setup command's output, by its number from 1.
pub(crate) fn output_dir(run: &Path, number: usize) -> PathBuf {
    run.join(format!("{DIRECTORY}{number}"))
}

/// What a setup command's directory begins with, below that of its run.
pub(crate) const DIRECTORY: &str = "setup-";
