//! `woodward logs`: what an agent, a gate or the setup of the worktree printed.

use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_agents::render::Renderer;
use woodward_api::client::LogQuery;
use woodward_api::{LogSource, LogText};
use woodward_core::{GateName, Millis};

use crate::complete;
use crate::failure::Outcome;
use crate::render::text::{Cleaner, one_line};
use crate::render::time::span;
use crate::session::Session;

/// How long one request waits for more output.
const POLL: Duration = Duration::from_secs(20);

/// What an agent, a gate or a setup command printed, without its control sequences
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward logs fix-login                  the last run\n  woodward logs fix-login -f               follow it until it ends\n  woodward logs fix-login --gate test      why a gate failed\n  woodward logs fix-login --setup          what `worktree.setup` printed\n  woodward logs fix-login --run 1"
)]
pub(crate) struct Logs {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// Follow the output until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Which run, from 1; the last one otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    run: Option<u32>,
    /// A gate's output instead of the agent's
    #[arg(long, value_name = "NAME", conflicts_with = "run")]
    gate: Option<String>,
    /// The output of the commands that set up the worktree
    #[arg(long, conflicts_with_all = ["run", "gate"])]
    setup: bool,
}

impl Logs {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let task = session.task(&self.task)?;
        let gate: Option<GateName> = self.gate.map(|gate| gate.parse()).transpose()?;
        let mut query = LogQuery {
            run: self.run,
            gate,
            setup: self.setup.then_some(1),
            offset: 0,
            wait: Duration::ZERO,
        };
        let mut cleaner = Cleaner::default();
        let mut renderer = Renderer::default();
        let mut piece = session
            .call(async |client| client.logs(&task, &query).await)
            .await?;
        loop {
            print(session, &piece, &mut cleaner, &mut renderer)?;
            if let (true, Some(next)) = (piece.ended, next_setup(&piece)) {
                query.setup = Some(next);
                query.offset = 0;
                piece = session
                    .insist(async |client| client.logs(&task, &query).await)
                    .await?;
                continue;
            }
            let came = piece.next > query.offset;
            if piece.ended || !(came || self.follow) {
                return Ok(());
            }
            query.offset = piece.next;
            query.wait = if self.follow { POLL } else { Duration::ZERO };
            piece = session
                .insist(async |client| client.logs(&task, &query).await)
                .await?;
        }
    }
}

/// The setup command after the one whose output this is.
fn next_setup(piece: &LogText) -> Option<u32> {
    match &piece.source {
        LogSource::Setup {
            number,
            last: false,
            ..
        } => Some(number.saturating_add(1)),
        _ => None,
    }
}

fn print(
    session: &Session,
    piece: &LogText,
    cleaner: &mut Cleaner,
    renderer: &mut Renderer,
) -> Outcome {
    if piece.dropped > 0 {
        let line = format!("note: {} bytes here were too many to keep", piece.dropped);
        session.out.say(&line);
    }
    if session.out.json() {
        return session.out.json_line(piece, false);
    }
    if let LogSource::Setup { command, .. } = &piece.source
        && piece.offset == 0
        && (piece.ended || piece.next > 0)
        && !command.is_empty()
    {
        session.out.say(&format!("$ {}", one_line(command)));
    }
    let printed = if piece.events {
        let mut text = renderer.next(&piece.text);
        if piece.ended {
            text += &renderer.rest();
        }
        session.out.text(&text)
    } else {
        session.out.text(&cleaner.next(&piece.text))
    };
    if let Some(limit) = piece.timed_out_ms.filter(|_| piece.ended) {
        let line = format!("note: it timed out after {}", span(Millis(limit)));
        session.out.say(&line);
    }
    printed
}
