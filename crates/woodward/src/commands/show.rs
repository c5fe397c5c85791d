//! `woodward show`: one task in full.

use clap::Args;
use clap_complete::ArgValueCandidates;
use jiff::tz::TimeZone;

use crate::complete;
use crate::failure::Outcome;
use crate::render::show::show;
use crate::session::Session;

/// One task in full: what was asked, what came of it, what its gates said, what to do next
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward show fix-login\n  woodward show .                  the task whose worktree this is"
)]
pub(crate) struct Show {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
}

impl Show {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let task = session.task(&self.task)?;
        let detail = session
            .call(async |client| client.task(&task).await)
            .await?;
        session.remember(&detail.task.name);
        session
            .out
            .answer(&detail, |look| show(&detail, &TimeZone::system(), look))
    }
}
