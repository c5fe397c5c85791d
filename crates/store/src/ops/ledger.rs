//! The ledger: what is to be done once for a piece of evidence.
//!
//! Closes the window between hearing of something and acting on it: a follower of the log moves its
//! cursor in the transaction that records what follows from the events it has read, and an entry
//! stays due until its performer says what became of it. Keys are derived from evidence, so the same
//! evidence is recorded once however often it is seen. Handing out and reporting back work as they
//! do for effects.

use serde_json::Value;
use woodward_core::{Epoch, EventSeq, Millis, ProjectId, TaskId, Timestamp, WorkerId};

use crate::conn::{Conn, Op, Param, Row, to_json};
use crate::error::{Result, StoreError};
use crate::ops::write::locking;
use crate::records::{
    CursorMove, ENTRIES_MAX, ENTRY_BYTES_MAX, ENTRY_KEY_BYTES_MAX, Entry, EntryFilter, EntryKind,
    EntryState, NewEntry, PAGE_MAX, RecordEntries, TakenEntry,
};
use crate::wake::Wakes;

const COLUMNS_BY_KEY: &str = "SELECT id, key, kind, project, task, state, attempt, run_at, doc,
     created_at, finished_at FROM ledger WHERE key = $1";

fn read(row: &Row) -> Result<Entry> {
    Ok(Entry {
        id: row.int(0)?,
        key: row.text(1)?.to_owned(),
        kind: kind(row.text(2)?)?,
        project: ProjectId::new(row.id(3)?),
        task: row.opt_id(4)?.map(TaskId::new),
        state: state(row.text(5)?)?,
        attempt: u32::try_from(row.int(6)?).unwrap_or(u32::MAX),
        run_at: Timestamp(row.int(7)?),
        doc: row.json(8, "ledger entry")?,
        created_at: Timestamp(row.int(9)?),
        finished_at: row.opt_int(10)?.map(Timestamp),
    })
}

fn kind(word: &str) -> Result<EntryKind> {
    EntryKind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == word)
        .ok_or_else(|| StoreError::corrupt("ledger entry", format!("unknown kind `{word}`")))
}

fn state(word: &str) -> Result<EntryState> {
    EntryState::ALL
        .into_iter()
        .find(|state| state.as_str() == word)
        .ok_or_else(|| StoreError::corrupt("ledger entry", format!("unknown state `{word}`")))
}

/// How far a follower has come.
#[derive(Debug)]
pub(crate) struct LoadCursor(pub(crate) String);

impl Op for LoadCursor {
    type Out = Option<EventSeq>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Option<EventSeq>> {
        load_cursor(conn, &self.0).await
    }
}

async fn load_cursor<C: Conn>(conn: &mut C, name: &str) -> Result<Option<EventSeq>> {
    let rows = conn
        .query("SELECT seq FROM cursors WHERE name = $1", &[name.into()])
        .await?;
    rows.first()
        .map(|row| row.unsigned(0).map(EventSeq))
        .transpose()
}

/// Records entries and how far their follower has come.
#[derive(Debug)]
pub(crate) struct Record(pub(crate) RecordEntries);

impl Record {
    /// Checks what needs no database.
    pub(crate) fn check(&self) -> Result<()> {
        let too_large = |what, size, max| Err(StoreError::TooLarge { what, size, max });
        let count = self.0.entries.len().max(self.0.close.len());
        if count > ENTRIES_MAX {
            return too_large("the list of entries", count, ENTRIES_MAX);
        }
        for entry in &self.0.entries {
            if entry.key.len() > ENTRY_KEY_BYTES_MAX {
                return too_large("an entry's key", entry.key.len(), ENTRY_KEY_BYTES_MAX);
            }
            if entry.key.contains('\0') {
                return Err(StoreError::Database(
                    "an entry's key can't contain a NUL character".into(),
                ));
            }
            check_doc(&entry.doc)?;
        }
        Ok(())
    }
}

/// Refuses what is too much for one row.
pub(crate) fn check_doc(doc: &Value) -> Result<()> {
    let size = to_json(doc).len();
    if size > ENTRY_BYTES_MAX {
        return Err(StoreError::TooLarge {
            what: "a ledger entry",
            size,
            max: ENTRY_BYTES_MAX,
        });
    }
    Ok(())
}

impl Op for Record {
    type Out = Vec<String>;

    fn wakes(&self) -> Wakes {
        match self.0.entries.is_empty() {
            // A cursor is its follower's own.
            true => Wakes::NOBODY,
            false => Wakes::LEDGER,
        }
    }

