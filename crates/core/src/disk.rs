//! When a disk counts as full, and when there is room again.
//!
//! Judges measured space only. What a program printed about a full disk is never evidence.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::text::ByteSize;

/// A disk with less free space than this is full.
const FREE_MIN: u64 = 16 << 20;
/// A small disk is full when less than one part in this many is free.
const SMALL_DISK_PARTS: u64 = 20;
/// A file system with fewer free inodes than this is full.
const INODES_MIN: u64 = 16;

/// The measured space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that an ordinary process can still write.
    pub free: u64,
    /// Its size in bytes.
    pub total: u64,
    /// Free inodes; `None` where their number is not limited.
    pub inodes: Option<u64>,
}

/// What a full disk has run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskLimit {
    /// Bytes.
    Space,
    /// Inodes.
    Inodes,
    /// The user's quota.
    Quota,
}

/// A full disk that a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFull {
    /// A directory on that disk.
    pub path: String,
    /// How many bytes were free when it was last measured.
    pub free_bytes: u64,
    /// What it has run out of.
    pub limit: DiskLimit,
}

impl fmt::Display for DiskFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            free_bytes,
            limit,
        } = self;
        match limit {
            DiskLimit::Space => write!(f, "disk full: {} free on {path}", ByteSize(*free_bytes)),
            DiskLimit::Inodes => write!(f, "disk full: no free inodes on {path}"),
            DiskLimit::Quota => write!(f, "disk quota exceeded on {path}"),
        }
    }
}

impl DiskSpace {
    /// The free space below which this disk is full.
    pub fn floor(&self) -> u64 {
        FREE_MIN.min(self.total / SMALL_DISK_PARTS)
    }

    /// What this disk has run out of, if it is full.
    pub fn exhausted(&self) -> Option<DiskLimit> {
        if self.free < self.floor() {
            Some(DiskLimit::Space)
        } else if self.inodes.is_some_and(|inodes| inodes < INODES_MIN) {
            Some(DiskLimit::Inodes)
        } else {
            None
        }
    }

    /// Whether a task that met a full disk can be expected to get further now: the disk is not full,
    /// and it has noticeably more space than the task met.
    pub fn has_room_after(&self, met: &DiskFull) -> bool {
        self.exhausted().is_none()
            && (met.limit == DiskLimit::Inodes
                || self.free >= met.free_bytes.saturating_add(self.floor().max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const GB: u64 = 1_000_000_000;

    fn disk(free: u64, total: u64) -> DiskSpace {
        DiskSpace {
            free,
            total,
            inodes: None,
        }
    }

    fn met(free_bytes: u64, limit: DiskLimit) -> DiskFull {
        DiskFull {
            path: "/work".into(),
            free_bytes,
            limit,
        }
    }

    #[test]
    fn a_disk_is_full_below_its_floor() {
        assert_eq!(
            disk(12_000_000, 100 * GB).exhausted(),
            Some(DiskLimit::Space)
        );
        assert_eq!(disk(17 << 20, 100 * GB).exhausted(), None);
        assert_eq!(disk(300_000, 4_000_000).exhausted(), None);
        assert_eq!(disk(100_000, 4_000_000).exhausted(), Some(DiskLimit::Space));
        let few = DiskSpace {
            inodes: Some(3),
            ..disk(GB, 100 * GB)
        };
        assert_eq!(few.exhausted(), Some(DiskLimit::Inodes));
    }

    #[test]
    fn there_is_room_again_only_with_more_space_than_before() {
        let needed_more = met(700_000, DiskLimit::Space);
        assert!(!disk(700_000, 4_000_000).has_room_after(&needed_more));
        assert!(disk(3_000_000, 4_000_000).has_room_after(&needed_more));
        assert!(!disk(12_000_000, 100 * GB).has_room_after(&met(0, DiskLimit::Space)));
        let inodes = DiskSpace {
            inodes: Some(1_000),
            ..disk(GB, 100 * GB)
        };
        assert!(inodes.has_room_after(&met(GB, DiskLimit::Inodes)));
    }

    #[test]
    fn a_full_disk_is_told_with_its_free_space_and_path() {
        let text = met(12_400_000, DiskLimit::Space).to_string();
        assert_eq!(text, "disk full: 12 MB free on /work");
        let text = met(0, DiskLimit::Quota).to_string();
        assert_eq!(text, "disk quota exceeded on /work");
    }
}
