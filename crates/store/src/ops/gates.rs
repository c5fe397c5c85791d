//! Gate results, keyed by task, claim, commit and gate.

use woodward_core::TaskId;

use crate::conn::{Conn, Op, Param, to_json};
use crate::error::Result;
use crate::ops::tasks;
use crate::records::{GateResult, TaskClaim};

/// Records what gates said, on behalf of a claim. Saying it again changes nothing.
#[derive(Debug)]
pub(crate) struct SaveGateResults {
    pub(crate) claim: TaskClaim,
    pub(crate) results: Vec<GateResult>,
}

impl Op for SaveGateResults {
    type Out = ();

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        tasks::require_claim(conn, self.claim).await?;
        for result in &self.results {
            conn.execute(
                "INSERT INTO gate_results (task, epoch, commit_id, gate, doc)
                 VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (task, epoch, commit_id, gate) DO NOTHING",
                &[
                    self.claim.task.into(),
                    self.claim.epoch.into(),
                    Param::Text(result.commit.as_str()),
                    Param::Text(result.gate.as_str()),
                    (&to_json(result)).into(),
                ],
            )
            .await?;
        }
        Ok(())
    }
}

/// All gate results of a task, by claim, commit and gate.
#[derive(Debug)]
pub(crate) struct LoadGateResults(pub(crate) TaskId);

impl Op for LoadGateResults {
    type Out = Vec<GateResult>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<GateResult>> {
        let rows = conn
            .query(
                "SELECT doc FROM gate_results WHERE task = $1 ORDER BY epoch, commit_id, gate",
                &[self.0.into()],
            )
            .await?;
        rows.iter().map(|row| row.json(0, "gate result")).collect()
    }
}
