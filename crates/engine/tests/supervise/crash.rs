//! Daemons and supervisors that die.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use woodward_engine::supervise::{self, Cause, Identity, Launched, Seen, probe};

use crate::stage::{DAEMON, Groups, Stage, Stranger, in_time, kill, save_launch, until};

pub(crate) async fn a_killed_supervisor_is_lost_and_a_sweep_leaves_none(
    stage: Stage,
) -> anyhow::Result<()> {
    let script = "trap '' TERM HUP; setsid sh -c 'echo $$ > apart; sleep 1000' &
        setsid sh -c 'trap \"\" TERM; for i in $(seq 20000); do (:); done' &
        while ! [ -s apart ]; do sleep 0.01; done; echo ready; sleep 1000";
    stage.launch(&stage.script(script)).await?;
    stage.printed("ready").await?;
    let (running, apart) = (stage.running()?, stage.process("apart").await?);
    let agent = running.agent.context("the agent is known")?;
    ensure!(running.cgroup.is_none() || stage.groups == Groups::Used);
    let supervisor = running.supervisor.context("the supervisor is known")?;
    kill(supervisor.pid);
    ensure!(in_time(supervise::ended(&stage.dir())).await?? == Seen::Lost);
    // Nothing but the sweep ends them.
    ensure!(probe(&agent)? && probe(&apart)?);
    let ended = in_time(supervise::sweep(&stage.dir())).await??;
    ensure!(ended >= 3, "{ended}");
    ensure!(!probe(&agent)? && !probe(&apart)?);
    ensure!(stage.marked().is_empty());
    ensure!(supervise::sweep(&stage.dir()).await? == 0);
    if let Some(cgroup) = running.cgroup {
        ensure!(!cgroup.exists(), "{cgroup:?}");
    }
    Ok(())
}

