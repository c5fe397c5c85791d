//! A claim-history checker over threads and processes.
//!
//! Claimers claim and complete the same few tasks over and over; some let their lease run out, and a
//! reaper in each process takes those away. Each writes down what it saw and when. Afterwards: each
//! (task, epoch) was claimed once; claims that did not overlap in time have growing epochs; a
//! completion was accepted exactly if it carried the current claim.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use woodward_core::schedule::Limits;
use woodward_core::{
    Actor as By, ClaimId, Epoch, Event, EventId, Fact, Millis, Policy, Roll, Task, TaskId,
    Timestamp,
};
use woodward_store::exercise::{World, holder};
use woodward_store::{ClaimRequest, Store, StoreError, fresh_uuid};

use crate::actors::{Actor, Role, say};
use crate::backends::{Backend, open, runtime};

const TASKS: usize = 12;
const PROCESSES: usize = 2;
const THREADS: usize = 4;
const CLAIMS_EACH: usize = 150;

/// Losing a claim is part of this test, so it may happen any number of times.
fn policy() -> Policy {
    Policy {
        lease_losses_max: u32::MAX,
        ..Policy::default()
    }
}

/// One claim as its claimer saw it.
#[derive(Clone, Debug)]
struct Claimed {
    task: TaskId,
    epoch: Epoch,
    asked_at: u128,
    heard_at: u128,
    completed: bool,
}

