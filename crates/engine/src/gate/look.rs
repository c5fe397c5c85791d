//! One gate's look at one commit: remembered, run, run once more, compared with the base.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use woodward_core::gate::Verdict;
use woodward_core::reaction::pattern;
use woodward_core::{CommitId, Millis, Note};
use woodward_store::{GateDetail, GateFailure, GateLog, GateResult};

use super::content::{self, Key, hex};
use super::execute::{self, Stage};
use super::judge::{self, Said};
use super::read::Reading;
use super::{Ground, Job, print, read};
use crate::config::GateSpec;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::land::Use;
use crate::supervise::{self, Cause, Exit, Seen};
use crate::{clock, run_env};

/// How much of an output is read for what it says.
const HEAD_BYTES: usize = 256 << 10;
const TAIL_BYTES: usize = 1 << 20;
/// The most of an output that a digest is made of.
const DIGEST_BYTES: u64 = 256 << 20;
/// Reports: how many, how large, and how many files are looked through for them.
const REPORTS_MAX: usize = 200;
const REPORT_BYTES: u64 = 8 << 20;
const FILES_MAX: usize = 20_000;

/// What a gate said, and where its output is.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    pub(super) result: GateResult,
    pub(super) dir: PathBuf,
}

/// A gate that is executed on a commit.
struct Execution<'a> {
    inner: &'a Inner,
    job: &'a Job<'a>,
    stage: Stage,
    gate: &'a GateSpec,
    cancel: &'a CancellationToken,
}

/// What one execution printed, and how it ended.
struct Ran {
    said: Said,
    exit: Option<Exit>,
    reading: Reading,
    failures: Vec<GateFailure>,
    dir: PathBuf,
}

