//! From the ledger to the channels: at least once, each channel by itself.
//!
//! What is handed out to us waits in memory with its channel; one task a channel plans, sends and
//! reports. A channel that fails is tried again later, longer each time, until a notice is given up;
//! meanwhile nothing else waits for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use woodward_core::notice::{Notice, Reason, Wait, Waiting, notice_of, plan};
use woodward_core::{ChannelName, Millis, Note, Roll, Timestamp};
use woodward_notify::{Message, SendError};
use woodward_store::{Due, EntryFilter, EntryKind, EntryState, StoreError, TakenEntry};

use super::{Delivery, Target, fan, settings, way};
use crate::clock;
use crate::config::{ChannelSpec, Config, Notify};
use crate::engine::{Database, Inner};
use crate::error::Result;
use crate::project::Project;

const TAKEN_AT_ONCE: u32 = 64;
/// How long an entry is ours before it is handed out again; longer than any channel may take.
const LENGTH: Millis = Millis::from_mins(11);
/// How long it waits after the ledger could not be read.
const RETRY: Duration = Duration::from_secs(1);
/// What becomes due at about the same time is taken together, so that it is told together.
const TOGETHER: Duration = Duration::from_millis(500);
/// How long a notice waits whose project's rules can't be read, or whose channel is not here.
const LATER: Millis = Millis::from_secs(30);
/// The most that is kept of what a channel said.
const SAID_CHARS_MAX: usize = 300;

/// Takes what is due and has it sent, until the engine stops.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut wakeups = inner.store.ledger_wakeups();
    loop {
        let wait = match take(&inner).await {
            Ok(true) => continue,
            Ok(false) => inner.until_due(Due::Entry(EntryKind::Notification)).await,
            Err(error) => {
                tracing::debug!(%error, "notices can't be taken now");
                RETRY
            }
        };
        tokio::select! {
            () = sleep(wait + TOGETHER) => {}
            _ = wakeups.next() => {}
            () = inner.notices.wake.notified() => {}
        }
    }
}

/// Whether there may be more.
async fn take(inner: &Arc<Inner>) -> Result<bool> {
    let kind = EntryKind::Notification;
    let taken = inner
        .store
        .take_entries(inner.worker, kind, TAKEN_AT_ONCE, LENGTH)
        .await?;
    let full = taken.len() == TAKEN_AT_ONCE as usize;
    let mut fanned = false;
    for entry in taken {
        let doc = entry.entry.doc.clone();
        if let Ok(delivery) = serde_json::from_value::<Delivery>(doc.clone()) {
            let target = Target {
                project: entry.entry.project,
                channel: delivery.channel,
            };
            let mut state = inner.notices.lock();
            state.waiting.insert(entry.entry.id, (target, entry));
        } else if let Ok(notice) = serde_json::from_value::<Notice>(doc) {
            fanned |= fan_out(inner, &entry, &notice).await;
        } else {
            tracing::warn!(
                key = entry.entry.key,
                "a notice makes no sense and is dropped"
            );
            report(
                inner
                    .store
                    .finish_entry(&entry, EntryState::Dropped, None)
                    .await,
            );
        }
    }
    start_channels(inner);
    Ok(full || fanned)
}

async fn fan_out(inner: &Inner, entry: &TakenEntry, notice: &Notice) -> bool {
    let settled = match inner.project(notice.project) {
        Some(project) => project.config().await.ok().map(|config| settings(&config)),
        None => None,
    };
    let done = match settled {
        Some(notify) => fan::out(inner, entry, notice, &notify).await,
        // Its rules can't be read now, or its repository is not here.
        None => {
            report(inner.store.postpone_entry(entry, LATER, None).await);
            return false;
        }
    };
    match done {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, "a notice was not handed out; it comes again");
            report(
                inner
                    .store
                    .postpone_entry(entry, Millis::from_secs(1), None)
                    .await,
            );
            false
        }
    }
}

