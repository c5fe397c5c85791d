//! Following the log: how far it has come, for everybody who waits for something to happen.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use woodward_core::EventSeq;

use crate::engine::Inner;

/// How long it waits after the log could not be read.
const RETRY: Duration = Duration::from_secs(1);

/// How far the log has come.
#[derive(Debug)]
pub(crate) struct Tail {
    seq: watch::Sender<EventSeq>,
    /// How often a person's bell was rung.
    bells: watch::Sender<u64>,
}

impl Default for Tail {
    fn default() -> Self {
        Self {
            seq: watch::Sender::new(EventSeq(0)),
            bells: watch::Sender::new(0),
        }
    }
}

impl Tail {
    pub(crate) fn now(&self) -> EventSeq {
        *self.seq.borrow()
    }

    /// Waits until it has come past a place, or for a while.
    pub(crate) async fn past(&self, place: EventSeq, wait: Duration) {
        let mut seq = self.seq.subscribe();
        let _ = tokio::time::timeout(wait, seq.wait_for(|seq| *seq > place)).await;
    }

    /// Waits until it is not at this place any more, however long that takes.
    pub(crate) async fn wait_for_change(&self, place: EventSeq) {
        let mut seq = self.seq.subscribe();
        // The sender lives as long as this.
        let _ = seq.wait_for(|seq| *seq != place).await;
    }

    /// Rings the bell of everybody who waits for a change.
    pub(crate) fn ring(&self) {
        self.bells.send_modify(|bells| *bells += 1);
    }

    /// How often the bell was rung.
    pub(crate) fn bells(&self) -> u64 {
        *self.bells.borrow()
    }

    /// Waits until it has come beyond a place, or until a bell rings, or for a while; says how far it
    /// is then. A place that lies ahead is one of another log: that is a change, too.
    pub(crate) async fn beyond(&self, after: EventSeq, wait: Duration) -> EventSeq {
        let mut seq = self.seq.subscribe();
        let mut bells = self.bells.subscribe();
        let moved = async {
            tokio::select! {
                _ = seq.wait_for(|seq| *seq != after) => {}
                _ = bells.changed() => {}
            }
        };
        let _ = tokio::time::timeout(wait, moved).await;
        self.now()
    }
}

/// Follows the log until the engine stops.
pub(crate) async fn follow(inner: Arc<Inner>) {
    let mut wakeups = inner.store.wakeups();
    let mut after = EventSeq(0);
    loop {
        match inner.store.log_end(after).await {
            Ok(end) if end != after => {
                after = end;
                inner.tail.seq.send_replace(after);
                continue;
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "the log can't be read now");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        }
        wakeups.next().await;
    }
}
