//! The machine's cores, shared by all gates: five agents that are done at once must not start five
//! full builds at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};
use woodward_core::gate::GateKind;

use crate::config::GateSpec;

/// What gates may use together.
#[derive(Debug)]
pub(crate) struct Slots {
    cores: u32,
    free: Semaphore,
}

impl Slots {
    pub(crate) fn new(cores: u32) -> Self {
        let cores = cores.max(1);
        Self {
            cores,
            free: Semaphore::new(cores as usize),
        }
    }

    /// Waits for as many cores as a gate makes use of. The one that asked first is served first, so
    /// that a large one is not passed by small ones for ever.
    pub(crate) async fn take(&self, gate: &GateSpec) -> Option<SemaphorePermit<'_>> {
        self.free.acquire_many(weight(gate, self.cores)).await.ok()
    }

    /// What gates are told about it.
    pub(crate) fn env(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
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
