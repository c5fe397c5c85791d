//! Waiting for something to become true, never for time to pass.

use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(180);
/// How long an agent program may take on a busy machine; several start at once.
pub const AGENT_PATIENCE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(10);

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

fn seek<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits until `look` says yes.
///
/// # Panics
/// When it says no for three minutes.
pub fn until(what: &str, mut look: impl FnMut() -> bool) {
    until_some(what, || look().then_some(()));
}
