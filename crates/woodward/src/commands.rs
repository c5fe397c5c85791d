//! What can be typed, one file a verb. A command asks the daemon and prints; it decides nothing.

mod answer;
mod approve;
mod ask;
mod attach;
mod blame;
mod cancel;
mod comment;
mod completions;
mod conflicts;
pub(crate) mod cost;
pub(crate) mod create;
mod demo;
mod diff;
mod doctor;
mod down;
mod embedded;
mod gate;
mod help;
mod init;
mod logs;
mod merge;
mod notify;
mod pause;
mod prompt;
mod queue;
mod reaction;
mod reject;
mod resume;
mod retry;
mod rm;
mod scripted_agent;
mod show;
mod status;
mod timeline;
mod undo;
mod up;
mod version;
mod wait;

use clap::{Args, Subcommand};
use woodward_api::Done;
use woodward_api::client::TaskAction;
use woodward_core::TaskName;
use woodward_core::risk::EmbeddedChoice;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::Output;
use crate::render::done::{done, would_do};
use crate::session::Session;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(visible_alias = "setup")]
    Init(init::Init),
    #[command(visible_alias = "start")]
    Up(up::Up),
    #[command(visible_alias = "stop")]
    Down(down::Down),
    Demo(demo::Demo),
    #[command(visible_aliases = ["new", "add", "spawn"])]
    Create(create::Create),
    #[command(visible_aliases = ["send", "tell"])]
    Prompt(prompt::Prompt),
    Answer(answer::Answer),
    Pause(pause::Pause),
    Resume(resume::Resume),
    Retry(retry::Retry),
    #[command(visible_alias = "kill")]
    Cancel(cancel::Cancel),
    #[command(visible_aliases = ["st", "ls", "ps"])]
    Status(status::Status),
    #[command(visible_alias = "view")]
    Show(show::Show),
    Logs(logs::Logs),
    Attach(attach::Attach),
    Diff(diff::Diff),
    #[command(visible_alias = "history")]
    Timeline(timeline::Timeline),
    Conflicts(conflicts::Conflicts),
    Cost(cost::Cost),
    Blame(blame::Blame),
    Gate(gate::Gate),
    Notify(notify::Notify),
    Wait(wait::Wait),
    Approve(approve::Approve),
    Comment(comment::Comment),
    Reject(reject::Reject),
    Embedded(embedded::Embedded),
    #[command(visible_alias = "land")]
    Merge(merge::Merge),
    Queue(queue::Queue),
    #[command(visible_alias = "remove")]
    Rm(rm::Rm),
    Undo(undo::Undo),
    Reaction(reaction::Reaction),
    Doctor(doctor::Doctor),
    Ask(ask::Ask),
    Completions(completions::Completions),
    Help(help::Help),
    Version(version::Version),
    #[command(hide = true)]
    ScriptedAgent(scripted_agent::ScriptedAgent),
}

impl Default for Command {
    /// `woodward` alone, in a project.
    fn default() -> Self {
        Self::Status(status::Status::default())
    }
}

impl Command {
    /// Does it, if it needs neither daemon nor directory.
    pub(crate) fn offline(&self, out: &Output) -> Option<Outcome> {
        match self {
            Self::Completions(completions) => Some(completions.run(out)),
            Self::Help(help) => Some(help.run(out)),
            Self::ScriptedAgent(agent) => Some(agent.run(out)),
            _ => None,
        }
    }

    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::Init(init) => init.run(session).await,
            Self::Up(up) => up.run(session).await,
            Self::Down(down) => down.run(session).await,
            Self::Demo(demo) => demo.run(session.out).await,
            Self::Create(create) => create.run(session).await,
            Self::Prompt(prompt) => prompt.run(session).await,
            Self::Answer(answer) => answer.run(session).await,
            Self::Pause(pause) => pause.run(session).await,
            Self::Resume(resume) => resume.run(session).await,
            Self::Retry(retry) => retry.run(session).await,
            Self::Cancel(cancel) => cancel.run(session).await,
            Self::Status(status) => status.run(session).await,
            Self::Show(show) => show.run(session).await,
            Self::Logs(logs) => logs.run(session).await,
            Self::Attach(attach) => attach.run(session).await,
            Self::Diff(diff) => diff.run(session).await,
            Self::Timeline(timeline) => timeline.run(session).await,
            Self::Conflicts(conflicts) => conflicts.run(session).await,
            Self::Cost(cost) => cost.run(session).await,
            Self::Blame(blame) => blame.run(session).await,
            Self::Gate(gate) => gate.run(session).await,
            Self::Notify(notify) => notify.run(session).await,
            Self::Wait(wait) => wait.run(session).await,
            Self::Approve(approve) => approve.run(session).await,
            Self::Comment(comment) => comment.run(session).await,
            Self::Reject(reject) => reject.run(session).await,
            Self::Embedded(embedded) => embedded.run(session).await,
            Self::Merge(merge) => merge.run(session).await,
            Self::Queue(queue) => queue.run(session).await,
            Self::Rm(rm) => rm.run(session).await,
            Self::Undo(undo) => undo.run(session).await,
            Self::Reaction(reaction) => reaction.run(session).await,
            Self::Doctor(doctor) => doctor.run(session).await,
            Self::Ask(ask) => ask.run(session).await,
            Self::Version(version) => version.run(session).await,
            Self::Completions(completions) => completions.run(&session.out),
            Self::Help(help) => help.run(&session.out),
            Self::ScriptedAgent(agent) => agent.run(&session.out),
        }
    }
}

