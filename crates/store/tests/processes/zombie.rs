//! A worker that is stopped (SIGSTOP) past its lease, its task claimed by another, then continued:
//! all its writes change nothing, and it is told.

use std::io::{BufRead, BufReader, Write};
use std::process::Child;
use std::sync::Arc;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use woodward_core::budget::Spend;
use woodward_core::gate::Verdict;
use woodward_core::lease::Resource;
use woodward_core::schedule::Limits;
use woodward_core::state::Purpose;
use woodward_core::{
    ClaimId, Event, EventId, EventSeq, Fact, Millis, Policy, Roll, RunId, Task, Timestamp,
};
use woodward_store::exercise::{World, holder, prepared};
use woodward_store::{
    ClaimRequest, Delivery, GateResult, LeaseRef, Run, RunState, Store, StoreError, TaskClaim,
    fresh_uuid,
};

use crate::actors::{Actor, Role, say};
use crate::backends::{Backend, open, runtime};

const ROUNDS: usize = 10;
const WRITES: usize = 8;

pub(crate) fn a_zombie_writes_nothing(backend: Backend) -> Result<(), libtest_mimic::Failed> {
    let directory = tempfile::tempdir()?;
    let address = backend.fresh(directory.path())?;
    let runtime = runtime();
    let store = runtime.block_on(open(&address))?;
    let world = runtime.block_on(World::on(Arc::clone(&store)));
    let actor = Actor {
        role: Role::Zombie,
        address,
        project: world.project,
        worker: woodward_core::WorkerId::new(fresh_uuid()),
    };
    let mut zombie = Zombie::start(&actor)?;
    for round in 0..ROUNDS {
        runtime.block_on(one_round(&world, &mut zombie, round))?;
    }
    zombie.end()?;
    Ok(())
}

