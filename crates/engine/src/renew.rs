//! Keeping leases alive, and stopping oneself in time when that fails.
//!
//! Safety never rests on this: a write under a lost lease is refused. What this saves is agents that
//! would work for nothing while another machine has taken over.

use std::sync::Arc;

use tokio::time::{Duration, Instant};
use woodward_core::lease::Resource;
use woodward_store::LeaseRef;

use crate::engine::{Database, Inner};
use crate::error::Result;

/// Renews what is held until the engine stops.
pub(crate) async fn run(inner: Arc<Inner>) {
    let timing = inner.options.timing;
    let mut renewed = Instant::now();
    let mut fenced = false;
    loop {
        tokio::time::sleep(Duration::from_millis(timing.renew_every.0)).await;
        match renew(&inner).await {
            Ok(()) => {
                renewed = Instant::now();
                fenced = false;
            }
            Err(error) => {
                tracing::warn!(%error, "leases could not be renewed");
                let late = renewed.elapsed() > Duration::from_millis(timing.self_fence_after.0);
                let shared = matches!(inner.options.database, Database::Postgres(_));
                if late && shared && !fenced {
                    fenced = true;
                    tracing::error!(
                        "no lease was renewed for too long: another machine may take over, so all \
                         agents here are stopped"
                    );
                    inner.drivers.halt_all();
                }
            }
        }
    }
}

pub(crate) async fn renew(inner: &Inner) -> Result<()> {
    inner.store.see_worker(inner.worker).await?;
    let mut leases: Vec<LeaseRef> = inner
        .drivers
        .held()
        .into_iter()
        .map(|(task, epoch)| LeaseRef {
            resource: Resource::Task(task),
            epoch,
        })
        .collect();
    leases.extend(inner.landers.held());
    if leases.is_empty() {
        return Ok(());
    }
    let lost = inner
        .store
        .renew_leases(inner.worker, leases, inner.options.timing.length)
        .await?;
    for lease in lost {
        tracing::warn!(resource = %lease.resource, "a lease is lost");
        match lease.resource {
            Resource::Task(task) => inner.drivers.cancel(task, lease.epoch),
            _ => inner.landers.lost(&lease),
        }
    }
    Ok(())
}
