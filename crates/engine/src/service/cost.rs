//! What agents have used.

use std::path::Path;

use woodward_api::{CostAmount, CostView, RunCost};
use woodward_core::Timestamp;

use super::Answered;
use crate::clock;
use crate::engine::Engine;
use crate::error::EngineError;

impl Engine {
    /// What the runs of a project have used since a moment.
    ///
    /// # Errors
    /// When there is no project there.
    pub async fn cost(&self, root: &Path, since: Timestamp) -> Answered<CostView> {
        let project = self.project_of(root).await?;
        let config = project.config().await?;
        let today = clock::midnight(clock::now());
        let loaded = self
            .inner
            .store
            .load_runs_since(project.id(), since.min(today))
            .await
            .map_err(EngineError::from)?;
        let runs = loaded.into_iter().map(|(task, run)| RunCost {
            run: run.id,
            task,
            agent: run.agent.to_string(),
            started_at: run.started_at,
            spend: run.spend.into(),
        });
        let all: Vec<RunCost> = runs.collect();
        let sum = |from: Timestamp| {
            let counted = all.iter().filter(|run| run.started_at >= from);
            counted.fold(CostAmount::ZERO, |sum, run| sum + run.spend)
        };
        Ok(CostView {
            since,
            total: sum(since),
            today: sum(today),
            day_tokens_max: config.day_budget.tokens_max,
            day_micro_usd_max: config.day_budget.micro_usd_max,
            runs: all
                .into_iter()
                .filter(|run| run.started_at >= since)
                .collect(),
        })
    }
}
