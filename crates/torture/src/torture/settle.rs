//! After the storm: waiting until everything has come to rest.
//!
//! Waits are bounded by progress, not by the clock alone: what goes on gets its time.

use std::time::{Duration, Instant};

use anyhow::Result;
use woodward_api::StatusFilter;
use woodward_core::StateKind;

use super::storm::Storm;
use crate::judge::{self, Ended};
use crate::report::narrate;
use crate::script::Script;
use crate::stage::Stage;
use crate::victims::Marks;

const PAUSE: Duration = Duration::from_millis(50);
/// How long nothing at all may change before tasks count as stuck.
const STUCK: Duration = Duration::from_secs(60);
/// How long worktrees of landed tasks may take to go, since the last one went. What failed because its
/// git was killed is tried again after up to a minute.
const CLEARED_MAX: Duration = Duration::from_secs(90);

/// Waits until no task is under way, or nothing has changed for long.
pub(super) async fn until_quiet(storm: &mut Storm<'_>, scripts: &[Script]) -> Result<()> {
    let mut seq = None;
    let mut changed = Instant::now();
    narrate(&format!("calm; waiting for {} tasks", scripts.len()));
    loop {
        storm.daemon_lives()?;
        let status = storm.stage().client().status(StatusFilter::OPEN).await?;
        let open: Vec<_> = status
            .tasks
            .iter()
            .filter(|task| task.state != StateKind::Failed)
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        if seq.replace(status.seq) != Some(status.seq) {
            changed = Instant::now();
        }
        if changed.elapsed() > STUCK {
            for task in open {
                narrate(&format!(
                    "{} is stuck: {} {}",
                    task.name,
                    task.state,
                    task.held.as_deref().unwrap_or_default()
                ));
            }
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until landed tasks have left nothing, and says what they have left if they don't.
pub(super) async fn until_cleared(stage: &Stage, tasks: &[Ended]) -> Result<Vec<String>> {
    let (mut fewest, mut changed) = (usize::MAX, Instant::now());
    loop {
        let left = judge::leftovers(stage, tasks)?;
        if left.len() < fewest {
            (fewest, changed) = (left.len(), Instant::now());
        }
        if left.is_empty() || changed.elapsed() > CLEARED_MAX {
            return Ok(left);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until no process of the stage is left, and says which are after `patience`.
pub(super) async fn until_alone(marks: &Marks, patience: Duration) -> Vec<String> {
    let deadline = Instant::now() + patience;
    loop {
        let left = marks.find();
        if left.is_empty() || Instant::now() > deadline {
            let told = Marks::describe(&left);
            for victim in left {
                marks.kill(victim);
            }
            return told;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
