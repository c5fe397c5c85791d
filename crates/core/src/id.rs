//! Identities as types, so that a run can't be passed where a task is meant.
//!
//! Ids are made by the caller (version 7 UUIDs in production, counters in the simulation): this
//! crate has no source of randomness and must never make one up.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

macro_rules! uuid_id {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID made by the caller.
            pub const fn new(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID itself.
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    )+};
}

uuid_id! {
    /// A git repository known to Woodward.
    ProjectId;
    /// One unit of work.
    TaskId;
    /// One execution of an agent on a task.
    RunId;
    /// One fact in the log. Recording the same id twice is recording it once.
    EventId;
    /// One durable message to or from an agent.
    MessageId;
    /// One recorded intention to move a branch.
    IntentId;
    /// A place that claims and executes. It outlives restarts of the daemon on that machine, so
    /// that work addressed to it is still done after a crash.
    WorkerId;
    /// One attempt to claim. A claim whose answer was lost is found again by it.
    ClaimId;
}

macro_rules! counter {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )+};
}

counter! {
    /// The fencing token. It grows with every claim and every revocation and never shrinks; a write
    /// that carries an older one writes nothing.
    Epoch;
    /// How many events have shaped a task. Each transition is a compare-and-set on it.
    Version;
    /// A place in the event log. A reader that resumes from it misses nothing.
    EventSeq;
}

/// Why a text is no git object name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a full git object name (40 or 64 lower-case hex digits)")]
pub struct BadObjectId(String);

fn object_id(text: String) -> Result<String, BadObjectId> {
    let full = matches!(text.len(), 40 | 64);
    let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if full && hex {
        Ok(text)
    } else {
        Err(BadObjectId(text.chars().take(80).collect()))
    }
}

macro_rules! object_id {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as git prints it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadObjectId;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                object_id(text).map(Self)
            }
        }

        impl FromStr for $name {
            type Err = BadObjectId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::try_from(String::from(text))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), &self.0[..8])
            }
        }
    )+};
}

object_id! {
    /// A commit, by its git object name: full length and lower case.
    CommitId;
    /// The content of a commit, by its git object name.
    TreeId;
}

/// Git's answers are names of objects; what they name is the caller's to know.
impl From<CommitId> for TreeId {
    fn from(object: CommitId) -> Self {
        Self(object.0)
    }
}

/// See the other way.
impl From<TreeId> for CommitId {
    fn from(object: TreeId) -> Self {
        Self(object.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_commit_id_is_full_and_lower_case() {
        assert!("a".repeat(40).parse::<CommitId>().is_ok());
        assert!("0".repeat(64).parse::<CommitId>().is_ok());
        for bad in [
            "",
            "HEAD",
            "abc123",
            &"A".repeat(40),
            &"g".repeat(40),
            &"a".repeat(41),
        ] {
            assert!(bad.parse::<CommitId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_print_as_their_uuid() {
        let id = TaskId::new(Uuid::from_u128(7));
        assert_eq!(id.to_string(), "00000000-0000-0000-0000-000000000007");
        assert_eq!(id.to_string().parse(), Ok(id));
    }
}
