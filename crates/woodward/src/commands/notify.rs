//! `woodward notify`: who is told, whether that works, and what was told.

use clap::{Args, Subcommand};
use woodward_core::Timestamp;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::render::notify;
use crate::session::Session;

/// How you are told: the channels, whether they work, what was told
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward notify list               the channels, and whether they work here\n  woodward notify test               tell yourself something, by all of them\n  woodward notify test phone         by one\n  woodward notify log                what was told, and what waits"
)]
pub(crate) struct Notify {
    /// What to do; `list` without a word
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The channels, and whether they work here
    List,
    /// Tell yourself something, by one channel or by all
    Test {
        /// The channel; all of them otherwise
        channel: Option<String>,
    },
    /// What was told, is told or waits, the newest first
    Log {
        /// At most so many lines
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: u32,
    },
}

impl Notify {
    /// Does it. A test fails when a channel does not work.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        match self.what.unwrap_or(What::List) {
            What::List => {
                let view = session.call(async |client| client.channels().await).await?;
                session.out.answer(&view, |look| notify::list(&view, look))
            }
            What::Test { channel } => {
                let tests = session
                    .call(async |client| client.test_channels(channel.as_deref()).await)
                    .await?;
                session
                    .out
                    .answer(&tests, |look| notify::tests(&tests, look))?;
                if tests.iter().any(|test| test.problem.is_some()) {
                    return Err(Failure::told(Exit::Failed));
                }
                Ok(())
            }
            What::Log { lines } => {
                let log = session
                    .call(async |client| client.notices(lines).await)
                    .await?;
                let now = Timestamp(jiff::Timestamp::now().as_millisecond());
                session
                    .out
                    .answer(&log, |look| notify::log(&log, now, look))
            }
        }
    }
}
