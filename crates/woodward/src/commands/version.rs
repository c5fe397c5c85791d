//! `woodward version`: of this program and of the daemon.

use std::time::Duration;
use woodward_core::hint::NextCommand;

use clap::Args;
use serde::Serialize;

use crate::failure::Outcome;
use crate::session::Session;

/// How long the daemon may take to say its own.
const PROBE: Duration = Duration::from_secs(2);

/// The version of this program and of the daemon
#[derive(Debug, Args)]
#[command(before_help = "Examples:\n  woodward version")]
pub(crate) struct Version {}

#[derive(Serialize)]
struct Versions {
    program: &'static str,
    daemon: Option<String>,
    schema: u32,
}

impl Version {
    /// Does it. Never starts a daemon.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let health = session.client().health(PROBE).await.ok();
        let versions = Versions {
            program: env!("CARGO_PKG_VERSION"),
            daemon: health.map(|health| health.version),
            schema: woodward_api::SCHEMA,
        };
        session.out.answer(&versions, |_| told(&versions))?;
        if versions
            .daemon
            .as_deref()
            .is_some_and(|daemon| daemon != versions.program)
        {
            let restart = NextCommand::Restart.purpose("the daemon is of another version");
            session.out.hints(&[restart]);
        }
        Ok(())
    }
}

fn told(versions: &Versions) -> String {
    let daemon = versions.daemon.as_deref().unwrap_or("does not run");
    format!("woodward {}\ndaemon: {daemon}\n", versions.program)
}
