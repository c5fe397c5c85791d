//! `woodward demo`: all of it, in a repository made for it.
//!
//! The repository, the state directory and the daemon are the demo's own; those of the person are
//! never touched. Nothing that it claims is written down here: every number is counted in what the
//! daemon and git say. Whatever happens, no process of it is left running.

mod daemon;
mod person;
mod place;
mod proof;
mod screen;
mod shell;
mod summary;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use woodward_api::{Code, CreateTasks, OpenProject, Problem, TaskDraft};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use daemon::Daemon;
use person::Person;
use place::{Place, TASKS};
use screen::Screen;
use summary::Summary;

/// See it all work: five tasks at once in a small repository made for it
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward demo\n  woodward demo --dir ~/woodward-demo     in a directory of your choice\n  woodward demo --json                    what it did, for a program\n\nIt needs git and nothing else: no key, no network. Your own daemon is not touched."
)]
pub(crate) struct Demo {
    /// Where to make the repository: a directory that is empty or not there yet
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Remove the directory at the end, if all went well
    #[arg(long)]
    rm: bool,
}

impl Demo {
    /// Does it.
    pub(crate) async fn run(self, out: Output) -> Outcome {
        // Before anything is started, so that no signal finds the demo unprepared.
        let interrupted = interruption()?;
        let began = Instant::now();
        let place = Place::new(self.dir.as_deref())?;
        let mut daemon = Daemon::of(&place);
        let mut screen = Screen::new(out, &TASKS.map(|task| task.name));
        let told = tokio::select! {
            biased;
            () = interrupted => Err(Failure::told(Exit::Interrupted)),
            told = show(&place, &mut daemon, &mut screen) => told,
        };
        screen.close();
        let left = daemon.end(told.is_err()).await;
        let mut summary = match told {
            Ok(summary) => summary,
            Err(failure) if failure.exit == Exit::Interrupted => {
                out.say(&interrupted_text(left, &place));
                return Err(failure);
            }
            Err(failure) => return Err(with_place(failure, &place)),
        };
        summary.processes_left = left;
        summary.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let holds = summary.holds();
        summary.removed = holds && self.rm && place.remove();
        out.answer(&summary, |look| summary.text(out.narrates(), look))?;
        if holds {
            Ok(())
        } else {
            let what = "not all of what the demo shows has come true";
            let failure = Failure::new(Exit::Failed, Problem::new(Code::Internal, what));
            Err(with_place(failure, &place))
        }
    }
}

/// The demo itself, from an empty directory to what was proved.
async fn show(place: &Place, daemon: &mut Daemon, screen: &mut Screen) -> Outcome<Summary> {
    screen.open(&place.root().display().to_string())?;
    place.fill().await?;
    daemon.start().await?;
    let client = daemon.client();
    client.open_project(&OpenProject::at(client.root())).await?;
    client
        .create(&CreateTasks {
            tasks: TASKS
                .iter()
                .map(|task| TaskDraft {
                    name: task.name.into(),
                    prompt: Some(task.prompt.into()),
                    ..TaskDraft::default()
                })
                .collect(),
            key: None,
        })
        .await?;
    Person::new(client, screen).see_through().await?;
    screen.close();
    let counted = Summary::of(client, place).await?;
    // git is asked when nobody else works in the repository: it takes a worktree that goes away
    // under its eyes for damage.
    daemon.end(false).await;
    let proof = proof::gather(place, screen).await?;
    Ok(counted.with(&proof))
}

fn interrupted_text(left: usize, place: &Place) -> String {
    let running = match left {
        0 => "nothing of the demo is left running".to_owned(),
        left => format!("{left} of the demo's processes could not be ended"),
    };
    let directory = shell::quoted(&place.root().display().to_string());
    format!("interrupted; {running}\nRemove it: rm -rf {directory}")
}

fn with_place(failure: Failure, place: &Place) -> Failure {
    let shown = place.root().display();
    failure.hint(format!(
        "all that it left is in {shown}, with state/daemon.log"
    ))
}

/// Ends when somebody wants the demo to end.
fn interruption() -> Outcome<impl Future<Output = ()>> {
    let listen = |kind| {
        signal(kind).map_err(|error| Failure::failed(format!("signals can't be heard: {error}")))
    };
    let mut int = listen(SignalKind::interrupt())?;
    let mut term = listen(SignalKind::terminate())?;
    let mut hup = listen(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hup.recv() => {}
        }
    })
}
