//! A session and its connection, driven by whoever uses it.
//!
//! The driver's usual way is a task of its own for every connection. Each request and each answer then
//! crosses from task to task, and often from core to core, which costs more than the statement. Here
//! the operation that waits for an answer is also what reads it from the socket.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{Config, Connection, NoTls, Socket};

use super::conn::{Broken, Session};
use super::pool::describe;
use crate::conn::Op;

/// What every session is set to. `synchronous_commit`: an acknowledged commit is on disk, whatever
/// the server's default. The time-outs bound what a lost client or a stuck lock can hold up.
const SETTINGS: &str = "SET synchronous_commit = on;
     SET statement_timeout = '60s';
     SET lock_timeout = '20s';
     SET idle_in_transaction_session_timeout = '30s';
     SET application_name = 'woodward'";

type Wire = Connection<Socket, NoTlsStream>;

pub(super) struct Link {
    session: Session,
    /// `None` once it has broken: letting go of it is what tells the session's requests.
    wire: Option<Wire>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Link {
    /// Opens a session.
    pub(super) async fn open(config: &Config) -> Result<Self, String> {
        let (client, wire) = config
            .connect(NoTls)
            .await
            .map_err(|error| describe(&error))?;
        let mut link = Self {
            session: Session::new(client),
            wire: Some(wire),
        };
        link.batch(SETTINGS).await?;
        Ok(link)
    }

    pub(super) fn is_usable(&self) -> bool {
        self.session.is_usable()
    }

    /// Runs plain statements.
    pub(super) async fn batch(&mut self, sql: &str) -> Result<(), String> {
        let Self { session, wire } = self;
        drive(wire, session.client().batch_execute(sql))
            .await
            .map_err(|error| describe(&error))
    }

    /// Runs an operation.
    pub(super) async fn perform<O: Op>(&mut self, op: &O, again: bool) -> Result<O::Out, Broken> {
        let Self { session, wire } = self;
        drive(wire, session.perform(op, again)).await
    }

    /// Does something with the session that takes more than one statement.
    pub(super) async fn with_session<T>(&mut self, work: impl AsyncFnOnce(&mut Session) -> T) -> T {
        let Self { session, wire } = self;
        drive(wire, work(session)).await
    }
}

/// Waits for `work`, reading and writing the wire meanwhile.
async fn drive<T>(wire: &mut Option<Wire>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        if let Some(open) = wire
            && Pin::new(open).poll(context).is_ready()
        {
            *wire = None;
        }
        // What was just read may be what the work waits for.
        work.as_mut().poll(context)
    })
    .await
}
