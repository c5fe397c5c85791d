//! `woodward merge`: tasks are queued for landing.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::MergeTask;
use woodward_api::client::TaskAction;
use woodward_core::CommitId;

use super::wait::{self, Until};
use super::{Dry, act_on_each};
use crate::complete;
use crate::failure::Outcome;
use crate::render;
use crate::session::Session;

/// Queue tasks for landing: the merged tree is tested before the main branch moves
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward merge fix-login\n  woodward merge fix-login add-dark-mode --wait\n  woodward merge fix-login --dry-run    conflicts, order, gates; changes nothing"
)]
pub(crate) struct Merge {
    /// The tasks: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(required = true, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    tasks: Vec<String>,
    /// Only if this is the commit up for review, in full
    #[arg(long, value_name = "SHA")]
    commit: Option<CommitId>,
    /// Before all others in the queue
    #[arg(long)]
    now: bool,
    /// Wait until they have landed
    #[arg(long, conflicts_with = "json")]
    wait: bool,
    #[command(flatten)]
    dry: Dry,
}

impl Merge {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let action = TaskAction::Merge(MergeTask {
            commit: self.commit,
            now: self.now,
        });
        if self.dry.dry_run {
            return plan(session, &self.tasks).await;
        }
        let mut tasks = session.tasks(&self.tasks)?;
        if self.now {
            // Each goes before all others: the one that was named first is the last to do so.
            tasks.reverse();
        }
        act_on_each(session, &tasks, &action, self.dry).await?;
        if self.wait {
            wait::until(session, &tasks, Until::LANDED, None).await?;
        }
        Ok(())
    }
}

/// Says what would happen.
async fn plan(session: &Session, tasks: &[String]) -> Outcome {
    let tasks: Result<Vec<String>, _> = tasks.iter().map(|task| session.task(task)).collect();
    let tasks = tasks?;
    let plan = session
        .call(async |client| client.plan_merge(&tasks).await)
        .await?;
    session
        .out
        .answer(&plan, |look| render::queue::plan(&plan, look))
}
