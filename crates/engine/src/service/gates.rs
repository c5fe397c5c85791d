//! Gates: what a project has, what they said, and having them look at something now.

use std::path::Path;
use std::sync::Arc;

use woodward_api::{
    Code, FailureView, GateEvidence, GateRecord, GateRule, GateRules, GateView, GatesRun, Problem,
    RunGates, SkippedGate, TestsView,
};
use woodward_core::CommitId;
use woodward_core::gate::{Overall, Verdict, overall};
use woodward_core::hint::NextCommand;
use woodward_store::{GateResult, PAGE_MAX};

use super::{Answered, TaskRef};
use crate::config::{Config, GateSpec, nearest};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::gate::{self, Ground, Job};
use crate::land::Use;
use crate::project::Project;
use crate::{clock, run_env};

impl Engine {
    /// The gates of a project, and how they fared.
    ///
    /// # Errors
    /// When there is no project there.
    pub async fn gates(&self, root: &Path) -> Answered<GateRules> {
        let project = self.project_of(root).await?;
        let config = project.config().await?;
        let store = &self.inner.store;
        let known = store.load_verdicts(project.id(), PAGE_MAX).await;
        let known = known.map_err(EngineError::from)?;
        let rule = |gate: &GateSpec| GateRule {
            name: gate.name.clone(),
            command: gate.command.shown(),
            kind: gate.kind.as_str().into(),
            required: gate.required,
            timeout_ms: gate.timeout.0,
            paths: gate.paths.clone(),
            needs: gate.needs.clone(),
            record: record(known.iter().filter(|it| it.gate == gate.name)),
        };
        Ok(GateRules {
            gates: config.gates().iter().map(rule).collect(),
        })
    }

    /// Has gates look at a task's result or at a revision. What they say is remembered, and changes no
    /// task.
    ///
    /// # Errors
    /// When there is no such task, revision or gate.
    pub async fn run_gates(&self, root: &Path, wish: RunGates) -> Answered<GatesRun> {
        let project = self.project_of(root).await?;
        let config = project.load_config().await?;
        let gates = chosen(&config, &wish.gates)?;
        let (commit, base) = self.looked_at(root, &project, &config, &wish).await?;
        let job_name = if wish.fresh {
            format!("asked-{}", clock::now().0)
        } else {
            "asked".to_owned()
        };
        let paths = &self.inner.options.paths;
        let dir = paths.base_gates(project.id(), &commit).join(job_name);
        let place = project.worktrees().join(".gates");
        let mut env = run_env::of_project(&self.inner, &project, &config);
        env.insert(run_env::WORKTREE.to_owned(), place.display().to_string());
        let job = Job {
            project: &project,
            config: &config,
            gates: &gates,
            dir: dir.clone(),
            commit: commit.clone(),
            tree: project
                .repo
                .tree_of(&commit)
                .await
                .map_err(EngineError::from)?,
            env,
            mark: format!("asked-{commit}-{}", clock::now().0),
            changed: None,
            base,
            fresh: wish.fresh,
        };
        let inner = &self.inner;
        let mut ground = Ground::new(inner, &project, &config, &commit, Use::Verify, dir);
        let looked = gate::run(inner, &job, &mut ground, &inner.stopping).await?;
        drop(ground);
        // Whoever asked may look at the record next.
        inner.verdicts.saved().await;
        let verdicts = looked.ok_or_else(EngineError::interrupted)?;
        Ok(GatesRun {
            overall: overall_word(&overall(&verdicts.reports)).into(),
            gates: verdicts.results.iter().map(view).collect(),
            skipped: verdicts
                .skipped
                .into_iter()
                .map(|(gate, why)| SkippedGate { gate, why })
                .collect(),
            commit,
        })
    }

