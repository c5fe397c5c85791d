//! `woodward reaction`: the rules, what they would do, and what they did.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use jiff::tz::TimeZone;
use woodward_api::AskSecret;
use woodward_core::hint::{NextCommand, Word};

use crate::failure::Outcome;
use crate::render::reaction as render;
use crate::session::Session;
use crate::{complete, input};

/// Rules: when this happens to a task, do that
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward reaction list\n  woodward reaction test ci-failed --task fix-login -m \"3 tests fail\"\n  woodward reaction log --task fix-login\n  woodward reaction secret                   for a CI that tells what happened"
)]
pub(crate) struct Reaction {
    /// What to do
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the rules of this project, with those that are built in
    List,
    /// Show what rules would do, and the exact text, if this happened now
    Test {
        /// What happens, such as ci-failed, changes-requested, task-failed
        #[arg(value_name = "TRIGGER")]
        trigger: String,
        /// The task that it happens to
        #[arg(long, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
        task: String,
        /// What is said of it; `-` reads it from stdin
        #[arg(short = 'm', long = "message", value_name = "TEXT")]
        message: Option<String>,
    },
    /// Show what rules did, and why others did not, newest first
    Log {
        /// Only of this task
        #[arg(long, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
        task: Option<String>,
        /// At most so many lines
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
    },
    /// Show the secret that events are signed with; it is made on first use
    Secret {
        /// Make a new one; the old one counts no longer
        #[arg(long)]
        renew: bool,
    },
}

impl Reaction {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        match self.verb {
            Verb::List => {
                let rules = session
                    .call(async |client| client.reactions().await)
                    .await?;
                session
                    .out
                    .answer(&rules, |look| render::list(&rules, look))
            }
            Verb::Test {
                trigger,
                task,
                message,
            } => {
                let task = session.task(&task)?;
                let text = match message {
                    Some(text) => input::words(&[text], "what is said").await?,
                    None => String::new(),
                };
                let test = session
                    .call(async |client| client.reaction_test(&task, &trigger, &text).await)
                    .await?;
                session.out.answer(&test, |look| render::test(&test, look))
            }
            Verb::Log { task, limit } => {
                let task = task.map(|task| session.task(&task)).transpose()?;
                let log = session
                    .call(async |client| client.reaction_log(task.as_deref(), limit).await)
                    .await?;
                session
                    .out
                    .answer(&log, |look| render::log(&log, &TimeZone::system(), look))
            }
            Verb::Secret { renew } => {
                let ask = AskSecret { renew };
                let secret = session
                    .call(async |client| client.secret(&ask).await)
                    .await?;
                session
                    .out
                    .answer(&secret, |_| format!("{}\n", secret.secret))?;
                session.out.hints(&[match &secret.url {
                    Some(url) => format!("sign and post to {url}; see docs/reactions.md").into(),
                    // The daemon that answered runs, so it must be started again.
                    None => NextCommand::RestartListening {
                        address: Word("127.0.0.1:7420".into()),
                    }
                    .purpose("take events over TCP"),
                }]);
                Ok(())
            }
        }
    }
}
