//! From the log to notices.
//!
//! An event only says where to look: what a person is told is what the task is *now*, so what was
//! answered before anybody looked is not told. The cursor moves in the transaction that records the
//! notices; of several machines the one that moves it first tells, the others read on from there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use woodward_core::notice::{Notice, notice_of};
use woodward_core::task::all_done;
use woodward_core::{EventSeq, Fact, ProjectId, TaskId};
use woodward_store::{CursorMove, LogEntry, LoggedEvent, RecordEntries, StoreError};

use crate::engine::Inner;
use crate::error::Result;

/// The follower's name.
const CURSOR: &str = "notices";
const PAGE: u32 = 200;
/// How long to look away when nothing happens; what happens wakes.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
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
    loop {
        match pass(&inner).await {
            Ok(reached) => inner.tail.past(reached, LOOK_AGAIN).await,
            Err(error) => {
                tracing::warn!(%error, "notices could not be derived; it comes again");
                tokio::time::sleep(TROUBLE).await;
            }
        }
    }
}

/// One page of the log; says how far it came.
async fn pass(inner: &Inner) -> Result<EventSeq> {
    let from = inner.store.load_cursor(CURSOR.into()).await?;
    let start = from.unwrap_or_default();
    let page = inner.store.events_after(start, PAGE).await?;
    if page.events.is_empty() {
        return Ok(start);
    }
    let notices = notices(inner, &page.events).await?;
    let any = !notices.is_empty();
    let record = RecordEntries {
        cursor: Some(CursorMove {
            name: CURSOR.into(),
            from,
            to: page.next,
        }),
        entries: notices.iter().map(super::entry).collect(),
        close: Vec::new(),
    };
    match inner.store.record_entries(record).await {
        Ok(_) => {
            if any {
                inner.notices.wake.notify_one();
            }
            Ok(page.next)
        }
        // Another machine came first and has told it.
        Err(StoreError::Conflict { .. }) => Ok(start),
        Err(error) => Err(error.into()),
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
        let tasks = inner.all_tasks(project).await?;
        notices.extend(all_done(&tasks).map(Notice::all_done));
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
