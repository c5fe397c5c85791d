//! This machine does not fall asleep while agents work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use woodward_notify::awake::{Awake, stay_awake};

use super::settings;
use crate::engine::Inner;

/// A machine that can't is asked again after so long.
const ASK_AGAIN: Duration = Duration::from_secs(600);

/// Holds sleep off while agents work, until the engine stops.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut held: Option<Awake> = None;
    let mut refused: Option<Instant> = None;
    let mut drivers = inner.drivers.watch_count();
    let mut settings = inner.settings.subscribe();
    loop {
        let wanted = inner.drivers.count() > 0 && is_wished(&inner).await;
        if !wanted && held.take().is_some() {
            tracing::info!("this machine may sleep again");
        }
        let ask = refused.is_none_or(|at| at.elapsed() >= ASK_AGAIN);
        if wanted && held.is_none() && ask {
            match stay_awake("agents are at work").await {
                Ok(awake) => {
                    tracing::info!(fully = awake.fully, "this machine stays awake");
                    held = Some(awake);
                    refused = None;
                }
                Err(error) => {
                    tracing::info!(%error, "agents may be interrupted by sleep");
                    refused = Some(Instant::now());
                }
            }
        }
        let ask_again = tokio::time::sleep(ASK_AGAIN);
        tokio::select! {
            _ = drivers.changed() => {}
            _ = settings.changed() => {}
            () = ask_again, if wanted && held.is_none() => {}
        }
    }
}

/// Whether any project wants it.
async fn is_wished(inner: &Inner) -> bool {
    for project in inner.all_projects() {
        if let Ok(config) = project.config().await
            && settings(&config).keep_awake
        {
            return true;
        }
    }
    false
}
