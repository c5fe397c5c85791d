//! Stopping ends everything, whatever it does against that.

use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::Signal;
use woodward_engine::supervise::{self, Cause, Launched, Seen, probe};

use crate::stage::{DAEMON, Stage, Stranger, in_time, kill, marked, save_launch, signal, until};

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(60);

async fn stopped(stage: &Stage, grace: Duration) -> anyhow::Result<()> {
    let seen = in_time(supervise::stop(&stage.dir(), grace)).await??;
    let Seen::Ended(exit) = seen else {
        anyhow::bail!("{seen:?}");
    };
    ensure!(exit.cause == Cause::Stopped, "{exit:?}");
    ensure!(exit.left_behind == 0, "{exit:?}");
    ensure!(stage.marked().is_empty(), "{:?}", stage.marked());
    Ok(())
}

pub(crate) async fn an_agent_that_ignores_term_is_killed(stage: Stage) -> anyhow::Result<()> {
    let script = "trap '' TERM INT HUP; echo ready; while :; do sleep 0.05; done";
    stage.launch(&stage.script(script)).await?;
    stage.printed("ready").await?;
    stopped(&stage, SHORT).await
}

pub(crate) async fn an_agent_that_hears_term_may_tidy_up(stage: Stage) -> anyhow::Result<()> {
    let script = "trap 'echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    stage.launch(&stage.script(script)).await?;
    stage.printed("ready").await?;
    // With this grace the test would fail by time if the end were not noticed when it happens.
    stopped(&stage, LONG).await?;
    ensure!(stage.output()?.ends_with("tidy\n"));
    Ok(())
}

pub(crate) async fn a_stopped_agent_hears_term(stage: Stage) -> anyhow::Result<()> {
    let script = "trap 'echo tidy; exit 0' TERM; echo ready; kill -STOP $$; sleep 1000";
    stage.launch(&stage.script(script)).await?;
    stage.printed("ready").await?;
    let agent = stage.running()?.agent.context("the agent is known")?;
    let stat = format!("/proc/{}/stat", agent.pid);
    until("it has stopped itself", || {
        Ok(std::fs::read_to_string(&stat)?.contains(") T "))
    })
    .await?;
    stopped(&stage, LONG).await?;
    ensure!(stage.output()?.ends_with("tidy\n"));
    Ok(())
}

pub(crate) async fn a_daemon_in_a_session_of_its_own_is_ended(stage: Stage) -> anyhow::Result<()> {
    let script = "setsid sh -c 'trap \"\" TERM; (sh -c \"echo \\$PPID > outer; echo \\$\\$ > inner; exec sleep 1000\" &); sleep 1000' &
        echo ready; sleep 1000";
    stage.launch(&stage.script(script)).await?;
    let inner = stage.process("inner").await?;
    ensure!(probe(&inner)?);
    stopped(&stage, SHORT).await?;
    ensure!(!probe(&inner)?);
    Ok(())
}

pub(crate) async fn a_daemon_without_the_mark_is_ended(stage: Stage) -> anyhow::Result<()> {
    let script = "(setsid env -i /bin/sh -c 'trap \"\" TERM; echo $$ > bare; while :; do sleep 1; done' &) ; sleep 1000";
    stage.launch(&stage.script(script)).await?;
    let bare = stage.process("bare").await?;
    ensure!(probe(&bare)? && !stage.marked().contains(&bare.pid));
    stopped(&stage, SHORT).await?;
    ensure!(!probe(&bare)?);
    Ok(())
}

pub(crate) async fn an_agent_that_forks_in_a_loop_is_ended(stage: Stage) -> anyhow::Result<()> {
    // Every process is replaced by a fresh one all the time, for a few hundred generations; none of
    // them heeds TERM.
    let script = "trap '' TERM; export n=0
        export again='trap \"\" TERM; n=$((n+1)); [ $n -lt 500 ] || exit
            i=0; while [ $i -lt 30 ]; do (:); i=$((i+1)); done; setsid sh -c \"$again\" &'
        for chain in 1 2 3 4; do setsid sh -c \"$again\" & done
        echo ready; while :; do sleep 0.05; done";
    stage.launch(&stage.script(script)).await?;
    stage.printed("ready").await?;
    stopped(&stage, SHORT).await
}

