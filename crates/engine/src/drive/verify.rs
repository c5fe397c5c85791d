//! Running the gates on a task's result.

use woodward_core::gate::{GateReport, Verdict};
use woodward_core::{CommitId, Fact, GateName, RunId};
use woodward_store::{TaskClaim, fresh_uuid};

use super::{Driver, Scene};
use crate::config::Config;
use crate::error::Result;
use crate::gate::{self, Job, LastFailure};
use crate::{land, run_env};

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
        let gates = config.gates();
        let path = project.worktree(&task.name);
        let look = gate::job_name(self.handle.epoch, task.since);
        let mut job = Job {
            gates,
            dir: self.inner.options.paths.gates(task.id, commit).join(&look),
            cwd: path.clone(),
            commit: commit.clone(),
            env: run_env::of_gates(&self.inner, project, config, task, &path),
            mark: format!("{}-{look}", task.id),
            output_max_bytes: config.log_bytes_max,
        };
        // What is looked at is the commit. Where the task's directory is not exactly that, a clean
        // one is.
        let elsewhere = if gates.is_empty() || project.repo.is_clean_at(&path, commit).await? {
            None
        } else {
            // Once it is our turn it is not cut short: git would go on in what is another's by then.
            let turn = land::turn(&self.inner, project, "verify");
            let Some(turn) = self.handle.cancel.run_until_cancelled(turn).await else {
                return Ok(false);
            };
            Some(land::checkout(&self.inner, project, turn, commit, &job.dir).await?)
        };
        if let Some(place) = &elsewhere {
            job.cwd = place.path().to_owned();
            job.env = run_env::of_gates(&self.inner, project, config, task, place.path());
        }
        let Some(verdicts) = gate::run(&self.inner, &job, &self.handle.cancel).await? else {
            return Ok(false);
        };
        drop(elsewhere);
        let passed = |verdict| matches!(verdict, Verdict::Pass | Verdict::Flaky);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let good = verdicts
            .reports
            .iter()
            .filter(|r| passed(r.verdict))
            .count();
        self.inner.evidence.note(task.id, |known| {
            known.gates = Some((count(good), count(verdicts.reports.len())));
            known.tests = verdicts.tests;
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
        let risks = match &task.worktree {
            Some(worktree) => project.risks(&worktree.base, commit).await?.len(),
            None => 0,
        };
        self.inner
            .evidence
            .note(task.id, |known| known.risks = count(risks));
        let fact = Fact::GatesFinished {
            commit: commit.clone(),
            tree: None,
            reports: verdicts.reports,
            risky: risks > 0,
            next_run: RunId::new(fresh_uuid()),
        };
        self.report(config, fact).await
    }
}
