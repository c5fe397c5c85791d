//! `woodward cost`: who used what.

use clap::{Args, ValueEnum};
use woodward_core::Timestamp;
use woodward_core::hint::NextCommand;

use crate::failure::{Failure, Outcome};
use crate::render;
use crate::session::Session;

/// What agents used: tokens and money, by task, agent, day or run
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward cost                  each task of this project\n  woodward cost --by agent --days 7\n  woodward cost --by day"
)]
pub(crate) struct Cost {
    /// What to add up by
    #[arg(long, value_name = "WHAT", default_value = "task")]
    by: By,
    /// Only the last N days by UTC, today included
    #[arg(long, value_name = "N")]
    days: Option<u32>,
}

/// What costs are added up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Task,
    Agent,
    Day,
    Run,
}

const DAY_MS: i64 = 86_400_000;

impl Cost {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let since = match self.days {
            None => Timestamp(0),
            Some(0) => {
                return Err(Failure::usage("`--days 0` is no day").hint(NextCommand::CostToday));
            }
            Some(days) => {
                let now = jiff::Timestamp::now().as_millisecond();
                let today = now - now.rem_euclid(DAY_MS);
                Timestamp(today - i64::from(days - 1) * DAY_MS)
            }
        };
        let cost = session
            .call(async |client| client.cost(since).await)
            .await?;
        session
            .out
            .answer(&cost, |look| render::cost::cost(&cost, self.by, look))
    }
}
