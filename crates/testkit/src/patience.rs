//! Waiting for something to become true, never for time to pass.

use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long an agent program may take on a busy machine; several start at once.
pub const AGENT_PATIENCE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until `look` finds something.
///
/// # Panics
/// When it finds nothing for a minute.
pub fn until_some<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(DEADLINE, what, look)
}

/// Waits until `look` finds something, as long as that may take here.
///
/// # Panics
/// When it finds nothing for so long.
pub fn within<T>(deadline: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + deadline;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Waits until `look` says yes.
///
/// # Panics
/// When it says no for a minute.
pub fn until(what: &str, mut look: impl FnMut() -> bool) {
    until_some(what, || look().then_some(()));
}
