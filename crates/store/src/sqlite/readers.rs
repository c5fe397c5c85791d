//! A few threads that read. They never block the writer, and the writer never blocks them.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use super::conn::SqliteConn;
use super::jobs::{Job, job, stopped};
use super::open::{self, SqliteOptions};
use crate::conn::Op;
use crate::error::{Result, StoreError};

/// Reads that may wait at once; more wait with their callers.
const QUEUE_MAX: usize = 1_024;

#[derive(Debug)]
pub(super) struct Readers {
    /// `None` once they are being closed.
    jobs: Option<mpsc::SyncSender<Box<dyn Job>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(super) fn start(path: &Path, options: &SqliteOptions) -> Result<Self> {
        let (jobs, queue) = mpsc::sync_channel(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::new();
        for _ in 0..options.readers.max(1) {
            let conn = SqliteConn(open::reader(path, options)?);
            let queue = Arc::clone(&queue);
            let thread = thread::Builder::new()
                .name("woodward-read".into())
                .spawn(move || read(conn, &queue))
                .map_err(|error| StoreError::Unavailable(error.to_string()))?;
            threads.push(thread);
        }
        Ok(Self {
            jobs: Some(jobs),
            threads,
        })
    }

    pub(super) async fn perform<O: Op>(&self, op: O) -> Result<O::Out> {
        let (mut job, answer) = job(op);
        let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
        loop {
            match jobs.try_send(job) {
                Ok(()) => break,
                Err(mpsc::TrySendError::Full(back)) => {
                    job = back;
                    tokio::task::yield_now().await;
                }
                Err(mpsc::TrySendError::Disconnected(_)) => return Err(stopped()),
            }
        }
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // A panic there has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

fn read(mut conn: SqliteConn, queue: &Mutex<mpsc::Receiver<Box<dyn Job>>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut job) = next else { return };
        job.run(&mut conn);
        job.answer();
    }
}
