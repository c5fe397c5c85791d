//! `woodward retry`: failed or cancelled tasks start again, and waiting attempts start at once.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::client::TaskAction;

use super::{Dry, act_on_each};
use crate::complete;
use crate::failure::Outcome;
use crate::session::Session;

/// Let failed or cancelled tasks start again, or the next attempt start at once
#[derive(Debug, Args)]
#[command(before_help = "Examples:\n  woodward retry fix-login")]
pub(crate) struct Retry {
    /// The tasks: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(required = true, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    tasks: Vec<String>,
    #[command(flatten)]
    dry: Dry,
}

impl Retry {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let action = TaskAction::Retry;
        act_on_each(session, &self.tasks, &action, self.dry).await
    }
}
