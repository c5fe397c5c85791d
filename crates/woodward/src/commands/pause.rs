//! `woodward pause`: tasks stop for now.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::Note;
use woodward_api::client::TaskAction;

use super::{Dry, act_on_each};
use crate::complete;
use crate::failure::Outcome;
use crate::session::Session;

/// Stop tasks for now; their agents end, their work stays
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward pause fix-login\n  woodward pause fix-login -m \"waiting for the new API\""
)]
pub(crate) struct Pause {
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
}

impl Pause {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let action = TaskAction::Pause(Note {
            reason: self.reason,
        });
        act_on_each(session, &self.tasks, &action, self.dry).await
    }
}
