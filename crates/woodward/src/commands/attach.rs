//! `woodward attach`: a person at an agent's own terminal.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCandidates;
use woodward_agents::render::Renderer;
use woodward_agents::terminal::{self, AttachError, LeaveKey, Left, Options, tmux};
use woodward_api::client::LogQuery;
use woodward_api::{Code, Problem, RunPlace};
use woodward_core::hint::NextCommand;

use crate::complete;
use crate::failure::{Failure, Outcome};
use crate::session::Session;

/// How long one request waits for more output.
const POLL: Duration = Duration::from_secs(20);

/// Look at an agent's terminal and type into it; ctrl-q leaves, the agent goes on
///
/// An agent that has no terminal is shown as it goes, to be looked at only.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward attach fix-login                ctrl-q leaves\n  woodward attach fix-login --read-only\n  woodward attach fix-login --takeover     go on in a terminal, by hand"
)]
pub(crate) struct Attach {
    /// The task: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    task: String,
    /// Only look
    #[arg(short, long)]
    read_only: bool,
    /// Interrupt an agent that has no terminal and start it in one, in the same conversation
    #[arg(long, conflicts_with = "read_only")]
    takeover: bool,
}

impl Attach {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let task = session.task(&self.task)?;
        let mut place = session
            .call(async |client| client.place(&task).await)
            .await?;
        session.remember(&place.task);
        if !place.running {
            return Err(not_running(&place));
        }
        if self.takeover && !place.terminal {
            place = session
                .call(async |client| client.take_over(&task).await)
                .await?;
        }
        if place.terminal {
            self.join(session, &place).await
        } else {
            watch(session, &task, &place).await
        }
    }

    async fn join(&self, session: &Session, place: &RunPlace) -> Outcome {
        let name = &place.task;
        if let Some(pane) = session_of(session, place).await {
            let mut joined = tokio::process::Command::from(pane.join(self.read_only));
            let status = joined
                .status()
                .await
                .map_err(|error| Failure::failed(format!("tmux can't be started: {error}")))?;
            if status.success() {
                return Ok(());
            }
            session.out.detail("tmux refused; attaching without it");
        }
        let options = Options {
            read_only: self.read_only,
            pane: false,
        };
        match terminal::attach(&PathBuf::from(&place.directory), options).await {
            Ok(Left::Detached) => {
                session.out.say(&format!("left {name}; its agent goes on"));
                Ok(())
            }
            Ok(Left::Ended) => {
                session.out.say(&format!("the agent of {name} has ended"));
                Ok(())
            }
            Ok(Left::Lost) => Err(Failure::failed(format!("the run of {name} is gone"))
                .hint(NextCommand::Show { task: name.clone() }.purpose("see how it stands"))),
            Err(AttachError::NoTerminal) => Err(not_running(place)),
            Err(error @ AttachError::NotOnTerminal) => Err(Failure::usage(error.to_string())
                .hint(NextCommand::LogsFollow { task: name.clone() }.purpose("what it says"))),
            Err(error) => Err(Failure::failed(error.to_string())
                .hint(NextCommand::LogsFollow { task: name.clone() }.purpose("what it says"))),
        }
    }
}

/// The run's tmux session, opened if it is not there; `None` where the project wants none, where this
/// is no terminal, or where there is no tmux.
async fn session_of(session: &Session, place: &RunPlace) -> Option<tmux::Session> {
    let program = std::env::current_exe().ok()?;
    let pane = tmux::Session {
        socket: PathBuf::from(&place.tmux_socket),
        name: place.tmux_session.clone(),
        client: vec![
            program.display().to_string(),
            terminal::VIEW.to_owned(),
            place.directory.clone(),
        ],
    };
    if !place.tmux || !session.out.is_terminal() {
        return None;
    }
    match tmux::open(&pane).await {
        Ok(()) => Some(pane),
        Err(error) => {
            session
                .out
                .detail(&format!("without tmux: it can't be used ({error})"));
            None
        }
    }
}

fn not_running(place: &RunPlace) -> Failure {
    let name = &place.task;
    Problem::new(Code::WrongState, format!("no agent of {name} runs now"))
        .hint(NextCommand::Logs { task: name.clone() }.purpose("what it did"))
        .hint(NextCommand::Prompt { task: name.clone() }.purpose("to have it go on"))
        .into()
}

/// Shows what an agent without a terminal does, until it ends or the person leaves.
async fn watch(session: &Session, task: &str, place: &RunPlace) -> Outcome {
    let name = &place.task;
    session.out.say(&format!(
        "{name} has no terminal; you can only look (ctrl-q or ctrl-c leaves)"
    ));
    if place.conversation {
        let takeover = NextCommand::AttachTakeover { task: name.clone() };
        session
            .out
            .say(&takeover.purpose("to go on by hand").to_string());
    }
    let mut leave = LeaveKey::watch();
    let mut renderer = Renderer::default();
    let mut query = LogQuery::default();
    loop {
        let more = session.insist(async |client| client.logs(task, &query).await);
        let piece = tokio::select! {
            piece = more => piece?,
            () = leave.pressed() => {
                drop(leave);
                session.out.say(&format!("left {name}; its agent goes on"));
                return Ok(());
            }
        };
        if piece.dropped > 0 {
            let line = format!("note: {} bytes here were too many to keep", piece.dropped);
            session.out.say(&line);
        }
        session.out.text(&renderer.next(&piece.text))?;
        if piece.ended {
            return session.out.text(&renderer.rest());
        }
        query.offset = piece.next;
        query.wait = POLL;
    }
}
