//! A process that is killed (SIGKILL) in the middle of writing: what it was told is written, is.

use std::io::{BufRead, BufReader};

use anyhow::{Context, ensure};
use woodward_core::{EventSeq, TaskId};
use woodward_store::exercise::World;
use woodward_store::{TaskFilter, fresh_uuid};

use crate::actors::{Actor, Role};
use crate::backends::{Backend, open, runtime};

const ROUNDS: usize = 6;

pub(crate) fn an_acknowledged_write_survives_kill_9(
    backend: Backend,
) -> Result<(), libtest_mimic::Failed> {
    let directory = tempfile::tempdir()?;
    let address = backend.fresh(directory.path())?;
    let runtime = runtime();
    let project = runtime.block_on(async {
        let store = open(&address).await?;
        anyhow::Ok(World::on(store).await.project)
    })?;
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let actor = Actor {
            role: Role::Writer,
            address: address.clone(),
            project,
            worker: woodward_core::WorkerId::new(fresh_uuid()),
        };
        let mut child = actor.start()?;
        let mut output = BufReader::new(child.stdout.take().context("its output is ours")?);
        let mut line = String::new();
        // A different number each time, so that the kill falls elsewhere.
        while acknowledged.len() < (round + 1) * 17 {
            line.clear();
            ensure_line(&mut output, &mut line)?;
            acknowledged.push(line.trim_end().parse::<TaskId>()?);
        }
        child.kill()?;
        child.wait()?;
        // What it had said before it died counts, too; the last line may be torn.
        let rest = std::io::read_to_string(output)?;
        let whole = rest.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines() {
            acknowledged.push(line.parse()?);
        }
    }
    runtime.block_on(check(&address, &acknowledged))?;
    Ok(())
}

fn ensure_line(output: &mut impl BufRead, line: &mut String) -> anyhow::Result<()> {
    ensure!(output.read_line(line)? > 0, "the writer ended early");
    Ok(())
}

async fn check(address: &str, acknowledged: &[TaskId]) -> anyhow::Result<()> {
    let store = open(address).await?;
    for task in acknowledged {
        let found = store.load_task(*task).await?;
        ensure!(found.is_some(), "{task} was acknowledged and is gone");
        let messages = store.load_messages(*task).await?;
        ensure!(messages.len() == 1, "{task} is not whole");
    }
    let tasks = store.load_tasks(TaskFilter::default()).await?.len();
    let events = store.events_after(EventSeq(0), 1_000).await?.events.len();
    ensure!(tasks == events, "{tasks} tasks, {events} creations");
    Ok(())
}

/// The child's part: creates tasks until it is killed.
pub(crate) fn play(actor: Actor) {
    runtime().block_on(async {
        let store = open(&actor.address).await.expect("opens");
        let world = World::on(store).await;
        for n in 0.. {
            let name = format!("task-{}-{n}", std::process::id());
            let task = world.queued(&name).await;
            crate::actors::say(&task.id.to_string());
        }
    });
}
