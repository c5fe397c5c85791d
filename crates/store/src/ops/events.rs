//! Reading the log.
//!
//! On SQLite there is one writer, so places in the log are in the order of commit. On PostgreSQL a
//! transaction draws its place before it commits, so a later place may be seen first. A reader must
//! then not step over the empty place: it waits until every transaction that was open when it saw
//! the gap has ended (a transaction has its number before it draws a place, see the migration), and
//! reads again. What is still empty then stays empty for ever.

use std::time::Duration;

use woodward_core::{Event, EventSeq, Policy, ProjectId, TaskId, Version};

use crate::conn::{Conn, Dialect, Op, Row};
use crate::error::{Result, StoreError};
use crate::ops::tasks;
use crate::records::{EventPage, LogEntry, LoggedEvent, PAGE_MAX};

/// How long one call waits for open transactions before it answers with less.
const GAP_PATIENCE: Duration = Duration::from_secs(2);
const GAP_POLL: Duration = Duration::from_millis(5);

/// A page of the log after a place.
#[derive(Debug)]
pub(crate) struct EventsAfter {
    pub(crate) after: EventSeq,
    pub(crate) limit: u32,
}

impl Op for EventsAfter {
    type Out = EventPage;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<EventPage> {
        let rows = self.rows(conn).await?;
        if C::DIALECT == Dialect::Sqlite {
            return page(&rows, self.after);
        }
        let seen = places(&rows)?;
        let solid = contiguous(self.after, &seen);
        if solid == seen.len() {
            return page(&rows, self.after);
        }
        let Some(&last) = seen.last() else {
            return page(&rows, self.after);
        };
        if !wait_for_open_transactions(conn).await? {
            return page(&rows[..solid], self.after);
        }
        let rows = self.rows(conn).await?;
        let seen = places(&rows)?;
        let settled = seen.partition_point(|seq| *seq <= last);
        let beyond = contiguous(EventSeq(last.0), &seen[settled..]);
        page(&rows[..settled + beyond], self.after)
    }
}

impl EventsAfter {
    async fn rows<C: Conn>(&self, conn: &mut C) -> Result<Vec<Row>> {
        conn.query(
            "SELECT seq, project, task, version, kind, doc FROM events
             WHERE seq > $1 ORDER BY seq LIMIT $2",
            &[self.after.into(), self.limit.min(PAGE_MAX).into()],
        )
        .await
    }
}

fn places(rows: &[Row]) -> Result<Vec<EventSeq>> {
    rows.iter()
        .map(|row| row.unsigned(0).map(EventSeq))
        .collect()
}

/// How many of `seen` follow `after` without an empty place.
fn contiguous(after: EventSeq, seen: &[EventSeq]) -> usize {
    seen.iter()
        .zip(after.0 + 1..)
        .take_while(|(seq, expected)| seq.0 == *expected)
        .count()
}

/// Waits until every transaction that is open now has ended; `false` if that takes too long.
///
/// "Now" is a transaction number of our own, drawn for this. The end of a snapshot would not do: it
/// follows the newest transaction that has *ended*, and what is open may lie beyond it.
async fn wait_for_open_transactions<C: Conn>(conn: &mut C) -> Result<bool> {
    let now = conn
        .query("SELECT pg_current_xact_id()::text::bigint", &[])
        .await?;
    let horizon = now.first().map_or(Ok(0), |row| row.int(0))?;
    let started = tokio::time::Instant::now();
    loop {
        let oldest = conn
            .query(
                "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint",
                &[],
            )
            .await?;
        if oldest.first().map_or(Ok(0), |row| row.int(0))? >= horizon {
            return Ok(true);
        }
        if started.elapsed() >= GAP_PATIENCE {
            return Ok(false);
        }
        tokio::time::sleep(GAP_POLL).await;
    }
}

fn page(rows: &[Row], after: EventSeq) -> Result<EventPage> {
    let events = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
    let next = events.last().map_or(after, |event| event.seq);
    Ok(EventPage { events, next })
}

fn read(row: &Row) -> Result<LoggedEvent> {
    let entry = match row.opt_id(2)? {
        Some(task) => LogEntry::Task {
            task: TaskId::new(task),
            version: Version(row.unsigned(3)?),
            event: row.json(5, "event")?,
        },
        None if row.text(4)? == super::retention::EVENT_KIND => {
            LogEntry::Retention(row.json(5, "retention report")?)
        }
        None => {
            return Err(StoreError::corrupt(
                "event",
                format!("unknown kind `{}`", row.text(4)?),
            ));
        }
    };
    Ok(LoggedEvent {
        seq: EventSeq(row.unsigned(0)?),
        project: row.opt_id(1)?.map(ProjectId::new),
        entry,
    })
}

/// How far the log goes beyond a place, without reading what is in it.
#[derive(Debug)]
pub(crate) struct LogEnd(pub(crate) EventSeq);

impl Op for LogEnd {
    type Out = EventSeq;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, again: bool) -> Result<EventSeq> {
        if C::DIALECT == Dialect::Postgres {
            // Only whoever reads the places sees the empty ones.
            let (after, limit) = (self.0, PAGE_MAX);
            let page = EventsAfter { after, limit }.run(conn, again).await?;
            return Ok(page.next);
        }
        let rows = conn
            .query(
                "SELECT seq FROM events WHERE seq > $1 ORDER BY seq DESC LIMIT 1",
                &[self.0.into()],
            )
            .await?;
        rows.first()
            .map_or(Ok(self.0), |row| row.unsigned(0).map(EventSeq))
    }
}

/// A task's whole log, oldest first, each event with the policy it was decided under.
#[derive(Debug)]
pub(crate) struct LoadHistory(pub(crate) TaskId);

impl Op for LoadHistory {
    type Out = Vec<(Event, Policy)>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Self::Out> {
        let rows = conn
            .query(
                "SELECT events.doc, policies.doc FROM events
                 LEFT JOIN policies ON policies.digest = events.policy
                 WHERE events.task = $1 ORDER BY events.version",
                &[self.0.into()],
            )
            .await?;
        if rows.is_empty() {
            return Err(tasks::not_found(self.0));
        }
        rows.iter()
            .map(|row| Ok((row.json(0, "event")?, row.json(1, "policy")?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_follows_without_an_empty_place_is_solid() {
        let seen = |places: &[u64]| places.iter().map(|n| EventSeq(*n)).collect::<Vec<_>>();
        assert_eq!(contiguous(EventSeq(4), &seen(&[5, 6, 8])), 2);
        assert_eq!(contiguous(EventSeq(4), &seen(&[6])), 0);
        assert_eq!(contiguous(EventSeq(4), &[]), 0);
    }
}
