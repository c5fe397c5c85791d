//! `woodward doctor`: what is wrong, and what to do about it.

use clap::Args;
use woodward_api::CheckState;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::render::doctor::doctor;
use crate::session::Session;

/// Look for trouble: git, agents, disk, daemon, stale worktrees, orphan processes
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward doctor\n  woodward doctor --fix            put right what is safe to put right"
)]
pub(crate) struct Doctor {
    /// Put right what is safe to put right
    #[arg(long)]
    fix: bool,
}

impl Doctor {
    /// Does it. Fails when something is wrong.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let diagnosis = session
            .call(async |client| client.doctor(self.fix).await)
            .await?;
        session
            .out
            .answer(&diagnosis, |look| doctor(&diagnosis, look))?;
        let bad = diagnosis
            .checks
            .iter()
            .any(|check| check.state == CheckState::Bad);
        if bad && !self.fix {
            session.out.hints(&["woodward doctor --fix".to_owned()]);
        }
        if bad {
            Err(Failure::told(Exit::Failed))
        } else {
            Ok(())
        }
    }
}
