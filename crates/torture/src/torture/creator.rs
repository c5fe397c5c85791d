//! Creates tasks for as long as the storm rages, through the daemon's own API.
//!
//! A daemon that is gone gets the same request again, with the same key: what it had done before it
//! died is done once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fastrand::Rng;
use tokio::task::JoinHandle;
use woodward_api::{Code, CreateTasks, StatusFilter, client::ClientError};
use woodward_core::StateKind;

use crate::script::Script;
use crate::stage::Stage;

const PAUSE: Duration = Duration::from_millis(20);
/// How long a daemon may be unable to create a task.
const PATIENCE: Duration = Duration::from_secs(90);
const AT_ONCE_MAX: usize = 3;

/// Work in the background that ends when told to.
#[derive(Debug)]
pub(super) struct Creator {
    enough: Arc<AtomicBool>,
    work: JoinHandle<Result<Vec<Script>>>,
}

/// Starts to create tasks so that about `open` are under way.
pub(super) fn start(stage: Arc<Stage>, seed: u64, open: usize) -> Creator {
    let enough = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&enough);
    let work = tokio::spawn(async move { create(&stage, seed, open, &told).await });
    Creator { enough, work }
}

impl Creator {
    /// The tasks that exist.
    pub(super) async fn finish(self) -> Result<Vec<Script>> {
        self.enough.store(true, Ordering::Release);
        self.work.await?
    }
}

async fn create(stage: &Stage, seed: u64, open: usize, enough: &AtomicBool) -> Result<Vec<Script>> {
    let mut rng = Rng::with_seed(seed);
    let mut made: Vec<Script> = Vec::new();
    while !enough.load(Ordering::Acquire) {
        tokio::time::sleep(PAUSE).await;
        let Ok(status) = stage.client().status(StatusFilter::OPEN).await else {
            continue;
        };
        let working = |kind| !matches!(kind, StateKind::Failed | StateKind::Paused);
        let under_way = status.tasks.iter().filter(|t| working(t.state)).count();
        if under_way >= open {
            continue;
        }
        let count = rng.usize(1..=AT_ONCE_MAX);
        let fresh: Vec<Script> = (0..count)
            .map(|n| Script::draw(&mut rng, made.len() + n))
            .collect();
        insist(stage, &fresh).await?;
        made.extend(fresh);
    }
    Ok(made)
}

async fn insist(stage: &Stage, scripts: &[Script]) -> Result<()> {
    let names: Vec<&str> = scripts.iter().map(|s| s.name.as_str()).collect();
    let request = CreateTasks {
        tasks: scripts.iter().map(Script::draft).collect(),
        key: Some(names.join("+")),
    };
    let begun = Instant::now();
    loop {
        match stage.client().create(&request).await {
            Ok(created) if created.len() == scripts.len() => return Ok(()),
            Ok(created) => bail!("{} tasks of {} were made", created.len(), scripts.len()),
            Err(error) if may_pass(&error) && begun.elapsed() < PATIENCE => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => bail!("{} could not be created: {error}", names.join(", ")),
        }
    }
}

/// A dead daemon, a dead database or a killed git explain it.
pub(super) fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Problem(problem) => {
            matches!(problem.code, Code::Unavailable | Code::Internal)
        }
        other => other.is_daemon_gone(),
    }
}
