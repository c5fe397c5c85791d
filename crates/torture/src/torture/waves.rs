//! Lets entries pile up before a branch and then lets them all go at once, again and again: only a
//! queue that is full looks at several together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fastrand::Rng;
use tokio::task::JoinHandle;
use woodward_api::FreezeQueue;

use super::creator::may_pass;
use crate::script::BRANCHES;
use crate::stage::Stage;

const PAUSE: Duration = Duration::from_millis(20);
/// How long a branch is frozen, and how long it may then land, in milliseconds, at most.
const FROZEN_MAX_MS: u64 = 4_000;
const THAWED_MAX_MS: u64 = 3_000;
/// How long a daemon may be unable to do as it is told.
const PATIENCE: Duration = Duration::from_secs(90);

/// Work in the background that ends when told to.
#[derive(Debug)]
pub(super) struct Waves {
    enough: Arc<AtomicBool>,
    work: Vec<JoinHandle<Result<u32>>>,
}

/// Starts a tide before every branch.
pub(super) fn start(stage: &Arc<Stage>, seed: u64) -> Waves {
    let enough = Arc::new(AtomicBool::new(false));
    let tide = |(number, branch): (u64, &&'static str)| {
        let (stage, told, branch) = (Arc::clone(stage), Arc::clone(&enough), *branch);
        let rng = Rng::with_seed(seed ^ number);
        tokio::spawn(async move { rise_and_fall(&stage, branch, rng, &told).await })
    };
    let work = (1..).zip(&BRANCHES).map(tide).collect();
    Waves { enough, work }
}

impl Waves {
    /// Lets everything go; how often something had piled up.
    pub(super) async fn finish(self) -> Result<u32> {
        self.enough.store(true, Ordering::Release);
        let mut waves = 0;
        for tide in self.work {
            waves += tide.await??;
        }
        Ok(waves)
    }
}

async fn rise_and_fall(
    stage: &Stage,
    branch: &str,
    mut rng: Rng,
    enough: &AtomicBool,
) -> Result<u32> {
    let mut waves = 0;
    while !enough.load(Ordering::Acquire) {
        insist(stage, branch, Some("a wave rises")).await?;
        tokio::time::sleep(Duration::from_millis(rng.u64(0..=FROZEN_MAX_MS))).await;
        insist(stage, branch, None).await?;
        waves += 1;
        tokio::time::sleep(Duration::from_millis(rng.u64(0..=THAWED_MAX_MS))).await;
    }
    Ok(waves)
}

async fn insist(stage: &Stage, branch: &str, reason: Option<&str>) -> Result<()> {
    let request = FreezeQueue {
        branch: Some(branch.to_owned()),
        reason: reason.map(str::to_owned),
    };
    let begun = Instant::now();
    loop {
        match stage.client().freeze(&request).await {
            Ok(_) => return Ok(()),
            Err(error) if may_pass(&error) && begun.elapsed() < PATIENCE => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => bail!("{branch} could not be frozen or thawed: {error}"),
        }
    }
}