/// Sees to it that every channel with something to say is looked after, by one task each.
fn start_channels(inner: &Arc<Inner>) {
    let mut state = inner.notices.lock();
    let targets: Vec<Target> = state
        .waiting
        .values()
        .map(|(target, _)| target.clone())
        .filter(|target| !state.busy.contains(target))
        .collect();
    for target in targets {
        if state.busy.insert(target.clone()) {
            let inner = Arc::clone(inner);
            inner.tasks.clone().spawn(async move {
                // What is being sent when the engine stops is let finish: cut off, it would be
                // sent again.
                look_after(&inner, &target).await;
                inner.notices.lock().busy.remove(&target);
                // Something may have come between the last look and this.
                inner.notices.wake.notify_one();
            });
        }
    }
}

/// Tells a channel until nothing waits for it.
async fn look_after(inner: &Inner, target: &Target) {
    loop {
        let entries: Vec<TakenEntry> = {
            let state = inner.notices.lock();
            let ours = state.waiting.values().filter(|(of, _)| of == target);
            ours.map(|(_, taken)| taken.clone()).collect()
        };
        if entries.is_empty() || inner.stopping.is_cancelled() {
            return;
        }
        if let Err(error) = tell(inner, target, &entries).await {
            tracing::warn!(channel = %target.channel, %error, "notices wait");
            for taken in &entries {
                later(inner, taken, LATER, None).await;
            }
        }
        // Whatever was not reported on would make this spin; it comes again by itself.
        let mut state = inner.notices.lock();
        for taken in &entries {
            let known = state.waiting.get(&taken.entry.id);
            if known.is_some_and(|(_, known)| known.attempt == taken.attempt) {
                state.waiting.remove(&taken.entry.id);
            }
        }
    }
}

async fn tell(inner: &Inner, target: &Target, entries: &[TakenEntry]) -> Result<()> {
    let project = inner.require_project(target.project)?;
    let config = project.config().await?;
    let notify = settings(&config);
    let spec = notify.channels.iter().find(|c| c.name == target.channel);
    let Some(spec) = spec else {
        missing(inner, &notify, entries).await;
        return Ok(());
    };
    let channel = Telling {
        inner,
        project: &project,
        config: &config,
        notify: &notify,
        spec,
        target,
    };
    channel.all(entries).await
}

/// The channel is not configured here. Another machine may have it.
async fn missing(inner: &Inner, notify: &Notify, entries: &[TakenEntry]) {
    let alone = matches!(inner.options.database, Database::Sqlite);
    for taken in entries {
        let said = "there is no such channel any more";
        let old = clock::now().since(taken.entry.created_at) > notify.retry.give_up_after;
        if alone || old {
            over(inner, taken, EntryState::Dropped, said).await;
        } else {
            later(inner, taken, LATER, Some(said)).await;
        }
    }
}

/// One channel with what waits for it.
struct Telling<'a> {
    inner: &'a Inner,
    project: &'a Arc<Project>,
    config: &'a Config,
    notify: &'a Notify,
    spec: &'a ChannelSpec,
    target: &'a Target,
}

