//! The storm: SIGKILL at random moments, to whoever of ours is there.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use woodward_testkit::postgres::PgServer;

use crate::daemon::Daemon;
use crate::report::narrate;
use crate::stage::Stage;
use crate::victims::{Kind, Marks, Victim};

/// How long the system is left alone between two kills, at most.
const LULL_MAX_MS: u64 = 200;
/// How soon after its start a daemon is killed again, at most.
const SOON_MS: u64 = 150;
/// How long PostgreSQL stays away, at most.
const AWAY_MAX_MS: u64 = 400;

/// What the storm has done.
#[derive(Debug, Default)]
pub(super) struct Toll {
    kills: BTreeMap<Kind, u32>,
    pub(super) recoveries: Vec<Duration>,
    pub(super) stops: u32,
}

impl Toll {
    pub(super) fn kills(&self, kind: Kind) -> u32 {
        self.kills.get(&kind).copied().unwrap_or(0)
    }

    fn total(&self) -> u32 {
        self.kills.values().sum()
    }
}

/// Kills, and starts the daemon again.
#[derive(Debug)]
pub(super) struct Storm<'a> {
    stage: &'a Stage,
    daemon: Daemon,
    marks: Marks,
    rng: Rng,
    server: Option<PgServer>,
    toll: Toll,
}

impl<'a> Storm<'a> {
    pub(super) fn new(
        stage: &'a Stage,
        daemon: Daemon,
        seed: u64,
        server: Option<PgServer>,
    ) -> Self {
        Self {
            stage,
            daemon,
            marks: Marks::of(stage),
            rng: Rng::with_seed(seed ^ 0x5701_2a97),
            server,
            toll: Toll::default(),
        }
    }

    pub(super) fn stage(&self) -> &'a Stage {
        self.stage
    }

    pub(super) fn daemon_lives(&mut self) -> Result<()> {
        self.daemon.alive(self.stage)
    }

    /// What it has done, and the daemon that is left. PostgreSQL ends with the storm's last use.
    pub(super) fn end(self) -> (Toll, Daemon, Option<PgServer>) {
        (self.toll, self.daemon, self.server)
    }

    /// Kills so many processes, and stops PostgreSQL so often meanwhile.
    pub(super) async fn rage(&mut self, kills: u32, stops: u32) -> Result<()> {
        let mut told = 0;
        while self.toll.total() < kills {
            let lull = self.rng.u64(1..=LULL_MAX_MS);
            tokio::time::sleep(Duration::from_millis(lull)).await;
            self.daemon_lives()?;
            self.strike().await?;
            let done = self.toll.total();
            if self.server.is_some() && self.toll.stops < stops * done / kills.max(1) {
                self.stop_server().await?;
            }
            if done * 10 / kills.max(1) > told {
                told = done * 10 / kills.max(1);
                narrate(&format!("{done} of {kills} kills"));
            }
        }
        Ok(())
    }

    async fn strike(&mut self) -> Result<()> {
        let wanted = match self.rng.u32(0..100) {
            0..28 => Kind::Daemon,
            28..45 => Kind::Supervisor,
            45..70 => Kind::Agent,
            _ => Kind::Git,
        };
        if wanted == Kind::Daemon {
            return self.kill_daemon().await;
        }
        let there: Vec<Victim> = self.marks.find();
        let fitting: Vec<Victim> = there.into_iter().filter(|v| v.kind == wanted).collect();
        if let Some(victim) = self.rng.choice(&fitting)
            && self.marks.kill(*victim)
        {
            *self.toll.kills.entry(wanted).or_default() += 1;
        }
        Ok(())
    }

    async fn kill_daemon(&mut self) -> Result<()> {
        loop {
            self.daemon.kill()?;
            *self.toll.kills.entry(Kind::Daemon).or_default() += 1;
            self.daemon = Daemon::start(self.stage)?;
            if self.rng.u32(0..6) > 0 {
                break;
            }
            // Crash during recovery.
            let soon = self.rng.u64(0..=SOON_MS);
            tokio::time::sleep(Duration::from_millis(soon)).await;
        }
        let took = self.daemon.ready(self.stage).await?;
        self.toll.recoveries.push(took);
        Ok(())
    }

    async fn stop_server(&mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        let away = Duration::from_millis(self.rng.u64(0..=AWAY_MAX_MS));
        let back = tokio::task::spawn_blocking(move || {
            server.stop_immediately()?;
            std::thread::sleep(away);
            server.restart()?;
            Ok::<_, woodward_testkit::postgres::PgError>(server)
        });
        self.server = Some(back.await??);
        self.toll.stops += 1;
        Ok(())
    }
}
