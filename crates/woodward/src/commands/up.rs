//! `woodward up`: the daemon is started.

use std::time::Duration;

use clap::Args;
use woodward_api::Health;
use woodward_core::hint::{NextCommand, Word};
use woodward_engine::config::OwnDaemon;

use crate::daemon::listen::{self, Listen};
use crate::failure::{Failure, Outcome};
use crate::launch;
use crate::render::text::count;
use crate::session::Session;

/// How long the question whether it runs already may take.
const PROBE: Duration = Duration::from_secs(5);

/// Start the daemon (commands that need it do so by themselves)
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward up\n  woodward up --foreground         for systemd, or to see it run\n  woodward up --listen 127.0.0.1:7420\n                                   take signed news from a CI; see docs/reactions.md"
)]
pub(crate) struct Up {
    /// Run it here, until Ctrl-C
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Also take signed events over TCP, on this address from now on; `off` ends
    /// it. Only events: nothing else can be asked for there
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<Listen>,
    /// Leave the terminal's session first
    #[arg(long, hide = true, requires = "foreground")]
    pub(crate) detached: bool,
}

impl Up {
    /// Does it, in the background.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let file = listen::own_file();
        let own = OwnDaemon::load(&file).map_err(|problem| {
            Failure::failed(problem).hint("repair it: nothing in it counts until then")
        })?;
        if let (Some(wanted), Some(own)) = (self.listen, own.listen)
            && wanted != own
        {
            // Kept, it would never count.
            let what = format!("{} says `listen: {own}`", file.display());
            return Err(
                Failure::failed(what).hint(format!("write `listen: {wanted}` there, or nothing"))
            );
        }
        if let Some(wanted) = self.listen {
            listen::save(session.paths(), wanted)
                .map_err(|error| Failure::failed(format!("the address can't be kept: {error}")))?;
        }
        let (health, verb) = match session.client().health(PROBE).await {
            Ok(health)
                if self
                    .listen
                    .is_some_and(|wanted| !listen::is(wanted, &health)) =>
            {
                return Err(different(&health, self.listen));
            }
            Ok(health) => (health, "runs already"),
            Err(error) if error.is_daemon_gone() => {
                let health = launch::start(session).await?;
                if let Some(wanted) = self.listen.filter(|wanted| !listen::is(*wanted, &health)) {
                    return Err(not_listening(session, wanted));
                }
                (health, "runs")
            }
            Err(error) => return Err(error.into()),
        };
        session.out.answer(&health, |_| told(&health, verb))
    }
}

/// The daemon runs with another address. The command says the address again, so that what comes of
/// it is checked.
fn different(health: &Health, wanted: Option<Listen>) -> Failure {
    let now = health.listen.as_deref().unwrap_or("off");
    let what = format!("the daemon is already running with a different address for events ({now})");
    let purpose = "restart it; agents go on meanwhile";
    Failure::failed(what).hint(match wanted {
        Some(wanted) => NextCommand::RestartListening {
            address: Word::from(&wanted),
        }
        .purpose(purpose),
        None => NextCommand::Restart.purpose(purpose),
    })
}

/// A daemon that was just started does not listen where it was told to.
fn not_listening(session: &Session, wanted: Listen) -> Failure {
    let log = session.paths().daemon_log();
    Failure::failed(format!("the daemon runs, but takes no events on {wanted}"))
        .hint(format!("see its log: {}", log.display()))
        .hint(format!(
            "if {} is set, it counts first: unset it",
            listen::VARIABLE
        ))
}

fn told(health: &Health, verb: &str) -> String {
    let Health {
        version,
        pid,
        database,
        state_dir,
        running,
        listen,
        ..
    } = health;
    let agents = count(u64::from(*running), "agent");
    let listen = listen.as_ref().map_or(String::new(), |address| {
        format!("events: http://{address}/api/v1/events\n")
    });
    format!(
        "daemon {version} {verb} (pid {pid}, {database}, {agents} running)\nstate: {state_dir}\n{listen}"
    )
}
