//! `woodward doctor`: what is wrong, and what to do about it.

use clap::Args;
use woodward_api::{Check, CheckState};
use woodward_core::hint::NextCommand;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::render::doctor::doctor;
use crate::session::Session;

/// Look for trouble: git, agents, disk, daemon, prices, locks, stale worktrees
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
        let all = diagnosis.checks.iter();
        let all_bad: Vec<_> = all.filter(|it| it.state == CheckState::Bad).collect();
        let bad = !all_bad.is_empty();
        // What says itself how it is put right is not put right by us.
        let can_fix = |check: &&Check| match &check.fix {
            Some(fix) => fix.contains(&NextCommand::DoctorFix.to_string()),
            None => true,
        };
        if !self.fix && all_bad.iter().any(can_fix) {
            session.out.hints(&[NextCommand::DoctorFix]);
        }
        if bad {
            Err(Failure::told(Exit::Failed))
        } else {
            Ok(())
        }
    }
}
