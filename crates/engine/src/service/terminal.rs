//! Where an agent's terminal is, and how a headless one gets one.

use std::path::Path;
use std::time::Duration;

use woodward_agents::terminal::{self, tmux};
use woodward_agents::{Letter, files as agent_files};
use woodward_api::{Code, Problem, RunPlace};
use woodward_core::hint::NextCommand;
use woodward_core::{MessageId, RunId, TaskName};

use super::{Answered, TaskRef};
use crate::clock;
use crate::config::Runtime;
use crate::engine::Engine;
use crate::error::Result;
use crate::paths::Paths;
use crate::supervise::{self, Seen};

/// How long a program may take to end and to start again.
const TAKEOVER_MAX: Duration = Duration::from_secs(50);
/// How long a run that is being started may take to be there.
const START_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The tmux session of a run. Whoever opens it opens the same one.
pub(crate) fn session(paths: &Paths, program: &Path, task: &TaskName, run: RunId) -> tmux::Session {
    let id = run.to_string();
    // The end of an id is what tells two of them apart.
    let short = &id[id.len().saturating_sub(8)..];
    tmux::Session {
        socket: paths.tmux_socket(),
        name: tmux::Session::name(&format!("{task}-{short}")),
        client: vec![
            program.display().to_string(),
            terminal::VIEW.to_owned(),
            paths.run(run).display().to_string(),
        ],
    }
}

impl Engine {
    /// Where the last run of a task is.
    ///
    /// # Errors
    /// When there is no such task, or it has no run yet.
    pub async fn place(&self, wanted: &TaskRef<'_>) -> Answered<RunPlace> {
        let deadline = tokio::time::Instant::now() + START_MAX;
        loop {
            let (place, settled) = self.look_for_place(wanted).await?;
            if settled || tokio::time::Instant::now() > deadline {
                return Ok(place);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Where it is, and whether that is the whole truth: a run that is just being started has no
    /// process yet, and one whose host has just begun no terminal.
    async fn look_for_place(&self, wanted: &TaskRef<'_>) -> Result<(RunPlace, bool)> {
        let found = self.find(wanted).await?;
        let name = found.task.name;
        let runs = self.inner.store.load_runs(found.task.id).await?;
        let Some(run) = runs.last() else {
            let problem = Problem::new(Code::NotFound, format!("no agent has run for {name} yet"))
                .hint(NextCommand::Show { task: name.clone() }.purpose("see how it stands"));
            return Err(problem.into());
        };
        let paths = &self.inner.options.paths;
        let dir = paths.run(run.id);
        let seen = supervise::look(&dir)?;
        let running = matches!(seen, Seen::Running(_));
        let talk = agent_files::load_conversation(&dir);
        let is_resumable = talk.as_ref().is_some_and(|talk| talk.session.is_some());
        let spec = agent_files::load_spec(&dir);
        let can_be_taken_over = spec.is_some_and(|spec| spec.no_takeover().is_none());
        let terminal = running && terminal::is_there(&dir);
        let settled = match seen {
            Seen::Running(_) => {
                let wanted = talk.as_ref().map(|talk| talk.terminal);
                let hosted = agent_files::spec_file(&dir).exists();
                terminal || wanted == Some(false) || !hosted
            }
            Seen::Absent => run.finished_at.is_some(),
            Seen::Ended(_) | Seen::Lost | Seen::Forbidden => true,
        };
        let session = session(paths, &self.inner.options.program, &name, run.id);
        let place = RunPlace {
            run: run.id,
            running,
            terminal,
            conversation: is_resumable && can_be_taken_over,
            tmux: found.config.runtime == Runtime::Tmux,
            tmux_socket: session.socket.display().to_string(),
            tmux_session: session.name,
            directory: dir.display().to_string(),
            task: name,
        };
        Ok((place, settled))
    }

    /// Has a headless agent started again in a terminal, in the same conversation, and waits until it
    /// is there. One that is in a terminal stays as it is.
    ///
    /// # Errors
    /// When nothing runs, or its program can't be taken over.
    pub async fn take_over(&self, wanted: &TaskRef<'_>) -> Answered<RunPlace> {
        let place = self.place(wanted).await?;
        let name = &place.task;
        if place.terminal {
            return Ok(place);
        }
        let dir = self.inner.options.paths.run(place.run);
        if !place.running || agent_files::load_conversation(&dir).is_none() {
            let what = if place.running {
                format!("the agent of {name} has no conversation that could be taken over")
            } else {
                format!("no agent of {name} runs now")
            };
            return Err(Problem::new(Code::WrongState, what)
                .hint(NextCommand::Logs { task: name.clone() }.purpose("what it did")));
        }
        let id = MessageId::new(woodward_store::fresh_uuid());
        agent_files::post(&dir, &Letter::Takeover { id }, clock::now())
            .map_err(|error| Problem::new(Code::Unavailable, error.to_string()))?;
        let deadline = tokio::time::Instant::now() + TAKEOVER_MAX;
        loop {
            let talk = agent_files::load_conversation(&dir).unwrap_or_default();
            let settled = talk.delivered.iter().find(|one| one.message == id);
            if let Some(refused) = settled.and_then(|one| one.refused.as_ref()) {
                let what = format!("the agent of {name} can't be taken over: {refused}");
                return Err(Problem::new(Code::WrongState, what)
                    .hint(NextCommand::Attach { task: name.clone() }.purpose("look at it instead"))
                    .hint(
                        NextCommand::Prompt { task: name.clone() }.purpose("tell it how to go on"),
                    ));
            }
            let (place, _) = self.look_for_place(wanted).await?;
            if settled.is_some() && place.terminal {
                return Ok(place);
            }
            if !place.running || tokio::time::Instant::now() > deadline {
                let what = format!("the agent of {name} did not start again in a terminal");
                return Err(Problem::new(Code::Unavailable, what)
                    .hint(NextCommand::Logs { task: name.clone() }.purpose("what it said")));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
