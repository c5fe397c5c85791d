//! Leases on what there is only one of.
//!
//! Task leases come and go with transitions; this module renews them, takes lost ones away, and
//! serves all other resources. Time is the database's. Rows are locked in one order everywhere
//! (task, then lease), so that two operations can't wait for each other.

use std::sync::Arc;

use woodward_core::lease::{Lease, Resource};
use woodward_core::{Actor, Epoch, Event, Fact, Millis, Task, TaskId, Timestamp, WorkerId};

use crate::conn::{Conn, Dialect, Op, Param, Row, to_json};
use crate::error::{Result, StoreError};
use crate::ids::IdSource;
use crate::ops::tasks;
use crate::ops::workers::SeeWorker;
use crate::ops::write::{TaskWrite, decide, locking};
use crate::policies::NamedPolicy;
use crate::records::{KeptAlive, LeaseRef, LeaseRequest};
use crate::wake::Wakes;

/// The right to land tasks on the branch that a task lands on.
pub(crate) fn landing_right(task: &Task) -> Resource {
    Resource::Landing {
        project: task.project,
        branch: task.spec.base.clone(),
    }
}

/// Refuses a write under a lease that is no longer held; it can't be lost until the transaction
/// ends.
pub(crate) async fn require<C: Conn>(
    conn: &mut C,
    resource: &Resource,
    worker: WorkerId,
    epoch: Epoch,
) -> Result<()> {
    let sql = locking::<C>(
        "SELECT holder, epoch FROM leases WHERE resource = $1",
        "SELECT holder, epoch FROM leases WHERE resource = $1 FOR SHARE",
    );
    let rows = conn.query(sql, &[(&resource.to_string()).into()]).await?;
    let (holder, current) = match rows.first() {
        Some(row) => (row.opt_id(0)?, Epoch(row.unsigned(1)?)),
        None => (None, Epoch(0)),
    };
    if holder == Some(worker.as_uuid()) && current == epoch {
        Ok(())
    } else {
        Err(StoreError::Stale {
            what: resource.to_string(),
            carried: epoch,
            current,
        })
    }
}

fn read(row: &Row) -> Result<Lease> {
    Ok(Lease {
        resource: row.parse(0, "resource")?,
        holder: WorkerId::new(row.id(1)?),
        epoch: Epoch(row.unsigned(2)?),
        expires_at: Timestamp(row.int(3)?),
    })
}

/// Acquires the first free one of several resources. A worker may take over what it holds itself
/// (after a restart): that is a new epoch, and fences its former self.
#[derive(Debug)]
pub(crate) struct AcquireLease {
    pub(crate) resources: Vec<Resource>,
    pub(crate) request: LeaseRequest,
}

impl Op for AcquireLease {
    type Out = Lease;

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

    async fn run<C: Conn>(&self, conn: &mut C, again: bool) -> Result<Lease> {
        if again {
            let rows = conn
                .query(
                    "SELECT resource, holder, epoch, expires_at FROM leases WHERE claim = $1",
                    &[self.request.claim.into()],
                )
                .await?;
            if let Some(row) = rows.first() {
                return read(row);
            }
        }
        for resource in &self.resources {
            let rows = conn
                .query(
                    "INSERT INTO leases (resource, holder, epoch, claim, expires_at)
                     VALUES ($1, $2, 1, $3, now_ms() + $4)
                     ON CONFLICT (resource) DO UPDATE SET holder = excluded.holder,
                         epoch = leases.epoch + 1, claim = excluded.claim,
                         expires_at = excluded.expires_at
                     WHERE leases.holder IS NULL OR leases.holder = excluded.holder
                         OR leases.expires_at <= now_ms()
                     RETURNING resource, holder, epoch, expires_at",
                    &[
                        (&resource.to_string()).into(),
                        self.request.worker.into(),
                        self.request.claim.into(),
                        self.request.length.into(),
                    ],
                )
                .await?;
            if let Some(row) = rows.first() {
                return read(row);
            }
        }
        let resource = self.request.resource.to_string();
        let rows = conn
            .query(
                "SELECT holder FROM leases WHERE resource = $1",
                &[(&resource).into()],
            )
            .await?;
        match rows.first().map(|row| row.opt_id(0)).transpose()?.flatten() {
            Some(holder) => Err(StoreError::Held {
                resource,
                holder: WorkerId::new(holder),
            }),
            None => Err(StoreError::Conflict { what: resource }),
        }
    }
}

