//! Running gates on a tree, by Woodward itself, with the definitions of the trusted base.
//!
//! A gate that did not really run is broken, never passed. Each gate's output and exit stay in its
//! directory; running the same gates again after a crash takes up what is there.

mod counts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use woodward_core::gate::{GateReport, Verdict};
use woodward_core::{CommitId, Epoch, GateName, Millis, TaskId, Timestamp};
use woodward_store::GateResult;

use crate::config::GateSpec;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::paths::Paths;
use crate::supervise::{self, Cause, Exit, Launch, Seen};
use crate::{clock, files};

const STOP_GRACE: std::time::Duration = std::time::Duration::from_secs(5);
/// How much output is searched for counts of tests.
const COUNTED_BYTES: usize = 64 * 1024;
/// A gate that was killed, or whose supervisor was, is run so many times.
const TRIES: u32 = 5;

/// Gates to be run.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) gates: &'a [GateSpec],
    /// Where their output and exits go.
    pub(crate) dir: PathBuf,
    /// Where they run.
    pub(crate) cwd: PathBuf,
    pub(crate) commit: CommitId,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) mark: String,
    pub(crate) output_max_bytes: u64,
}

/// What all gates said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts {
    pub(crate) reports: Vec<GateReport>,
    pub(crate) results: Vec<GateResult>,
    /// The directories of those that did not pass.
    pub(crate) failed: Vec<FailedGate>,
    pub(crate) tests: Option<(u32, u32)>,
}

/// A gate that did not pass.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FailedGate {
    pub(crate) name: GateName,
    pub(crate) command: String,
    pub(crate) dir: PathBuf,
}

/// The gates that failed last on a task, for the agent that repairs it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LastFailure {
    pub(crate) gates: Vec<FailedGate>,
}

impl LastFailure {
    fn file(paths: &Paths, task: TaskId) -> PathBuf {
        let gates = paths.state().join("gates").join(task.to_string());
        gates.join("last-failure.json")
    }

    pub(crate) fn load(paths: &Paths, task: TaskId) -> Option<Self> {
        files::load_json(&Self::file(paths, task))
    }

    pub(crate) fn save(paths: &Paths, task: TaskId, gates: &[FailedGate]) -> Result<()> {
        let file = Self::file(paths, task);
        let last = Self {
            gates: gates.to_vec(),
        };
        files::save_json(&file, &last).map_err(EngineError::file(file.display().to_string()))
    }
}

/// Where the gates of one look at a commit write: a later look under the same claim runs them anew.
pub(crate) fn job_name(epoch: Epoch, since: Timestamp) -> String {
    format!("{epoch}-{}", since.0)
}

/// Whether a directory is that of a look under this claim.
pub(crate) fn is_job_of(job: &Path, epoch: Epoch) -> bool {
    let name = job.file_name().unwrap_or_default().to_string_lossy();
    name.split('-').next() == Some(epoch.to_string().as_str())
}

/// Where a gate's output is.
pub(crate) fn directory(job: &Path, gate: &GateName) -> PathBuf {
    job.join(gate.as_str())
}

/// Runs all gates, one after the other; `None` when it was told to stop. A failing gate does not
/// keep the others from saying what they have to say.
pub(crate) async fn run(
    inner: &Inner,
    job: &Job<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Verdicts>> {
    let mut verdicts = Verdicts::default();
    for gate in job.gates {
        let Some(permit) = cancel.run_until_cancelled(inner.gates.acquire()).await else {
            return Ok(None);
        };
        let dir = directory(&job.dir, &gate.name);
        let Some((exit, dir)) = run_one(inner, job, gate, &dir, cancel).await? else {
            return Ok(None);
        };
        drop(permit);
        let output = supervise::output::head_and_tail(&dir, 0, COUNTED_BYTES)?;
        let verdict = verdict(exit.as_ref());
        if let Some((passed, total)) = counts::tests(&output) {
            let (sum, of) = verdicts.tests.unwrap_or_default();
            verdicts.tests = Some((sum + passed, of + total));
        }
        if matches!(verdict, Verdict::Fail | Verdict::Broken) {
            verdicts.failed.push(FailedGate {
                name: gate.name.clone(),
                command: gate.command.shown(),
                dir: dir.clone(),
            });
        }
        let report = GateReport::new(gate.name.clone(), verdict, gate.required);
        verdicts.reports.push(report);
        verdicts.results.push(GateResult {
            commit: job.commit.clone(),
            gate: gate.name.clone(),
            verdict,
            command: gate.command.shown(),
            exit_code: match exit.as_ref().map(|exit| &exit.cause) {
                Some(Cause::Exited(code)) => Some(*code),
                _ => None,
            },
            duration: exit.as_ref().map_or(Millis(0), |exit| {
                Millis(exit.ended_at_ms.saturating_sub(exit.started_at_ms))
            }),
            at: clock::now(),
        });
    }
    Ok(Some(verdicts))
}

/// Runs one gate, or takes up one that runs or has run already. Being killed from outside, or without
/// a supervisor, says nothing about the tree: then it is run again. One that is killed every time has
/// failed: it may be what asks for too much memory.
async fn run_one(
    inner: &Inner,
    job: &Job<'_>,
    gate: &GateSpec,
    first: &Path,
    cancel: &CancellationToken,
) -> Result<Option<(Option<Exit>, PathBuf)>> {
    let mut dir = first.to_owned();
    for attempt in 1..=TRIES {
        if attempt > 1 {
            dir = first.with_file_name(format!("{}.{attempt}", gate.name));
        }
        let launch = Launch {
            command: gate.command.argv(),
            cwd: job.cwd.clone(),
            env: job.env.clone(),
            stdin: None,
            mark: format!("{}-{}-{attempt}", job.mark, gate.name),
            output_max_bytes: job.output_max_bytes,
            time_limit_ms: Some(gate.timeout.0),
            stall_limit_ms: None,
            term_grace_ms: 5_000,
        };
        supervise::launch(&dir, &launch, &inner.options.supervisor).await?;
        let Some(seen) = cancel.run_until_cancelled(supervise::ended(&dir)).await else {
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

/// Ended by somebody else's SIGKILL or SIGTERM, directly or as a shell puts it.
const fn was_killed(cause: &Cause) -> bool {
    matches!(cause, Cause::Signalled(9 | 15) | Cause::Exited(137 | 143))
}

fn verdict(exit: Option<&Exit>) -> Verdict {
    let Some(exit) = exit else {
        return Verdict::Broken;
    };
    match &exit.cause {
        Cause::Exited(0) => Verdict::Pass,
        // The shell's own words for "can't be run" and "not found".
        Cause::Exited(126 | 127) | Cause::NotStarted(_) | Cause::Stopped => Verdict::Broken,
        Cause::TimedOut if exit.output_bytes == 0 => Verdict::Broken,
        Cause::Exited(_) | Cause::Signalled(_) | Cause::TimedOut | Cause::Stalled => Verdict::Fail,
    }
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
