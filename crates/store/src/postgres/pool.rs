//! A bounded set of sessions, made when needed, thrown away when broken.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::Config;

use super::link::Link;

const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long data may stay unacknowledged, and how long a session may be silent before it is probed.
const SILENCE_MAX: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct Pool {
    config: Config,
    places: Semaphore,
    idle: Mutex<Vec<Link>>,
}

/// A session with its place in the pool.
#[derive(Debug)]
pub(super) struct Leased<'a> {
    link: Link,
    _place: SemaphorePermit<'a>,
}

impl Deref for Leased<'_> {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl DerefMut for Leased<'_> {
    fn deref_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Pool {
    pub(super) fn new(config: Config, size: usize) -> Self {
        Self {
            config,
            places: Semaphore::new(size.max(1)),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// A usable session, or why there is none.
    pub(super) async fn take(&self) -> Result<Leased<'_>, String> {
        let place = self
            .places
            .acquire()
            .await
            .map_err(|error| error.to_string())?;
        let idle = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            std::iter::from_fn(|| idle.pop()).find(Link::is_usable)
        };
        let link = match idle {
            Some(link) => link,
            None => Link::open(&self.config).await?,
        };
        Ok(Leased {
            link,
            _place: place,
        })
    }

    /// Keeps a session for the next one; a broken one is let go.
    pub(super) fn give_back(&self, leased: Leased<'_>) {
        if leased.link.is_usable() {
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(leased.link);
        }
    }
}

/// A server that is unreachable rather than gone must be noticed, too.
pub(super) fn with_time_limits(mut config: Config) -> Config {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_MAX);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE_MAX);
    }
    config.keepalives_idle(SILENCE_MAX);
    config
}

/// An error of the driver with its cause, which its own text leaves out.
pub(super) fn describe(error: &tokio_postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
