//! A few threads that read. They never block the writer, and the writer never blocks them.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use super::conn::SqliteConn;
use super::jobs::{Job, job, stopped};
use super::open::{self, SqliteOptions};
use crate::conn::Op;
use crate::error::{Result, StoreError};

/// Reads that may wait at once; more wait with their callers.
const QUEUE_MAX: usize = 1_024;

#[derive(Debug)]
pub(super) struct Readers {
    jobs: mpsc::SyncSender<Box<dyn Job>>,
}

impl Readers {
    pub(super) fn start(path: &Path, options: &SqliteOptions) -> Result<Self> {
        let (jobs, queue) = mpsc::sync_channel(QUEUE_MAX);
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..options.readers.max(1) {
            let conn = SqliteConn(open::reader(path, options)?);
            let queue = Arc::clone(&queue);
            thread::Builder::new()
                .name("woodward-read".into())
                .spawn(move || read(conn, &queue))
                .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        }
        Ok(Self { jobs })
    }

    pub(super) async fn perform<O: Op>(&self, op: O) -> Result<O::Out> {
        let (mut job, answer) = job(op);
        loop {
            match self.jobs.try_send(job) {
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

fn read(mut conn: SqliteConn, queue: &Mutex<mpsc::Receiver<Box<dyn Job>>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut job) = next else { return };
        job.run(&mut conn);
        job.answer();
    }
}
