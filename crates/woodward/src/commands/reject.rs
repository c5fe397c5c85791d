//! `woodward reject`: a result goes back with what should change.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::Text;
use woodward_api::client::TaskAction;

use super::{Dry, act};
use crate::failure::Outcome;
use crate::session::Session;
use crate::{complete, input};

/// Send a result back: what you write, and what you noted with `comment`,
/// becomes the agent's next prompt
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward reject fix-login -m \"The session must end on logout too\"\n  woodward reject fix-login -m - < review.md\n  woodward reject fix-login                  with what was noted by `comment`"
)]
pub(crate) struct Reject {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// What should change; `-` reads it from stdin
    #[arg(short = 'm', long = "message", value_name = "WHAT")]
    message: Option<String>,
    #[command(flatten)]
    dry: Dry,
}

impl Reject {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let text = match self.message {
            Some(message) => input::words(&[message], "what should change").await?,
            None => String::new(),
        };
        act(
            session,
            &self.task,
            &TaskAction::Reject(Text { text }),
            self.dry,
        )
        .await
    }
}
