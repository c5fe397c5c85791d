//! `woodward undo`: a removal, a cancellation or a landing is taken back.

use clap::Args;

use super::{Dry, tell};
use crate::failure::Outcome;
use crate::session::Session;

/// Take back the last removal or cancellation, or what a task has landed
///
/// What has landed is taken back by a new task that is gated and landed like any other: nothing is
/// removed from the branch's history.
#[derive(Debug, Args)]
#[command(before_help = "Examples:\n  woodward undo\n  woodward undo fix-login")]
pub(crate) struct Undo {
    /// The task: removed, cancelled or landed; the last one removed or cancelled otherwise
    #[arg(value_name = "TASK")]
    task: Option<String>,
}

impl Undo {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let task = self.task.map(|task| session.task(&task)).transpose()?;
        let request = woodward_api::Undo { task };
        let deed = session
            .call(async |client| client.undo(&request).await)
            .await?;
        session.remember(&deed.task.name);
        tell(session, &deed, Dry::default())
    }
}
