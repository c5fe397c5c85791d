//! From one notice to the channels that want it.
//!
//! All or nothing: the deliveries are recorded in the transaction that closes the notice.

use woodward_core::Millis;
use woodward_core::notice::{Notice, Reason};
use woodward_store::{EntryKind, EntryState, NewEntry, RecordEntries, TakenEntry};

use super::Delivery;
use crate::config::{ChannelSpec, Notify};
use crate::engine::Inner;
use crate::error::Result;

/// Hands a notice to its channels. Nobody's notice is closed, too: the log says what was told to none.
pub(super) async fn out(
    inner: &Inner,
    taken: &TakenEntry,
    notice: &Notice,
    notify: &Notify,
) -> Result<()> {
    let wanted = |channel: &&ChannelSpec| wants(channel, notice);
    let entries: Vec<NewEntry> = notify
        .channels
        .iter()
        .filter(wanted)
        .map(|channel| delivery(notice, channel))
        .collect();
    let record = RecordEntries {
        cursor: None,
        entries,
        close: vec![taken.entry.key.clone()],
    };
    inner.store.record_entries(record).await?;
    Ok(())
}

fn wants(channel: &ChannelSpec, notice: &Notice) -> bool {
    // What can't be answered can't stay unanswered.
    let answerable = notice.reason.can_be_answered() || notice.reason == Reason::Escalation;
    channel.levels.contains(&notice.level) && (channel.after.is_none() || answerable)
}

fn delivery(notice: &Notice, channel: &ChannelSpec) -> NewEntry {
    let doc = Delivery {
        channel: channel.name.clone(),
        notice: notice.clone(),
        after: channel.after,
        held: false,
        tries: 0,
        said: String::new(),
        sent_at: None,
    };
    NewEntry {
        key: format!("delivery/{}/{}", channel.name, notice.key),
        kind: EntryKind::Notification,
        project: notice.project,
        task: notice.task,
        state: EntryState::Pending,
        wait: channel.after.unwrap_or(Millis(0)),
        doc: serde_json::to_value(&doc).unwrap_or_default(),
    }
}
