//! Fresh identities: version 7 UUIDs, in the order in which this process makes them.
//!
//! The core makes no ids up; this is where they come from. Where rows tie on their time, the database
//! sorts them by id: tasks that are created together start and are listed in the order of creation.
//! Ids of two processes within the same millisecond have no order.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{Builder, Uuid};
use woodward_core::{EventId, Roll, RunId};

/// Bits of a version 7 UUID between its time and its random part; they count within a millisecond.
const COUNTER_BITS: u32 = 12;

/// The time and the counter of the id that was made last.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A new UUID, greater than all that this process has made before: the time in milliseconds, a counter
/// of 12 bits, then 62 random bits of the operating system's. A counter that overflows, or a clock that
/// is set back, borrows from the next millisecond.
///
/// # Panics
/// When the operating system has no randomness to give: no identity would be safe.
pub fn fresh_uuid() -> Uuid {
    let mut random = [0_u8; 10];
    getrandom::fill(&mut random).expect("the operating system provides randomness");
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0));
    let place = next_place(&LAST, millis);
    // The first two of the ten bytes hold the counter; the version takes their upper four bits.
    let counter = place & ((1 << COUNTER_BITS) - 1);
    [random[0], random[1]] = [(counter >> 8).to_be_bytes()[7], counter.to_be_bytes()[7]];
    Builder::from_unix_timestamp_millis(place >> COUNTER_BITS, &random).into_uuid()
}

/// Takes the next pair of time and counter.
fn next_place(last: &AtomicU64, millis: u64) -> u64 {
    let now = millis << COUNTER_BITS;
    let after = |last: u64| now.max(last + 1);
    match last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        Some(after(last))
    }) {
        Ok(last) | Err(last) => after(last),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_process_sort_in_the_order_in_which_they_were_made() {
        let ids: Vec<Uuid> = (0..10_000).map(|_| fresh_uuid()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
        for id in &ids {
            assert_eq!(id.get_version_num(), 7, "{id}");
        }
    }

    #[test]
    fn a_full_counter_and_a_clock_that_is_set_back_keep_the_order() {
        let last = AtomicU64::new(0);
        let mut places = vec![next_place(&last, 1_000), next_place(&last, 900)];
        places.extend((0..10_000).map(|_| next_place(&last, 1_000)));
        places.push(next_place(&last, 1_001));
        assert!(places.is_sorted_by(|one, next| one < next));
        assert_eq!(next_place(&last, 5_000) >> COUNTER_BITS, 5_000);
    }
}
