//! `woodward down`: the daemon is stopped; agents are not.

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use woodward_api::client::ClientError;

use crate::failure::Outcome;
use crate::launch;
use crate::render::text::count;
use crate::session::Session;

/// How long the question whether it runs may take.
const PROBE: Duration = Duration::from_secs(20);

/// Stop the daemon; agents go on, and the next daemon takes them over
#[derive(Debug, Args)]
#[command(before_help = "Examples:\n  woodward down")]
pub(crate) struct Down {}

/// What was stopped.
#[derive(Serialize)]
struct Stopped {
    was_running: bool,
    agents_running: u32,
}

impl Down {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let client = session.client();
        let agents = match client.health(PROBE).await {
            Ok(health) => Some(health.running),
            Err(ClientError::Unreachable { .. }) => None,
            Err(_) => Some(0),
        };
        if agents.is_some() {
            match client.shutdown().await {
                // It may be gone before its answer is.
                Ok(()) | Err(ClientError::Unreachable { .. } | ClientError::Lost { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            launch::until_gone(session).await?;
        }
        let stopped = Stopped {
            was_running: agents.is_some(),
            agents_running: agents.unwrap_or(0),
        };
        session.out.answer(&stopped, |_| told(&stopped))
    }
}

fn told(stopped: &Stopped) -> String {
    match (stopped.was_running, stopped.agents_running) {
        (false, _) => "the daemon does not run\n".to_owned(),
        (true, 0) => "the daemon has ended; no agent was running\n".to_owned(),
        (true, running) => format!(
            "the daemon has ended; {} still running, which the next daemon takes over\n",
            count(running.into(), "agent")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_says_what_goes_on() {
        let said = |was_running, agents_running| {
            told(&Stopped {
                was_running,
                agents_running,
            })
        };
        assert_eq!(said(false, 0), "the daemon does not run\n");
        assert_eq!(
            said(true, 2),
            "the daemon has ended; 2 agents still running, which the next daemon takes over\n"
        );
    }
}
