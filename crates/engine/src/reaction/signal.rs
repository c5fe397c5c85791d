//! News from outside: a CI, a review, a remark.
//!
//! A signal is put into the ledger under its evidence, so that the same news told many times is one
//! signal; considering it records what follows and closes it in one transaction. What a signal says
//! is data.

use serde::{Deserialize, Serialize};
use woodward_core::reaction::{Hand, Occurrence, Trigger};
use woodward_core::{CommitId, Millis, Note, Task};
use woodward_store::{EntryKind, EntryState, NewEntry, RecordEntries, TakenEntry};

use super::consider::Place;
use super::digest;
use super::material::Comment;
use crate::engine::Inner;
use crate::error::Result;

const TAKEN_AT_ONCE: u32 = 32;
/// How long a signal is ours to consider.
const LENGTH: Millis = Millis::from_secs(30);
/// How long one waits that could not be considered.
const AGAIN: Millis = Millis::from_secs(5);

/// News from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signal {
    /// What kind of news.
    pub(crate) trigger: Trigger,
    /// The commit that it is about.
    #[serde(default)]
    pub(crate) commit: Option<CommitId>,
    /// What failed, by name: the set that makes the evidence.
    #[serde(default)]
    pub(crate) failures: Vec<String>,
    /// What failed, in words.
    #[serde(default)]
    pub(crate) errors: String,
    /// Files that it is about.
    #[serde(default)]
    pub(crate) files: Vec<String>,
    /// More of what was printed.
    #[serde(default)]
    pub(crate) log: String,
    /// Where to read on.
    #[serde(default)]
    pub(crate) url: String,
    /// What a reviewer says.
    #[serde(default)]
    pub(crate) text: String,
    /// What it is known by besides: keys of remarks.
    #[serde(default)]
    pub(crate) about: Vec<String>,
    /// What became of it, where nothing followed.
    #[serde(default)]
    pub(crate) outcome: Option<String>,
}

impl Signal {
    /// News of a kind, and nothing more yet.
    pub(crate) const fn of(trigger: Trigger) -> Self {
        Self {
            trigger,
            commit: None,
            failures: Vec::new(),
            errors: String::new(),
            files: Vec::new(),
            log: String::new(),
            url: String::new(),
            text: String::new(),
            about: Vec::new(),
            outcome: None,
        }
    }

    /// What failed, names first.
    pub(crate) fn errors(&self) -> String {
        match (self.failures.is_empty(), self.errors.trim().is_empty()) {
            (true, _) => self.errors.clone(),
            (false, true) => self.failures.join("\n"),
            (false, false) => format!("{}\n\n{}", self.failures.join("\n"), self.errors),
        }
    }

    /// As rules see it.
    pub(crate) fn occurrence(&self) -> Occurrence {
        let set = |parts: &[String]| {
            let mut parts = parts.to_vec();
            parts.sort_unstable();
            parts.dedup();
            parts
        };
        let evidence = match self.trigger {
            Trigger::CiFailed if !self.failures.is_empty() => set(&self.failures),
            Trigger::MergeConflict => set(&self.files),
            Trigger::ApprovedAndGreen => Vec::new(),
            Trigger::ChangesRequested | Trigger::ReviewComment => {
                let mut evidence = set(&self.about);
                evidence.push(self.text.clone());
                evidence
            }
            _ => vec![self.errors.clone(), self.log.clone()],
        };
        Occurrence {
            trigger: self.trigger,
            // Not what the task happens to be at: the same news is the same whenever it is told.
            head: self.commit.clone(),
            evidence,
            hand: Hand::Nobody,
            note: self.note(),
        }
    }

    /// What it says, in one sentence.
    pub(crate) fn note(&self) -> String {
        let first = |text: &str| {
            let line = text.lines().find(|line| !line.trim().is_empty());
            Note::from(
                line.unwrap_or_default()
                    .chars()
                    .take(200)
                    .collect::<String>(),
            )
            .to_string()
        };
        match self.trigger {
            Trigger::CiFailed if !self.failures.is_empty() => {
                format!("CI failed: {}", first(&self.failures.join(", ")))
            }
            Trigger::CiFailed if !self.errors.trim().is_empty() => {
                format!("CI failed: {}", first(&self.errors))
            }
            Trigger::CiFailed => "CI failed".into(),
            Trigger::ChangesRequested => "changes were asked for".into(),
            Trigger::ReviewComment => "a remark was made".into(),
            Trigger::MergeConflict => "it does not fit its branch any more".into(),
            _ => "it was approved and is green".into(),
        }
    }

