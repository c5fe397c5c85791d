//! Running a gate's command under supervision, and taking up what runs or has run already.
//!
//! Being killed from outside says nothing about the tree: then it is run again, a bounded number of
//! times.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use woodward_store::GateResult;

use crate::config::GateSpec;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::supervise::{self, Cause, Exit, Launch, Seen};
use crate::{clock, files};

pub(super) const STOP_GRACE: Duration = Duration::from_secs(5);
/// A gate that was killed, or whose supervisor was, is run so many times.
const TRIES: u32 = 5;
/// How the names of directories begin that count no more. No gate's name does: it has no tilde.
const ASIDE: &str = "~";

/// Where and how gates are run.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// Where they run.
    pub(crate) cwd: PathBuf,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) mark: String,
    pub(crate) output_max_bytes: u64,
}

/// Runs one gate, or takes up one that runs or has run already in `first`; `None` when it was told to
/// stop. One that is killed every time has failed: it may be what asks for too much memory.
pub(crate) async fn run(
    inner: &Inner,
    stage: &Stage,
    gate: &GateSpec,
    first: &Path,
    cancel: &CancellationToken,
) -> Result<Option<(Option<Exit>, PathBuf)>> {
    let mut dir = first.to_owned();
    let name = first.file_name().unwrap_or_default().to_string_lossy();
    let mut env = stage.env.clone();
    env.extend(gate.env.clone());
    for attempt in 1..=TRIES {
        if attempt > 1 {
            dir = first.with_file_name(format!("{name}.{attempt}"));
        }
        let launch = Launch {
            command: gate.command.argv(),
            cwd: stage.cwd.clone(),
            env: env.clone(),
            stdin: None,
            mark: format!("{}-{name}-{attempt}", stage.mark),
            output_max_bytes: stage.output_max_bytes,
            time_limit_ms: Some(gate.timeout.0),
            stall_limit_ms: None,
            term_grace_ms: 5_000,
            jobs: inner.slots.jobs(gate),
            repeatable: true,
        };
        let run = inner.runners.run(&dir, &launch);
        let Some(seen) = cancel.run_until_cancelled(run).await else {
            return Ok(None);
        };
        match seen? {
            Seen::Ended(exit) if exit.cause == Cause::Stopped && cancel.is_cancelled() => {
                return Ok(None);
            }
            // Stopped for the sake of others, before a restart: that says nothing about the tree.
            Seen::Ended(exit) if exit.cause == Cause::Stopped => {}
            Seen::Ended(exit) if was_killed(&exit.cause) && attempt < TRIES => {}
            Seen::Ended(exit) => return Ok(Some((Some(exit), dir))),
            _ => {
                supervise::sweep(&dir).await?;
            }
        }
    }
    Ok(Some((None, dir)))
}

/// Ends all gates of a job.
pub(crate) async fn stop_all(job: &Path) -> Result<()> {
    for gate in files::subdirectories(job) {
        supervise::stop(&gate, STOP_GRACE).await?;
    }
    Ok(())
}

/// Whether any gate of a job runs.
pub(crate) fn is_running(job: &Path) -> bool {
    let gates = files::subdirectories(job);
    gates
        .iter()
        .any(|gate| matches!(supervise::look(gate), Ok(Seen::Running(_))))
}

/// Ends all gates of a job that may be wanted again: what was stopped then counts as never begun.
pub(crate) async fn give_up(job: &Path) -> Result<()> {
    stop_all(job).await?;
    for dir in files::subdirectories(job) {
        let stopped = match supervise::look(&dir)? {
            Seen::Ended(exit) => exit.cause == Cause::Stopped,
            Seen::Forbidden => true,
            _ => false,
        };
        if stopped {
            move_aside(&dir)?;
        }
    }
    Ok(())
}

/// Puts aside what a gate left in a job when it did not really run: who asks again runs it anew. Its
/// output can still be read.
pub(crate) fn put_aside(job: &Path, result: &mut GateResult) -> Result<()> {
    let own = format!("{}@", result.gate);
    let all = files::subdirectories(job).into_iter();
    for dir in all.filter(|dir| name_of(dir).starts_with(&own)) {
        let aside = move_aside(&dir)?;
        if let Some(log) = &mut result.detail.log
            && Path::new(&log.dir) == dir
        {
            log.dir = aside.display().to_string();
        }
    }
    Ok(())
}

/// Not removed: people may want to read it, and one who was told to start there must not find nothing.
fn move_aside(dir: &Path) -> Result<PathBuf> {
    let aside = format!("{ASIDE}{}-{}", clock::now().0, name_of(dir));
    let aside = dir.with_file_name(aside);
    match std::fs::rename(dir, &aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(EngineError::file(dir.display().to_string())(error))
        }
        _ => Ok(aside),
    }
}

fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Ended by somebody else's SIGKILL or SIGTERM, directly or as a shell puts it.
const fn was_killed(cause: &Cause) -> bool {
    matches!(cause, Cause::Signalled(9 | 15) | Cause::Exited(137 | 143))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_says_nothing_about_the_tree_but_a_crash_does() {
        for killed in [
            Cause::Signalled(9),
            Cause::Signalled(15),
            Cause::Exited(137),
        ] {
            assert!(was_killed(&killed), "{killed:?}");
        }
        for own in [
            Cause::Signalled(11),
            Cause::Exited(1),
            Cause::Exited(0),
            Cause::TimedOut,
        ] {
            assert!(!was_killed(&own), "{own:?}");
        }
    }
}
