//! When something that is on record becomes due without anything else happening.
//!
//! A reader that is told of every change sleeps until then.

use woodward_core::{Millis, ProjectId};

use crate::conn::{Conn, Op};
use crate::error::Result;
use crate::records::Due;

/// How long until the next thing is due.
#[derive(Debug)]
pub(crate) struct NextDue(pub(crate) Due);

/// What waits in the merge queue or could be claimed is due now: whether it can be acted on is not the
/// database's to say.
const WORK: &str = "SELECT CAST(CASE
     WHEN EXISTS (SELECT 1 FROM queue_entries) THEN 0
     WHEN EXISTS (SELECT 1 FROM tasks WHERE claim_key IS NOT NULL AND run_at <= now_ms()) THEN 0
     ELSE (SELECT min(run_at) - now_ms() FROM (
         SELECT run_at FROM effects
         WHERE state = 'pending' AND (worker IS NULL OR worker = $1)
         UNION ALL SELECT run_at FROM tasks WHERE claim_key IS NOT NULL) AS waiting)
     END AS bigint)";

const ENTRY: &str = "SELECT CAST(min(run_at) - now_ms() AS bigint) FROM ledger
     WHERE state = 'pending' AND kind = $1";

impl Op for NextDue {
    type Out = Option<Millis>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Option<Millis>> {
        let rows = match self.0 {
            Due::Work(worker) => conn.query(WORK, &[worker.into()]).await?,
            Due::Entry(kind) => conn.query(ENTRY, &[kind.as_str().into()]).await?,
        };
        let wait = rows.first().map(|row| row.opt_int(0)).transpose()?;
        Ok(wait
            .flatten()
            .map(|wait| Millis(u64::try_from(wait).unwrap_or(0))))
    }
}

/// Whether a project has a task that could be claimed now.
#[derive(Debug)]
pub(crate) struct HasClaimable(pub(crate) ProjectId);

impl Op for HasClaimable {
    type Out = bool;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<bool> {
        let rows = conn
            .query(
                "SELECT run_at FROM tasks
                 WHERE project = $1 AND claim_key IS NOT NULL AND run_at <= now_ms() LIMIT 1",
                &[self.0.into()],
            )
            .await?;
        Ok(!rows.is_empty())
    }
}
