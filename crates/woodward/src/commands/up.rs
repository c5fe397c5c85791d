//! `woodward up`: the daemon is started.

use std::time::Duration;

use clap::Args;
use woodward_api::Health;

use crate::failure::Outcome;
use crate::launch;
use crate::render::text::count;
use crate::session::Session;

/// How long the question whether it runs already may take.
const PROBE: Duration = Duration::from_secs(5);

/// Start the daemon (commands that need it do so by themselves)
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward up\n  woodward up --foreground         for systemd, or to see it run"
)]
pub(crate) struct Up {
    /// Run it here, until Ctrl-C
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Leave the terminal's session first
    #[arg(long, hide = true, requires = "foreground")]
    pub(crate) detached: bool,
}

impl Up {
    /// Does it, in the background.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let (health, verb) = match session.client().health(PROBE).await {
            Ok(health) => (health, "runs already"),
            Err(error) if error.is_daemon_gone() => (launch::start(session).await?, "runs"),
            Err(error) => return Err(error.into()),
        };
        session.out.answer(&health, |_| told(&health, verb))
    }
}

fn told(health: &Health, verb: &str) -> String {
    let Health {
        version,
        pid,
        database,
        state_dir,
        running,
        ..
    } = health;
    let agents = count(u64::from(*running), "agent");
    format!(
        "daemon {version} {verb} (pid {pid}, {database}, {agents} running)\nstate: {state_dir}\n"
    )
}
