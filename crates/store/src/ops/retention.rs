//! Keeping the hot tables small.
//!
//! Finished tasks move to an archive where everything still finds them; only what a policy says is
//! old is removed, and each pass writes what it did to the log. The events of a task that is not
//! archived are never removed.

use woodward_core::{EventId, Timestamp};

use crate::conn::{Conn, Op, to_json};
use crate::error::Result;
use crate::ids::IdSource;
use crate::records::{Retention, RetentionReport};

/// The log's word for a retention pass.
pub(crate) const EVENT_KIND: &str = "retention";

/// At most so many rows of each kind a pass, so that no transaction is long.
const ROWS_MAX: i64 = 1_000;

/// One bounded pass.
#[derive(Debug)]
pub(crate) struct Retain {
    pub(crate) policy: Retention,
    pub(crate) ids: IdSource,
}

impl Op for Retain {
    type Out = RetentionReport;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<RetentionReport> {
        let policy = self.policy;
        let archived = conn
            .execute(
                "INSERT INTO tasks_archive
                     (id, project, name, create_key, doc, finished_at, archived_at)
                 SELECT id, project, name, create_key, doc, updated_at, now_ms() FROM tasks
                 WHERE state IN ('landed', 'cancelled', 'superseded')
                 AND updated_at <= now_ms() - $1
                 AND NOT EXISTS (SELECT 1 FROM effects
                     WHERE effects.task = tasks.id AND effects.state = 'pending')
                 ORDER BY updated_at LIMIT $2
                 ON CONFLICT (id) DO NOTHING",
                &[policy.finished_tasks.into(), ROWS_MAX.into()],
            )
            .await?;
        if archived > 0 {
            conn.execute(
                "DELETE FROM tasks WHERE state IN ('landed', 'cancelled', 'superseded')
                 AND id IN (SELECT id FROM tasks_archive)",
                &[],
            )
            .await?;
        }
        let effects_removed = conn
            .execute(
                "DELETE FROM effects WHERE id IN (SELECT id FROM effects
                     WHERE finished_at IS NOT NULL AND finished_at <= now_ms() - $1
                     ORDER BY finished_at LIMIT $2)",
                &[policy.performed_effects.into(), ROWS_MAX.into()],
            )
            .await?;
        let events_removed = conn
            .execute(
                "DELETE FROM events WHERE task IN (SELECT id FROM tasks_archive
                     WHERE archived_at <= now_ms() - $1 ORDER BY archived_at LIMIT $2)",
                &[policy.archived_events.into(), ROWS_MAX.into()],
            )
            .await?;
        let entries_removed = conn
            .execute(
                "DELETE FROM ledger WHERE id IN (SELECT id FROM ledger
                     WHERE finished_at IS NOT NULL AND finished_at <= now_ms() - $1
                     AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id = ledger.task
                         AND tasks.state NOT IN ('landed', 'cancelled', 'superseded'))
                     ORDER BY finished_at LIMIT $2)",
                &[policy.finished_entries.into(), ROWS_MAX.into()],
            )
            .await?;
        let verdicts_removed = conn
            .execute(
                "DELETE FROM gate_cache WHERE (project, key) IN (SELECT project, key
                     FROM gate_cache WHERE at <= now_ms() - $1 LIMIT $2)",
                &[policy.gate_verdicts.into(), ROWS_MAX.into()],
            )
            .await?;
        let report = RetentionReport {
            verdicts_removed,
            tasks_archived: archived,
            effects_removed,
            events_removed,
            entries_removed,
            policy,
        };
        if !report.is_empty() {
            self.log(conn, &report).await?;
        }
        Ok(report)
    }
}

impl Retain {
    async fn log<C: Conn>(&self, conn: &mut C, report: &RetentionReport) -> Result<()> {
        let now = conn.query("SELECT now_ms()", &[]).await?;
        let at = now.first().map_or(Ok(0), |row| row.int(0))?;
        let id: EventId = self.ids.event();
        conn.execute(
            "INSERT INTO events (id, at, kind, doc) VALUES ($1, $2, $3, $4)",
            &[
                id.into(),
                Timestamp(at).into(),
                EVENT_KIND.into(),
                (&to_json(report)).into(),
            ],
        )
        .await
        .map(drop)
    }
}
