//! How many operations a store has performed, for measurements.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::conn::Op;

/// Operations since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Operations that only read.
    pub reads: u64,
    /// Operations that may write, without renewals.
    pub writes: u64,
    /// Renewals of leases and signs of life of a worker.
    pub renewals: u64,
}

/// Counts operations.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    reads: AtomicU64,
    writes: AtomicU64,
    renewals: AtomicU64,
}

impl Counter {
    /// Counts one operation.
    pub(crate) fn count<O: Op>(&self) {
        let counter = if O::RENEWAL {
            &self.renewals
        } else if O::READ {
            &self.reads
        } else {
            &self.writes
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn activity(&self) -> Activity {
        Activity {
            reads: self.reads.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            renewals: self.renewals.load(Ordering::Relaxed),
        }
    }
}
