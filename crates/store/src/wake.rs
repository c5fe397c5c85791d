//! Being told that there is something new.
//!
//! A wake-up is a hint, never data: whoever is woken reads the store. Hints may be lost, so there is
//! always a poll behind them.

use std::time::Duration;

use tokio::sync::watch;

/// How often a reader looks even when nobody wakes it.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// Tells a reader when to look again.
#[derive(Debug)]
pub struct Wakeups {
    changes: watch::Receiver<u64>,
    poll: Duration,
}

impl Wakeups {
    pub(crate) fn new(changes: watch::Receiver<u64>) -> Self {
        Self {
            changes,
            poll: POLL,
        }
    }

    /// The same with another poll interval.
    #[must_use]
    pub fn polling_every(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// Returns when something may have changed since the last call, or after the poll interval.
    /// `true` if it was told, `false` if it only is time to look.
    pub async fn next(&mut self) -> bool {
        match tokio::time::timeout(self.poll, self.changes.changed()).await {
            Ok(Ok(())) => true,
            // The store is gone: nothing will change any more, but a caller in a loop must not spin.
            Ok(Err(_)) => {
                tokio::time::sleep(self.poll).await;
                false
            }
            Err(_) => false,
        }
    }
}
