//! Which remarks on a task's work wait for its agent, and which went with what a person said.
//!
//! A rejection is a fact of the task, and remarks are closed in the ledger: two transactions. Before
//! the fact, the ledger is told which message takes which remarks along. A crash between the two is
//! then settled by looking: if the fact with that message is in the task's history, its remarks were
//! sent. So none is sent twice, and none is lost when the fact never came.

use serde::{Deserialize, Serialize};
use woodward_core::{Fact, MessageId, Millis, Task, TaskId, Timestamp};
use woodward_store::{Entry, EntryFilter, EntryKind, EntryState, NewEntry, RecordEntries};

use super::material::Comment;
use crate::clock;
use crate::engine::Inner;
use crate::error::Result;

/// How long a fact may take from its announcement; what is older never came.
const ANNOUNCED_MAX: Millis = Millis::from_mins(5);

/// The announcement that a message takes remarks along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sending {
    message: MessageId,
    remarks: Vec<String>,
}

/// The entry that says so.
fn sending(task: &Task, message: MessageId, remarks: &[String]) -> NewEntry {
    let doc = Sending {
        message,
        remarks: remarks.to_vec(),
    };
    NewEntry {
        key: format!("sending/{message}"),
        kind: EntryKind::Comment,
        project: task.project,
        task: Some(task.id),
        state: EntryState::Pending,
        wait: Millis(0),
        doc: serde_json::json!({ "sending": doc }),
    }
}

/// What is pending, told apart.
#[derive(Debug, Default, PartialEq)]
struct Settled {
    /// Remarks that no agent has been sent, oldest first.
    waiting: Vec<(String, Comment)>,
    /// What is over: remarks that were sent, and announcements that have done their duty.
    close: Vec<String>,
}

/// Tells pending entries of a task apart, which come newest first.
fn settled(pending: Vec<Entry>, was_said: impl Fn(MessageId) -> bool, now: Timestamp) -> Settled {
    let mut settled = Settled::default();
    let mut remarks = Vec::new();
    for entry in pending.into_iter().rev() {
        match announcement(&entry) {
            Some(sending) if was_said(sending.message) => {
                settled.close.extend(sending.remarks);
                settled.close.push(entry.key);
            }
            Some(_) if now.since(entry.created_at) > ANNOUNCED_MAX => settled.close.push(entry.key),
            // Perhaps it is just being said.
            Some(_) => {}
            None => remarks.push(entry),
        }
    }
    let waiting = remarks.into_iter().filter_map(|entry| {
        let comment = serde_json::from_value(entry.doc).ok()?;
        Some((entry.key, comment))
    });
    settled.waiting = waiting
        .filter(|(key, _)| !settled.close.contains(key))
        .collect();
    settled
}

fn announcement(entry: &Entry) -> Option<Sending> {
    serde_json::from_value(entry.doc.get("sending")?.clone()).ok()
}

/// Remarks that no agent has been sent, oldest first.
pub(crate) async fn unsent(inner: &Inner, task: TaskId) -> Result<Vec<(String, Comment)>> {
    let pending = inner
        .store
        .load_entries(EntryFilter {
            task: Some(task),
            state: Some(EntryState::Pending),
            ..EntryFilter::of(EntryKind::Comment)
        })
        .await?;
    let mut said = Vec::new();
    if pending.iter().any(|entry| announcement(entry).is_some()) {
        let history = inner.store.load_history(task).await?;
        said.extend(history.iter().filter_map(|(event, _)| match event.fact {
            Fact::ChangesRequested { message, .. } => Some(message),
            _ => None,
        }));
    }
    let settled = settled(pending, |message| said.contains(&message), clock::now());
    close(inner, settled.close).await?;
    Ok(settled.waiting)
}

/// Says which remarks a message takes along; before the fact that has the message.
pub(crate) async fn announce(
    inner: &Inner,
    task: &Task,
    message: MessageId,
    remarks: &[String],
) -> Result<()> {
    if remarks.is_empty() {
        return Ok(());
    }
    let record = RecordEntries {
        entries: vec![sending(task, message, remarks)],
        ..RecordEntries::default()
    };
    inner.store.record_entries(record).await?;
    Ok(())
}

/// Closes the remarks that a message took along, after the fact.
pub(crate) async fn sent(
    inner: &Inner,
    message: MessageId,
    mut remarks: Vec<String>,
) -> Result<()> {
    if !remarks.is_empty() {
        remarks.push(format!("sending/{message}"));
    }
    close(inner, remarks).await
}

async fn close(inner: &Inner, keys: Vec<String>) -> Result<()> {
    // As many at once as the ledger takes; what a crash leaves open is settled again.
    for close in keys.chunks(woodward_store::ENTRIES_MAX) {
        let record = RecordEntries {
            close: close.to_vec(),
            ..RecordEntries::default()
        };
        inner.store.record_entries(record).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use woodward_core::ProjectId;
    use woodward_store::fresh_uuid;

    use super::*;

    fn entry(id: i64, key: &str, doc: serde_json::Value) -> Entry {
        Entry {
            id,
            key: key.into(),
            kind: EntryKind::Comment,
            project: ProjectId::new(fresh_uuid()),
            task: None,
            state: EntryState::Pending,
            attempt: 0,
            run_at: Timestamp(0),
            doc,
            created_at: Timestamp(0),
            finished_at: None,
        }
    }

    fn remark(id: i64, key: &str) -> Entry {
        entry(id, key, serde_json::json!({ "text": key }))
    }

    fn announced(id: i64, message: MessageId, remarks: &[&str]) -> Entry {
        let remarks = remarks.iter().map(|&key| key.to_owned()).collect();
        let doc = serde_json::json!({ "sending": Sending { message, remarks } });
        entry(id, "sending", doc)
    }

    fn keys(settled: &Settled) -> Vec<&str> {
        let keys = settled.waiting.iter().map(|(key, _)| key.as_str());
        keys.collect()
    }

    #[test]
    fn what_a_message_took_along_waits_no_more_if_the_message_was_said() {
        let message = MessageId::new(fresh_uuid());
        let pending = || {
            vec![
                remark(4, "late"),
                announced(3, message, &["b", "a"]),
                remark(2, "b"),
                remark(1, "a"),
            ]
        };
        let said = settled(pending(), |_| true, Timestamp(0));
        assert_eq!(keys(&said), ["late"]);
        assert_eq!(said.close, ["b", "a", "sending"]);
        // A crash came before it was said, or it is just being said: nothing is lost.
        let unsaid = settled(pending(), |_| false, Timestamp(0));
        assert_eq!(keys(&unsaid), ["a", "b", "late"]);
        assert_eq!(unsaid.close, [""; 0]);
        let old = settled(
            pending(),
            |_| false,
            Timestamp(0) + ANNOUNCED_MAX + Millis(1),
        );
        assert_eq!(keys(&old), ["a", "b", "late"]);
        assert_eq!(old.close, ["sending"]);
    }
}
