//! Time-limited, fenced claims on things there is only one of.
//!
//! Lease time is for liveness only; safety is the epoch. Whether a lease has run out is judged by
//! the database's clock, never by ours, so nothing here compares times.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::id::{Epoch, ProjectId, TaskId, WorkerId};
use crate::time::{Millis, Timestamp};

/// Something that one holder has at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Resource {
    /// The right to act on a task.
    Task(TaskId),
    /// A block of ports on one machine, by its first port.
    Ports {
        /// The machine.
        worker: WorkerId,
        /// The first port of the block.
        first: u16,
    },
    /// A database made for a worktree.
    Database(String),
    /// The right to move one branch of one project.
    Landing {
        /// The project.
        project: ProjectId,
        /// The branch, without `refs/heads/`.
        branch: String,
    },
}

/// Why a text names no resource.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` names no resource")]
pub struct BadResource(String);

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(task) => write!(f, "task/{task}"),
            Self::Ports { worker, first } => write!(f, "ports/{worker}/{first}"),
            Self::Database(name) => write!(f, "database/{name}"),
            Self::Landing { project, branch } => write!(f, "landing/{project}/{branch}"),
        }
    }
}

impl FromStr for Resource {
    type Err = BadResource;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (kind, rest) = text.split_once('/')?;
            Some(match kind {
                "task" => Self::Task(rest.parse().ok()?),
                "ports" => {
                    let (worker, first) = rest.split_once('/')?;
                    Self::Ports {
                        worker: worker.parse().ok()?,
                        first: first.parse().ok()?,
                    }
                }
                "database" if !rest.is_empty() => Self::Database(String::from(rest)),
                "landing" => {
                    let (project, branch) = rest.split_once('/')?;
                    Self::Landing {
                        project: project.parse().ok()?,
                        branch: (!branch.is_empty()).then(|| String::from(branch))?,
                    }
                }
                _ => return None,
            })
        };
        parse().ok_or_else(|| BadResource(text.chars().take(120).collect()))
    }
}

impl TryFrom<String> for Resource {
    type Error = BadResource;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Resource> for String {
    fn from(resource: Resource) -> Self {
        resource.to_string()
    }
}

/// One lease as its holder knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// What is held.
    pub resource: Resource,
    /// By whom.
    pub holder: WorkerId,
    /// The fencing token that every write on its behalf carries.
    pub epoch: Epoch,
    /// When it runs out, by the database's clock.
    pub expires_at: Timestamp,
}

/// The rhythm of leases: renew four times a lease, stop oneself well before others take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseTiming {
    /// How long a lease lasts without renewal.
    pub length: Millis,
    /// How often its holder renews it.
    pub renew_every: Millis,
    /// A holder that could not renew for this long (monotonic clock) stops its agents itself.
    pub self_fence_after: Millis,
    /// How long past its end a lease is left alone before it is taken away.
    pub grace: Millis,
}

impl Default for LeaseTiming {
    fn default() -> Self {
        Self {
            length: Millis::from_secs(60),
            renew_every: Millis::from_secs(15),
            self_fence_after: Millis::from_secs(45),
            grace: Millis::from_secs(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_resource_is_its_text() {
        let id = Uuid::from_u128(5);
        for resource in [
            Resource::Task(TaskId::new(id)),
            Resource::Ports {
                worker: WorkerId::new(id),
                first: 20_000,
            },
            Resource::Database(String::from("ww_auth_api")),
            Resource::Landing {
                project: ProjectId::new(id),
                branch: String::from("release/1.2"),
            },
        ] {
            assert_eq!(resource.to_string().parse(), Ok(resource));
        }
        for bad in [
            "",
            "task",
            "task/7",
            "ports/x",
            "landing/",
            "database/",
            "moon/1",
        ] {
            assert!(bad.parse::<Resource>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_holder_stops_itself_before_its_lease_ends() {
        let timing = LeaseTiming::default();
        assert!(timing.renew_every < timing.self_fence_after);
        assert!(timing.self_fence_after < timing.length);
    }
}
