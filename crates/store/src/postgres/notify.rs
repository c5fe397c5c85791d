//! Telling other processes that something changed, and hearing it from them.
//!
//! Writers only mark that there is something to tell; one task tells it, at most every
//! [`DEBOUNCE`], in a transaction of its own. Notifications are lost while nobody listens, so every
//! new listening session is itself a wake-up, and readers poll besides.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{StreamExt, poll_fn};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Config, NoTls};

use super::link::Link;
use super::pool::describe;
use crate::wake::{Waker, Wakes};

const CHANNEL_LISTEN: &str = "LISTEN woodward";
const CHANNEL_NOTIFY: &str = "NOTIFY woodward";
const DEBOUNCE: Duration = Duration::from_millis(50);
const RECONNECT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Notifier {
    dirty: Arc<Notify>,
    waker: Arc<Waker>,
    tasks: [JoinHandle<()>; 2],
}

impl Notifier {
    pub(super) fn start(config: Config) -> Self {
        let dirty = Arc::new(Notify::new());
        let waker = Arc::new(Waker::default());
        let tasks = [
            tokio::spawn(tell_others(config.clone(), Arc::clone(&dirty))),
            tokio::spawn(hear_others(config, Arc::clone(&waker))),
        ];
        Self {
            dirty,
            waker,
            tasks,
        }
    }

    /// Something was written: wakes this process now and the others soon.
    pub(super) fn tell(&self, wakes: Wakes) {
        self.waker.wake(wakes);
        self.dirty.notify_one();
    }

    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn tell_others(config: Config, dirty: Arc<Notify>) {
    let mut link = None;
    loop {
        dirty.notified().await;
        tokio::time::sleep(DEBOUNCE).await;
        let open = match link.take() {
            Some(open) => Ok(open),
            None => Link::open(&config).await,
        };
        let told = match open {
            Ok(mut open) => open.batch(CHANNEL_NOTIFY).await.map(|()| link = Some(open)),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = told {
            tracing::debug!(reason, "other processes could not be told; they poll");
            tokio::time::sleep(RECONNECT).await;
            dirty.notify_one();
        }
    }
}

/// What other processes have written is anything.
const BY_OTHERS: Wakes = Wakes::WORK.or(Wakes::LEDGER);

async fn hear_others(config: Config, waker: Arc<Waker>) {
    loop {
        if let Err(error) = listen(&config, &waker).await {
            tracing::debug!(reason = describe(&error), "not listening; readers poll");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

/// Listens until the session breaks.
async fn listen(config: &Config, waker: &Waker) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = config.connect(NoTls).await?;
    let mut messages = poll_fn(move |context| connection.poll_message(context));
    let hear = async {
        while let Some(message) = messages.next().await {
            if let AsyncMessage::Notification(_) = message? {
                waker.wake(BY_OTHERS);
            }
        }
        Ok(())
    };
    let subscribe = async {
        client.batch_execute(CHANNEL_LISTEN).await?;
        // Whatever happened while nobody listened.
        waker.wake(BY_OTHERS);
        Ok(())
    };
    let (heard, subscribed) = futures_util::future::join(hear, subscribe).await;
    subscribed.and(heard)
}
