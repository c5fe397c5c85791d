//! Operations on their way to a thread and their answers on the way back.

use tokio::sync::oneshot;

use super::conn::SqliteConn;
use crate::conn::Op;
use crate::error::{Result, StoreError};
use crate::wake::Wakes;

/// An operation that somebody waits for.
pub(super) trait Job: Send {
    /// Runs it and keeps the result; whether it succeeded.
    fn run(&mut self, conn: &mut SqliteConn) -> bool;

    /// Who has something new to read once it has written.
    fn wakes(&self) -> Wakes;

    /// Answers with the kept result: the transaction is durable, or wrote nothing.
    fn answer(self: Box<Self>);

    /// Answers that the transaction was lost.
    fn refuse(self: Box<Self>, error: StoreError);
}

struct Waiting<O: Op> {
    op: O,
    result: Option<Result<O::Out>>,
    reply: oneshot::Sender<Result<O::Out>>,
}

impl<O: Op> Job for Waiting<O> {
    fn run(&mut self, conn: &mut SqliteConn) -> bool {
        let result = conn.run(&self.op);
        let succeeded = result.is_ok();
        self.result = Some(result);
        succeeded
    }

    fn wakes(&self) -> Wakes {
        self.op.wakes()
    }

    fn answer(self: Box<Self>) {
        if let Some(result) = self.result {
            // Whoever asked may have gone; the write stands all the same.
            let _ = self.reply.send(result);
        }
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}

/// A job for `op`, and where its answer will arrive.
pub(super) fn job<O: Op>(op: O) -> (Box<dyn Job>, oneshot::Receiver<Result<O::Out>>) {
    let (reply, answer) = oneshot::channel();
    let job = Waiting {
        op,
        result: None,
        reply,
    };
    (Box::new(job), answer)
}

/// The answer to give when a thread is gone.
pub(super) fn stopped() -> StoreError {
    StoreError::Unavailable("the store has been closed".into())
}
