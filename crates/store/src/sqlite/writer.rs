//! The one thread that writes, and group commit.
//!
//! Everything that has arrived is run in one transaction and acknowledged by one commit to disk.
//! Each operation keeps its own fate: if one of a group fails after it has written something, the
//! group is rolled back and its operations are run one by one, each in a transaction of its own.
//! A commit that could not be made durable stops the writer for good: what the disk then holds is
//! unknown, and nothing may be acknowledged on top of it.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::mpsc;

use super::conn::{SqliteConn, classify};
use super::jobs::{Job, job, stopped};
use crate::conn::Op;
use crate::error::{Result, StoreError};
use crate::wake::{Waker, Wakes};

/// Writes that may wait at once; more wait with their callers.
const QUEUE_MAX: usize = 1_024;
/// The most operations of one commit.
const GROUP_MAX: usize = 256;
/// The longest wait for the others of a group that is known to come back together: about what the
/// commit that it saves would cost.
const GATHER_MAX: Duration = Duration::from_micros(800);

/// How long the writer looks for the next job before it sleeps.
const LINGER: Duration = Duration::from_micros(150);

#[derive(Debug)]
pub(super) struct Writer {
    /// `None` once it is being closed.
    jobs: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: Connection, waker: Arc<Waker>) -> Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE_MAX);
        let scribe = Scribe {
            conn: SqliteConn(connection),
            waker,
            stopped_by: None,
            last_group: 1,
        };
        let thread = thread::Builder::new()
            .name("woodward-write".into())
            .spawn(move || scribe.work(queue))
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    pub(super) async fn perform<O: Op>(&self, op: O) -> Result<O::Out> {
        let (job, answer) = job(op);
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        jobs.send(job).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for Writer {
    /// Waits until what was accepted is written: whoever opens the file next sees all of it.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

struct Scribe {
    conn: SqliteConn,
    waker: Arc<Waker>,
    /// Why nothing may be written any more.
    stopped_by: Option<String>,
    /// How many came together last time: as many are likely to come together again.
    last_group: usize,
}

type Group = Vec<Box<dyn Job>>;

impl Scribe {
    fn work(mut self, mut queue: mpsc::Receiver<Box<dyn Job>>) {
        while let Some(first) = next(&mut queue) {
            let group = self.gather(first, &mut queue);
            self.last_group = group.len();
            self.write(group);
        }
    }

    /// Takes what has arrived. When many came together last time they were answered together and
    /// will be back in a moment, so waiting for them that long saves a commit.
    fn gather(&self, first: Box<dyn Job>, queue: &mut mpsc::Receiver<Box<dyn Job>>) -> Group {
        let mut group = vec![first];
        let started = Instant::now();
        while group.len() < GROUP_MAX {
            match queue.try_recv() {
                Ok(job) => group.push(job),
                Err(mpsc::error::TryRecvError::Disconnected) => break,
                Err(mpsc::error::TryRecvError::Empty) => {
                    if group.len() >= self.last_group || started.elapsed() >= GATHER_MAX {
                        break;
                    }
                    thread::yield_now();
                }
            }
        }
        group
    }

    fn write(&mut self, mut group: Group) {
        if let Some(reason) = &self.stopped_by {
            let error = StoreError::Poisoned(reason.clone());
            return refuse_all(group, &error);
        }
        if let Err(error) = self.begin() {
            return refuse_all(group, &error);
        }
        let mut wakes = Wakes::NOBODY;
        let mut run = |job: &mut Box<dyn Job>| self.run_cleanly(job.as_mut(), &mut wakes);
        if group.iter_mut().all(&mut run) {
            match self.commit() {
                Ok(()) => {
                    for job in group {
                        job.answer();
                    }
                    self.waker.wake(wakes);
                }
                Err(error) => refuse_all(group, &error),
            }
        } else {
            self.roll_back();
            for job in group {
                self.write_alone(job);
            }
        }
    }

    /// Runs a job; `false` if it failed after writing something, so that its writes must go.
    fn run_cleanly(&mut self, job: &mut dyn Job, wakes: &mut Wakes) -> bool {
        let before = self.conn.0.total_changes();
        let succeeded = job.run(&mut self.conn);
        let wrote = self.conn.0.total_changes() != before;
        if wrote {
            *wakes = wakes.or(job.wakes());
        }
        let rolled_back = self.conn.0.is_autocommit();
        !rolled_back && (succeeded || !wrote)
    }

    fn write_alone(&mut self, mut job: Box<dyn Job>) {
        let before = self.conn.0.total_changes();
        if let Err(error) = self.begin() {
            return job.refuse(error);
        }
        if !job.run(&mut self.conn) {
            self.roll_back();
            return job.answer();
        }
        match self.commit() {
            Ok(()) => {
                let wakes = job.wakes();
                job.answer();
                if self.conn.0.total_changes() != before {
                    self.waker.wake(wakes);
                }
            }
            Err(error) => job.refuse(error),
        }
    }

    /// `IMMEDIATE`: a transaction that starts as a reader could be refused when it comes to write.
    fn begin(&self) -> Result<()> {
        self.conn
            .0
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute([]))
            .map(drop)
            .map_err(classify)
    }

    fn commit(&mut self) -> Result<()> {
        let committed = self
            .conn
            .0
            .prepare_cached("COMMIT")
            .and_then(|mut commit| commit.execute([]))
            .map(drop)
            .map_err(classify);
        if let Err(error) = &committed {
            self.roll_back();
            if let StoreError::Poisoned(reason) = error {
                tracing::error!(reason, "a commit could not be made durable; writing stops");
                self.stopped_by = Some(reason.clone());
            }
        }
        committed
    }

    fn roll_back(&self) {
        if !self.conn.0.is_autocommit()
            && let Err(error) = self.conn.0.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "a rollback failed");
        }
    }
}

/// The next job. Whoever was just answered is likely to ask again at once, and waking a sleeping thread
/// takes longer than that, so the writer looks for a moment before it sleeps.
fn next(queue: &mut mpsc::Receiver<Box<dyn Job>>) -> Option<Box<dyn Job>> {
    let started = Instant::now();
    while started.elapsed() < LINGER {
        match queue.try_recv() {
            Ok(job) => return Some(job),
            Err(mpsc::error::TryRecvError::Disconnected) => return None,
            Err(mpsc::error::TryRecvError::Empty) => thread::yield_now(),
        }
    }
    queue.blocking_recv()
}

/// One failure, answered to everyone it concerns.
fn refuse_all(group: Group, error: &StoreError) {
    let copy = || match error {
        StoreError::DiskFull => StoreError::DiskFull,
        StoreError::Poisoned(reason) => StoreError::Poisoned(reason.clone()),
        StoreError::Unavailable(reason) => StoreError::Unavailable(reason.clone()),
        other => StoreError::Database(other.to_string()),
    };
    for job in group {
        job.refuse(copy());
    }
}
