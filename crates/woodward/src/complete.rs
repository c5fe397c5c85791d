//! Completions: the shell asks this program, which asks the daemon for the real task names.
//!
//! Silent when there is no daemon: a person who presses Tab wants no error and no new process.

use std::time::Duration;

use clap::CommandFactory as _;
use clap_complete::{CompleteEnv, CompletionCandidate};
use woodward_api::StatusFilter;
use woodward_api::client::Client;
use woodward_engine::paths::Paths;

use crate::cli::Cli;
use crate::render::text;

/// How long Tab may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Answers the shell and ends, if it is the shell that asks.
pub(crate) fn answer_the_shell() {
    // Building all commands costs more than looking at one variable.
    if std::env::var_os("COMPLETE").is_some() {
        CompleteEnv::with_factory(Cli::command).complete();
    }
}

/// The names of the project's tasks.
pub(crate) fn tasks() -> Vec<CompletionCandidate> {
    ask().unwrap_or_default()
}

fn ask() -> Option<Vec<CompletionCandidate>> {
    let paths = Paths::from_env().ok()?;
    let directory = std::env::current_dir().ok()?;
    let client = Client::new(paths.socket(), directory.to_str()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let view = runtime
        .block_on(async { tokio::time::timeout(PATIENCE, client.status(StatusFilter::OPEN)).await })
        .ok()?
        .ok()?;
    let candidates = view.tasks.into_iter().map(|task| {
        let help = format!("{}: {}", task.state, text::one_line(&task.attention.reason));
        CompletionCandidate::new(task.name.as_str()).help(Some(help.into()))
    });
    Some(candidates.collect())
}
