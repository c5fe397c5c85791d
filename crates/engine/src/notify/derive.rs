//! From the log to notices.
//!
//! An event only says where to look: what a person is told is what the task is *now*, so what was
//! answered before anybody looked is not told. The cursor moves in the transaction that records the
//! notices; of several machines the one that moves it first tells, the others read on from there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use woodward_core::notice::{Notice, notice_of};
use woodward_core::{EventSeq, Fact, ProjectId, TaskId};
use woodward_store::{CursorMove, LogEntry, LoggedEvent, RecordEntries, StoreError};

use crate::engine::Inner;
use crate::error::Result;

/// The follower's name.
const CURSOR: &str = "notices";
const PAGE: u32 = 200;
/// How long a cursor that only passed by what nobody is told may stay unwritten.
const SAVE_EVERY: Duration = Duration::from_secs(5);
const TROUBLE: Duration = Duration::from_secs(1);

/// Where it never ran before, what happened until now is not news.
pub(crate) async fn begin(inner: &Inner) -> Result<()> {
    if inner.store.load_cursor(CURSOR.into()).await?.is_some() {
        return Ok(());
    }
    let mut to = EventSeq(0);
    loop {
        let page = inner
            .store
            .events_after(to, woodward_store::PAGE_MAX)
            .await?;
        to = page.next;
        if page.events.is_empty() {
            break;
        }
    }
    let cursor = CursorMove {
        name: CURSOR.into(),
        from: None,
        to,
    };
    let record = RecordEntries {
        cursor: Some(cursor),
        ..RecordEntries::default()
    };
    match inner.store.record_entries(record).await {
        // Another machine was first.
        Ok(_) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Follows the log until the engine stops.
pub(crate) async fn follow(inner: Arc<Inner>) {
    let mut follower = Follower::default();
    loop {
        match follower.pass(&inner).await {
            Ok(()) => inner.tail.past(follower.at, inner.sleep_max()).await,
            Err(error) => {
                tracing::warn!(%error, "notices could not be derived; it comes again");
                follower = Follower::default();
                tokio::time::sleep(TROUBLE).await;
            }
        }
    }
}

/// How far the log was read.
#[derive(Debug, Default)]
struct Follower {
    /// What is written, and when that was; `None` until it is read.
    saved: Option<(Option<EventSeq>, Instant)>,
    at: EventSeq,
}

impl Follower {
    /// One page of the log. The cursor is written with what follows from the page; where nothing follows it
    /// is not written each time, since an event that is read twice is told once.
    async fn pass(&mut self, inner: &Inner) -> Result<()> {
        let (saved, saved_at) = match self.saved {
            Some(saved) => saved,
            None => {
                let saved = inner.store.load_cursor(CURSOR.into()).await?;
                self.at = saved.unwrap_or_default();
                *self.saved.insert((saved, Instant::now()))
            }
        };
        let page = inner.store.events_after(self.at, PAGE).await?;
        if page.events.is_empty() {
            return Ok(());
        }
        let notices = notices(inner, &page.events).await?;
        self.at = page.next;
        if notices.is_empty() && saved_at.elapsed() < SAVE_EVERY {
            return Ok(());
        }
        let any = !notices.is_empty();
        let record = RecordEntries {
            cursor: Some(CursorMove {
                name: CURSOR.into(),
                from: saved,
                to: self.at,
            }),
            entries: notices.iter().map(super::entry).collect(),
            close: Vec::new(),
        };
        match inner.store.record_entries(record).await {
            Ok(_) => {
                self.saved = Some((Some(self.at), Instant::now()));
                if any {
                    inner.notices.wake.notify_one();
                }
            }
            // Another machine came first and has told it.
            Err(StoreError::Conflict { .. }) => *self = Self::default(),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

async fn notices(inner: &Inner, events: &[LoggedEvent]) -> Result<Vec<Notice>> {
    let mut touched: BTreeSet<TaskId> = BTreeSet::new();
    for event in events {
        if let LogEntry::Task { task, event, .. } = &event.entry
            && matters(&event.fact)
        {
            touched.insert(*task);
        }
    }
    let mut notices = Vec::new();
    let mut finished: BTreeSet<ProjectId> = BTreeSet::new();
    for id in touched {
        let Some(task) = inner.store.load_task(id).await? else {
            continue;
        };
        notices.extend(notice_of(&task, None));
        if task.state.kind().is_finished() {
            finished.insert(task.project);
        }
    }
    for project in finished {
        let last = inner.all_done(project).await?;
        notices.extend(last.as_ref().map(Notice::all_done));
    }
    Ok(notices)
}

/// Whether a fact can bring a task to where a person is told.
const fn matters(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::AgentAsked { .. }
            | Fact::PrepareFailed { .. }
            | Fact::Prepared { .. }
            | Fact::Spent { .. }
            | Fact::RunFinished { .. }
            | Fact::GatesFinished { .. }
            | Fact::LeaseExpired { .. }
            | Fact::Landed { .. }
            | Fact::Cancelled { .. }
            | Fact::Superseded { .. }
            | Fact::LandingConflicted { .. }
            | Fact::LandingFailed { .. }
            | Fact::LandingBroken { .. }
            | Fact::Resumed
    )
}
