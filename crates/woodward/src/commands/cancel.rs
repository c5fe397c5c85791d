//! `woodward cancel`: tasks are given up.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::Note;
use woodward_api::client::TaskAction;

use super::{Dry, act_on_each, confirm};
use crate::complete;
use crate::failure::Outcome;
use crate::session::Session;

/// Give tasks up; their work is saved and `undo` brings it back
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward cancel fix-login -m \"no longer needed\"\n  woodward undo fix-login          take it back"
)]
pub(crate) struct Cancel {
    /// The tasks: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(required = true, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    tasks: Vec<String>,
    /// Why, in your words; it is kept in the timeline
    #[arg(
        short = 'm',
        long = "message",
        value_name = "WHY",
        default_value = "",
        hide_default_value = true
    )]
    reason: String,
    #[command(flatten)]
    dry: Dry,
    /// Do not ask first; without a terminal nothing is asked
    #[arg(short, long)]
    yes: bool,
}

impl Cancel {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let tasks = session.tasks(&self.tasks)?;
        confirm(session, "give up", &tasks, self.yes || self.dry.dry_run).await?;
        let action = TaskAction::Cancel(Note {
            reason: self.reason,
        });
        act_on_each(session, &tasks, &action, self.dry).await
    }
}
