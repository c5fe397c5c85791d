//! Clients of the store: each claims one task, hands it back, and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use woodward_core::schedule::Limits;
use woodward_core::{Actor, ClaimId, Event, EventId, Fact, Millis, Policy, Roll, Task, Timestamp};
use woodward_store::{ClaimRequest, Store, fresh_uuid};

use crate::seed::World;

/// What one slice measured.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    pub(crate) pairs: u64,
    pub(crate) elapsed: Duration,
    pub(crate) claims: Vec<Duration>,
}

pub(crate) async fn run<S: Store + Clone>(
    store: S,
    world: &World,
    clients: usize,
    slice: Duration,
) -> anyhow::Result<Slice> {
    let stop = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let running: Vec<_> = (0..clients)
        .map(|_| tokio::spawn(client(store.clone(), *world, Arc::clone(&stop))))
        .collect();
    tokio::time::sleep(slice).await;
    stop.store(true, Ordering::Relaxed);
    let mut total = Slice::default();
    for client in running {
        let claims = client.await??;
        total.pairs += claims.len() as u64;
        total.claims.extend(claims);
    }
    total.elapsed = started.elapsed();
    Ok(total)
}

async fn client<S: Store>(
    store: S,
    world: World,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<Vec<Duration>> {
    let policy = Policy::default();
    let mut claims = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let claimed = store
            .claim(ClaimRequest {
                claim: ClaimId::new(fresh_uuid()),
                worker: world.worker,
                project: world.project,
                wanted: 1,
                lease: Millis::from_mins(1),
                limits: Limits::default(),
                policy: policy.clone(),
                except: Vec::new(),
                among: None,
            })
            .await?;
        let waited = asked.elapsed();
        let Some(task) = claimed.tasks.first() else {
            continue;
        };
        store.commit(task, &handed_back(task), &policy).await?;
        claims.push(waited);
    }
    Ok(claims)
}

fn handed_back(task: &Task) -> Event {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis());
    Event {
        id: EventId::new(fresh_uuid()),
        at: Timestamp(i64::try_from(now).unwrap_or(i64::MAX)),
        actor: Actor::Claim {
            worker: task.holder.expect("the task is claimed"),
            epoch: task.epoch,
        },
        roll: Roll(0),
        fact: Fact::HandedBack,
    }
}
