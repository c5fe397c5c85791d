//! Why the model writes nothing.

use std::fmt;

use woodward_core::{Epoch, IllegalTransition, IntentId, TaskId, Version, WorkerId};

/// Why a write was refused. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Somebody else changed the task in between.
    Changed {
        /// The version the writer knew.
        expected: Version,
        /// The version there is.
        found: Version,
    },
    /// The writer's right is gone or never was.
    Stale {
        /// The epoch it carried.
        carried: Epoch,
        /// The epoch that counts.
        current: Epoch,
    },
    /// Somebody else has the resource.
    Held(WorkerId),
    /// `step` says no.
    Illegal(IllegalTransition),
    /// The branch has a pending intent already.
    IntentPending(IntentId),
    /// The intent is not pending, or not known.
    IntentClosed(IntentId),
    /// The events do not belong to the intent's members.
    MembersDiffer,
    /// There is no such task.
    UnknownTask(TaskId),
    /// A task of that id exists.
    Exists(TaskId),
    /// The event creates nothing.
    NotACreation,
    /// The event's actor is not the holder of a landing right.
    NoLander,
}

impl From<IllegalTransition> for Refused {
    fn from(illegal: IllegalTransition) -> Self {
        Self::Illegal(illegal)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { expected, found } => {
                write!(f, "the task is at version {found}, not {expected}")
            }
            Self::Stale { carried, current } => {
                write!(f, "epoch {carried} is stale, {current} is current")
            }
            Self::Held(by) => write!(f, "worker {by} has it"),
            Self::Illegal(illegal) => write!(f, "{illegal}"),
            Self::IntentPending(intent) => write!(f, "intent {intent} is pending"),
            Self::IntentClosed(intent) => write!(f, "intent {intent} is not pending"),
            Self::MembersDiffer => f.write_str("the events are not those of the members"),
            Self::UnknownTask(task) => write!(f, "there is no task {task}"),
            Self::Exists(task) => write!(f, "task {task} exists"),
            Self::NotACreation => f.write_str("the event creates no task"),
            Self::NoLander => f.write_str("the actor holds no landing right"),
        }
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// Whether the writer's epoch was the reason.
    pub fn is_stale(&self) -> bool {
        use woodward_core::Refusal;
        matches!(self, Self::Stale { .. })
            || matches!(self, Self::Illegal(illegal)
                if matches!(illegal.refusal, Refusal::StaleClaim { .. } | Refusal::NoRight))
    }
}
