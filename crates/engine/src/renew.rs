//! Keeping leases alive, taking away those that ran out, and stopping oneself in time when that fails.
//!
//! Safety never rests on this: a write under a lost lease is refused. What this saves is agents that
//! would work for nothing while another machine has taken over.

use std::sync::Arc;

use tokio::time::{Duration, Instant};
use woodward_core::Millis;
use woodward_core::lease::Resource;
use woodward_store::{KeptAlive, LeaseRef};

use crate::engine::{Database, Inner};
use crate::error::Result;

/// Renews what is held until the engine stops. Where nobody else can hold anything, it sleeps as long as
/// nothing is held.
pub(crate) async fn run(inner: Arc<Inner>) {
    let timing = inner.options.timing;
    let shared = matches!(inner.options.database, Database::Postgres(_));
    let mut renewed = Instant::now();
    let mut fenced = false;
    loop {
        match renew(&inner).await {
            Ok(any_held) => {
                renewed = Instant::now();
                fenced = false;
                if !any_held && !shared {
                    inner.lease_taken.notified().await;
                    renewed = Instant::now();
                }
            }
            Err(error) => {
                tracing::warn!(%error, "leases could not be renewed");
                let late = renewed.elapsed() > Duration::from_millis(timing.self_fence_after.0);
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
        tokio::time::sleep(Duration::from_millis(timing.renew_every.0)).await;
    }
}

/// Renews what is held here, and then takes away what has run out: a machine that slept must not lose what
/// it still holds. Answers whether anybody holds anything.
async fn renew(inner: &Inner) -> Result<bool> {
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
    let grace = match inner.options.database {
        // Nobody else can hold anything: what ran out is what a crash left.
        Database::Sqlite => Millis(0),
        Database::Postgres(_) => inner.options.timing.grace,
    };
    let KeptAlive {
        lost,
        any_held,
        any_expired,
    } = inner
        .store
        .keep_alive(inner.worker, leases, inner.options.timing.length, grace)
        .await?;
    for lease in lost {
        tracing::warn!(resource = %lease.resource, "a lease is lost");
        match lease.resource {
            Resource::Task(task) => inner.drivers.cancel(task, lease.epoch),
            _ => inner.landers.lost(&lease),
        }
    }
    if any_expired {
        let policy = woodward_core::Policy::default();
        for lease in inner.store.expire_leases(grace, 100, policy).await? {
            tracing::warn!(resource = %lease.resource, "a lease ran out and was taken away");
        }
    }
    Ok(any_held)
}