    async fn run<C: Conn>(&self, conn: &mut C, again: bool) -> Result<Vec<String>> {
        if let Some(step) = &self.0.cursor
            && !move_cursor(conn, step).await?
        {
            // An earlier run may have been committed, and its answer lost.
            if again && load_cursor(conn, &step.name).await? == Some(step.to) {
                return Ok(Vec::new());
            }
            return Err(StoreError::Conflict {
                what: format!("cursor `{}`", step.name),
            });
        }
        for key in &self.0.close {
            close(conn, key).await?;
        }
        let mut new = Vec::new();
        for entry in &self.0.entries {
            if insert(conn, entry).await? {
                new.push(entry.key.clone());
            }
        }
        Ok(new)
    }
}

async fn move_cursor<C: Conn>(conn: &mut C, step: &CursorMove) -> Result<bool> {
    let changed = match step.from {
        None => {
            conn.execute(
                "INSERT INTO cursors (name, seq) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
                &[(&step.name).into(), step.to.into()],
            )
            .await?
        }
        Some(from) => {
            conn.execute(
                "UPDATE cursors SET seq = $1 WHERE name = $2 AND seq = $3",
                &[step.to.into(), (&step.name).into(), from.into()],
            )
            .await?
        }
    };
    Ok(changed > 0)
}

async fn close<C: Conn>(conn: &mut C, key: &str) -> Result<()> {
    conn.execute(
        "UPDATE ledger SET state = 'done', finished_at = now_ms(), holder = NULL
         WHERE key = $1 AND state = 'pending'",
        &[key.into()],
    )
    .await
    .map(drop)
}

async fn insert<C: Conn>(conn: &mut C, entry: &NewEntry) -> Result<bool> {
    let inserted = conn
        .execute(
            "INSERT INTO ledger (key, kind, project, task, state, run_at, doc, created_at,
                 finished_at)
             VALUES ($1, $2, $3, $4, $5, now_ms() + $6, $7, now_ms(),
                 CASE WHEN CAST($8 AS bigint) = 1 THEN now_ms() END)
             ON CONFLICT (key) DO NOTHING",
            &[
                (&entry.key).into(),
                entry.kind.as_str().into(),
                entry.project.into(),
                Param::opt_id(entry.task),
                entry.state.as_str().into(),
                entry.wait.into(),
                (&to_json(&entry.doc)).into(),
                Param::Int(i64::from(entry.state != EntryState::Pending)),
            ],
        )
        .await?;
    Ok(inserted > 0)
}

/// Hands out due entries.
#[derive(Debug)]
pub(crate) struct TakeEntries {
    pub(crate) worker: WorkerId,
    pub(crate) kind: EntryKind,
    pub(crate) limit: u32,
    pub(crate) length: Millis,
}

const DUE_SQLITE: &str = "SELECT id, key, kind, project, task, state, attempt, run_at, doc,
     created_at, finished_at FROM ledger
     WHERE state = 'pending' AND kind = $1 AND run_at <= now_ms()
     ORDER BY run_at, id LIMIT $2";
const DUE_POSTGRES: &str = "SELECT id, key, kind, project, task, state, attempt, run_at, doc,
     created_at, finished_at FROM ledger
     WHERE state = 'pending' AND kind = $1 AND run_at <= now_ms()
     ORDER BY run_at, id LIMIT $2 FOR UPDATE SKIP LOCKED";

impl Op for TakeEntries {
    type Out = Vec<TakenEntry>;

    fn wakes(&self) -> Wakes {
        Wakes::NOBODY
    }

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<TakenEntry>> {
        let limit = self.limit.min(PAGE_MAX);
        let rows = conn
            .query(
                locking::<C>(DUE_SQLITE, DUE_POSTGRES),
                &[self.kind.as_str().into(), limit.into()],
            )
            .await?;
        let mut taken = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut entry = read(row)?;
            entry.attempt = entry.attempt.saturating_add(1);
            conn.execute(
                "UPDATE ledger SET attempt = $1, run_at = now_ms() + $2, holder = $3
                 WHERE id = $4",
                &[
                    entry.attempt.into(),
                    self.length.into(),
                    self.worker.into(),
                    Param::Int(entry.id),
                ],
            )
            .await?;
            let attempt = entry.attempt;
            taken.push(TakenEntry { entry, attempt });
        }
        Ok(taken)
    }
}

/// What became of a handed-out entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Report {
    /// It is over.
    Finished(EntryState),
    /// It could not be performed now; hand it out again after this long.
    Later(Millis),
}

/// Reports back on one handing-out.
#[derive(Debug)]
pub(crate) struct ReportEntry {
    pub(crate) id: i64,
    pub(crate) attempt: u32,
    pub(crate) report: Report,
    /// What the entry shall say from now on.
    pub(crate) doc: Option<Value>,
}

