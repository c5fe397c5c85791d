//! The embedded store: SQLite in WAL mode, every commit on disk before it is acknowledged.
//!
//! One thread writes and gathers what arrives together into one commit; a few threads read. No other
//! part of Woodward opens the file.

mod conn;
mod files;
mod jobs;
mod open;
mod readers;
mod writer;

pub use open::SqliteOptions;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::activity::{Activity, Counter};
use crate::conn::Op;
use crate::error::Result;
use crate::policies::PolicyBook;
use crate::store::Backend;
use crate::wake::{POLL, Waker, Wakeups};

use files::DaemonLock;
use readers::Readers;
use writer::Writer;

/// A store in one file.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    writer: Writer,
    readers: Readers,
    waker: Arc<Waker>,
    /// Only where other processes may write too.
    poll: Option<Duration>,
    counter: Counter,
    policies: PolicyBook,
    /// Held until the last handle is gone. Never read: holding it is its purpose.
    _lock: Option<DaemonLock>,
}

impl SqliteStore {
    /// Opens the daemon's database, creating and migrating it as needed. One daemon a database:
    /// a second one is refused.
    ///
    /// # Errors
    /// When another daemon has it open, its file system can't be trusted with it, a newer binary
    /// wrote it, or it can't be opened.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(path: &Path, options: SqliteOptions) -> Result<Self> {
        files::require_local(path)?;
        let lock = if options.exclusive {
            Some(DaemonLock::acquire(path)?)
        } else {
            None
        };
        let write = open::writer(path, &options)?;
        let waker = Arc::new(Waker::default());
        let readers = Readers::start(path, &options)?;
        Ok(Self {
            inner: Arc::new(Inner {
                writer: Writer::start(write, Arc::clone(&waker))?,
                readers,
                waker,
                poll: (!options.exclusive).then_some(POLL),
                counter: Counter::default(),
                policies: PolicyBook::default(),
                _lock: lock,
            }),
        })
    }
}

impl Backend for SqliteStore {
    async fn perform<O: Op>(&self, op: O) -> Result<O::Out> {
        self.inner.counter.count::<O>();
        if O::READ {
            self.inner.readers.perform(op).await
        } else {
            self.inner.writer.perform(op).await
        }
    }

    fn policies(&self) -> &PolicyBook {
        &self.inner.policies
    }

    fn wakeups(&self) -> Wakeups {
        self.inner.waker.work(self.inner.poll)
    }

    fn ledger_wakeups(&self) -> Wakeups {
        self.inner.waker.ledger(self.inner.poll)
    }

    fn activity(&self) -> Activity {
        self.inner.counter.activity()
    }
}
