//! Leases: who has what, under which epoch, until when by the store's clock.
//!
//! Expiry only says who may be replaced. Whether a write counts is decided by its epoch alone.

use woodward_core::lease::{Lease, Resource};
use woodward_core::{Actor, Epoch, Event, Policy, ProjectId, TaskId, Timestamp, WorkerId};

use super::{Committed, Model, Refused};

/// A resource's row outlives its leases, so that its epochs never shrink.
#[derive(Clone, Debug)]
pub(super) struct LeaseRow {
    epoch: Epoch,
    lease: Option<Lease>,
}

impl Model {
    /// Takes a resource that is free, left alone past its end and its grace, or already the
    /// caller's (whose former self is fenced off by the new epoch).
    ///
    /// Tasks are not acquired but claimed.
    ///
    /// # Errors
    /// When somebody else has it.
    pub fn acquire(
        &mut self,
        resource: Resource,
        worker: WorkerId,
        now: Timestamp,
    ) -> Result<Lease, Refused> {
        let row = self.leases.get(&resource);
        if let Some(lease) = row.and_then(|row| row.lease.as_ref())
            && lease.holder != worker
            && now < lease.expires_at + self.timing.grace
        {
            return Err(Refused::Held(lease.holder));
        }
        let epoch = row.map_or(Epoch(1), |row| row.epoch.next());
        Ok(self.grant(resource, worker, epoch, now))
    }

    pub(super) fn grant(
        &mut self,
        resource: Resource,
        holder: WorkerId,
        epoch: Epoch,
        now: Timestamp,
    ) -> Lease {
        let lease = Lease {
            resource: resource.clone(),
            holder,
            epoch,
            expires_at: now + self.timing.length,
        };
        let row = LeaseRow {
            epoch,
            lease: Some(lease.clone()),
        };
        self.leases.insert(resource, row);
        lease
    }

    /// Prolongs a lease, also one that has run out and that nobody took away yet.
    ///
    /// # Errors
    /// When the caller no longer has it.
    pub fn renew(
        &mut self,
        resource: &Resource,
        worker: WorkerId,
        epoch: Epoch,
        now: Timestamp,
    ) -> Result<Lease, Refused> {
        let expires_at = now + self.timing.length;
        let checked = self.guards.epoch;
        let gone = |current| Refused::Stale {
            carried: epoch,
            current,
        };
        let Some(row) = self.leases.get_mut(resource) else {
            return Err(gone(Epoch(0)));
        };
        match &mut row.lease {
            Some(lease) if !checked || (lease.holder == worker && lease.epoch == epoch) => {
                lease.expires_at = expires_at;
                Ok(lease.clone())
            }
            _ => Err(gone(row.epoch)),
        }
    }

    /// Gives a resource back.
    ///
    /// # Errors
    /// When the caller no longer has it.
    pub fn release(
        &mut self,
        resource: &Resource,
        worker: WorkerId,
        epoch: Epoch,
    ) -> Result<(), Refused> {
        let gone = |current| Refused::Stale {
            carried: epoch,
            current,
        };
        let Some(row) = self.leases.get_mut(resource) else {
            return Err(gone(Epoch(0)));
        };
        match &row.lease {
            Some(lease) if lease.holder == worker && lease.epoch == epoch => {
                row.lease = None;
                Ok(())
            }
            _ => Err(gone(row.epoch)),
        }
    }

    /// Takes a task's claim away: records `event`, whose fact is
    /// [`woodward_core::Fact::LeaseExpired`], if its lease has run out at `now`, grace included.
    /// Look and write are one transaction: a holder that renews in between keeps its claim.
    ///
    /// # Errors
    /// When the lease has not run out, or the fact does not apply.
    pub fn expire(
        &mut self,
        task: TaskId,
        event: Event,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Committed, Refused> {
        let row = self.leases.get(&Resource::Task(task));
        match row.and_then(|row| row.lease.as_ref()) {
            Some(lease) if now < lease.expires_at + self.timing.grace => {
                Err(Refused::Held(lease.holder))
            }
            _ => self.record(task, event, policy),
        }
    }

    /// The leases that have run out, grace included; see [`Model::expire`] for those on tasks.
    pub fn expired(&self, now: Timestamp) -> impl Iterator<Item = &Lease> {
        let grace = self.timing.grace;
        self.leases()
            .filter(move |lease| lease.expires_at + grace <= now)
    }

    /// All leases that are held.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values().filter_map(|row| row.lease.as_ref())
    }

    pub(super) fn require_landing_right(
        &self,
        actor: &Actor,
        project: ProjectId,
        branch: &str,
    ) -> Result<(), Refused> {
        let Actor::Lander { worker, epoch } = actor else {
            return Err(Refused::NoLander);
        };
        if !self.guards.epoch {
            return Ok(());
        }
        let resource = Resource::Landing {
            project,
            branch: branch.to_owned(),
        };
        let row = self.leases.get(&resource);
        let lease = row.and_then(|row| row.lease.as_ref());
        if lease.is_some_and(|lease| lease.holder == *worker && lease.epoch == *epoch) {
            Ok(())
        } else {
            Err(Refused::Stale {
                carried: *epoch,
                current: row.map_or(Epoch(0), |row| row.epoch),
            })
        }
    }
}
