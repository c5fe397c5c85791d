//! `woodward undo`: a removal or a cancellation is taken back.

use clap::Args;

use super::{Dry, tell};
use crate::failure::Outcome;
use crate::session::Session;

/// Take back the last removal or cancellation, or a task's own
#[derive(Debug, Args)]
#[command(before_help = "Examples:\n  woodward undo\n  woodward undo fix-login")]
pub(crate) struct Undo {
    /// The task; the last one that was removed or cancelled otherwise
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
