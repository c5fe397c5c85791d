//! How runs end by themselves, or by their limits.

use anyhow::ensure;
use woodward_agents::Waiting;
use woodward_engine::supervise::{Cause, Identity, probe};

use crate::stage::{Stage, until};

pub(crate) async fn exit_codes_are_kept(stage: Stage) -> anyhow::Result<()> {
    let exit = stage.run(&stage.script("echo hello; exit 42")).await?;
    ensure!(exit.cause == Cause::Exited(42), "{exit:?}");
    ensure!(exit.ended_at_ms >= exit.started_at_ms);
    ensure!((exit.output_bytes, exit.output_dropped_bytes) == (6, 0));
    ensure!(stage.output()? == "hello\n");
    Ok(())
}

pub(crate) async fn a_signal_is_not_an_exit_code(stage: Stage) -> anyhow::Result<()> {
    let exit = stage.run(&stage.script("kill -SEGV $$")).await?;
    ensure!(exit.cause == Cause::Signalled(11), "{exit:?}");
    Ok(())
}

pub(crate) async fn a_missing_program_is_said(stage: Stage) -> anyhow::Result<()> {
    let mut launch = stage.script("");
    launch.command = vec!["no-such-agent".into()];
    let exit = stage.run(&launch).await?;
    let Cause::NotStarted(why) = &exit.cause else {
        anyhow::bail!("{exit:?}");
    };
    ensure!(why.contains("no-such-agent"), "{why}");
    Ok(())
}

pub(crate) async fn a_missing_directory_is_said(stage: Stage) -> anyhow::Result<()> {
    let mut launch = stage.script("");
    launch.cwd = stage.cwd().join("gone");
    let exit = stage.run(&launch).await?;
    let Cause::NotStarted(why) = &exit.cause else {
        anyhow::bail!("{exit:?}");
    };
    ensure!(why.contains("gone"), "{why}");
    Ok(())
}

pub(crate) async fn the_environment_is_exactly_what_was_asked_for(
    stage: Stage,
) -> anyhow::Result<()> {
    let mut launch = stage.script("");
    launch.command = vec!["env".into()];
    launch.env.insert("COLOUR".into(), "green\nblue".into());
    stage.run(&launch).await?;
    let mut expected = format!("COLOUR=green\nblue\nPATH={}\n", launch.env["PATH"]);
    expected += &format!("WOODWARD_MARK={}\n", stage.mark());
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let output = stage.output()?;
    ensure!(sorted(&output) == sorted(&expected), "{output}");
    Ok(())
}

pub(crate) async fn nothing_is_inherited_but_the_standard_streams(
    stage: Stage,
) -> anyhow::Result<()> {
    let input = stage.cwd().join("prompt");
    std::fs::write(&input, "the prompt")?;
    let mut launch =
        stage.script("cat; echo; grep SigBlk /proc/self/status; exec ls /proc/self/fd");
    launch.stdin = Some(input);
    stage.run(&launch).await?;
    // The last file is the directory that `ls` reads.
    let expected = "the prompt\nSigBlk:\t0000000000000000\n0\n1\n2\n3\n";
    let output = stage.output()?;
    ensure!(output == expected, "{output}");
    Ok(())
}

pub(crate) async fn a_time_limit_ends_it(stage: Stage) -> anyhow::Result<()> {
    let mut launch = stage.script("while :; do echo still here; sleep 0.02; done");
    launch.time_limit_ms = Some(300);
    let exit = stage.run(&launch).await?;
    ensure!(exit.cause == Cause::TimedOut, "{exit:?}");
    ensure!(exit.ended_at_ms - exit.started_at_ms >= 300, "{exit:?}");
    ensure!(stage.marked().is_empty());
    Ok(())
}

pub(crate) async fn silence_ends_it_and_output_does_not(stage: Stage) -> anyhow::Result<()> {
    // It talks for longer than it may be silent, and is silent then.
    let mut launch =
        stage.script("for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.2; done; sleep 1000");
    launch.stall_limit_ms = Some(1500);
    let exit = stage.run(&launch).await?;
    ensure!(exit.cause == Cause::Stalled, "{exit:?}");
    ensure!(stage.output()?.ends_with("10\n"));
    Ok(())
}

pub(crate) async fn time_in_which_a_person_is_waited_for_counts_for_no_limit(
    stage: Stage,
) -> anyhow::Result<()> {
    // Both limits are long over when it has slept, and one of them is again when it sleeps on.
    let mut launch = stage.script("sleep 2; echo > late; sleep 1000");
    launch.stall_limit_ms = Some(300);
    launch.time_limit_ms = Some(600);
    std::fs::create_dir_all(stage.dir())?;
    let waiting = Waiting::begin(&stage.dir())?;
    stage.launch(&launch).await?;
    let late = stage.cwd().join("late");
    until("it was left alone", || Ok(late.exists())).await?;
    drop(waiting);
    let exit = stage.exit().await?;
    let by_limit = matches!(exit.cause, Cause::Stalled | Cause::TimedOut);
    ensure!(by_limit, "{exit:?}");
    ensure!(exit.ended_at_ms - exit.started_at_ms >= 2200, "{exit:?}");
    Ok(())
}

pub(crate) async fn what_it_used_is_recorded(stage: Stage) -> anyhow::Result<()> {
    // The work is done by a grandchild that outlives its parent: only the supervisor can reap it.
    let script = "(sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo > over' &)
        while ! [ -e over ]; do sleep 0.05; done";
    let launch = stage.script(script);
    let exit = stage.run(&launch).await?;
    ensure!(exit.cause == Cause::Exited(0), "{exit:?}");
    ensure!(exit.cpu_ms >= 50, "{exit:?}");
    ensure!(exit.memory_peak_bytes >= 500_000, "{exit:?}");
    Ok(())
}

pub(crate) async fn what_it_leaves_behind_is_ended_before_the_exit_is_written(
    stage: Stage,
) -> anyhow::Result<()> {
    let script = "setsid sh -c 'trap \"\" TERM; echo $$ > left; while :; do sleep 0.05; done' &
        while ! [ -s left ]; do sleep 0.01; done; exit 3";
    let exit = stage.run(&stage.script(script)).await?;
    ensure!(exit.cause == Cause::Exited(3), "{exit:?}");
    let left: u32 = std::fs::read_to_string(stage.cwd().join("left"))?
        .trim()
        .parse()?;
    if let Ok(identity) = Identity::of(left) {
        ensure!(!probe(&identity)?, "{left} lives");
    }
    ensure!(stage.marked().is_empty());
    Ok(())
}

pub(crate) async fn an_ended_supervisor_is_reaped(stage: Stage) -> anyhow::Result<()> {
    let script = "while ! [ -e go ]; do sleep 0.01; done";
    stage.launch(&stage.script(script)).await?;
    let supervisor = stage.supervisor()?;
    std::fs::write(stage.cwd().join("go"), "")?;
    stage.exit().await?;
    until("the supervisor is reaped", || {
        Ok(Identity::of(supervisor.pid).ok().as_ref() != Some(&supervisor))
    })
    .await
}