async fn one_round(world: &World, zombie: &mut Zombie, round: usize) -> anyhow::Result<()> {
    let task = world.queued(&format!("task-{round}")).await;
    let claimed = zombie.ask("claim")?;
    ensure!(claimed == task.id.to_string(), "it claimed {claimed}");
    zombie.stop()?;

    // Its lease runs out by the database's clock, whatever the zombie thinks.
    loop {
        let expired = world
            .store
            .expire_leases(Millis(0), 10, Policy::default())
            .await?;
        if !expired.is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let successor = world.claim_one().await;
    ensure!(successor.id == task.id);
    let log = world.store.events_after(EventSeq(0), 1_000).await?.events;

    zombie.tell("write")?;
    zombie.go_on()?;
    for write in 0..WRITES {
        let line = zombie.hear()?;
        ensure!(line.ends_with(": stale"), "write {write}: {line}");
    }

    ensure!(world.reload(&task).await == successor, "the task changed");
    let store = &world.store;
    ensure!(store.events_after(EventSeq(0), 1_000).await?.events == log);
    ensure!(store.load_runs(task.id).await?.is_empty());
    ensure!(store.load_gate_results(task.id).await?.is_empty());
    ensure!(store.load_messages(task.id).await?[0].delivery == Delivery::Stored);
    let leases = store.load_leases(None).await?;
    ensure!(leases.iter().all(|lease| lease.holder == world.worker));
    Ok(())
}

/// The child, from outside.
struct Zombie {
    child: Child,
    heard: BufReader<std::process::ChildStdout>,
}

impl Zombie {
    fn start(actor: &Actor) -> anyhow::Result<Self> {
        let mut child = actor.start()?;
        let heard = BufReader::new(child.stdout.take().context("its output is ours")?);
        Ok(Self { child, heard })
    }

    fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        let input = self.child.stdin.as_mut().context("its input is ours")?;
        writeln!(input, "{line}")?;
        Ok(input.flush()?)
    }

    fn hear(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.heard.read_line(&mut line)? > 0, "it ended early");
        Ok(line.trim_end().to_owned())
    }

    fn ask(&mut self, line: &str) -> anyhow::Result<String> {
        self.tell(line)?;
        self.hear()
    }

    fn pid(&self) -> anyhow::Result<Pid> {
        let raw = i32::try_from(self.child.id())?;
        Pid::from_raw(raw).context("a process id is not zero")
    }

    /// Stops it and waits until the kernel says that it has stopped.
    fn stop(&self) -> anyhow::Result<()> {
        kill_process(self.pid()?, Signal::STOP)?;
        let stat = format!("/proc/{}/stat", self.child.id());
        loop {
            let text = std::fs::read_to_string(&stat)?;
            let state = text
                .rsplit(") ")
                .next()
                .and_then(|rest| rest.chars().next());
            if state == Some('T') {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    fn go_on(&self) -> anyhow::Result<()> {
        Ok(kill_process(self.pid()?, Signal::CONT)?)
    }

    fn end(mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

/// The child's part: claims when told, and when told to write tries every kind of write it knows.
pub(crate) fn play(actor: Actor) {
    let runtime = runtime();
    let store = runtime.block_on(open(&actor.address)).expect("opens");
    let mut held: Option<Task> = None;
    for line in std::io::stdin().lines() {
        match line.expect("reads").as_str() {
            "claim" => {
                let task = runtime.block_on(claim(store.as_ref(), &actor));
                say(&task.id.to_string());
                held = Some(task);
            }
            _ => {
                let task = held.take().expect("claimed before");
                runtime.block_on(write_everything(store.as_ref(), &actor, &task));
            }
        }
    }
}

async fn claim(store: &dyn Store, actor: &Actor) -> Task {
    let request = ClaimRequest {
        claim: ClaimId::new(fresh_uuid()),
        worker: actor.worker,
        project: actor.project,
        wanted: 1,
        lease: Millis(50),
        limits: Limits::default(),
        policy: Policy::default(),
        except: Vec::new(),
        among: None,
    };
    let claims = store.claim(request).await.expect("claims");
    claims.tasks.into_iter().next().expect("a task is in line")
}

async fn write_everything(store: &dyn Store, actor: &Actor, task: &Task) {
    let claim = TaskClaim {
        task: task.id,
        epoch: task.epoch,
    };
    let event = |fact| Event {
        id: EventId::new(fresh_uuid()),
        at: Timestamp(1),
        actor: holder(task),
        roll: Roll(0),
        fact,
    };
    let policy = Policy::default();
    let commit = store.commit(task, &event(prepared(task)), &policy).await;
    verdict("commit", commit.map(drop));
    let advance = store
        .advance(task.id, event(prepared(task)), policy.clone())
        .await;
    verdict("advance", advance.map(drop));
    let back = store.commit(task, &event(Fact::HandedBack), &policy).await;
    verdict("hand back", back.map(drop));
    let result = GateResult {
        commit: "a".repeat(40).parse().expect("40 hex digits"),
        gate: "test".parse().expect("a valid name"),
        verdict: Verdict::Pass,
        command: "true".into(),
        exit_code: Some(0),
        duration: Millis(1),
        at: Timestamp(1),
        detail: woodward_store::GateDetail::default(),
    };
    verdict(
        "gate result",
        store.save_gate_results(claim, vec![result]).await,
    );
    let run = Run {
        id: RunId::new(fresh_uuid()),
        task: task.id,
        epoch: task.epoch,
        worker: actor.worker,
        agent: "mine".parse().expect("a valid name"),
        purpose: Purpose::First,
        state: RunState::Running,
        started_at: Timestamp(1),
        finished_at: None,
        session: None,
        spend: Spend::NONE,
        note: None,
    };
    verdict("run", store.save_run(run).await);
    let prompt = store.load_messages(task.id).await.expect("loads")[0].id;
    let delivered = store
        .record_delivery(claim, prompt, Delivery::Accepted)
        .await;
    verdict("delivery", delivered);
    let lease = LeaseRef {
        resource: Resource::Task(task.id),
        epoch: task.epoch,
    };
    let lost = store
        .renew_leases(actor.worker, vec![lease.clone()], Millis(60_000))
        .await
        .expect("answers");
    say(&format!(
        "renewal: {}",
        if lost == std::slice::from_ref(&lease) {
            "stale"
        } else {
            "renewed"
        }
    ));
    verdict("release", store.release_lease(actor.worker, lease).await);
}

fn verdict(write: &str, outcome: Result<(), StoreError>) {
    say(&match outcome {
        Err(StoreError::Stale {
            carried, current, ..
        }) if carried < current => {
            format!("{write}: stale")
        }
        other => format!("{write}: {other:?}"),
    });
}
