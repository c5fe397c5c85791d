//! Being told that there is something new.
//!
//! A wake-up is a hint, never data: whoever is woken reads the store. Where only this process writes, no
//! hint is lost, and a reader sleeps until it is told. Where others write too, a hint may be lost, so
//! there a poll is behind it.

use std::time::Duration;

use tokio::sync::watch;

/// How often a reader looks even when nobody wakes it, where other processes write too.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// Who has something new to read after a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wakes {
    /// Readers of tasks, the log, effects and the merge queue.
    pub(crate) work: bool,
    /// Readers of the ledger.
    pub(crate) ledger: bool,
}

impl Wakes {
    /// The write changes nothing that a reader waits for.
    pub(crate) const NOBODY: Self = Self {
        work: false,
        ledger: false,
    };
    pub(crate) const WORK: Self = Self {
        work: true,
        ledger: false,
    };
    pub(crate) const LEDGER: Self = Self {
        work: false,
        ledger: true,
    };

    /// The readers of both.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self {
            work: self.work || other.work,
            ledger: self.ledger || other.ledger,
        }
    }
}

/// Wakes the readers of this process.
#[derive(Debug, Default)]
pub(crate) struct Waker {
    work: watch::Sender<u64>,
    ledger: watch::Sender<u64>,
}

impl Waker {
    pub(crate) fn wake(&self, wakes: Wakes) {
        for (sender, is_told) in [(&self.work, wakes.work), (&self.ledger, wakes.ledger)] {
            if is_told {
                sender.send_modify(|count| *count += 1);
            }
        }
    }

    /// Wake-ups for readers of tasks, the log, effects and the merge queue.
    pub(crate) fn work(&self, poll: Option<Duration>) -> Wakeups {
        Wakeups::new(self.work.subscribe(), poll)
    }

    /// Wake-ups for readers of the ledger.
    pub(crate) fn ledger(&self, poll: Option<Duration>) -> Wakeups {
        Wakeups::new(self.ledger.subscribe(), poll)
    }
}

/// Tells a reader when to look again.
#[derive(Debug)]
pub struct Wakeups {
    changes: watch::Receiver<u64>,
    poll: Option<Duration>,
}

impl Wakeups {
    fn new(changes: watch::Receiver<u64>, poll: Option<Duration>) -> Self {
        Self { changes, poll }
    }

    /// The same with another poll interval.
    #[must_use]
    pub fn polling_every(mut self, poll: Duration) -> Self {
        self.poll = Some(poll);
        self
    }

    /// Whether something may have changed since the last wait.
    pub fn is_pending(&self) -> bool {
        self.changes.has_changed().unwrap_or(false)
    }

    /// Returns when something may have changed since the last call, or after the poll interval.
    /// `true` if it was told, `false` if it only is time to look.
    pub async fn next(&mut self) -> bool {
        let Some(poll) = self.poll else {
            if self.changes.changed().await.is_err() {
                // The store is gone: nothing will change any more.
                std::future::pending::<()>().await;
            }
            return true;
        };
        match tokio::time::timeout(poll, self.changes.changed()).await {
            Ok(Ok(())) => true,
            // The store is gone: nothing will change any more, but a caller in a loop must not spin.
            Ok(Err(_)) => {
                tokio::time::sleep(poll).await;
                false
            }
            Err(_) => false,
        }
    }
}