pub(crate) async fn a_supervisor_killed_at_any_moment_leaves_none(
    stage: Stage,
) -> anyhow::Result<()> {
    let program = stage.program();
    let (mut absent, mut lost) = (0, 0);
    // As many more as this machine needs to get as far as a supervisor that is known.
    for round in 0..400_u64 {
        if round >= 60 && absent > 0 && lost > 0 {
            break;
        }
        let dir = stage.cwd().join(format!("run-{round}"));
        std::fs::create_dir(&dir)?;
        let launch = stage.script("trap '' TERM; setsid sleep 1000 & sleep 1000");
        stage.write_spec(&dir, &launch)?;
        let mut supervisor = Command::new(&program.exe)
            .args(&program.args)
            .arg(&dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        hand_over(&mut supervisor, &launch)?;
        // Not for an event: any moment is to be hit, from the first to the agent's own forks.
        std::thread::sleep(Duration::from_micros(round * 500));
        supervisor.kill()?;
        supervisor.wait()?;
        match in_time(supervise::ended(&dir)).await?? {
            Seen::Absent => absent += 1,
            Seen::Lost => {
                lost += 1;
                in_time(supervise::sweep(&dir)).await??;
            }
            other => anyhow::bail!("round {round}: {other:?}"),
        }
        ensure!(stage.marked().is_empty(), "round {round}");
    }
    ensure!(absent > 0 && lost > 0, "{absent} absent, {lost} lost");
    Ok(())
}

pub(crate) async fn an_exit_that_cannot_be_written_is_written_later(
    stage: Stage,
) -> anyhow::Result<()> {
    let script = "echo ready; while ! [ -e go ]; do sleep 0.01; done; exit 9";
    stage.launch(&stage.script(script)).await?;
    stage.printed("ready").await?;
    let agent = stage.running()?.agent.context("the agent is known")?;
    let obstacle = stage.dir().join("exit.json");
    std::fs::create_dir(&obstacle)?;
    std::fs::write(stage.cwd().join("go"), "")?;
    until("the agent has ended", || Ok(!probe(&agent)?)).await?;
    ensure!(supervise::look(&stage.dir()).is_err());
    std::fs::remove_dir(&obstacle)?;
    let exit = stage.exit().await?;
    ensure!(exit.cause == Cause::Exited(9), "{exit:?}");
    Ok(())
}

pub(crate) async fn a_launch_that_broke_off_can_be_repeated(stage: Stage) -> anyhow::Result<()> {
    let first = stage.script("echo first");
    std::fs::create_dir(stage.dir())?;
    stage.write_spec(&stage.dir(), &first)?;
    ensure!(supervise::look(&stage.dir())? == Seen::Absent);
    // What was asked for first counts, since a supervisor may have read it already.
    let exit = stage.run(&stage.script("echo second")).await?;
    ensure!(exit.cause == Cause::Exited(0), "{exit:?}");
    ensure!(stage.output()? == "first\n");
    Ok(())
}

pub(crate) async fn a_killed_daemon_loses_no_exit(stage: Stage) -> anyhow::Result<()> {
    let launch =
        stage.script("echo ready; while ! [ -e go ]; do sleep 0.01; done; echo end; exit 7");
    save_launch(stage.cwd(), &launch)?;
    let mut daemon = Command::new(std::env::current_exe()?)
        .arg(DAEMON)
        .arg(stage.cwd())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = String::new();
    BufReader::new(daemon.stdout.take().context("it is piped")?).read_line(&mut said)?;
    ensure!(said == "Ok(Started)\n", "{said}");
    stage.printed("ready").await?;
    daemon.kill()?;
    daemon.wait()?;

    let running = stage.running()?;
    let agent = running.agent.context("the agent is known")?;
    ensure!(probe(&agent)?);
    let dir = stage.dir();
    let waiting = tokio::spawn(async move { supervise::ended(&dir).await });
    std::fs::write(stage.cwd().join("go"), "")?;
    let Seen::Ended(exit) = in_time(waiting).await??? else {
        anyhow::bail!("not ended");
    };
    ensure!(exit.cause == Cause::Exited(7), "{exit:?}");
    ensure!(stage.output()? == "ready\nend\n");
    Ok(())
}

pub(crate) async fn a_dead_directory_is_never_run_again(stage: Stage) -> anyhow::Result<()> {
    let launch = stage.script("echo ready; echo x >> runs; sleep 1000");
    stage.launch(&launch).await?;
    stage.printed("ready").await?;
    let supervisor = stage.supervisor()?;
    kill(supervisor.pid);
    ensure!(in_time(supervise::ended(&stage.dir())).await?? == Seen::Lost);
    supervise::sweep(&stage.dir()).await?;
    ensure!(stage.launch(&launch).await? == Launched::Already);
    // Also a second supervisor that was already on its way.
    let program = stage.program();
    let said = Command::new(&program.exe)
        .args(&program.args)
        .arg(stage.dir())
        .output()?;
    ensure!(said.stdout == b"already\n", "{said:?}");
    ensure!(std::fs::read_to_string(stage.cwd().join("runs"))? == "x\n");
    Ok(())
}

pub(crate) async fn another_process_with_the_number_is_not_signalled(
    stage: Stage,
) -> anyhow::Result<()> {
    stage.launch(&stage.script("sleep 1000")).await?;
    let running = stage.running()?;
    let supervisor = running.supervisor.clone().context("it is known")?;
    kill(supervisor.pid);
    ensure!(in_time(supervise::ended(&stage.dir())).await?? == Seen::Lost);
    supervise::sweep(&stage.dir()).await?;

    // The numbers of the dead pass to a stranger, or the machine was started again.
    let mut stranger = Stranger::new(None)?;
    let now = Identity::of(stranger.pid())?;
    let older = Identity {
        start: now.start - 1,
        ..now.clone()
    };
    let earlier_boot = Identity {
        boot: "earlier".into(),
        ..now
    };
    for past in [older, earlier_boot] {
        let mut processes = running.clone();
        processes.supervisor = Some(past.clone());
        processes.agent = Some(past);
        std::fs::write(
            stage.dir().join("supervisor.json"),
            serde_json::to_vec(&processes)?,
        )?;
        ensure!(supervise::look(&stage.dir())? == Seen::Lost);
        ensure!(supervise::sweep(&stage.dir()).await? == 0);
        ensure!(supervise::stop(&stage.dir(), Duration::ZERO).await? == Seen::Lost);
    }
    ensure!(stranger.lives()?);
    Ok(())
}

pub(crate) async fn an_unreadable_directory_is_an_error(stage: Stage) -> anyhow::Result<()> {
    stage.launch(&stage.script("exit 0")).await?;
    stage.exit().await?;
    std::fs::write(stage.dir().join("exit.json"), "{")?;
    ensure!(supervise::look(&stage.dir()).is_err());
    ensure!(supervise::ended(&stage.dir()).await.is_err());
    // A file where a directory should be: neither absent nor dead.
    let file = stage.cwd().join("file");
    std::fs::write(&file, "")?;
    ensure!(supervise::look(&file.join("run")).is_err());
    until("the supervisor is gone", || Ok(stage.marked().is_empty())).await
}

/// Gives a supervisor the values of its variables, as the daemon does.
fn hand_over(
    supervisor: &mut std::process::Child,
    launch: &supervise::Launch,
) -> anyhow::Result<()> {
    let text = serde_json::to_vec(&launch.env)?;
    let mut pipe = supervisor.stdin.take().context("a pipe")?;
    pipe.write_all(&u32::try_from(text.len())?.to_le_bytes())?;
    pipe.write_all(&text)?;
    Ok(())
}
