//! The store for several machines: PostgreSQL.
//!
//! Connections come and go; a commit whose answer was lost is looked up, never blindly repeated.
//! Wake-ups go through one debounced notifier in a transaction of its own (a NOTIFY inside a hot
//! transaction would serialise all commits), with a poll behind it.

pub(crate) mod conn;
mod link;
mod migrations;
mod notify;
mod pool;

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Config;

use crate::activity::{Activity, Counter};
use crate::conn::Op;
use crate::error::{Result, StoreError};
use crate::policies::PolicyBook;
use crate::store::Backend;
use crate::wake::{POLL, Wakes, Wakeups};

use conn::Broken;
use notify::Notifier;
use pool::Pool;

/// How a PostgreSQL store is reached.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Most connections of this process, besides one to listen and one to notify.
    pub connections: usize,
    /// How long an operation keeps trying to reach the server.
    pub patience: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            connections: 8,
            patience: Duration::from_secs(10),
        }
    }
}

/// A store on a PostgreSQL server.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: Pool,
    notifier: Notifier,
    counter: Counter,
    policies: PolicyBook,
    patience: Duration,
}

impl PostgresStore {
    /// Connects, migrating the database as needed.
    ///
    /// # Errors
    /// When the server can't be reached, or a newer binary wrote the database.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::connect_with(url, PostgresOptions::default()).await
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn connect_with(url: &str, options: PostgresOptions) -> Result<Self> {
        let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            StoreError::Unavailable(format!("the database's address is wrong: {error}"))
        })?;
        let config = pool::with_time_limits(config);
        let pool = Pool::new(config.clone(), options.connections);
        migrations::run(&pool).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                pool,
                notifier: Notifier::start(config),
                counter: Counter::default(),
                policies: PolicyBook::default(),
                patience: options.patience,
            }),
        })
    }
}

/// Between two tries to reach the server; doubles up to the longest.
const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_LONGEST: Duration = Duration::from_secs(1);

impl Backend for PostgresStore {
    async fn perform<O: Op>(&self, op: O) -> Result<O::Out> {
        let inner = &*self.inner;
        inner.counter.count::<O>();
        let deadline = tokio::time::Instant::now() + inner.patience;
        let mut pause = RETRY_FIRST;
        let mut again = false;
        loop {
            let broken = match inner.pool.take().await {
                Ok(mut link) => match link.perform(&op, again).await {
                    Ok(out) => {
                        inner.pool.give_back(link);
                        let wakes = op.wakes();
                        if !O::READ && wakes != Wakes::NOBODY {
                            inner.notifier.tell(wakes);
                        }
                        return Ok(out);
                    }
                    Err(Broken::Refused(error)) => {
                        inner.pool.give_back(link);
                        return Err(error);
                    }
                    Err(broken) => broken,
                },
                Err(error) => Broken::Before(error),
            };
            let reason = match broken {
                Broken::Before(reason) => reason,
                Broken::Committing(reason) => {
                    again = true;
                    reason
                }
                Broken::Refused(error) => return Err(error),
            };
            if tokio::time::Instant::now() + pause >= deadline {
                tracing::warn!(reason, "the database can't be reached");
                return Err(if again {
                    StoreError::CommitUnknown
                } else {
                    StoreError::Unavailable(reason)
                });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_LONGEST);
        }
    }

    fn policies(&self) -> &PolicyBook {
        &self.inner.policies
    }

    fn wakeups(&self) -> Wakeups {
        self.inner.notifier.waker().work(Some(POLL))
    }

    fn ledger_wakeups(&self) -> Wakeups {
        self.inner.notifier.waker().ledger(Some(POLL))
    }

    fn activity(&self) -> Activity {
        self.inner.counter.activity()
    }
}
