//! `woodward demo`: all of it, in a repository made for it.

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// See it all work: five tasks in a small repository made for it
#[derive(Debug, Args)]
#[command(before_help = "Examples:\n  woodward demo")]
pub(crate) struct Demo {}

impl Demo {
    /// Does it.
    pub(crate) async fn run(self, _session: &Session) -> Outcome {
        Err(Failure::failed("the demo is not wired yet"))
    }
}