/// Looks; `None` when it was told to stop.
pub(super) async fn look(
    inner: &Inner,
    job: &Job<'_>,
    gate: &GateSpec,
    ground: &mut Ground<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Looked>> {
    let Some(mut looked) = by_itself(inner, job, gate, ground, cancel).await? else {
        return Ok(None);
    };
    let result = &mut looked.result;
    if result.verdict == Verdict::Fail
        && let Some(base) = &job.base
        && *base != job.commit
    {
        let Some(before) = on_base(inner, job, gate, base, cancel).await? else {
            return Ok(None);
        };
        compare(result, base, &before);
    }
    Ok(Some(looked))
}

/// What a gate says of a commit, whatever it says of others.
async fn by_itself(
    inner: &Inner,
    job: &Job<'_>,
    gate: &GateSpec,
    ground: &mut Ground<'_>,
    cancel: &CancellationToken,
) -> Result<Option<Looked>> {
    let key = content::key(job.project, gate, &job.tree, &job.env).await?;
    let project = job.project.id();
    if !job.fresh
        && let Some(known) = inner.verdicts.load(inner, project, &key.text).await?
    {
        let log = known.detail.log.as_ref();
        let dir = log.map(|log| PathBuf::from(&log.dir)).unwrap_or_default();
        let mut result = known;
        result.commit = job.commit.clone();
        result.detail.reused = true;
        return Ok(Some(Looked { result, dir }));
    }
    let Some(path) = ground.path(cancel).await? else {
        return Ok(None);
    };
    let permit = inner.slots.take(gate);
    let Some(permit) = cancel.run_until_cancelled(permit).await else {
        return Ok(None);
    };
    let execution = Execution {
        inner,
        job,
        stage: stage(job, &path),
        gate,
        cancel,
    };
    let first = super::directory(&job.dir, &gate.name, &key);
    stop_others(job, gate, &first).await?;
    let Some(ran) = execution.once(&first).await? else {
        return Ok(None);
    };
    let looked = match ran.said {
        Said::Fail if gate.rerun => {
            // Only this step, on the same tree: what passes now is flaky.
            let name = first.file_name().unwrap_or_default().to_string_lossy();
            let again = first.with_file_name(format!("{name}.again"));
            let Some(second) = execution.once(&again).await? else {
                return Ok(None);
            };
            twice(ran, second)
        }
        _ => (ran, None),
    };
    drop(permit);
    let looked = record(job, gate, &key, looked);
    if matches!(
        looked.result.verdict,
        Verdict::Pass | Verdict::Flaky | Verdict::Fail
    ) {
        let result = looked.result.clone();
        inner.verdicts.save(inner, project, key.text, result);
    }
    Ok(Some(looked))
}

/// Ends what runs in the same place for another question, of a daemon before us that had other tools,
/// say.
async fn stop_others(job: &Job<'_>, gate: &GateSpec, own: &Path) -> Result<()> {
    for dir in super::directories_of(&job.dir, &gate.name) {
        if dir != own && matches!(supervise::look(&dir)?, Seen::Running(_)) {
            supervise::stop(&dir, execute::STOP_GRACE).await?;
        }
    }
    Ok(())
}

/// Where and how the gates of a job run.
fn stage(job: &Job<'_>, path: &Path) -> Stage {
    let mut env = job.env.clone();
    env.insert(run_env::WORKTREE.to_owned(), path.display().to_string());
    Stage {
        cwd: path.to_owned(),
        env,
        mark: job.mark.clone(),
        output_max_bytes: job.config.log_bytes_max,
    }
}

/// Two looks at the same tree: the first that failed, and why the verdict is another one.
fn twice(first: Ran, second: Ran) -> (Ran, Option<String>) {
    match &second.said {
        Said::Pass => {
            let names: Vec<&str> = first.failures.iter().map(|f| f.name.as_str()).collect();
            let cause = first.exit.as_ref().map(|exit| &exit.cause);
            let why = match cause {
                Some(Cause::TimedOut) => "timed out, then passed on the same tree".to_owned(),
                _ => format!("failed, then passed on the same tree: {}", names.join(", ")),
            };
            (first, Some(why))
        }
        Said::Fail => {
            // What failed only once is not what must be repaired, if anything failed twice.
            let mut both = first.failures.clone();
            both.retain(|failure| second.failures.iter().any(|it| it.print == failure.print));
            let failures = if both.is_empty() {
                first.failures
            } else {
                both
            };
            (Ran { failures, ..first }, None)
        }
        Said::Broken(_) => (second, None),
    }
}

impl Execution<'_> {
    /// Executes it once and reads what it printed. What was broken when it ran before is run anew: it
    /// says nothing about today.
    async fn once(&self, dir: &Path) -> Result<Option<Ran>> {
        let asked_at = clock::now().0;
        // One asks at a time: the others find what it found.
        let asking = self.inner.baselines.ask(dir.display().to_string());
        let Some(_asking) = self.cancel.run_until_cancelled(asking).await else {
            return Ok(None);
        };
        match self.taken_up(dir).await? {
            Some(Ran {
                said: Said::Broken(_),
                exit: Some(exit),
                dir: old,
                ..
            }) if i64::try_from(exit.ended_at_ms).is_ok_and(|at| at < asked_at) => {
                let removed = tokio::fs::remove_dir_all(&old).await;
                removed.map_err(EngineError::file(old.display().to_string()))?;
                self.taken_up(dir).await
            }
            ran => Ok(ran),
        }
    }

    /// Executes it, or takes up what runs or has run for it, and reads what it printed.
    async fn taken_up(&self, dir: &Path) -> Result<Option<Ran>> {
        let Self {
            inner,
            job,
            stage,
            gate,
            cancel,
        } = self;
        let Some((exit, dir)) = execute::run(inner, stage, gate, dir, cancel).await? else {
            return Ok(None);
        };
        let output = supervise::output::head_and_tail(&dir, HEAD_BYTES, TAIL_BYTES)?;
        // Whoever began it may have done so elsewhere. The same failure is the same in every directory.
        let cwd = supervise::cwd(&dir)?.unwrap_or_else(|| stage.cwd.clone());
        let output = output.replace(&format!("{}/", cwd.display()), "");
        let mut reading = read::output(&output);
        if !gate.junit.is_empty() {
            let since = exit.as_ref().map_or(0, |exit| exit.started_at_ms);
            let patterns = gate.junit.clone();
            let reports = tokio::task::spawn_blocking(move || reports(&cwd, &patterns, since));
            let mut reported = Reading::default();
            let mut any = false;
            for xml in reports.await.unwrap_or_default() {
                any |= read::junit(&xml, &mut reported);
            }
            if any {
                reading = reported;
            }
        }
        let said = judge::look(exit.as_ref(), gate.kind, &reading, &output);
        let failures = match said {
            Said::Fail => print::failures(&reading, &output),
            _ => Vec::new(),
        };
        tracing::debug!(gate = %gate.name, commit = %job.commit, ?said, "a gate has looked");
        Ok(Some(Ran {
            said,
            exit,
            reading,
            failures,
            dir,
        }))
    }
}

/// The reports that were written since, as text.
fn reports(cwd: &Path, patterns: &[String], since_ms: u64) -> Vec<String> {
    let mut found = Vec::new();
    let mut looked = 0;
    let mut dirs = vec![cwd.to_owned()];
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            looked += 1;
            if looked > FILES_MAX || found.len() >= REPORTS_MAX {
                return found;
            }
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                if entry.file_name() != ".git" {
                    dirs.push(path);
                }
                continue;
            }
            let Ok(relative) = path.strip_prefix(cwd) else {
                continue;
            };
            let relative = relative.to_string_lossy();
            if kind.is_file()
                && patterns.iter().any(|it| pattern::matches(it, &relative))
                && is_fresh(&entry, since_ms)
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                found.push(text);
            }
        }
    }
    found
}

