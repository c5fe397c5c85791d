//! Launches and stops that meet.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::ensure;
use woodward_engine::supervise::{self, Launched, Processes, Program, Seen};

use crate::stage::{Stage, in_time, until};

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

/// How many moments of a launch a stop is tried at.
const MOMENTS: u32 = 50;

pub(crate) async fn a_stop_that_races_a_launch_leaves_none(stage: Stage) -> anyhow::Result<()> {
    // The stop comes first: the supervisor is there, and has not taken the lock yet.
    let held = HeldLaunch::new(&stage, "before");
    let (launched, stopped) = tokio::join!(held.launch(), async {
        held.arrived().await?;
        let stopped = held.stop().await;
        held.let_go()?;
        stopped
    });
    let outcome = (launched?, stopped?);
    let expected = (Launched::Forbidden, Seen::Forbidden);
    ensure!(outcome == expected, "stopped before: {outcome:?}");
    ensure!(stage.marked().is_empty());

    // The launch comes first: the supervisor is known before the stop begins.
    let held = HeldLaunch::new(&stage, "after");
    held.let_go()?;
    let begun = Instant::now();
    let (launched, stopped) = tokio::join!(held.launch(), async {
        held.runs().await?;
        held.stop().await
    });
    let outcome = (launched?, stopped?);
    let expected = matches!(outcome, (Launched::Started, Seen::Ended(_)));
    ensure!(expected, "stopped after: {outcome:?}");
    ensure!(stage.marked().is_empty());

    // Any moment from before the launch to after it: whichever is first, both say the same.
    let whole = begun.elapsed();
    for moment in 0..MOMENTS {
        let held = HeldLaunch::new(&stage, &moment.to_string());
        held.let_go()?;
        let (launched, stopped) = tokio::join!(held.launch(), async {
            tokio::time::sleep(whole * moment / MOMENTS).await;
            held.stop().await
        });
        match (launched?, stopped?) {
            (Launched::Forbidden, Seen::Forbidden) | (Launched::Started, Seen::Ended(_)) => {}
            other => anyhow::bail!("moment {moment} of {MOMENTS}: {other:?}"),
        }
        ensure!(stage.marked().is_empty(), "moment {moment} of {MOMENTS}");
    }
    Ok(())
}

/// A launch whose supervisor waits, before it does anything, until the test lets it go.
struct HeldLaunch<'a> {
    stage: &'a Stage,
    dir: PathBuf,
    arrived: PathBuf,
    go: PathBuf,
}

impl<'a> HeldLaunch<'a> {
    fn new(stage: &'a Stage, name: &str) -> Self {
        let file = |what: &str| stage.cwd().join(format!("{what}-{name}"));
        Self {
            stage,
            dir: file("run"),
            arrived: file("arrived"),
            go: file("go"),
        }
    }

    async fn launch(&self) -> anyhow::Result<Launched> {
        let supervisor = self.stage.program();
        // Its standard input is the supervisor's: the script leaves it alone.
        let wait =
            "touch \"$1\"; while [ ! -e \"$2\" ]; do sleep 0.005; done; shift 2; exec \"$@\"";
        let mut args: Vec<OsString> = vec!["-c".into(), wait.into(), "sh".into()];
        args.extend([self.arrived.clone().into(), self.go.clone().into()]);
        args.push(supervisor.exe.into());
        args.extend(supervisor.args);
        let program = Program {
            exe: "/bin/sh".into(),
            args,
        };
        let launch = self.stage.script("sleep 1000");
        Ok(supervise::launch(&self.dir, &launch, &program).await?)
    }

    /// Waits until the supervisor's process is there.
    async fn arrived(&self) -> anyhow::Result<()> {
        until("the supervisor is there", || Ok(self.arrived.exists())).await
    }

    fn let_go(&self) -> anyhow::Result<()> {
        Ok(std::fs::write(&self.go, "")?)
    }

    /// Waits until the supervisor has the run.
    async fn runs(&self) -> anyhow::Result<()> {
        let is_known = |seen| {
            matches!(
                seen,
                Seen::Running(Processes {
                    supervisor: Some(_),
                    ..
                })
            )
        };
        until("it runs", || Ok(is_known(supervise::look(&self.dir)?))).await
    }

    async fn stop(&self) -> anyhow::Result<Seen> {
        Ok(in_time(supervise::stop(&self.dir, Duration::from_secs(30))).await??)
    }
}
