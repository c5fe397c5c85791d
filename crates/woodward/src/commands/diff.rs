//! `woodward diff`: what a task changed.

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::client::DiffQuery;

use crate::complete;
use crate::failure::Outcome;
use crate::render::diff;
use crate::session::Session;

/// What a task changed, against the branch it started from
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward diff fix-login\n  woodward diff fix-login --stat\n  woodward diff fix-login --working    also what is not committed yet\n  woodward diff fix-login --since-approved"
)]
pub(crate) struct Diff {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// Only which files, and how much
    #[arg(long)]
    stat: bool,
    /// The worktree as it is now, not the last result
    #[arg(long)]
    working: bool,
    /// Only what is different from the result that you approved last
    #[arg(long, conflicts_with = "working")]
    since_approved: bool,
}

impl Diff {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let task = session.task(&self.task)?;
        let query = DiffQuery {
            stat: self.stat,
            working: self.working,
            since_approved: self.since_approved,
        };
        let change = session
            .call(async |client| client.diff(&task, query).await)
            .await?;
        session.out.answer(&change, |look| {
            if self.stat {
                diff::stat(&change.stat, look)
            } else {
                diff::text(&change.text, look)
            }
        })?;
        if change.stat.files_total == 0 {
            session.out.say("nothing is changed");
        }
        if change.truncated && !self.stat {
            session
                .out
                .say("note: the diff is longer than this; --stat shows all of its size");
        }
        Ok(())
    }
}
