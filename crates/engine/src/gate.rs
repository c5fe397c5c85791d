//! Running gates on a tree, by Woodward itself, with the definitions of the trusted base.
//!
//! A gate that did not really run is broken, never passed. The same content is not looked at twice:
//! what a gate said is remembered by content, definition and tools. Each look's output and exit stay
//! in its directory; running the same gates again after a crash takes up what is there.

pub(crate) mod content;
mod execute;
mod ground;
pub(crate) mod judge;
mod look;
mod measure;
pub(crate) mod missing;
mod print;
pub(crate) mod read;
pub(crate) mod slots;
mod tools;
pub(crate) mod verdicts;

pub(crate) use execute::{Stage, give_up, is_running, put_aside, run as execute, stop_all};
pub(crate) use ground::Ground;
pub use measure::Measured;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use woodward_core::gate::{GateKind, GateReport, Verdict};
use woodward_core::{CommitId, Epoch, GateName, Millis, Note, TaskId, Timestamp, TreeId};
use woodward_store::{GateDetail, GateFailure, GateResult, TestCounts};

use crate::config::{Config, GateSpec};
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::paths::{Paths, fnv};
use crate::project::Project;
use crate::{clock, files};

/// Gates to be run.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) project: &'a Arc<Project>,
    pub(crate) config: &'a Config,
    pub(crate) gates: &'a [GateSpec],
    /// Where their output and exits go.
    pub(crate) dir: PathBuf,
    pub(crate) commit: CommitId,
    pub(crate) tree: TreeId,
    /// The environment of everything that runs for the project.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) mark: String,
    /// The files that differ from what it is compared with, by all their names; `None` if all may.
    pub(crate) changed: Option<Vec<String>>,
    /// What failures are compared with.
    pub(crate) base: Option<CommitId>,
    /// Whether what is known already does not count.
    pub(crate) fresh: bool,
}

/// What all gates said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdicts {
    pub(crate) reports: Vec<GateReport>,
    pub(crate) results: Vec<GateResult>,
    /// Those that failed.
    pub(crate) failed: Vec<FailedGate>,
    pub(crate) tests: Option<TestCounts>,
    /// Gates that had nothing to look at, and why.
    pub(crate) skipped: Vec<(GateName, String)>,
}

/// A gate that did not pass.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FailedGate {
    pub(crate) name: GateName,
    pub(crate) command: String,
    /// Where its output is.
    pub(crate) dir: PathBuf,
    /// What failed.
    #[serde(default)]
    pub(crate) failures: Vec<GateFailure>,
    /// What to tell the agent, instead of the output.
    #[serde(default)]
    pub(crate) said: Option<String>,
    /// The time limit, if it was stopped because it exceeded it.
    #[serde(default)]
    pub(crate) timed_out: Option<Millis>,
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

/// How much of a question's key is in the name of a directory.
const KEY_SHOWN: usize = 16;

/// Where a gate's output is: `<gate>@<key>`. Another definition, another tool or another time limit is
/// another question, and what has run for one is no answer to the other.
pub(crate) fn directory(job: &Path, gate: &GateName, key: &content::Key) -> PathBuf {
    let key = key.text.get(..KEY_SHOWN).unwrap_or(&key.text);
    job.join(format!("{gate}@{key}"))
}

/// The directories of a gate's looks in a job, one for each question; looks once more are not among
/// them. Those of earlier versions have no key.
pub(crate) fn directories_of(job: &Path, gate: &GateName) -> Vec<PathBuf> {
    let is_of = |dir: &PathBuf| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        match name.split_once('@') {
            Some((name, key)) => name == gate.as_str() && key.len() == KEY_SHOWN,
            None => name == gate.as_str(),
        }
    };
    let mut all = files::subdirectories(job);
    all.retain(is_of);
    all
}