impl Telling<'_> {
    async fn all(&self, entries: &[TakenEntry]) -> Result<()> {
        let now = clock::now();
        let mut waiting = Vec::with_capacity(entries.len());
        let mut known: Vec<(&TakenEntry, Delivery)> = Vec::with_capacity(entries.len());
        for taken in entries {
            let Ok(delivery) = serde_json::from_value::<Delivery>(taken.entry.doc.clone()) else {
                continue;
            };
            let held = delivery.held || delivery.after.is_some();
            waiting.push(Waiting {
                id: taken.entry.id,
                level: delivery.notice.level,
                due_at: taken.entry.created_at + delivery.after.unwrap_or(Millis(0)),
                tried: delivery.tries > 0,
                held,
                open: !held || self.is_open(&delivery.notice).await?,
            });
            known.push((taken, delivery));
        }
        waiting.sort_by_key(|notice| notice.id);
        let sent = self.sent_lately().await?;
        let offset = clock::local_offset(now);
        let planned = plan(&self.notify.rules, now, offset, &sent, &waiting);
        let find = |id: &i64| known.iter().find(|(taken, _)| taken.entry.id == *id);
        for (taken, _) in planned.drop.iter().filter_map(find) {
            let said = "it was answered before it was sent";
            over(self.inner, taken, EntryState::Dropped, said).await;
        }
        for (id, until, why) in &planned.wait {
            let said = match why {
                Wait::Quiet => "it waits for the end of the quiet hours",
                Wait::Digest => "it waits to be sent together with others",
            };
            if let Some((taken, delivery)) = find(id) {
                let delivery = Delivery {
                    held: true,
                    said: said.to_owned(),
                    ..delivery.clone()
                };
                let doc = serde_json::to_value(&delivery).ok();
                let latest = settled(self.inner, taken);
                let postponed = self
                    .inner
                    .store
                    .postpone_entry(&latest, until.since(now), doc);
                report(postponed.await);
            }
        }
        for group in &planned.send {
            if self.inner.stopping.is_cancelled() {
                return Ok(());
            }
            let group: Vec<_> = group.iter().filter_map(find).collect();
            self.send(&group).await;
        }
        Ok(())
    }

    /// When messages went out lately, those of an earlier daemon included.
    async fn sent_lately(&self) -> Result<Vec<Timestamp>> {
        let known = |state: &super::State| {
            let sent = state.sent.get(self.target)?;
            Some(sent.iter().copied().collect())
        };
        if let Some(sent) = known(&self.inner.notices.lock()) {
            return Ok(sent);
        }
        let told = self
            .inner
            .store
            .load_entries(EntryFilter {
                project: Some(self.target.project),
                state: Some(EntryState::Done),
                ..EntryFilter::of(EntryKind::Notification)
            })
            .await?;
        let sent = messages_of(
            &self.target.channel,
            told.into_iter().map(|entry| entry.doc),
        );
        let mut state = self.inner.notices.lock();
        // Only one task looks after a channel: nobody else has noted anything meanwhile.
        state
            .sent
            .insert(self.target.clone(), sent.iter().copied().collect());
        Ok(sent)
    }

    /// Whether what a notice says is still so.
    async fn is_open(&self, notice: &Notice) -> Result<bool> {
        let escalation = notice.reason == Reason::Escalation;
        let (Some(id), true) = (notice.task, notice.reason.can_be_answered() || escalation) else {
            return Ok(true);
        };
        let Some(task) = self.inner.store.load_task(id).await? else {
            return Ok(false);
        };
        if escalation {
            return Ok(!task.state.kind().is_finished());
        }
        let mut hold: Option<Note> = None;
        if notice.reason == Reason::Held {
            let queue = self.inner.store.load_queue(task.project).await?;
            let place = queue.into_iter().find(|queued| queued.entry.task == id);
            hold = place.and_then(|queued| queued.hold);
        }
        let now = notice_of(&task, hold.as_ref());
        Ok(now.is_some_and(|now| now.key == notice.key))
    }

    async fn send(&self, group: &[&(&TakenEntry, Delivery)]) {
        let keys = group.iter().map(|(taken, _)| taken.entry.key.as_str());
        let message = Message {
            id: woodward_notify::delivery_id(keys),
            project: self.project.record.name.to_string(),
            notices: group.iter().map(|(_, d)| d.notice.clone()).collect(),
            unanswered: group.first().and_then(|(_, delivery)| delivery.after),
        };
        let sent = way::send(self.inner, self.project, self.config, self.spec, &message).await;
        let now = clock::now();
        if sent.is_ok() {
            self.inner.notices.lock().note_sent(self.target, now);
        }
        for (taken, delivery) in group {
            match &sent {
                Ok(()) => {
                    let said = match group.len() {
                        1 => "told".to_owned(),
                        many => format!("told, as one of {many}"),
                    };
                    told(self.inner, taken, &said, now).await;
                }
                Err(error) => self.failed(taken, delivery, error, now).await,
            }
        }
    }

    async fn failed(&self, taken: &TakenEntry, was: &Delivery, error: &SendError, now: Timestamp) {
        let channel = &self.spec.name;
        let retry = &self.notify.retry;
        let old = now.since(taken.entry.created_at) > retry.give_up_after;
        let retry_after = match error {
            SendError::Transient { retry_after, .. } if !old => *retry_after,
            _ => {
                tracing::warn!(%channel, %error, "a notice is given up");
                let said = format!("given up: {error}");
                over(self.inner, taken, EntryState::Dropped, &said).await;
                return;
            }
        };
        let tries = was.tries.saturating_add(1);
        let asked = retry_after.map_or(0, |wait| wait.as_millis());
        let wait = retry.backoff.wait(tries, roll()).0;
        let wait = Millis(wait.max(asked.try_into().unwrap_or(u64::MAX)));
        tracing::info!(%channel, %error, tries, %wait, "a channel failed; it is tried again");
        let delivery = Delivery {
            tries,
            said: cut(&error.to_string()),
            ..was.clone()
        };
        let doc = serde_json::to_value(&delivery).ok();
        let latest = settled(self.inner, taken);
        report(self.inner.store.postpone_entry(&latest, wait, doc).await);
        wake_after(self.inner, wait);
    }
}

