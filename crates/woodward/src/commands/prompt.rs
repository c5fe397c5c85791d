//! `woodward prompt`: a task's agent is told what to do.

use std::path::PathBuf;

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_api::Text;
use woodward_api::client::TaskAction;

use super::{Dry, act};
use crate::failure::Outcome;
use crate::session::Session;
use crate::{complete, input};

/// Tell a task's agent what to do: a draft starts with it, a running agent gets it as a message
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward prompt auth-api \"Implement JWT authentication\"\n  woodward prompt auth-api --file spec.md\n  woodward prompt auth-api - < spec.md"
)]
pub(crate) struct Prompt {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// What to do; `-` reads it from stdin
    #[arg(
        value_name = "TEXT",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    text: Vec<String>,
    /// A file with what to do
    #[arg(short, long, value_name = "PATH")]
    file: Option<PathBuf>,
    #[command(flatten)]
    dry: Dry,
}

impl Prompt {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let text = match &self.file {
            Some(path) => input::not_blank(input::file(path).await?, "the prompt")?,
            None => input::words(&self.text, "the prompt").await?,
        };
        act(
            session,
            &self.task,
            &TaskAction::Prompt(Text { text }),
            self.dry,
        )
        .await
    }
}
