//! Supervisors that wait for the next run.

use std::time::Duration;

use anyhow::{Context, ensure};
use woodward_engine::supervise::{self, Cause, Exit, Identity, Launch, Pool, Seen, probe};

use crate::stage::{Stage, in_time, kill, until};

fn repeatable(stage: &Stage, script: &str) -> Launch {
    Launch {
        repeatable: true,
        ..stage.script(script)
    }
}

/// Runs a script to its end, in a directory of its own.
async fn run(pool: &Pool, stage: &Stage, name: &str, script: &str) -> anyhow::Result<Exit> {
    let dir = stage.cwd().join(name);
    match in_time(pool.run(&dir, &repeatable(stage, script))).await?? {
        Seen::Ended(exit) => Ok(exit),
        other => anyhow::bail!("{name}: {other:?}"),
    }
}

/// The supervisor of a script that says it itself.
async fn supervisor(pool: &Pool, stage: &Stage, name: &str) -> anyhow::Result<String> {
    let exit = run(pool, stage, name, "echo $PPID; exit 3").await?;
    ensure!(exit.cause == Cause::Exited(3), "{exit:?}");
    let dir = stage.cwd().join(name);
    Ok(supervise::output::head_and_tail(&dir, 100, 0)?)
}

pub(crate) async fn one_has_many_runs_one_after_the_other(stage: Stage) -> anyhow::Result<()> {
    let pool = Pool::new(stage.program());
    let first = supervisor(&pool, &stage, "1").await?;
    for name in ["2", "3"] {
        ensure!(supervisor(&pool, &stage, name).await? == first);
    }
    // What is asked for twice is run once.
    let again = run(&pool, &stage, "1", "exit 9").await?;
    ensure!(again.cause == Cause::Exited(3), "{again:?}");
    let missing = run(&pool, &stage, "4", "exit 127").await?;
    ensure!(missing.cause == Cause::Exited(127), "{missing:?}");
    let pid = first.trim().parse()?;
    let identity = Identity::of(pid)?;
    pool.close().await;
    ensure!(!probe(&identity)?, "it has gone");
    Ok(())
}

pub(crate) async fn what_a_run_leaves_behind_is_not_there_in_the_next(
    stage: Stage,
) -> anyhow::Result<()> {
    let pool = Pool::new(stage.program());
    let first = supervisor(&pool, &stage, "1").await?;
    let script = "env -i setsid sh -c '(sleep 1000 & echo $! > left) &'; while ! [ -s left ]; do sleep 0.01; done";
    run(&pool, &stage, "2", script).await?;
    let left = std::fs::read_to_string(stage.cwd().join("left"))?;
    let left = Identity::of(left.trim().parse()?);
    ensure!(left.is_err(), "it has ended: {left:?}");
    ensure!(supervisor(&pool, &stage, "3").await? == first);
    Ok(())
}

pub(crate) async fn one_that_is_killed_is_replaced(stage: Stage) -> anyhow::Result<()> {
    let pool = Pool::new(stage.program());
    let idle = supervisor(&pool, &stage, "1").await?;
    kill(idle.trim().parse()?);
    let second = supervisor(&pool, &stage, "2").await?;
    ensure!(second != idle);
    let dir = stage.cwd().join("3");
    let launch = repeatable(&stage, "echo $PPID > busy; sleep 1000");
    let killed = async {
        let file = stage.cwd().join("busy");
        until("it runs", || {
            Ok(std::fs::read_to_string(&file).is_ok_and(|t| t.ends_with('\n')))
        })
        .await?;
        kill(std::fs::read_to_string(&file)?.trim().parse()?);
        anyhow::Ok(())
    };
    let (seen, killed) = tokio::join!(in_time(pool.run(&dir, &launch)), killed);
    killed?;
    ensure!(seen?? == Seen::Lost);
    ensure!(supervise::sweep(&dir).await? > 0);
    ensure!(stage.marked().is_empty(), "{:?}", stage.marked());
    ensure!(supervisor(&pool, &stage, "4").await? != second);
    Ok(())
}

pub(crate) async fn a_run_goes_on_without_the_one_who_asked_for_it(
    stage: Stage,
) -> anyhow::Result<()> {
    let dir = stage.cwd().join("1");
    let launch = repeatable(
        &stage,
        "echo $PPID > who; while ! [ -e go ]; do sleep 0.01; done; echo end; exit 7",
    );
    let pool = Pool::new(stage.program());
    let waited = tokio::time::timeout(Duration::from_millis(300), pool.run(&dir, &launch)).await;
    ensure!(waited.is_err(), "{waited:?}");
    drop(pool);
    let file = stage.cwd().join("who");
    until("it runs", || Ok(file.exists())).await?;
    let Seen::Running(processes) = supervise::look(&dir)? else {
        anyhow::bail!("it runs");
    };
    let supervisor = processes.supervisor.context("it is known")?;
    std::fs::write(stage.cwd().join("go"), "")?;
    let Seen::Ended(exit) = in_time(supervise::ended(&dir)).await?? else {
        anyhow::bail!("it has ended");
    };
    ensure!(exit.cause == Cause::Exited(7), "{exit:?}");
    ensure!(supervise::output::head_and_tail(&dir, 100, 0)? == "end\n");
    until("its supervisor has gone", || Ok(!probe(&supervisor)?)).await
}

pub(crate) async fn a_stop_is_for_its_own_run_only(stage: Stage) -> anyhow::Result<()> {
    let pool = Pool::new(stage.program());
    let pid: u32 = supervisor(&pool, &stage, "1").await?.trim().parse()?;
    // As when a stop of the first run came too late.
    let script = format!("sleep 0.1; kill -TERM {pid}; sleep 0.2; exit 5");
    let exit = run(&pool, &stage, "2", &script).await?;
    ensure!(exit.cause == Cause::Exited(5), "{exit:?}");
    let (dir, launch) = (
        stage.cwd().join("3"),
        repeatable(&stage, "touch on; sleep 1000"),
    );
    let stopped = async {
        let file = stage.cwd().join("on");
        until("it runs", || Ok(file.exists())).await?;
        anyhow::Ok(supervise::stop(&dir, Duration::from_secs(30)).await?)
    };
    let (seen, stopped) = tokio::join!(in_time(pool.run(&dir, &launch)), stopped);
    for seen in [seen??, stopped?] {
        let Seen::Ended(exit) = seen else {
            anyhow::bail!("{seen:?}");
        };
        ensure!(exit.cause == Cause::Stopped, "{exit:?}");
    }
    Ok(())
}