/// Written by this run, and not too large. File systems cut moments to whole seconds at worst.
fn is_fresh(entry: &std::fs::DirEntry, since_ms: u64) -> bool {
    let Ok(found) = entry.metadata() else {
        return false;
    };
    let written = found
        .modified()
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    found.len() <= REPORT_BYTES && written.saturating_add(1_000) >= since_ms
}

/// The evidence of a look.
fn record(
    job: &Job<'_>,
    gate: &GateSpec,
    key: &Key,
    (ran, flaky): (Ran, Option<String>),
) -> Looked {
    let exit = ran.exit.as_ref();
    let timed_out = exit.is_some_and(|exit| exit.cause == Cause::TimedOut);
    let timed_out = timed_out.then_some(gate.timeout);
    let (verdict, note) = match (&ran.said, flaky) {
        (_, Some(why)) => (Verdict::Flaky, Some(why)),
        (Said::Pass, None) => (Verdict::Pass, None),
        (Said::Fail, None) => (Verdict::Fail, None),
        (Said::Broken(why), None) => (Verdict::Broken, Some(why.clone())),
    };
    let result = GateResult {
        commit: job.commit.clone(),
        gate: gate.name.clone(),
        verdict,
        command: gate.command.shown(),
        exit_code: match exit.map(|exit| &exit.cause) {
            Some(Cause::Exited(code)) => Some(*code),
            _ => None,
        },
        duration: exit.map_or(Millis(0), |exit| {
            Millis(exit.ended_at_ms.saturating_sub(exit.started_at_ms))
        }),
        at: clock::now(),
        detail: GateDetail {
            tree: Some(job.tree.clone()),
            note: note.map(Note::from),
            timed_out,
            tests: ran.reading.tests,
            failures: ran.failures,
            log: log(&ran.dir),
            reused: false,
            base: None,
            tools: Some(key.tools.clone()),
            merged: false,
        },
    };
    Looked {
        result,
        dir: ran.dir,
    }
}

/// Where an output is, how long, and its digest.
fn log(dir: &Path) -> Option<GateLog> {
    let bytes = supervise::output::end(dir).ok()?;
    let mut hash = Sha256::new();
    let mut offset = 0;
    while offset < bytes.min(DIGEST_BYTES) {
        let chunk = supervise::output::read(dir, offset, 256 << 10).ok()?;
        if chunk.bytes.is_empty() {
            break;
        }
        hash.update(&chunk.bytes);
        offset = chunk.next;
    }
    Some(GateLog {
        dir: dir.display().to_string(),
        bytes,
        sha256: hex(&hash.finalize()),
    })
}

/// What a gate says of the commit that a change is compared with. One asks at a time: the others find
/// the answer.
async fn on_base(
    inner: &Inner,
    job: &Job<'_>,
    gate: &GateSpec,
    base: &CommitId,
    cancel: &CancellationToken,
) -> Result<Option<GateResult>> {
    let question = format!("{} {base} {}", job.project.id(), gate.name);
    let asking = inner.baselines.ask(question);
    let Some(_asking) = cancel.run_until_cancelled(asking).await else {
        return Ok(None);
    };
    let dir = inner.options.paths.base_gates(job.project.id(), base);
    // Each question has a directory of its own: another definition may be asked tomorrow.
    let dir = dir.join(&job.mark);
    let on_base = Job {
        project: job.project,
        config: job.config,
        gates: &[],
        dir: dir.clone(),
        commit: base.clone(),
        tree: job.project.repo.tree_of(base).await?,
        env: job.env.clone(),
        mark: format!("base-{}", job.mark),
        changed: None,
        base: None,
        fresh: false,
    };
    let mut ground = Ground::new(inner, job.project, job.config, base, Use::Base, dir);
    let looked = Box::pin(by_itself(inner, &on_base, gate, &mut ground, cancel)).await?;
    Ok(looked.map(|looked| looked.result))
}

/// Tells new failures from those that the base has, too.
fn compare(result: &mut GateResult, base: &CommitId, before: &GateResult) {
    result.detail.base = Some(base.clone());
    match before.verdict {
        Verdict::Fail => {
            result.verdict = judge::against(&mut result.detail.failures, &before.detail.failures);
            if result.verdict == Verdict::Baseline {
                let note = "it fails in the same way on the base; nothing new fails";
                result.detail.note = Some(Note::from(note));
            }
        }
        Verdict::Broken => {
            result.verdict = Verdict::Broken;
            let why = before.detail.note.as_ref().map_or("", Note::as_str);
            let note = format!("it can't be compared: on the base {why}");
            result.detail.note = Some(Note::from(note));
        }
        Verdict::Pass | Verdict::Flaky | Verdict::Baseline => {}
    }
}
