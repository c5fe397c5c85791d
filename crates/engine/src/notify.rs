//! Telling people: from the log to the channels.
//!
//! A follower of the log records notices ([`derive`]); each is handed out once to every channel that
//! wants it ([`fan`]), and sent from there at least once ([`deliver`]). All of it is in the ledger, so
//! a crash between any two steps loses nothing. No task ever waits for a channel, and no channel for
//! another. What to tell and when is decided by `woodward_core::notice`.

mod awake;
mod deliver;
mod derive;
mod fan;
mod way;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify as Signal;
use woodward_core::notice::{Notice, notice_of};
use woodward_core::{ChannelName, Millis, Note, ProjectId, TaskId, Timestamp};
use woodward_store::{EntryKind, EntryState, NewEntry, RecordEntries, TakenEntry};

use crate::config::{ChannelSpec, Config, Notify, OwnNotify};
use crate::engine::Inner;
use crate::error::Result;
use crate::land::HELD_BY_CHECKOUT;
use crate::paths::own_config;

pub(crate) use awake::run as keep_awake;
pub(crate) use deliver::run as deliver;
pub(crate) use derive::{begin, follow};
pub(crate) use way::{check, send};

/// The most moments of sending that are remembered a channel.
const SENT_MAX: usize = 1_000;

/// What is on its way to people.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    /// There is something new in the ledger.
    pub(crate) wake: Signal,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Handed out to us, by entry, as it was handed out last.
    waiting: HashMap<i64, (Target, TakenEntry)>,
    /// Channels that somebody looks after now.
    busy: HashSet<Target>,
    /// When messages went out lately; those of an earlier daemon are known from the ledger.
    sent: HashMap<Target, VecDeque<Timestamp>>,
}

/// One channel of one project.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Target {
    project: ProjectId,
    channel: ChannelName,
}

impl Notices {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl State {
    fn note_sent(&mut self, target: &Target, now: Timestamp) {
        let sent = self.sent.entry(target.clone()).or_default();
        sent.push_back(now);
        if sent.len() > SENT_MAX {
            sent.pop_front();
        }
    }
}

/// What the ledger holds of a notice that one channel is to be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) channel: ChannelName,
    pub(crate) notice: Notice,
    /// The channel is told only of what nobody has answered for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<Millis>,
    /// Whether it was held back on purpose.
    #[serde(default)]
    pub(crate) held: bool,
    /// How often sending it was tried.
    #[serde(default)]
    pub(crate) tries: u32,
    /// What became of it, or why it waits.
    #[serde(default)]
    pub(crate) said: String,
    /// When the message with it went out, the same for all that were in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sent_at: Option<Timestamp>,
}

/// A notice as an entry of the ledger, for whoever tells channels.
fn entry(notice: &Notice) -> NewEntry {
    NewEntry {
        key: format!("notice/{}", notice.key),
        kind: EntryKind::Notification,
        project: notice.project,
        task: notice.task,
        state: EntryState::Pending,
        wait: Millis(0),
        doc: serde_json::to_value(notice).unwrap_or_default(),
    }
}

/// Has a person told something that is not in the log. The same notice again changes nothing.
pub(crate) async fn tell(inner: &Inner, notice: &Notice) -> Result<()> {
    let entries = vec![entry(notice)];
    let record = RecordEntries {
        entries,
        ..RecordEntries::default()
    };
    inner.store.record_entries(record).await?;
    inner.notices.wake.notify_one();
    Ok(())
}

/// Has a person told that a result can't land.
pub(crate) async fn tell_held(inner: &Inner, task: TaskId, hold: &Note) -> Result<()> {
    let Some(task) = inner.store.load_task(task).await? else {
        return Ok(());
    };
    let Some(mut notice) = notice_of(&task, Some(hold)) else {
        return Ok(());
    };
    if hold.as_str().starts_with(HELD_BY_CHECKOUT) {
        notice.command = Some("git status".into());
    }
    tell(inner, &notice).await
}

/// Where a person's own wishes are.
pub(crate) fn own_file() -> PathBuf {
    own_config("notify.yaml")
}

/// A person's own wishes; none without a file.
///
/// # Errors
/// When the file makes no sense, in words.
pub(crate) fn load_own(file: &Path) -> std::result::Result<OwnNotify, String> {
    match std::fs::read_to_string(file) {
        Ok(text) => {
            OwnNotify::parse(&text, &file.display().to_string()).map_err(|error| error.to_string())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(OwnNotify::default()),
        Err(error) => Err(format!("{} can't be read: {error}", file.display())),
    }
}

/// Says what is wrong with a person's own file, once for each thing.
fn complain(now: Option<&String>) {
    static SAID: Mutex<Option<String>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(|e| e.into_inner());
    if said.as_ref() != now {
        if let Some(error) = now {
            tracing::warn!(error, "only the project's own channels count");
        }
        *said = now.cloned();
    }
}

/// Who is told, and how, for a project: its rules with the person's own over them. A file of the
/// person's that makes no sense does not keep the project's channels from working.
pub(crate) fn settings(config: &Config) -> Notify {
    let own = load_own(&own_file());
    complain(own.as_ref().err());
    let own = own.unwrap_or_default();
    let mut notify = config.notify(&own);
    if !config.names_channels(&own) && woodward_notify::desktop::is_here() {
        notify.channels.extend(ChannelSpec::unconfigured_desktop());
    }
    notify
}
