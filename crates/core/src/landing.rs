//! Moving a branch exactly once.
//!
//! A branch moves only by compare-and-swap and only with a recorded intent. A crash between the
//! record and the move, or between the move and its record, is repaired by looking at the ref:
//! git is the truth for "landed".

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::{CommitId, Epoch, IntentId, ProjectId, TaskId};
use crate::time::Millis;

/// The recorded intention to move a branch from one commit to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Its identity, also a trailer of the commit.
    pub id: IntentId,
    /// The project.
    pub project: ProjectId,
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The landing right it was recorded under.
    pub epoch: Epoch,
    /// Where the branch must be for the move to be right.
    pub old: CommitId,
    /// Where it shall be.
    pub new: CommitId,
    /// The tasks that land with it.
    pub members: Vec<TaskId>,
}

/// What became of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntentState {
    /// The branch may or may not have moved.
    Pending,
    /// The branch has moved.
    Landed,
    /// The branch had moved elsewhere; nothing was done.
    Void,
}

impl IntentState {
    /// The one word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Landed => "landed",
            Self::Void => "void",
        }
    }
}

/// What a look at the branch showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefSeen {
    /// Where the branch is; `None` if it does not exist.
    pub current: Option<CommitId>,
    /// Whether that commit has the intent's `new` among its ancestors (or is it).
    pub contains_new: bool,
}

/// What to do about a pending intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The move happened: record it.
    RecordLanded,
    /// The move did not happen and still can: do the same compare-and-swap again.
    MoveRef,
    /// The branch went elsewhere: record that the intent is void and plan anew.
    RecordVoid,
}

/// Why a landing waits, by what has to change before it can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldCause {
    /// The person's checkout has changes that the landing would overwrite.
    Checkout,
    /// Git knows no name and address of the person.
    IdentityMissing,
    /// The commit could not be signed.
    Signing,
    /// There is no room on the disk.
    DiskFull,
    /// A lock file of git is in the way.
    Locked,
    /// The remote refuses it, or can't be reached.
    Remote,
    /// Only a person may approve it.
    Approval,
    /// Something else went wrong.
    Other,
}

impl HoldCause {
    /// How long to wait before the next attempt, after so many in a row that met this cause. Never
    /// less than a second, never more than a minute.
    pub fn retry_after(self, attempts: u32) -> Millis {
        let (first, most) = match self {
            Self::Checkout | Self::IdentityMissing | Self::Remote | Self::Approval => (3, 3),
            Self::Locked => (1, 30),
            Self::DiskFull => (2, 60),
            Self::Signing | Self::Other => (3, 60),
        };
        let doublings = attempts.saturating_sub(1).min(10);
        Millis::from_secs((first << doublings).min(most))
    }
}

/// Decides by looking, never by remembering.
pub fn recover(intent: &Intent, seen: &RefSeen) -> Recovery {
    match &seen.current {
        _ if seen.contains_new => Recovery::RecordLanded,
        Some(current) if *current == intent.old => Recovery::MoveRef,
        _ => Recovery::RecordVoid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use uuid::Uuid;

    fn commit(digit: &str) -> CommitId {
        digit.repeat(40).parse().expect("40 hex digits")
    }

    #[test]
    fn attempts_come_further_apart_up_to_a_minute() {
        let all = [
            HoldCause::Checkout,
            HoldCause::IdentityMissing,
            HoldCause::Signing,
            HoldCause::DiskFull,
            HoldCause::Locked,
            HoldCause::Remote,
            HoldCause::Approval,
            HoldCause::Other,
        ];
        for cause in all {
            let mut earlier = Millis::from_secs(1);
            for attempts in [0, 1, 2, 3, 10, u32::MAX] {
                let wait = cause.retry_after(attempts);
                assert!(
                    earlier <= wait && wait <= Millis::from_secs(60),
                    "{cause:?}"
                );
                earlier = wait;
            }
        }
    }

    #[test]
    fn recovery_follows_the_ref() {
        let intent = Intent {
            id: IntentId::new(Uuid::nil()),
            project: ProjectId::new(Uuid::nil()),
            branch: "main".into(),
            epoch: Epoch(1),
            old: commit("a"),
            new: commit("b"),
            members: vec![],
        };
        let at = |digit: &str, contains_new| RefSeen {
            current: Some(commit(digit)),
            contains_new,
        };
        assert_eq!(recover(&intent, &at("a", false)), Recovery::MoveRef);
        assert_eq!(recover(&intent, &at("b", true)), Recovery::RecordLanded);
        assert_eq!(
            recover(&intent, &at("c", true)),
            Recovery::RecordLanded,
            "somebody built on it"
        );
        assert_eq!(recover(&intent, &at("c", false)), Recovery::RecordVoid);
        let gone = RefSeen {
            current: None,
            contains_new: false,
        };
        assert_eq!(recover(&intent, &gone), Recovery::RecordVoid);
    }
}
