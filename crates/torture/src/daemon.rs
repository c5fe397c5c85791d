//! The daemon under test: started, watched until it is ready, killed.
//!
//! A daemon that ends without being told to is an error, never a reason to start another one.

use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use woodward_api::client::ClientError;

use crate::stage::Stage;

const READY_MAX: Duration = Duration::from_secs(60);
const PROBE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(3);
const SIGKILL: i32 = 9;

/// A running daemon; dropping it kills it.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    started: Instant,
}

impl Daemon {
    pub(crate) fn start(stage: &Stage) -> Result<Self> {
        let said = OpenOptions::new()
            .create(true)
            .append(true)
            .open(stage.scratch("daemon.out"))?;
        let child = stage
            .woodward()
            .args(["up", "--foreground"])
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .context("cannot start the daemon")?;
        Ok(Self {
            child,
            started: Instant::now(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has taken up its work, and says how long that took since its start.
    pub(crate) async fn ready(&mut self, stage: &Stage) -> Result<Duration> {
        let client = stage.client();
        loop {
            if let Ok(health) = client.health(PROBE).await
                && health.ready
                && health.pid == self.child.id()
            {
                return Ok(self.started.elapsed());
            }
            self.alive(stage)?;
            if self.started.elapsed() > READY_MAX {
                bail!("the daemon was not ready after {} s", READY_MAX.as_secs());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Fails if it has ended by itself.
    pub(crate) fn alive(&mut self, stage: &Stage) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        let said = std::fs::read_to_string(stage.scratch("daemon.out")).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(10).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        bail!(
            "the daemon ended by itself ({status}); its last words:\n{}",
            last.join("\n")
        )
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        let status = self.child.wait()?;
        if status.signal() != Some(SIGKILL) {
            bail!("the daemon had ended before it was killed ({status})");
        }
        Ok(())
    }

    /// Asks it to end and waits until it has.
    pub(crate) async fn stop(mut self, stage: &Stage) -> Result<()> {
        match stage.client().shutdown().await {
            // It may be gone before its answer is.
            Ok(()) | Err(ClientError::Lost { .. } | ClientError::Unreachable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let deadline = Instant::now() + READY_MAX;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                bail!("the daemon did not end when it was told to");
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