/// Renews the named leases of a worker, in one statement; answers which are lost. Only named ones
/// are renewed: a claim whose answer never arrived must run out.
#[derive(Debug)]
pub(crate) struct RenewLeases {
    pub(crate) worker: WorkerId,
    pub(crate) leases: Vec<LeaseRef>,
    pub(crate) length: Millis,
}

impl Op for RenewLeases {
    type Out = Vec<LeaseRef>;
    const RENEWAL: bool = true;

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<LeaseRef>> {
        let sql = match C::DIALECT {
            Dialect::Sqlite => {
                "UPDATE leases SET expires_at = now_ms() + $1 WHERE holder = $2
                 AND (resource, epoch) IN
                     (SELECT value ->> 0, value ->> 1 FROM json_each($3))
                 RETURNING resource, epoch"
            }
            Dialect::Postgres => {
                "UPDATE leases SET expires_at = now_ms() + $1 WHERE holder = $2
                 AND (resource, epoch) IN
                     (SELECT v ->> 0, (v ->> 1)::bigint
                      FROM jsonb_array_elements($3::text::jsonb) AS v)
                 RETURNING resource, epoch"
            }
        };
        let named: Vec<(String, u64)> = self
            .leases
            .iter()
            .map(|lease| (lease.resource.to_string(), lease.epoch.0))
            .collect();
        let rows = conn
            .query(
                sql,
                &[
                    self.length.into(),
                    self.worker.into(),
                    (&to_json(&named)).into(),
                ],
            )
            .await?;
        let kept = rows
            .iter()
            .map(|row| {
                Ok(LeaseRef {
                    resource: row.parse(0, "resource")?,
                    epoch: Epoch(row.unsigned(1)?),
                })
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(self
            .leases
            .iter()
            .filter(|lease| !kept.contains(lease))
            .cloned()
            .collect())
    }
}

/// Says that a worker is still there and renews its leases, in one transaction; answers which are lost
/// and whether any lease of anybody has run out.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    pub(crate) renew: RenewLeases,
    pub(crate) grace: Millis,
}

impl Op for KeepAlive {
    type Out = KeptAlive;
    const RENEWAL: bool = true;

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

    async fn run<C: Conn>(&self, conn: &mut C, again: bool) -> Result<KeptAlive> {
        SeeWorker(self.renew.worker).run(conn, again).await?;
        let lost = match self.renew.leases.is_empty() {
            true => Vec::new(),
            false => self.renew.run(conn, again).await?,
        };
        let held = conn
            .query(
                "SELECT min(expires_at) - now_ms() FROM leases WHERE holder IS NOT NULL",
                &[],
            )
            .await?;
        let next = held
            .first()
            .map(|row| row.opt_int(0))
            .transpose()?
            .flatten();
        let grace = i64::try_from(self.grace.0).unwrap_or(i64::MAX);
        Ok(KeptAlive {
            lost,
            any_held: next.is_some(),
            any_expired: next.is_some_and(|left| left.saturating_add(grace) <= 0),
        })
    }
}

/// Lets go of a lease. Its epoch stays on record, so that the next holder's is greater.
#[derive(Debug)]
pub(crate) struct ReleaseLease {
    pub(crate) worker: WorkerId,
    pub(crate) lease: LeaseRef,
}

impl Op for ReleaseLease {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, again: bool) -> Result<()> {
        let resource = self.lease.resource.to_string();
        let changed = conn
            .execute(
                "UPDATE leases SET holder = NULL, claim = NULL
                 WHERE resource = $1 AND holder = $2 AND epoch = $3",
                &[
                    (&resource).into(),
                    self.worker.into(),
                    self.lease.epoch.into(),
                ],
            )
            .await?;
        if changed > 0 || again {
            return Ok(());
        }
        let rows = conn
            .query(
                "SELECT epoch FROM leases WHERE resource = $1",
                &[(&resource).into()],
            )
            .await?;
        let current = rows.first().map_or(Ok(0), |row| row.unsigned(0))?;
        Err(StoreError::Stale {
            what: resource,
            carried: self.lease.epoch,
            current: Epoch(current),
        })
    }
}

