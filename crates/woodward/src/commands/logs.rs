//! `woodward logs`: what an agent or a gate printed.

use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_agents::render::Renderer;
use woodward_api::LogText;
use woodward_api::client::LogQuery;
use woodward_core::GateName;

use crate::complete;
use crate::failure::Outcome;
use crate::render::text::Cleaner;
use crate::session::Session;

/// How long one request waits for more output.
const POLL: Duration = Duration::from_secs(20);

/// What an agent or a gate printed, without its control sequences
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward logs fix-login                  the last run\n  woodward logs fix-login -f               follow it until it ends\n  woodward logs fix-login --gate test      why a gate failed\n  woodward logs fix-login --run 1"
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
}

impl Logs {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let task = session.task(&self.task)?;
        let gate: Option<GateName> = self.gate.map(|gate| gate.parse()).transpose()?;
        let mut query = LogQuery {
            run: self.run,
            gate,
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
        session.out.json_line(piece, false)
    } else if piece.events {
        let mut text = renderer.next(&piece.text);
        if piece.ended {
            text += &renderer.rest();
        }
        session.out.text(&text)
    } else {
        session.out.text(&cleaner.next(&piece.text))
    }
}