    /// The commit that is meant, and what its failures are compared with.
    async fn looked_at(
        &self,
        root: &Path,
        project: &Arc<Project>,
        config: &Config,
        wish: &RunGates,
    ) -> Result<(CommitId, Option<CommitId>)> {
        let main = project.base(config);
        let Some(of) = wish.of.as_deref() else {
            return Ok((project.repo.require_tip(&main).await?, None));
        };
        let wanted = TaskRef {
            root,
            name: of,
            cwd: None,
        };
        if let Ok(found) = self.find(&wanted).await {
            let head = match (&found.task.head, &found.task.worktree) {
                (_, Some(worktree)) => project.repo.tip(&worktree.branch).await?,
                (head, None) => head.clone(),
            };
            let head = head.ok_or_else(|| {
                Problem::new(Code::Conflict, format!("{of} has no result yet")).hint(
                    NextCommand::WaitReview {
                        task: found.task.name.clone(),
                    },
                )
            })?;
            let recorded = found.task.worktree.as_ref().map(|worktree| &worktree.base);
            let base = match recorded {
                Some(_) => Some(
                    project
                        .change_base(&found.task, recorded, &head)
                        .await?
                        .commit,
                ),
                None => None,
            };
            return Ok((head, base));
        }
        let commit = project.repo.resolve(of).await.map_err(|_| {
            Problem::new(
                Code::NotFound,
                format!("`{of}` is neither a task nor a revision"),
            )
            .hint(NextCommand::Status)
        })?;
        let tip = project.repo.require_tip(&main).await?;
        let base = project.repo.merge_base(&tip, &commit).await?;
        Ok((commit, base))
    }
}

/// The gates that are meant, in the file's order.
fn chosen(config: &Config, names: &[String]) -> Result<Vec<GateSpec>, Problem> {
    let all = config.gates();
    if all.is_empty() {
        return Err(
            Problem::new(Code::NotFound, "this project has no gates").hint(
                NextCommand::HelpConfig.purpose("add some to woodward.yaml and commit it; how"),
            ),
        );
    }
    for name in names {
        if !all.iter().any(|gate| gate.name.as_str() == name) {
            let known: Vec<&str> = all.iter().map(|gate| gate.name.as_str()).collect();
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("gates of this project: {}", known.join(", ")),
            };
            return Err(
                Problem::new(Code::NotFound, format!("there is no gate `{name}`")).hint(hint),
            );
        }
    }
    let is_meant =
        |gate: &&GateSpec| names.is_empty() || names.iter().any(|it| gate.name.as_str() == it);
    let mut gates: Vec<GateSpec> = all.iter().filter(is_meant).cloned().collect();
    if !names.is_empty() {
        // Who asks for one gate wants that gate.
        for gate in &mut gates {
            gate.needs.clear();
        }
    }
    Ok(gates)
}

const fn overall_word(overall: &Overall) -> &'static str {
    match overall {
        Overall::Pass => "pass",
        Overall::Unverified => "unverified",
        Overall::Flaky(_) => "flaky",
        Overall::Baseline(_) => "baseline",
        Overall::Broken(_) => "broken",
        Overall::Fail(_) => "fail",
    }
}

/// What a gate's looks said, added up.
fn record<'a>(looks: impl Iterator<Item = &'a GateResult>) -> GateRecord {
    let mut record = GateRecord::default();
    let mut times: Vec<u64> = Vec::new();
    for look in looks {
        record.looks += 1;
        match look.verdict {
            Verdict::Pass => record.passed += 1,
            Verdict::Flaky => record.flaky += 1,
            _ => record.failed += 1,
        }
        times.push(look.duration.0);
    }
    times.sort_unstable();
    record.median_ms = times.get(times.len() / 2).copied();
    record
}

/// A gate's word as the outside sees it.
pub(super) fn view(result: &GateResult) -> GateView {
    let detail = &result.detail;
    let log = detail.log.as_ref();
    GateView {
        gate: result.gate.clone(),
        commit: result.commit.clone(),
        verdict: result.verdict.as_str().into(),
        command: result.command.clone(),
        exit_code: result.exit_code,
        duration_ms: result.duration.0,
        at: result.at,
        evidence: GateEvidence {
            tree: detail.tree.as_ref().map(ToString::to_string),
            note: detail.note.as_ref().map(ToString::to_string),
            timed_out_ms: detail.timed_out.map(|limit| limit.0),
            tests: detail.tests.map(|tests| TestsView {
                passed: tests.passed,
                failed: tests.failed,
                skipped: tests.skipped,
            }),
            failures: detail
                .failures
                .iter()
                .map(|failure| FailureView {
                    name: failure.name.to_string(),
                    message: failure.message.as_ref().map(ToString::to_string),
                    known: failure.known,
                })
                .collect(),
            reused: detail.reused,
            base: detail.base.clone(),
            log: log.map(|log| log.dir.clone()),
            log_bytes: log.map(|log| log.bytes),
            log_sha256: log.map(|log| log.sha256.clone()),
        },
    }
}