pub(crate) async fn stopping_twice_says_the_same(stage: Stage) -> anyhow::Result<()> {
    stage
        .launch(&stage.script("echo ready; sleep 1000"))
        .await?;
    let dir = stage.dir();
    let (one, two) = tokio::join!(supervise::stop(&dir, SHORT), supervise::stop(&dir, SHORT));
    let one = one?;
    ensure!(matches!(one, Seen::Ended(_)), "{one:?}");
    ensure!(one == two?);
    ensure!(one == supervise::stop(&dir, SHORT).await?);
    ensure!(one == supervise::look(&dir)?);
    Ok(())
}

pub(crate) async fn a_stop_before_the_launch_forbids_it_for_good(
    stage: Stage,
) -> anyhow::Result<()> {
    let dir = stage.dir();
    ensure!(supervise::look(&dir)? == Seen::Absent);
    ensure!(supervise::ended(&dir).await? == Seen::Absent);
    ensure!(supervise::stop(&dir, SHORT).await? == Seen::Forbidden);
    let launch = stage.script("touch ran");
    for _ in 0..2 {
        ensure!(stage.launch(&launch).await? == Launched::Forbidden);
    }
    ensure!(in_time(supervise::ended(&dir)).await?? == Seen::Forbidden);
    // Also a supervisor that was on its way when the stop came.
    std::fs::write(dir.join("spec.json"), serde_json::to_vec(&launch)?)?;
    let program = stage.program();
    let said = std::process::Command::new(&program.exe)
        .args(&program.args)
        .arg(&dir)
        .output()?;
    ensure!(said.stdout == b"forbidden\n", "{said:?}");
    ensure!(!stage.cwd().join("ran").exists());
    Ok(())
}

pub(crate) async fn a_lost_run_can_be_stopped(stage: Stage) -> anyhow::Result<()> {
    stage
        .launch(&stage.script("echo ready; sleep 1000"))
        .await?;
    stage.printed("ready").await?;
    let supervisor = stage.supervisor()?;
    kill(supervisor.pid);
    until("the supervisor is gone", || Ok(!probe(&supervisor)?)).await?;
    let seen = in_time(supervise::stop(&stage.dir(), SHORT)).await??;
    ensure!(seen == Seen::Lost, "{seen:?}");
    ensure!(stage.marked().is_empty());
    Ok(())
}

pub(crate) async fn a_supervisor_that_was_suspended_hears_the_stop(
    stage: Stage,
) -> anyhow::Result<()> {
    stage
        .launch(&stage.script("echo ready; sleep 1000"))
        .await?;
    stage.printed("ready").await?;
    signal(stage.supervisor()?.pid, Signal::STOP);
    stopped(&stage, LONG).await
}

pub(crate) async fn a_run_inside_a_run_ends_with_it(stage: Stage) -> anyhow::Result<()> {
    let inside = stage.cwd().join("inside");
    std::fs::create_dir(&inside)?;
    let mut launch = stage.script("trap '' TERM; echo $$ > ../inner; sleep 1000; sleep 1000");
    launch.cwd = inside.clone();
    launch.mark = format!("{}-inside", stage.mark());
    save_launch(&inside, &launch)?;
    let mut outer = stage.script("");
    let daemon = std::env::current_exe()?.display().to_string();
    outer.command = vec![daemon, DAEMON.into(), inside.display().to_string()];
    stage.launch(&outer).await?;
    let inner = stage.process("inner").await?;
    let Seen::Running(running) = supervise::look(&inside.join("run"))? else {
        anyhow::bail!("the inner run does not run");
    };
    stopped(&stage, SHORT).await?;
    ensure!(!probe(&inner)?);
    let supervisor = running.supervisor.context("it is known")?;
    ensure!(!probe(&supervisor)?);
    ensure!(marked(&launch.mark).is_empty());
    Ok(())
}

pub(crate) async fn a_neighbour_with_a_longer_mark_lives(stage: Stage) -> anyhow::Result<()> {
    let mut neighbour = Stranger::new(Some(format!("{}0", stage.mark())))?;
    stage
        .launch(&stage.script("echo ready; sleep 1000"))
        .await?;
    stage.printed("ready").await?;
    stopped(&stage, SHORT).await?;
    ensure!(neighbour.lives()?);
    Ok(())
}
