//! `woodward timeline`: what happened to a task.

use clap::Args;
use clap_complete::ArgValueCandidates;
use jiff::tz::TimeZone;

use crate::complete;
use crate::failure::Outcome;
use crate::render::timeline::timeline;
use crate::session::Session;

/// What happened to a task, when, and by whose hand
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward timeline fix-login\n  woodward timeline fix-login --full   with all that its agent was told"
)]
pub(crate) struct Timeline {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// Show all of what agents were told
    #[arg(long)]
    full: bool,
}

impl Timeline {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let task = session.task(&self.task)?;
        let story = session
            .call(async |client| client.timeline(&task).await)
            .await?;
        session.remember(&story.task.name);
        session.out.answer(&story, |look| {
            timeline(&story, &TimeZone::system(), self.full, look)
        })
    }
}
