//! `woodward rm`: tasks and their worktrees go; their work is saved first.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::client::TaskAction;

use super::{Dry, act_on_each, confirm};
use crate::complete;
use crate::failure::Outcome;
use crate::session::Session;

/// Remove tasks and their worktrees; unlanded work is saved and `undo` brings it back
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward rm fix-login\n  woodward undo fix-login          bring it back"
)]
pub(crate) struct Rm {
    /// The tasks: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(required = true, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    tasks: Vec<String>,
    #[command(flatten)]
    dry: Dry,
    /// Do not ask first; without a terminal nothing is asked
    #[arg(short, long)]
    yes: bool,
}

impl Rm {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let tasks = session.tasks(&self.tasks)?;
        confirm(session, "remove", &tasks, self.yes || self.dry.dry_run).await?;
        let action = TaskAction::Remove;
        act_on_each(session, &tasks, &action, self.dry).await
    }
}