/// Runs all gates, one after the other; `None` when it was told to stop. A failing gate keeps only
/// those that need it from saying what they have to say.
pub(crate) async fn run(
    inner: &Inner,
    job: &Job<'_>,
    ground: &mut Ground<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Verdicts>> {
    let mut verdicts = Verdicts::default();
    for gate in job.gates {
        if let Some(why) = nothing_to_do(job, gate, &verdicts) {
            verdicts.skipped.push((gate.name.clone(), why));
            continue;
        }
        let Some(looked) = look::look(inner, job, gate, ground, cancel).await? else {
            return Ok(None);
        };
        if let Some(tests) = looked.result.detail.tests {
            let all = verdicts.tests.get_or_insert_default();
            all.passed = all.passed.saturating_add(tests.passed);
            all.failed = all.failed.saturating_add(tests.failed);
            all.skipped = all.skipped.saturating_add(tests.skipped);
        }
        verdicts.add(gate, looked);
    }
    Ok(Some(verdicts))
}

/// Why a gate is left out.
fn nothing_to_do(job: &Job<'_>, gate: &GateSpec, so_far: &Verdicts) -> Option<String> {
    if let Some(changed) = &job.changed
        && !gate.covers(changed)
    {
        return Some("nothing that it covers has changed".to_owned());
    }
    let passed = |needed: &GateName| {
        so_far.reports.iter().any(|report| {
            report.gate == *needed && matches!(report.verdict, Verdict::Pass | Verdict::Flaky)
        }) || so_far.skipped.iter().any(|(name, why)| {
            // What had nothing to look at stands in nobody's way.
            name == needed && !why.starts_with("it needs")
        })
    };
    let missing = gate.needs.iter().find(|needed| !passed(needed))?;
    Some(format!("it needs `{missing}`, which did not pass"))
}

/// The name of the check that a task keeps to the paths it was given.
const SCOPE: &str = "scope";
/// Files that are named of many.
const OUTSIDE_SHOWN: usize = 50;

impl Verdicts {
    /// The task touches files that it must not: that is a failing gate of our own.
    pub(crate) fn refuse_scope(&mut self, outside: &[String], base: &CommitId, commit: &CommitId) {
        let Ok(name) = SCOPE.parse::<GateName>() else {
            return;
        };
        let failure = |path: &String| GateFailure {
            name: Note::from(path.as_str()),
            message: None,
            print: fnv(path.as_bytes()),
            known: false,
        };
        let failures: Vec<GateFailure> = outside.iter().take(OUTSIDE_SHOWN).map(failure).collect();
        let command = format!("git diff --name-only {base}");
        let note = Note::from(format!("{} files are outside of its paths", outside.len()));
        self.reports.push(GateReport {
            kind: GateKind::Lint,
            failures: failures.iter().map(|failure| failure.print).collect(),
            note: Some(note.clone()),
            ..GateReport::new(name.clone(), Verdict::Fail, true)
        });
        self.failed.push(FailedGate {
            name: name.clone(),
            command: command.clone(),
            dir: PathBuf::new(),
            failures: failures.clone(),
            said: Some(
                "This task may only change the files it was given. Take back what it changed in these, or do without:"
                    .to_owned(),
            ),
            timed_out: None,
        });
        self.results.push(GateResult {
            commit: commit.clone(),
            gate: name,
            verdict: Verdict::Fail,
            command,
            exit_code: None,
            duration: Millis(0),
            at: clock::now(),
            detail: GateDetail {
                note: Some(note),
                failures,
                ..GateDetail::default()
            },
        });
    }

    fn add(&mut self, gate: &GateSpec, looked: look::Looked) {
        let look::Looked { result, dir } = looked;
        let new = result
            .detail
            .failures
            .iter()
            .filter(|failure| !failure.known);
        let prints = new.map(|failure| failure.print);
        self.reports.push(GateReport {
            gate: gate.name.clone(),
            verdict: result.verdict,
            required: gate.required,
            kind: gate.kind,
            failures: match result.verdict {
                Verdict::Fail => prints.take(woodward_core::gate::FAILURES_MAX).collect(),
                _ => Vec::new(),
            },
            note: result.detail.note.clone(),
            timed_out: result.detail.timed_out,
        });
        // What did not really run is nobody's to repair.
        if result.verdict == Verdict::Fail {
            self.failed.push(FailedGate {
                name: gate.name.clone(),
                command: gate.command.shown(),
                dir,
                failures: result.detail.failures.clone(),
                said: None,
                timed_out: result.detail.timed_out,
            });
        }
        self.results.push(result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_has_a_directory_and_looks_once_more_are_not_taken_for_one() {
        let job = tempfile::tempdir().unwrap();
        let gate: GateName = "unit.fast".parse().unwrap();
        let key = |text: &str| content::Key {
            text: text.repeat(8),
            tools: String::new(),
        };
        let (one, other) = (key("0123abcd"), key("4567abcd"));
        let mut wanted = vec![
            directory(job.path(), &gate, &one),
            directory(job.path(), &gate, &other),
            job.path().join("unit.fast"),
        ];
        let name = wanted[0].file_name().unwrap().to_str().unwrap().to_owned();
        for more in [format!("{name}.again"), format!("{name}.2"), "unit".into()] {
            std::fs::create_dir(job.path().join(more)).unwrap();
        }
        for dir in &wanted {
            std::fs::create_dir(dir).unwrap();
        }
        let mut found = directories_of(job.path(), &gate);
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted);
    }
}