/// Whether it shall be done at all.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Dry {
    /// Only say what would be done
    #[arg(short = 'n', long)]
    dry_run: bool,
}

/// What an action does to a task, after "would".
fn intention(action: &TaskAction, task: &TaskName) -> String {
    match action {
        TaskAction::Embedded(decision) => match &decision.choice {
            EmbeddedChoice::AddFiles => format!("add the files of a git repository inside {task}"),
            EmbeddedChoice::Drop => format!("drop a git repository from {task}"),
            EmbeddedChoice::Submodule { .. } => format!("declare a submodule in {task}"),
        },
        TaskAction::Resume(wish) if wish.move_commits => {
            format!("set your branch back, and resume {task} with the agent's commits")
        }
        _ => format!("{} {task}", action.verb()),
    }
}

/// Does one thing to one task.
async fn act_once(session: &Session, task: &str, action: &TaskAction, dry: Dry) -> Outcome<Done> {
    let task = session.task(task)?;
    if dry.dry_run {
        let detail = session
            .call(async |client| client.task(&task).await)
            .await?;
        let intention = intention(action, &detail.task.name);
        let message = format!("would {intention}, which is {}", detail.task.state);
        return Ok(Done {
            task: detail.task,
            message,
            hints: Vec::new(),
        });
    }
    if let TaskAction::Prompt(_) | TaskAction::Retry | TaskAction::Resume(_) = action {
        session.hand_over(std::slice::from_ref(&task), false).await;
    }
    let deed = session
        .call(async |client| client.act(&task, action).await)
        .await?;
    session.remember(&deed.task.name);
    Ok(deed)
}

/// Does one thing to one task and tells it.
async fn act(session: &Session, task: &str, action: &TaskAction, dry: Dry) -> Outcome {
    let deed = act_once(session, task, action, dry).await?;
    tell(session, &deed, dry)
}

/// Tells what was done, and what to type next, for instance to take it back.
fn tell(session: &Session, deed: &Done, dry: Dry) -> Outcome {
    session.out.answer(deed, |look| {
        if dry.dry_run {
            would_do(deed)
        } else {
            done(deed, look)
        }
    })?;
    session.out.hints(&deed.hints);
    Ok(())
}

/// Does the same to several tasks. One that refuses does not keep the others from it; the exit code
/// is the first refusal's.
async fn act_on_each(
    session: &Session,
    tasks: &[String],
    action: &TaskAction,
    dry: Dry,
) -> Outcome {
    let mut deeds = Vec::new();
    let mut refused = None;
    for task in &session.tasks(tasks)? {
        match act_once(session, task, action, dry).await {
            Ok(deed) => {
                if !session.out.json() {
                    tell(session, &deed, dry)?;
                }
                deeds.push(deed);
            }
            Err(failure) => {
                session.out.failure(&failure);
                refused.get_or_insert(failure.exit);
            }
        }
    }
    if session.out.json() {
        session.out.answer(&deeds, |_| String::new())?;
    }
    match refused {
        Some(exit) => Err(Failure::told(exit)),
        None => Ok(()),
    }
}

/// Asks a person who sits there whether they mean it. Whoever can't be asked is not: what follows
/// can be taken back.
async fn confirm(session: &Session, verb: &str, tasks: &[String], agreed: bool) -> Outcome {
    if agreed || session.out.json() || !input::is_interactive() {
        return Ok(());
    }
    session
        .out
        .ask(&format!("{verb} {}? [y/N] ", tasks.join(", ")));
    let answer = input::line().await?.unwrap_or_default();
    if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        session.out.say("nothing was done");
        Err(Failure::told(Exit::Failed))
    }
}
