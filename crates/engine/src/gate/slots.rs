//! The machine's cores, shared by all gates: five agents that are done at once must not start five
//! full builds at once.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use nix::sys::stat::Mode;
use rustix::fs::OFlags;
use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};
use woodward_core::gate::GateKind;

use crate::config::GateSpec;
use crate::supervise::Jobs;

/// What gates may use together.
#[derive(Debug)]
pub(crate) struct Slots {
    cores: u32,
    free: Semaphore,
    tokens: Option<Tokens>,
}

/// Cores that a gate may use, until it is dropped.
#[derive(Debug)]
pub(crate) struct Taken<'a> {
    slots: &'a Slots,
    _permit: SemaphorePermit<'a>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(tokens) = &self.slots.tokens {
            tokens.leave();
        }
    }
}

impl Slots {
    /// So many cores, and a pipe of job tokens at `pipe` for programs that speak make's protocol.
    pub(crate) fn new(cores: u32, pipe: PathBuf) -> Self {
        let cores = cores.max(1);
        let tokens = Tokens::open(pipe, cores - 1);
        if let Err(error) = &tokens {
            tracing::warn!(%error, "gates share no job tokens");
        }
        Self {
            cores,
            free: Semaphore::new(cores as usize),
            tokens: tokens.ok(),
        }
    }

    /// Waits for as many cores as a gate makes use of. The one that asked first is served first, so
    /// that a large one is not passed by small ones for ever.
    pub(crate) async fn take(&self, gate: &GateSpec) -> Option<Taken<'_>> {
        let permit = self
            .free
            .acquire_many(weight(gate, self.cores))
            .await
            .ok()?;
        if let Some(tokens) = &self.tokens {
            tokens.enter();
        }
        Some(Taken {
            slots: self,
            _permit: permit,
        })
    }

    /// The job tokens that a gate is given.
    pub(crate) fn jobs(&self, gate: &GateSpec) -> Option<Jobs> {
        let tokens = self.tokens.as_ref()?;
        Some(Jobs {
            pipe: tokens.path.clone(),
            make: gate.make_jobs,
        })
    }
}

/// Make's jobserver: a token in a pipe for each job that may run besides the first of every gate.
#[derive(Debug)]
struct Tokens {
    path: PathBuf,
    /// Open as long as we live, so that tokens stay in it.
    pipe: OwnedFd,
    count: u32,
    users: Mutex<u32>,
}

impl Tokens {
    fn open(path: PathBuf, count: u32) -> io::Result<Self> {
        match nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR) {
            Ok(()) | Err(nix::errno::Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = rustix::fs::open(&path, flags, rustix::fs::Mode::empty())?;
        let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&pipe)?.st_mode);
        if kind != rustix::fs::FileType::Fifo {
            return Err(io::Error::other(format!("{} is no pipe", path.display())));
        }
        Ok(Self {
            path,
            pipe,
            count,
            users: Mutex::new(0),
        })
    }

    /// A gate begins. The first one finds all tokens: one that was killed took its tokens with it.
    fn enter(&self) {
        let mut users = self.users.lock().unwrap_or_else(|e| e.into_inner());
        if *users == 0 {
            let mut rest = [0; 1024];
            while matches!(rustix::io::read(&self.pipe, &mut rest), Ok(read) if read > 0) {}
            let all = vec![b'+'; self.count as usize];
            if let Err(error) = rustix::io::write(&self.pipe, &all) {
                tracing::warn!(%error, "job tokens could not be given");
            }
        }
        *users += 1;
    }

    fn leave(&self) {
        let mut users = self.users.lock().unwrap_or_else(|e| e.into_inner());
        *users = users.saturating_sub(1);
    }
}

/// Questions that several may have at once: one asks, the others wait and find the answer.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Questions {
    /// Waits until nobody else asks this.
    pub(crate) async fn ask(&self, question: String) -> OwnedMutexGuard<()> {
        let asking = {
            let mut open = self.open.lock().unwrap_or_else(|e| e.into_inner());
            // What nobody asks or waits for is forgotten.
            open.retain(|_, asking| Arc::strong_count(asking) > 1);
            Arc::clone(open.entry(question).or_default())
        };
        asking.lock_owned().await
    }
}

/// How many cores a gate makes use of.
fn weight(gate: &GateSpec, cores: u32) -> u32 {
    let wanted = gate.cores.unwrap_or(match gate.kind {
        GateKind::Test | GateKind::Build => cores.div_ceil(2),
        GateKind::Lint | GateKind::Custom => 1,
    });
    wanted.clamp(1, cores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Command;
    use woodward_core::Millis;

    fn gate(kind: GateKind, cores: Option<u32>) -> GateSpec {
        let command = Command::Shell("true".into());
        let mut gate = GateSpec::new("test".parse().unwrap(), command, Millis(1_000));
        (gate.kind, gate.cores) = (kind, cores);
        gate
    }

    #[test]
    fn builds_take_half_of_all_cores_and_nobody_more_than_there_are() {
        assert_eq!(weight(&gate(GateKind::Build, None), 8), 4);
        assert_eq!(weight(&gate(GateKind::Lint, None), 8), 1);
        assert_eq!(weight(&gate(GateKind::Test, Some(99)), 8), 8);
        assert_eq!(weight(&gate(GateKind::Test, None), 1), 1);
    }

    #[tokio::test]
    async fn tokens_that_a_killed_gate_took_are_there_again_for_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let slots = Slots::new(4, dir.path().join("jobs"));
        let gate = gate(GateKind::Lint, None);
        let count = || {
            let tokens = slots.tokens.as_ref().unwrap();
            let mut all = [0; 16];
            let read = rustix::io::read(&tokens.pipe, &mut all).unwrap_or(0);
            rustix::io::write(&tokens.pipe, &all[..read]).unwrap_or(0)
        };
        let first = slots.take(&gate).await;
        assert_eq!(count(), 3);
        let tokens = slots.tokens.as_ref().unwrap();
        rustix::io::read(&tokens.pipe, &mut [0; 2]).unwrap();
        // Others are at work: nothing is given twice.
        let second = slots.take(&gate).await;
        assert_eq!(count(), 1);
        drop((first, second));
        let _third = slots.take(&gate).await;
        assert_eq!(count(), 3);
    }
}
