//! `woodward resume`: paused tasks go on.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::client::TaskAction;

use super::{Dry, act_on_each};
use crate::complete;
use crate::failure::Outcome;
use crate::session::Session;

/// Let paused tasks go on, or tasks start that wait for others that touch the same
#[derive(Debug, Args)]
#[command(before_help = "Examples:\n  woodward resume fix-login")]
pub(crate) struct Resume {
    /// The tasks: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(required = true, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    tasks: Vec<String>,
    #[command(flatten)]
    dry: Dry,
}

impl Resume {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let action = TaskAction::Resume;
        act_on_each(session, &self.tasks, &action, self.dry).await
    }
}