    /// The ledger's key: the same news of a task is one signal.
    pub(crate) fn key(&self, task: &Task) -> String {
        let evidence = digest(&self.occurrence().evidence_text());
        format!("signal/{}/{}/{evidence}", task.id, self.trigger)
    }

    /// The entry for the ledger.
    pub(crate) fn entry(&self, task: &Task) -> NewEntry {
        NewEntry {
            key: self.key(task),
            kind: EntryKind::Signal,
            project: task.project,
            task: Some(task.id),
            state: EntryState::Pending,
            wait: Millis(0),
            doc: serde_json::json!(self),
        }
    }
}

/// The entry by which a delivery is known when it comes again. It belongs to no task, so that it is
/// forgotten when it is old: a signed request counts for minutes only.
pub(crate) fn delivery(task: &Task, name: &str) -> NewEntry {
    NewEntry {
        key: format!("news/{}/{}", task.project, digest(name)),
        kind: EntryKind::Signal,
        project: task.project,
        task: None,
        state: EntryState::Done,
        wait: Millis(0),
        doc: serde_json::json!({}),
    }
}

/// The entry of a remark.
pub(crate) fn remark(task: &Task, key: &str, comment: &Comment) -> NewEntry {
    NewEntry {
        key: format!("comment/{}/{key}", task.id),
        kind: EntryKind::Comment,
        project: task.project,
        task: Some(task.id),
        state: EntryState::Pending,
        wait: Millis(0),
        doc: serde_json::json!(comment),
    }
}

/// Considers the signals that have come.
pub(crate) async fn take(inner: &Inner) -> Result<()> {
    loop {
        let taken = inner
            .store
            .take_entries(inner.worker, EntryKind::Signal, TAKEN_AT_ONCE, LENGTH)
            .await?;
        let full = taken.len() == TAKEN_AT_ONCE as usize;
        for signal in &taken {
            if let Err(error) = consider(inner, signal).await {
                tracing::warn!(key = signal.entry.key, %error, "a signal could not be considered; it comes again");
                inner.store.postpone_entry(signal, AGAIN, None).await?;
            }
        }
        if !full {
            return Ok(());
        }
    }
}

async fn consider(inner: &Inner, taken: &TakenEntry) -> Result<()> {
    let entry = &taken.entry;
    let (Ok(signal), Some(task)) = (
        serde_json::from_value::<Signal>(entry.doc.clone()),
        entry.task,
    ) else {
        return drop_it(inner, taken, None, "it makes no sense").await;
    };
    let Some(task) = inner.store.load_task(task).await? else {
        return drop_it(inner, taken, Some(signal), "its task is gone").await;
    };
    if let Some(why) = outdated(&signal, &task) {
        return drop_it(inner, taken, Some(signal), &why).await;
    }
    let project = inner.require_project(task.project)?;
    let config = project.config().await?;
    let place = Place {
        inner,
        project: &project,
        config: &config,
        task: Some(&task),
    };
    let occurrence = signal.occurrence();
    let mut considered = place.consider(&occurrence, Some(&signal)).await?;
    if considered.entries.is_empty() {
        let why = "no rule answers to it, or it did so before";
        return drop_it(inner, taken, Some(signal), why).await;
    }
    considered.close.push(entry.key.clone());
    inner
        .store
        .record_entries(RecordEntries {
            cursor: None,
            entries: considered.entries,
            close: considered.close,
        })
        .await?;
    Ok(())
}

/// Why news is of yesterday.
fn outdated(signal: &Signal, task: &Task) -> Option<String> {
    let kind = task.state.kind();
    if kind.is_finished() {
        return Some(format!("the task is {kind}"));
    }
    let (Some(told), Some(head)) = (&signal.commit, &task.head) else {
        return None;
    };
    (told != head).then(|| {
        let short = |commit: &CommitId| commit.as_str()[..10].to_owned();
        format!(
            "it is about {}, and the task is at {}",
            short(told),
            short(head)
        )
    })
}

async fn drop_it(
    inner: &Inner,
    taken: &TakenEntry,
    signal: Option<Signal>,
    why: &str,
) -> Result<()> {
    let doc = signal.map(|signal| {
        serde_json::json!(Signal {
            outcome: Some(why.to_owned()),
            ..signal
        })
    });
    inner
        .store
        .finish_entry(taken, EntryState::Dropped, doc)
        .await?;
    Ok(())
}
