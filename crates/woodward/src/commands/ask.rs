//! `woodward ask`: an agent asks the person, and waits.
//!
//! It is started by agents inside a run. A daemon that goes away and comes back is no reason to
//! fail: the question has an identity of its own, so asking again asks once.

use std::time::Duration;

use clap::Args;
use woodward_agents::Waiting;
use woodward_api::{AnswerState, Code, NewQuestion, Problem};
use woodward_core::hint::NextCommand;
use woodward_core::{MessageId, RunId};

use crate::failure::{Failure, Outcome};
use crate::input;
use crate::session::Session;

/// The variable that names the run an agent is in.
pub(super) const RUN: &str = "WOODWARD_RUN";
/// How long one request waits for the answer.
const POLL: Duration = Duration::from_secs(30);

/// Ask the person a question and print the answer (for agents, inside a run)
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward ask \"May I drop the table?\" --choice yes --choice no\n  answer=$(woodward ask \"Which database?\")"
)]
pub(crate) struct Ask {
    /// The question; `-` reads it from stdin
    #[arg(value_name = "QUESTION", required = true)]
    text: Vec<String>,
    /// An answer to choose from; may be given several times
    #[arg(long = "choice", value_name = "ANSWER")]
    choices: Vec<String>,
}

impl Ask {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let run = std::env::var(RUN)
            .ok()
            .filter(|run| !run.is_empty())
            .ok_or_else(|| {
                Failure::usage(format!(
                    "`ask` is for agents inside a run, and {RUN} is not set"
                ))
                .hint(NextCommand::Status.purpose("to see which agents ask something"))
            })?;
        let question = NewQuestion {
            id: MessageId::new(fresh_uuid()),
            text: input::words(&self.text, "the question").await?,
            choices: self.choices,
        };
        session
            .insist(async |client| client.ask(&run, &question).await)
            .await?;
        let waiting = waiting(session, &run);
        let answer = loop {
            let state = session
                .insist(async |client| client.answer_state(&run, question.id, POLL).await)
                .await?;
            match state {
                AnswerState::Pending => {}
                AnswerState::Answered { text } => break text,
                AnswerState::Gone => {
                    let message = "nobody will answer: the run is over or the task was stopped";
                    return Err(Problem::new(Code::NeedsPerson, message).into());
                }
            }
        };
        drop(waiting);
        session.out.answer(&answer, |_| format!("{answer}\n"))
    }
}

/// Has the run's limits stand still while the person is waited for. Without it the answer may come
/// too late, but it is still waited for.
fn waiting(session: &Session, run: &str) -> Option<Waiting> {
    let run: RunId = run.parse().ok()?;
    Waiting::begin(&session.paths().run(run))
        .inspect_err(|error| {
            let line = format!("the run's time limits go on while this waits: {error}");
            session.out.detail(&line);
        })
        .ok()
}

/// A new random identity.
///
/// # Panics
/// When the operating system has no randomness to give: no identity would be safe.
pub(super) fn fresh_uuid() -> uuid::Uuid {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).expect("the operating system provides randomness");
    uuid::Builder::from_random_bytes(random).into_uuid()
}