pub(crate) fn claims_of_two_processes_are_linear(
    backend: Backend,
) -> Result<(), libtest_mimic::Failed> {
    let directory = tempfile::tempdir()?;
    let address = backend.fresh(directory.path())?;
    let runtime = runtime();
    let store = runtime.block_on(open(&address))?;
    let world = runtime.block_on(async {
        let world = World::on(Arc::clone(&store)).await;
        for n in 0..TASKS {
            world.queued(&format!("task-{n}")).await;
        }
        world
    });
    let children = (0..PROCESSES)
        .map(|_| {
            let actor = Actor {
                role: Role::Claimer,
                address: address.clone(),
                project: world.project,
                worker: woodward_core::WorkerId::new(fresh_uuid()),
            };
            actor.start()
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut claims = Vec::new();
    for mut child in children {
        let output = BufReader::new(child.stdout.take().context("its output is ours")?);
        for line in output.lines() {
            claims.push(parse(&line?)?);
        }
        let status = child.wait()?;
        if !status.success() {
            return Err(format!("a claimer failed: {status}").into());
        }
    }
    check(&claims)?;
    runtime.block_on(check_against_log(store.as_ref(), &claims))?;
    Ok(())
}

fn parse(line: &str) -> anyhow::Result<Claimed> {
    let parts: Vec<&str> = line.split(' ').collect();
    ensure!(parts.len() == 5, "not a claim: {line}");
    Ok(Claimed {
        task: parts[0].parse()?,
        epoch: Epoch(parts[1].parse()?),
        asked_at: parts[2].parse()?,
        heard_at: parts[3].parse()?,
        completed: parts[4] == "completed",
    })
}

fn check(claims: &[Claimed]) -> anyhow::Result<()> {
    ensure!(
        claims.len() == PROCESSES * THREADS * CLAIMS_EACH,
        "{} claims were written down",
        claims.len()
    );
    let lost = claims.iter().filter(|claim| !claim.completed).count();
    ensure!(
        lost > 0,
        "no claim was ever lost: the test shows too little"
    );
    let mut by_task: BTreeMap<TaskId, Vec<&Claimed>> = BTreeMap::new();
    for claim in claims {
        by_task.entry(claim.task).or_default().push(claim);
    }
    for (task, mut claims) in by_task {
        let epochs: BTreeSet<Epoch> = claims.iter().map(|claim| claim.epoch).collect();
        ensure!(
            epochs.len() == claims.len(),
            "an epoch of {task} was claimed twice"
        );
        claims.sort_by_key(|claim| claim.epoch);
        for pair in claims.windows(2) {
            ensure!(
                pair[1].heard_at >= pair[0].asked_at,
                "{task}: epoch {} was granted before epoch {} was asked for",
                pair[1].epoch,
                pair[0].epoch
            );
        }
    }
    Ok(())
}

/// What the claimers saw is what the log says.
async fn check_against_log(store: &dyn Store, claims: &[Claimed]) -> anyhow::Result<()> {
    let tasks: BTreeSet<TaskId> = claims.iter().map(|claim| claim.task).collect();
    for task in tasks {
        let history = store.load_history(task).await?;
        let mut claimed = BTreeSet::new();
        let mut completed = BTreeSet::new();
        let mut epoch = Epoch(0);
        for (event, _) in &history {
            match (&event.fact, &event.actor) {
                (Fact::Claimed { .. }, _) => {
                    epoch = epoch.next();
                    claimed.insert(epoch);
                }
                (Fact::HandedBack, By::Claim { epoch: carried, .. }) => {
                    ensure!(*carried == epoch, "{task}: a stale completion was accepted");
                    completed.insert(*carried);
                    epoch = epoch.next();
                }
                (Fact::LeaseExpired { .. }, _) => epoch = epoch.next(),
                _ => {}
            }
        }
        let seen = |completed_only: bool| -> BTreeSet<Epoch> {
            claims
                .iter()
                .filter(|claim| claim.task == task && (claim.completed || !completed_only))
                .map(|claim| claim.epoch)
                .collect()
        };
        ensure!(seen(false) == claimed, "{task}: claims differ from the log");
        ensure!(seen(true) == completed, "{task}: completions differ");
    }
    Ok(())
}

/// The child's part.
pub(crate) fn play(actor: Actor) {
    runtime().block_on(async {
        let store = open(&actor.address).await.expect("opens");
        let reaper = tokio::spawn(reap(Arc::clone(&store)));
        let claimers: Vec<_> = (0..THREADS)
            .map(|thread| {
                tokio::spawn(claim_and_complete(
                    Arc::clone(&store),
                    actor.clone(),
                    thread,
                ))
            })
            .collect();
        for claimer in claimers {
            claimer.await.expect("a claimer ends well");
        }
        reaper.abort();
    });
}

async fn reap(store: Arc<dyn Store>) {
    let mut wakeups = store.wakeups().polling_every(Duration::from_millis(3));
    loop {
        let expired = store.expire_leases(Millis(0), 50, policy()).await;
        expired.expect("expires");
        wakeups.next().await;
    }
}

async fn claim_and_complete(store: Arc<dyn Store>, actor: Actor, thread: usize) {
    let mut made = 0;
    while made < CLAIMS_EACH {
        // Every fifth lease has run out as soon as it is granted.
        let lease = if (made + thread).is_multiple_of(5) {
            0
        } else {
            60_000
        };
        let request = ClaimRequest {
            claim: ClaimId::new(fresh_uuid()),
            worker: actor.worker,
            project: actor.project,
            wanted: 1,
            lease: Millis(lease),
            limits: Limits::default(),
            policy: policy(),
            except: Vec::new(),
            among: None,
        };
        let asked_at = now();
        let claims = store.claim(request).await.expect("claims");
        let heard_at = now();
        let Some(task) = claims.tasks.into_iter().next() else {
            tokio::task::yield_now().await;
            continue;
        };
        if lease == 0 {
            // Give the reapers a chance to be first.
            tokio::task::yield_now().await;
        }
        let fate = complete(store.as_ref(), &task).await;
        say(&format!(
            "{} {} {asked_at} {heard_at} {fate}",
            task.id, task.epoch
        ));
        made += 1;
    }
}

async fn complete(store: &dyn Store, task: &Task) -> &'static str {
    let event = Event {
        id: EventId::new(fresh_uuid()),
        at: Timestamp(1),
        actor: holder(task),
        roll: Roll(0),
        fact: Fact::HandedBack,
    };
    match store.commit(task, &event, &policy()).await {
        Ok(_) => "completed",
        Err(StoreError::Stale { .. }) => "lost",
        Err(other) => panic!("{other}"),
    }
}

fn now() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_nanos()
}
