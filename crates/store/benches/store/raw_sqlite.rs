//! The raw limit on SQLite: one thread, one connection, the same statements with the same settings,
//! as many operations a commit as there are clients. No channels, no decisions, no JSON.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, params};
use uuid::Uuid;
use woodward_core::ProjectId;
use woodward_store::{fresh_uuid, raw_sql};

pub(crate) struct Bare {
    connection: Connection,
    project: Uuid,
}

/// What a pick gives and a transition needs.
struct Picked {
    id: Uuid,
    epoch: i64,
    version: i64,
    doc: String,
}

const EVENT_DOC: &str = r#"{"id":"019a8d2e-6f9b-7c43-9d5e-2f0c7a1b3c4d","at":1763240000000,"actor":{"claim":{"worker":"019a8d2e-6f9b-7c43-9d5e-2f0c7a1b3c4d","epoch":17}},"roll":0,"fact":"handed_back"}"#;
const EFFECT_DOC: &str = r#"{"key":"019a8d2e-6f9b-7c43-9d5e-2f0c7a1b3c4d/17/prepare_worktree","task":"019a8d2e-6f9b-7c43-9d5e-2f0c7a1b3c4d","epoch":17,"worker":"019a8d2e-6f9b-7c43-9d5e-2f0c7a1b3c4d","action":{"prepare_worktree":{"run":"019a8d2e-6f9b-7c43-9d5e-2f0c7a1b3c4d","purpose":"first"}}}"#;
const POLICY: &str = "6c62272e07bb014262b821756295c58d";

impl Bare {
    pub(crate) fn open(path: &Path, project: ProjectId) -> anyhow::Result<Self> {
        let connection = Connection::open(path)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
             PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 67108864;
             PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY;",
        )?;
        connection.set_prepared_statement_cache_capacity(64);
        connection
            .create_scalar_function("now_ms", 0, FunctionFlags::SQLITE_UTF8, |_| Ok(now_ms()))?;
        Ok(Self {
            connection,
            project: project.as_uuid(),
        })
    }

    /// Runs for a slice; pairs and time.
    pub(crate) fn run(
        &mut self,
        clients: usize,
        slice: Duration,
    ) -> anyhow::Result<(u64, Duration)> {
        let started = Instant::now();
        let mut pairs = 0;
        while started.elapsed() < slice {
            let mut claimed = Vec::with_capacity(clients);
            self.begin()?;
            for _ in 0..clients {
                claimed.push(self.claim()?);
            }
            self.commit()?;
            self.begin()?;
            for picked in &claimed {
                self.hand_back(picked)?;
            }
            self.commit()?;
            pairs += clients as u64;
        }
        Ok((pairs, started.elapsed()))
    }

    fn begin(&self) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")?
            .execute([])
            .map(drop)
    }

    fn commit(&self) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("COMMIT")?
            .execute([])
            .map(drop)
    }

    fn claim(&self) -> anyhow::Result<Picked> {
        let (doc, _now): (String, i64) = self
            .connection
            .prepare_cached(raw_sql::SQLITE_PICK)?
            .query_row(params![self.project.as_bytes(), 1, 1], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let number = |name: &str| -> anyhow::Result<i64> {
            let (_, rest) = doc.split_once(name).unwrap_or_default();
            let end = rest.find(',').unwrap_or(rest.len());
            Ok(rest[..end].parse()?)
        };
        let id = Uuid::parse_str(&doc[7..43])?;
        let picked = Picked {
            id,
            epoch: number("\"epoch\":")?,
            version: number("\"version\":")?,
            doc,
        };
        let worker = self.project;
        self.write(&picked, 1, None, Some(worker))?;
        self.connection
            .prepare_cached(raw_sql::SQLITE_TAKE_LEASE)?
            .execute(params![
                resource(picked.id),
                picked.id.as_bytes(),
                worker.as_bytes(),
                picked.epoch + 1,
                worker.as_bytes(),
                60_000
            ])?;
        Ok(picked)
    }

    fn hand_back(&self, picked: &Picked) -> anyhow::Result<()> {
        self.write(picked, 2, Some(now_ms()), None)?;
        self.connection
            .prepare_cached(raw_sql::SQLITE_DROP_LEASE)?
            .execute(params![resource(picked.id)])?;
        Ok(())
    }

    /// The statements that every transition has: task, event, effect.
    fn write(
        &self,
        picked: &Picked,
        step: i64,
        claim_key: Option<i64>,
        holder: Option<Uuid>,
    ) -> anyhow::Result<()> {
        let (epoch, version) = (picked.epoch + step, picked.version + step);
        // Ours writes the counters into the doc, too.
        let doc = picked
            .doc
            .replacen(
                &format!("\"epoch\":{}", picked.epoch),
                &format!("\"epoch\":{epoch}"),
                1,
            )
            .replacen(
                &format!("\"version\":{}", picked.version),
                &format!("\"version\":{version}"),
                1,
            );
        let updated = self
            .connection
            .prepare_cached(raw_sql::SQLITE_UPDATE_TASK)?
            .execute(params![
                epoch,
                version,
                if holder.is_some() {
                    "preparing"
                } else {
                    "queued"
                },
                i64::from(claim_key.is_some()),
                claim_key,
                now_ms(),
                holder.map(|id| id.as_bytes().to_vec()),
                doc,
                now_ms(),
                picked.id.as_bytes(),
                epoch - 1,
                version - 1
            ])?;
        anyhow::ensure!(updated == 1, "nobody else writes here");
        self.connection
            .prepare_cached(raw_sql::SQLITE_INSERT_EVENT)?
            .execute(params![
                fresh_uuid().as_bytes(),
                self.project.as_bytes(),
                picked.id.as_bytes(),
                version,
                now_ms(),
                "handed_back",
                POLICY,
                EVENT_DOC
            ])?;
        self.connection
            .prepare_cached(raw_sql::SQLITE_INSERT_EFFECT)?
            .execute(params![
                format!("{}/{version}/prepare_worktree", picked.id),
                picked.id.as_bytes(),
                epoch,
                self.project.as_bytes(),
                EFFECT_DOC
            ])?;
        Ok(())
    }
}

fn resource(task: Uuid) -> String {
    format!("task/{task}")
}

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
}