impl Op for ReportEntry {
    type Out = ();

    fn wakes(&self) -> Wakes {
        match self.report {
            Report::Finished(_) => Wakes::NOBODY,
            Report::Later(_) => Wakes::LEDGER,
        }
    }

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<()> {
        let doc = self.doc.as_ref().map(to_json);
        let doc = Param::opt_text(doc.as_deref());
        let (id, attempt) = (Param::Int(self.id), self.attempt.into());
        let changed = match self.report {
            Report::Finished(state) => {
                conn.execute(
                    "UPDATE ledger SET state = $1, finished_at = now_ms(), holder = NULL,
                         doc = COALESCE($2, doc)
                     WHERE id = $3 AND attempt = $4 AND state = 'pending'",
                    &[state.as_str().into(), doc, id, attempt],
                )
                .await?
            }
            Report::Later(wait) => {
                conn.execute(
                    "UPDATE ledger SET run_at = now_ms() + $1, holder = NULL,
                         doc = COALESCE($2, doc)
                     WHERE id = $3 AND attempt = $4 AND state = 'pending'",
                    &[wait.into(), doc, id, attempt],
                )
                .await?
            }
        };
        if changed > 0 {
            return Ok(());
        }
        self.explain_miss(conn).await
    }
}

impl ReportEntry {
    async fn explain_miss<C: Conn>(&self, conn: &mut C) -> Result<()> {
        let rows = conn
            .query(
                "SELECT attempt, state FROM ledger WHERE id = $1",
                &[Param::Int(self.id)],
            )
            .await?;
        let Some(row) = rows.first() else {
            return Err(StoreError::NotFound {
                what: format!("ledger entry {}", self.id),
            });
        };
        let current = row.unsigned(0)?;
        // Reporting the same twice is reporting it once.
        if let Report::Finished(wanted) = self.report
            && current == u64::from(self.attempt)
            && row.text(1)? == wanted.as_str()
        {
            return Ok(());
        }
        Err(StoreError::Stale {
            what: format!("ledger entry {}", self.id),
            carried: Epoch(u64::from(self.attempt)),
            current: Epoch(current),
        })
    }
}

/// One entry by its key.
#[derive(Debug)]
pub(crate) struct LoadEntry(pub(crate) String);

impl Op for LoadEntry {
    type Out = Option<Entry>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Option<Entry>> {
        let rows = conn.query(COLUMNS_BY_KEY, &[(&self.0).into()]).await?;
        rows.first().map(read).transpose()
    }
}

/// A page of entries, newest first.
#[derive(Debug)]
pub(crate) struct LoadEntries(pub(crate) EntryFilter);

impl Op for LoadEntries {
    type Out = Vec<Entry>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Entry>> {
        let filter = &self.0;
        let limit = filter.limit.unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let state = filter.state.map(EntryState::as_str);
        // Where a condition is not asked for, its own parameter decides that it holds. A task's and
        // a project's entries have an index each, which needs the condition bare.
        let rows = if let Some(task) = filter.task {
            conn.query(
                "SELECT id, key, kind, project, task, state, attempt, run_at, doc, created_at,
                     finished_at FROM ledger
                 WHERE task = $1 AND kind = $2 AND id < $3
                 AND (CAST($4 AS text) IS NULL OR state = $4)
                 AND (CAST($5 AS bigint) = 0 OR project = $6)
                 ORDER BY id DESC LIMIT $7",
                &[
                    task.into(),
                    filter.kind.as_str().into(),
                    Param::Int(filter.before.unwrap_or(i64::MAX)),
                    Param::opt_text(state),
                    Param::Int(i64::from(filter.project.is_some())),
                    Param::opt_id(filter.project),
                    limit.into(),
                ],
            )
            .await?
        } else {
            conn.query(
                "SELECT id, key, kind, project, task, state, attempt, run_at, doc, created_at,
                     finished_at FROM ledger
                 WHERE (CAST($1 AS bigint) = 0 OR project = $2) AND kind = $3 AND id < $4
                 AND (CAST($5 AS text) IS NULL OR state = $5)
                 ORDER BY id DESC LIMIT $6",
                &[
                    Param::Int(i64::from(filter.project.is_some())),
                    Param::opt_id(filter.project),
                    filter.kind.as_str().into(),
                    Param::Int(filter.before.unwrap_or(i64::MAX)),
                    Param::opt_text(state),
                    limit.into(),
                ],
            )
            .await?
        };
        rows.iter().map(read).collect()
    }
}
