//! Running the gates on a task's result.

use std::sync::atomic::Ordering;

use woodward_core::gate::{GateReport, Verdict};
use woodward_core::{CommitId, Fact, GateName, RunId};
use woodward_store::{TaskClaim, fresh_uuid};

use super::{Driver, Scene};
use crate::config::{Config, ScopeRule};
use crate::disk;
use crate::error::{EngineError, Result};
use crate::gate::{self, Ground, Job, LastFailure};
use crate::land::Use;
use crate::project::Change;
use crate::run_env;

/// What is said of gates that could not be run at all.
pub(super) fn none_ran(config: &Config) -> Vec<GateReport> {
    let broken = |gate| GateReport::new(gate, Verdict::Broken, true);
    let mut gates: Vec<GateName> = config.gates().iter().map(|g| g.name.clone()).collect();
    if gates.is_empty() {
        gates.extend("checkout".parse::<GateName>());
    }
    gates.into_iter().map(broken).collect()
}

impl Driver {
    pub(super) async fn verify(&self, scene: &Scene, commit: &CommitId) -> Result<bool> {
        let Scene {
            task,
            project,
            config,
        } = scene;
        let look = gate::job_name(self.handle.epoch, task.since);
        let dir = self.inner.options.paths.gates(task.id, commit).join(&look);
        let (change, base) = match &task.worktree {
            Some(worktree) => {
                let recorded = &worktree.base;
                let base = project.change_base(task, Some(recorded), commit).await?;
                let change = project.change(task, recorded, commit).await?;
                (change, Some(base.commit))
            }
            None => (Change::default(), None),
        };
        let tree = project.repo.tree_of(commit).await?;
        let path = project.worktree(&task.name);
        let job = Job {
            project,
            config,
            gates: config.gates(),
            dir: dir.clone(),
            commit: commit.clone(),
            tree: tree.clone(),
            env: run_env::of_gates(&self.inner, project, config, task, &path),
            mark: format!("{}-{look}", task.id),
            changed: task.worktree.as_ref().map(|_| change.paths()),
            base,
            fresh: self.rerun_gates.load(Ordering::Relaxed),
        };
        let results = dir.clone();
        let mut ground = Ground::new(&self.inner, project, config, commit, Use::Verify, dir);
        ground.own = Some(path);
        let looked = gate::run(&self.inner, &job, &mut ground, &self.handle.cancel).await?;
        drop(ground);
        let Some(mut verdicts) = looked else {
            return Ok(false);
        };
        let failed =
            |report: &GateReport| matches!(report.verdict, Verdict::Fail | Verdict::Broken);
        if verdicts.reports.iter().any(failed)
            && let Some(full) = disk::find_full(&self.disks(scene))
        {
            // What failed on a full disk says nothing about the result.
            self.rerun_gates.store(true, Ordering::Relaxed);
            if let Err(error) = std::fs::remove_dir_all(&results) {
                tracing::warn!(task = %task.name, %error, "gate results were not removed");
            }
            return Err(EngineError::DiskFull(full));
        }
        self.rerun_gates.store(false, Ordering::Relaxed);
        let outside = change.outside();
        if config.scope == ScopeRule::Refuse
            && !outside.is_empty()
            && let Some(base) = &job.base
        {
            verdicts.refuse_scope(&outside, base, commit);
        }
        let passed = |verdict| matches!(verdict, Verdict::Pass | Verdict::Flaky);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let good = verdicts
            .reports
            .iter()
            .filter(|r| passed(r.verdict))
            .count();
        self.inner.evidence.note(task.id, |known| {
            known.gates = Some((count(good), count(verdicts.reports.len())));
            known.tests = verdicts.tests.map(|tests| (tests.passed, tests.run()));
        });
        if !verdicts.failed.is_empty() {
            LastFailure::save(&self.inner.options.paths, task.id, &verdicts.failed)?;
        }
        let claim = TaskClaim {
            task: task.id,
            epoch: self.handle.epoch,
        };
        self.inner
            .store
            .save_gate_results(claim, verdicts.results)
            .await?;
        let risks = change.signals().len();
        self.inner
            .evidence
            .note(task.id, |known| known.risks = count(risks));
        let fact = Fact::GatesFinished {
            commit: commit.clone(),
            tree: Some(tree),
            reports: verdicts.reports,
            risky: risks > 0,
            embedded: change.embedded().to_vec(),
            next_run: RunId::new(fresh_uuid()),
        };
        self.report(config, fact).await
    }
}
