//! Waiting for something to become true, never for time to pass.

use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(180);
/// How long an agent program may take on a busy machine; several start at once.
pub const AGENT_PATIENCE: Duration = Duration::from_secs(180);
/// Between two looks, at least and at most.
const PAUSE_MIN: Duration = Duration::from_millis(1);
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(100);
/// A pause is this part of what was waited so far: a look costs little, and little is waited too long.
const PAUSE_PART: u32 = 16;

/// The pause before the next look, after so much time.
pub(crate) fn pause(waited: Duration) -> Duration {
    (waited / PAUSE_PART).clamp(PAUSE_MIN, PAUSE_MAX)
}

/// Waits until `look` finds something.
///
/// # Panics
/// When it finds nothing for three minutes.
pub fn until_some<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, what, look)
}

/// Waits until `look` finds something, as long as that may take here.
///
/// # Panics
/// When it finds nothing for so long.
pub fn within<T>(deadline: Duration, what: &str, look: impl FnMut() -> Option<T>) -> T {
    seek(deadline, look).unwrap_or_else(|| panic!("in vain: {what}"))
}

/// Whether `look` comes to say yes within three minutes.
pub fn holds(mut look: impl FnMut() -> bool) -> bool {
    seek(DEADLINE, || look().then_some(())).is_some()
}

/// What `look` finds, if it finds something in time. For what is in files and processes, which nobody
/// announces; [`crate::TestProject`] waits for events instead.
pub(crate) fn seek<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        let found = look();
        if found.is_some() || begun.elapsed() >= patience {
            return found;
        }
        std::thread::sleep(pause(begun.elapsed()));
    }
}

/// Waits until `look` says yes.
///
/// # Panics
/// When it says no for three minutes.
pub fn until(what: &str, mut look: impl FnMut() -> bool) {
    until_some(what, || look().then_some(()));
}
