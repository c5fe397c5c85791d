//! The machine's cores, shared by all gates: five agents that are done at once must not start five
//! full builds at once.

use std::collections::BTreeMap;

use tokio::sync::{Semaphore, SemaphorePermit};
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

/// How many cores a gate makes use of.
fn weight(gate: &GateSpec, cores: u32) -> u32 {
    let wanted = gate.cores.unwrap_or(match gate.kind {
        GateKind::Test | GateKind::Build => cores.div_ceil(2),
        GateKind::Lint | GateKind::Custom => 1,
    });
    wanted.clamp(1, cores)
}
