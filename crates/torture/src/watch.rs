//! Waiting for tasks, woken by the daemon, for as long as anything goes on.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use woodward_api::{StatusFilter, StatusView};
use woodward_core::StateKind;

use crate::daemon::Daemon;
use crate::stage::Stage;

/// How long nothing at all may change.
const STUCK: Duration = Duration::from_secs(300);

/// Whether nothing more happens to a task.
pub(crate) const fn is_over(state: StateKind) -> bool {
    matches!(state, StateKind::Landed | StateKind::Failed)
}

/// Where a task is.
pub(crate) fn state_of(status: &StatusView, task: &str) -> Option<StateKind> {
    let found = status.tasks.iter().find(|it| it.name.as_str() == task);
    found.map(|it| it.state)
}

/// Waits until all tasks are in such a state.
pub(crate) async fn until(
    stage: &Stage,
    daemon: &mut Daemon,
    wanted: impl Fn(StateKind) -> bool,
) -> Result<StatusView> {
    let all = |status: &StatusView| status.tasks.iter().all(|task| wanted(task.state));
    until_all(stage, daemon, all).await
}

/// Waits, woken by the daemon, for as long as anything goes on.
pub(crate) async fn until_all(
    stage: &Stage,
    daemon: &mut Daemon,
    wanted: impl Fn(&StatusView) -> bool,
) -> Result<StatusView> {
    let client = stage.client();
    let mut seq = None;
    let mut changed = Instant::now();
    loop {
        daemon.alive(stage)?;
        let status = client
            .status(StatusFilter::ALL)
            .await
            .context("the daemon's status")?;
        if wanted(&status) {
            return Ok(status);
        }
        if seq.replace(status.seq) != Some(status.seq) {
            changed = Instant::now();
        }
        if changed.elapsed() > STUCK {
            let open = status.tasks.iter().filter(|task| !is_over(task.state));
            let open: Vec<String> = open.map(|t| format!("{} {}", t.name, t.state)).collect();
            bail!(
                "nothing has happened for {} s: {}",
                STUCK.as_secs(),
                open.join(", ")
            );
        }
        client.changes(status.seq, Duration::from_secs(2)).await?;
    }
}
