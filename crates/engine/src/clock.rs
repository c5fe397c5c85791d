//! The one door for time and chance. Everything decided with them gets them inside events.

use std::time::{SystemTime, UNIX_EPOCH};

use woodward_core::{Actor, Event, EventId, Fact, Roll, Timestamp};
use woodward_store::fresh_uuid;

/// This machine's clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp(since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }))
}

/// The beginning of a moment's day, by UTC.
pub(crate) fn midnight(at: Timestamp) -> Timestamp {
    const DAY: i64 = 86_400_000;
    Timestamp(at.0 - at.0.rem_euclid(DAY))
}

/// How far the clock on the wall is ahead of UTC at a moment, in milliseconds.
pub(crate) fn local_offset(at: Timestamp) -> i64 {
    let Ok(moment) = jiff::Timestamp::from_millisecond(at.0) else {
        return 0;
    };
    let zoned = moment.to_zoned(jiff::tz::TimeZone::system());
    i64::from(zoned.offset().seconds()) * 1_000
}

/// A fact that happens now.
pub(crate) fn event(actor: Actor, fact: Fact) -> Event {
    let id = fresh_uuid();
    // The end of a version 7 id is random.
    let roll = Roll(u32::try_from(id.as_u128() & u128::from(u32::MAX)).unwrap_or_default());
    Event {
        id: EventId::new(id),
        at: now(),
        actor,
        roll,
        fact,
    }
}
