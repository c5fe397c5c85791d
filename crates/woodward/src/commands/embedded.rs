//! `woodward embedded`: what becomes of a git repository inside a result.

use clap::{ArgGroup, Args};
use clap_complete::ArgValueCandidates;
use woodward_api::DecideEmbedded;
use woodward_api::client::TaskAction;
use woodward_core::risk::EmbeddedChoice;

use super::{Dry, act};
use crate::complete;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// Decide what becomes of a git repository that an agent made inside its worktree
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("choice").required(true).args(["add_files", "drop", "submodule"])),
    override_usage = "woodward embedded <TASK> [PATH] <--add-files|--drop|--submodule>",
    before_help = "Examples:\n  woodward embedded fix-login vendor/lib --add-files    its files become files of the project\n  woodward embedded fix-login vendor/lib --drop         it is no part of the result\n  woodward embedded fix-login vendor/lib --submodule --url https://example.com/lib.git\n\nNothing is deleted: what is taken out of the worktree is kept for 14 days (a submodule's\nhistory for ever), and the answer says where."
)]
pub(crate) struct Embedded {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// The repository's directory in the worktree; may be left out where there is only one
    #[arg(value_name = "PATH")]
    path: Option<String>,
    /// Make its files files of the project; its own history is moved aside
    #[arg(long)]
    add_files: bool,
    /// Take it out of the result; its directory is moved aside
    #[arg(long)]
    drop: bool,
    /// Declare it as a submodule in .gitmodules
    #[arg(long, requires = "url")]
    submodule: bool,
    /// Where clones fetch the submodule from
    #[arg(
        long,
        value_name = "URL",
        requires = "submodule",
        allow_hyphen_values = true
    )]
    url: Option<String>,
    #[command(flatten)]
    dry: Dry,
}

impl Embedded {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let choice = match (self.add_files, self.drop, self.url) {
            (true, ..) => EmbeddedChoice::AddFiles,
            (_, true, _) => EmbeddedChoice::Drop,
            (_, _, Some(url)) => EmbeddedChoice::Submodule { url },
            _ => {
                return Err(Failure::usage("say what becomes of it".to_owned())
                    .hint("--add-files, --drop, or --submodule --url URL"));
            }
        };
        let decision = DecideEmbedded {
            path: self.path,
            choice,
        };
        let action = TaskAction::Embedded(decision);
        act(session, &self.task, &action, self.dry).await
    }
}