/// Takes away what has run out for longer than `grace`, by the database's clock.
#[derive(Debug)]
pub(crate) struct ExpireLeases {
    pub(crate) grace: Millis,
    pub(crate) limit: u32,
    pub(crate) policy: Arc<NamedPolicy>,
    pub(crate) ids: IdSource,
}

const EXPIRED: &str = "SELECT resource, holder, epoch, expires_at, task, now_ms() FROM leases
     WHERE holder IS NOT NULL AND expires_at <= now_ms() - $1 ORDER BY expires_at LIMIT $2";

impl Op for ExpireLeases {
    type Out = Vec<Lease>;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Lease>> {
        let rows = conn
            .query(EXPIRED, &[self.grace.into(), self.limit.into()])
            .await?;
        let mut expired = Vec::new();
        for row in &rows {
            let lease = read(row)?;
            let taken = match row.opt_id(4)?.map(TaskId::new) {
                Some(task) => {
                    let now = Timestamp(row.int(5)?);
                    self.expire_task(conn, task, &lease, now).await?
                }
                None => self.expire_other(conn, &lease).await?,
            };
            if taken {
                expired.push(lease);
            }
        }
        Ok(expired)
    }
}

impl ExpireLeases {
    async fn expire_task<C: Conn>(
        &self,
        conn: &mut C,
        task: TaskId,
        lease: &Lease,
        now: Timestamp,
    ) -> Result<bool> {
        let before = tasks::require_locked(conn, task).await?;
        if before.epoch != lease.epoch || !self.still_expired(conn, lease).await? {
            return Ok(false);
        }
        let event = Event {
            id: self.ids.event(),
            at: now,
            actor: Actor::Woodward,
            roll: self.ids.roll(),
            fact: Fact::LeaseExpired { epoch: lease.epoch },
        };
        let transition = decide(&before, &event, &self.policy.policy)?;
        TaskWrite::new(&before, &event, &self.policy, &transition, None)
            .with_policy(&self.policy)
            .apply(conn)
            .await
    }

    /// Its holder may have renewed it since it was seen.
    async fn still_expired<C: Conn>(&self, conn: &mut C, lease: &Lease) -> Result<bool> {
        let sql = locking::<C>(
            "SELECT epoch FROM leases WHERE resource = $1 AND epoch = $2
             AND expires_at <= now_ms() - $3",
            "SELECT epoch FROM leases WHERE resource = $1 AND epoch = $2
             AND expires_at <= now_ms() - $3 FOR UPDATE",
        );
        let rows = conn
            .query(
                sql,
                &[
                    (&lease.resource.to_string()).into(),
                    lease.epoch.into(),
                    self.grace.into(),
                ],
            )
            .await?;
        Ok(!rows.is_empty())
    }

    async fn expire_other<C: Conn>(&self, conn: &mut C, lease: &Lease) -> Result<bool> {
        let changed = conn
            .execute(
                "UPDATE leases SET holder = NULL, claim = NULL
                 WHERE resource = $1 AND epoch = $2 AND expires_at <= now_ms() - $3",
                &[
                    (&lease.resource.to_string()).into(),
                    lease.epoch.into(),
                    self.grace.into(),
                ],
            )
            .await?;
        Ok(changed > 0)
    }
}

/// All leases that are held, by resource.
#[derive(Debug)]
pub(crate) struct LoadLeases(pub(crate) Option<WorkerId>);

impl Op for LoadLeases {
    type Out = Vec<Lease>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Lease>> {
        let rows = conn
            .query(
                "SELECT resource, holder, epoch, expires_at FROM leases
                 WHERE holder IS NOT NULL AND (CAST($1 AS bigint) = 0 OR holder = $2) ORDER BY resource",
                &[
                    Param::Int(i64::from(self.0.is_some())),
                    Param::opt_id(self.0),
                ],
            )
            .await?;
        rows.iter().map(read).collect()
    }
}
