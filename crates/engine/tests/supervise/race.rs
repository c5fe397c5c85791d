//! Launches and stops that meet.

use std::time::Duration;

use anyhow::ensure;
use woodward_engine::supervise::{self, Launched, Seen};

use crate::stage::{Stage, in_time};

pub(crate) async fn launching_twice_starts_one(stage: Stage) -> anyhow::Result<()> {
    let launch = stage.script("echo x >> runs");
    ensure!(stage.launch(&launch).await? == Launched::Started);
    ensure!(stage.launch(&launch).await? == Launched::Already);
    stage.exit().await?;
    ensure!(stage.launch(&launch).await? == Launched::Already);
    ensure!(std::fs::read_to_string(stage.cwd().join("runs"))? == "x\n");
    Ok(())
}

pub(crate) async fn many_launches_at_once_start_one(stage: Stage) -> anyhow::Result<()> {
    let program = stage.program();
    for round in 0..10 {
        let dir = stage.cwd().join(format!("run-{round}"));
        let launch = stage.script(&format!("echo x >> runs-{round}"));
        let launches = (0..8).map(|_| supervise::launch(&dir, &launch, &program));
        let launches = futures_util::future::join_all(launches).await;
        let launched: Vec<_> = launches.into_iter().collect::<Result<_, _>>()?;
        let started = launched.iter().filter(|one| **one == Launched::Started);
        ensure!(started.count() == 1, "round {round}: {launched:?}");
        in_time(supervise::ended(&dir)).await??;
        let runs = std::fs::read_to_string(stage.cwd().join(format!("runs-{round}")))?;
        ensure!(runs == "x\n", "round {round}: {runs}");
    }
    ensure!(stage.marked().is_empty());
    Ok(())
}

pub(crate) async fn a_stop_that_races_a_launch_leaves_none(stage: Stage) -> anyhow::Result<()> {
    let (mut before, mut after) = (0, 0);
    // As many more as this machine needs to launch before it is told to stop.
    for round in 0..400_u64 {
        if round >= 50 && after > 0 {
            break;
        }
        let dir = stage.cwd().join(format!("run-{round}"));
        let launch = stage.script("sleep 1000");
        let program = stage.program();
        let (launched, stopped) = tokio::join!(supervise::launch(&dir, &launch, &program), async {
            tokio::time::sleep(Duration::from_micros(round * 700)).await;
            in_time(supervise::stop(&dir, Duration::from_secs(30))).await
        });
        match (launched?, stopped??) {
            (Launched::Forbidden, Seen::Forbidden) => before += 1,
            (Launched::Started, Seen::Ended(_)) => after += 1,
            other => anyhow::bail!("round {round}: {other:?}"),
        }
        ensure!(stage.marked().is_empty(), "round {round}");
    }
    // Where nothing waits for the disk the launch is always quicker.
    let both = before > 0 || stage.groups == crate::stage::Groups::Brief;
    ensure!(both && after > 0, "{before} before, {after} after");
    Ok(())
}
