//! What is kept of what agents print, and what that costs.

use std::time::Duration;

use anyhow::{Context, ensure};
use woodward_engine::supervise::{self, Cause, output};

use crate::stage::{Stage, until};

fn status_kib(pid: u32, field: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let value = line.context("no such field")?.trim_start_matches(':');
    Ok(value.trim().trim_end_matches(" kB").trim().parse()?)
}

pub(crate) async fn a_flood_is_bounded(stage: Stage) -> anyhow::Result<()> {
    let script = "echo first; head -c 300000000 /dev/zero | tr '\\0' x; touch over; 
        while ! [ -e go ]; do sleep 0.01; done; echo; echo last";
    stage.launch(&stage.script(script)).await?;
    let supervisor = stage.supervisor()?;
    let over = stage.cwd().join("over");
    let kept = || -> anyhow::Result<u64> {
        let mut kept = 0;
        for segment in std::fs::read_dir(stage.dir().join("output"))? {
            // A segment may be dropped between the two looks at it.
            kept += segment?.metadata().map_or(0, |segment| segment.len());
        }
        Ok(kept)
    };
    stage.printed("first").await?;
    until("the flood is over", || {
        let now = kept()?;
        ensure!(now <= 1024 * 1024, "{now} bytes on disk");
        Ok(over.exists())
    })
    .await?;
    let own = status_kib(supervisor.pid, "RssAnon")?;
    ensure!(own <= 4096, "{own} KiB");
    std::fs::write(stage.cwd().join("go"), "")?;
    let exit = stage.exit().await?;
    ensure!(exit.cause == Cause::Exited(0), "{exit:?}");
    ensure!(exit.output_bytes == 300_000_012, "{exit:?}");
    ensure!(exit.output_bytes - exit.output_dropped_bytes == kept()?);
    let text = output::head_and_tail(&stage.dir(), 10, 10)?;
    ensure!(
        text == "first\nxxxx\n… 299999992 bytes left out …\nxxxx\nlast\n",
        "{text}"
    );
    let chunk = output::read(&stage.dir(), 200_000, 10)?;
    ensure!(chunk.dropped == chunk.offset - 200_000 && chunk.dropped > 0);
    ensure!(chunk.bytes == b"xxxxxxxxxx" && chunk.next == chunk.offset + 10);
    Ok(())
}

pub(crate) async fn a_pipe_held_open_does_not_hold_up_the_end(stage: Stage) -> anyhow::Result<()> {
    // The test itself holds the pipe: nobody whom the supervisor may end.
    let script = "echo $$ > agent; while ! [ -e go ]; do sleep 0.01; done; echo end";
    stage.launch(&stage.script(script)).await?;
    let agent = stage.process("agent").await?;
    let held = std::fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{}/fd/1", agent.pid))?;
    std::fs::write(stage.cwd().join("go"), "")?;
    let exit = stage.exit().await?;
    ensure!(exit.cause == Cause::Exited(0), "{exit:?}");
    ensure!(stage.output()? == "end\n");
    drop(held);
    Ok(())
}

pub(crate) async fn output_is_there_while_it_runs(stage: Stage) -> anyhow::Result<()> {
    stage
        .launch(&stage.script("echo out; echo err >&2; sleep 1000"))
        .await?;
    stage.printed("out\nerr\n").await?;
    stage.running()?;
    let chunk = output::read(&stage.dir(), 4, 100)?;
    ensure!(chunk.bytes == b"err\n" && chunk.next == 8);
    ensure!(output::read(&stage.dir(), 8, 100)?.bytes.is_empty());
    supervise::stop(&stage.dir(), Duration::from_secs(30)).await?;
    Ok(())
}

pub(crate) async fn a_log_that_cannot_be_written_does_not_stop_the_agent(
    stage: Stage,
) -> anyhow::Result<()> {
    // A file in the place of the log's directory.
    std::fs::create_dir(stage.dir())?;
    std::fs::write(stage.dir().join("output"), "")?;
    let exit = stage
        .run(&stage.script("head -c 1000000 /dev/zero; exit 5"))
        .await?;
    ensure!(exit.cause == Cause::Exited(5), "{exit:?}");
    ensure!((exit.output_bytes, exit.output_dropped_bytes) == (1_000_000, 1_000_000));
    Ok(())
}

pub(crate) async fn a_supervisor_stays_small(stage: Stage) -> anyhow::Result<()> {
    stage
        .launch(&stage.script("echo ready; sleep 1000"))
        .await?;
    stage.printed("ready").await?;
    let supervisor = stage.supervisor()?;
    // Memory of its own; the program's text is shared with all others.
    let own = status_kib(supervisor.pid, "RssAnon")?;
    ensure!(own <= 2048, "{own} KiB");
    ensure!(status_kib(supervisor.pid, "Threads")? == 1);
    supervise::stop(&stage.dir(), Duration::from_secs(30)).await?;
    Ok(())
}
