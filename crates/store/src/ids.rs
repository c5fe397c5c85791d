//! Fresh identities: version 7 UUIDs, so that rows created together lie together.
//!
//! The core makes no ids up; this is where they come from.

use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{Builder, Uuid};
use woodward_core::{EventId, Roll, RunId};

/// A new UUID: time first, then 74 random bits of the operating system's.
///
/// # Panics
/// When the operating system has no randomness to give: no identity would be safe.
pub fn fresh_uuid() -> Uuid {
    let mut random = [0_u8; 10];
    getrandom::fill(&mut random).expect("the operating system provides randomness");
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

/// Where a claim takes the ids and the die of its events from.
#[derive(Clone, Debug)]
pub(crate) struct IdSource;

impl IdSource {
    /// The id of a new run.
    pub(crate) fn run(&self) -> RunId {
        RunId::new(fresh_uuid())
    }

    /// The id of a new event.
    pub(crate) fn event(&self) -> EventId {
        EventId::new(fresh_uuid())
    }

    /// A die.
    pub(crate) fn roll(&self) -> Roll {
        let bytes = fresh_uuid().into_bytes();
        Roll(u32::from_be_bytes([
            bytes[12], bytes[13], bytes[14], bytes[15],
        ]))
    }
}
