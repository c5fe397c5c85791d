//! `woodward queue`: what lands next, and steering it.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use woodward_api::client::TaskAction;
use woodward_api::{FreezeQueue, PauseTask};
use woodward_core::hint::{NextCommand, Word};

use super::{Dry, act_on_each};
use crate::complete;
use crate::failure::{Failure, Outcome};
use crate::render;
use crate::session::Session;

/// The merge queue: what lands next, and in which order
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward queue\n  woodward queue bump fix-login\n  woodward queue freeze -m \"release 2.0 is being cut\"\n  woodward queue thaw"
)]
pub(crate) struct Queue {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Default, Subcommand)]
enum What {
    /// Each branch's queue, in order, and what is being looked at
    #[default]
    List,
    /// Let tasks wait in the queue until they are released
    Hold(WithReason),
    /// Let tasks that wait go on
    Release(Tasks),
    /// Put tasks before all others, in the order in which they are named
    Bump(Tasks),
    /// Take tasks out of the queue; they lie still, and nothing of them is lost
    Drop(WithReason),
    /// Let nothing land on a branch for now
    Freeze(Freeze),
    /// Let everything land on a branch again
    Thaw(Thaw),
}

#[derive(Debug, Args)]
struct Tasks {
    /// The tasks: name, unique prefix, id, branch, `.` (this worktree) or `-` (the last one)
    #[arg(required = true, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    tasks: Vec<String>,
    #[command(flatten)]
    dry: Dry,
}

#[derive(Debug, Args)]
struct WithReason {
    #[command(flatten)]
    tasks: Tasks,
    /// Why; others will ask
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    message: String,
}

#[derive(Debug, Args)]
struct Freeze {
    /// The branch; the project's own otherwise
    #[arg(value_name = "BRANCH")]
    branch: Option<String>,
    /// Why; others will ask
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
}

#[derive(Debug, Args)]
struct Thaw {
    /// The branch; the project's own otherwise
    #[arg(value_name = "BRANCH")]
    branch: Option<String>,
}

impl Queue {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        match self.what.unwrap_or_default() {
            What::List => {
                let queue = session.call(async |client| client.queue().await).await?;
                let out = &session.out;
                out.answer(&queue, |look| render::queue::queue(&queue, look))
            }
            What::Hold(wish) => wish.act(session, TaskAction::Hold).await,
            What::Release(wish) => wish.act(session, &TaskAction::Release).await,
            What::Bump(mut wish) => {
                // Each goes before all others: the one that was named first is the last to do so.
                wish.tasks.reverse();
                wish.act(session, &TaskAction::Bump).await
            }
            What::Drop(wish) => wish.act(session, TaskAction::Drop).await,
            What::Freeze(wish) => {
                let reason = wish.reason()?;
                freeze(session, wish.branch, Some(reason)).await
            }
            What::Thaw(wish) => freeze(session, wish.branch, None).await,
        }
    }
}

impl Freeze {
    /// Whoever wonders why nothing lands must be able to read it.
    fn reason(&self) -> Outcome<String> {
        let given = self.message.as_deref().map(str::trim).unwrap_or_default();
        if !given.is_empty() {
            return Ok(given.to_owned());
        }
        let example = match &self.branch {
            Some(branch) => NextCommand::QueueFreezeBranch {
                branch: Word::from(branch),
            },
            None => NextCommand::QueueFreeze,
        };
        let what = "say why nothing may land: everybody who waits will read it";
        Err(Failure::usage(what).hint(example))
    }
}

impl Tasks {
    async fn act(self, session: &Session, action: &TaskAction) -> Outcome {
        act_on_each(session, &self.tasks, action, self.dry).await
    }
}

impl WithReason {
    async fn act(self, session: &Session, action: impl FnOnce(PauseTask) -> TaskAction) -> Outcome {
        let action = action(PauseTask {
            reason: self.message,
        });
        self.tasks.act(session, &action).await
    }
}

async fn freeze(session: &Session, branch: Option<String>, reason: Option<String>) -> Outcome {
    let wish = FreezeQueue { branch, reason };
    let queue = session
        .call(async |client| client.freeze(&wish).await)
        .await?;
    session
        .out
        .answer(&queue, |look| render::queue::queue(&queue, look))
}