fn roll() -> Roll {
    let random = woodward_store::fresh_uuid().as_u128() & u128::from(u32::MAX);
    Roll(u32::try_from(random).unwrap_or_default())
}

fn cut(text: &str) -> String {
    text.chars().take(SAID_CHARS_MAX).collect()
}

/// Takes an entry off what waits, as it was handed out last: one that takes long is handed to us
/// again meanwhile. This comes before the report: what is postponed may be handed out the next
/// moment, and that one must stay.
fn settled(inner: &Inner, taken: &TakenEntry) -> TakenEntry {
    let mut state = inner.notices.lock();
    let known = state.waiting.remove(&taken.entry.id);
    known.map_or_else(|| taken.clone(), |(_, latest)| latest)
}

/// What it shall say from now on.
fn saying(taken: &TakenEntry, said: &str) -> Option<serde_json::Value> {
    let mut doc = taken.entry.doc.clone();
    doc.as_object_mut()?.insert("said".into(), cut(said).into());
    Some(doc)
}

async fn over(inner: &Inner, taken: &TakenEntry, state: EntryState, said: &str) {
    let latest = settled(inner, taken);
    let doc = saying(&latest, said);
    report(inner.store.finish_entry(&latest, state, doc).await);
}

/// It was told, in a message that went out then.
async fn told(inner: &Inner, taken: &TakenEntry, said: &str, at: Timestamp) {
    let latest = settled(inner, taken);
    let mut doc = saying(&latest, said);
    if let Some(doc) = doc.as_mut().and_then(|doc| doc.as_object_mut()) {
        doc.insert("sent_at".into(), at.0.into());
    }
    let done = EntryState::Done;
    report(inner.store.finish_entry(&latest, done, doc).await);
}

/// When messages went to a channel, by what the ledger says of what it was told.
fn messages_of(
    channel: &ChannelName,
    told: impl Iterator<Item = serde_json::Value>,
) -> Vec<Timestamp> {
    let mut all: Vec<Timestamp> = told
        .filter_map(|doc| serde_json::from_value::<Delivery>(doc).ok())
        .filter(|delivery| delivery.channel == *channel)
        .filter_map(|delivery| delivery.sent_at)
        .collect();
    all.sort_unstable();
    // What went out together is one message.
    all.dedup();
    all
}

async fn later(inner: &Inner, taken: &TakenEntry, wait: Millis, said: Option<&str>) {
    let latest = settled(inner, taken);
    let doc = said.and_then(|said| saying(&latest, said));
    report(inner.store.postpone_entry(&latest, wait, doc).await);
    wake_after(inner, wait);
}

/// A short wait is not rounded up to the next look.
fn wake_after(inner: &Inner, wait: Millis) {
    if wait.0 == 0 {
        inner.notices.wake.notify_one();
    }
}

/// A report that is not taken means that the entry comes again.
fn report(reported: std::result::Result<(), StoreError>) {
    if let Err(error) = reported {
        tracing::debug!(%error, "the report on a notice was not taken");
    }
}
