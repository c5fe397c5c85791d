//! `woodward approve`: a yes to a result.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::client::TaskAction;
use woodward_core::CommitId;

use super::{Dry, act_on_each};
use crate::complete;
use crate::failure::Outcome;
use crate::session::Session;

/// Say yes to results: what was reviewed may land, and nothing later
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward approve fix-login\n  woodward approve fix-login --commit 4f2a9c1e8b7d6054f2a9c1e8b7d6054f2a9c1e8b"
)]
pub(crate) struct Approve {
    /// The tasks: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(required = true, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    tasks: Vec<String>,
    /// Only if this is the commit up for review, in full
    #[arg(long, value_name = "SHA")]
    commit: Option<CommitId>,
    #[command(flatten)]
    dry: Dry,
}

impl Approve {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let action = TaskAction::Approve(woodward_api::Approve {
            commit: self.commit,
        });
        act_on_each(session, &self.tasks, &action, self.dry).await
    }
}
