//! Which rules answer to an occurrence, and with what.
//!
//! It asks the core and performs nothing: what comes out is entries for the ledger, or, for a trial,
//! what they would be.

use std::sync::Arc;

use woodward_core::reaction::{
    Decision, Deed, Escalation, Hand, Occurrence, Rule, Trigger, applies, decide,
};
use woodward_core::state::Purpose;
use woodward_core::{Actor, Fact, Millis, Roll, Task, TaskId};
use woodward_store::{EntryFilter, EntryKind, EntryState, NewEntry};

use super::material::Material;
use super::signal::Signal;
use super::template::{self, Values};
use super::{Record, key};
use crate::clock;
use crate::config::{Config, Reaction};
use crate::engine::Inner;
use crate::error::Result;
use crate::project::Project;

/// Where something happened.
pub(crate) struct Place<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) project: &'a Arc<Project>,
    pub(crate) config: &'a Config,
    pub(crate) task: Option<&'a Task>,
}

/// What follows from an occurrence.
#[derive(Debug, Default)]
pub(crate) struct Considered {
    pub(crate) entries: Vec<NewEntry>,
    /// Remarks that are on their way with it.
    pub(crate) close: Vec<String>,
}

/// What one rule says about an occurrence.
#[derive(Debug)]
pub(crate) struct Judged<'a> {
    pub(crate) reaction: &'a Reaction,
    pub(crate) decision: Decision,
    /// What the agent or the person would be told.
    pub(crate) text: Option<String>,
}

impl Place<'_> {
    /// What each rule for the trigger says about it.
    pub(crate) async fn judge(
        &self,
        occurrence: &Occurrence,
        signal: Option<&Signal>,
    ) -> Result<(Vec<Judged<'_>>, Material)> {
        let reactions: Vec<&Reaction> = self
            .config
            .reactions()
            .iter()
            .filter(|reaction| reaction.rule.trigger == occurrence.trigger)
            .filter(|reaction| !reaction.built_in || occurrence.hand == Hand::Nobody)
            .collect();
        if reactions.is_empty() {
            return Ok((Vec::new(), Material::default()));
        }
        let material = Material::of(
            self.inner,
            self.project,
            self.config,
            self.task,
            occurrence,
            signal,
        )
        .await?;
        let before = match self.task {
            Some(task) => done_before(self.inner, task.id).await?,
            None => Vec::new(),
        };
        let mut judged = Vec::with_capacity(reactions.len());
        for reaction in reactions {
            let rule = &reaction.rule;
            let done = before.iter().filter(|id| **id == rule.id).count();
            let done = u32::try_from(done).unwrap_or(u32::MAX);
            let case = material.case(self.task, done);
            let decision = decide(rule, occurrence, &case, roll());
            let values = material.values(self.project, self.task, occurrence, done + 1);
            let text = said(reaction, &values);
            judged.push(Judged {
                reaction,
                decision,
                text,
            });
        }
        Ok((judged, material))
    }

    /// The entries that follow from it, save those that are known already.
    pub(crate) async fn consider(
        &self,
        occurrence: &Occurrence,
        signal: Option<&Signal>,
    ) -> Result<Considered> {
        let mut considered = Considered::default();
        let (judged, material) = self.judge(occurrence, signal).await?;
        for judged in judged {
            let key = key(
                &judged.reaction.rule,
                self.project.id(),
                self.task.map(|task| task.id),
                occurrence,
            );
            if self.inner.store.load_entry(key.clone()).await?.is_some() {
                continue;
            }
            let sends = judged.reaction.rule.deed == Deed::SendToAgent;
            if sends && matches!(judged.decision, Decision::Fire { .. }) {
                let keys = material.comments.iter().map(|(key, _)| key.clone());
                considered.close.extend(keys);
            }
            self.enter(&mut considered, key, occurrence, judged);
        }
        considered.close.sort_unstable();
        considered.close.dedup();
        Ok(considered)
    }

    fn enter(
        &self,
        considered: &mut Considered,
        key: String,
        occurrence: &Occurrence,
        judged: Judged<'_>,
    ) {
        let rule = &judged.reaction.rule;
        let record = Record {
            rule: rule.id.clone(),
            trigger: rule.trigger,
            deed: rule.deed,
            task: self.task.map(|task| task.name.clone()),
            head: occurrence.head.clone(),
            note: occurrence.note.clone(),
            time: 0,
            why: String::new(),
            text: judged.text,
            unless_better: false,
            by_person: occurrence.hand == Hand::Person,
            outcome: None,
        };
        let escalation = |why: String| Record {
            deed: Deed::Escalate,
            text: None,
            why,
            ..record.clone()
        };
        let wanted = match judged.decision {
            Decision::Skip { reason, escalate } => {
                let skipped = Record {
                    why: reason,
                    text: None,
                    ..record.clone()
                };
                self.push(considered, &key, EntryState::Dropped, Millis(0), &skipped);
                escalate
            }
            Decision::Fire {
                time,
                wait,
                escalate,
            } => {
                let handled = rule.deed == Deed::SendToAgent && occurrence.hand != Hand::Nobody;
                let (state, why, outcome) = if handled {
                    (EntryState::Done, handled_by(occurrence.hand), "told by it")
                } else {
                    (EntryState::Pending, why_now(rule, time, wait), "")
                };
                let fired = Record {
                    time,
                    why,
                    text: record.text.clone().filter(|_| !handled),
                    outcome: Some(outcome.to_owned()).filter(|said| !said.is_empty()),
                    ..record.clone()
                };
                self.push(considered, &key, state, wait, &fired);
                if let Escalation::AfterTime(time) = rule.escalation {
                    let later = Record {
                        unless_better: true,
                        ..escalation(format!("{}: {}", rule.trigger, record.note))
                    };
                    let key = format!("{key}/after");
                    self.push(considered, &key, EntryState::Pending, time, &later);
                }
                escalate
            }
        };
        if let Some(why) = wanted {
            let key = format!("{key}/escalate");
            let record = escalation(why);
            self.push(considered, &key, EntryState::Pending, Millis(0), &record);
        }
    }

    fn push(
        &self,
        considered: &mut Considered,
        key: &str,
        state: EntryState,
        wait: Millis,
        record: &Record,
    ) {
        considered.entries.push(NewEntry {
            key: key.to_owned(),
            kind: EntryKind::Reaction,
            project: self.project.id(),
            task: self.task.map(|task| task.id),
            state,
            wait,
            doc: serde_json::json!(record),
        });
    }

    /// What the agent is told in a run for this, where a rule of the project's own says so.
    pub(crate) async fn own_words(&self, purpose: &Purpose) -> Result<Option<String>> {
        let (triggers, evidence): (&[Trigger], Vec<String>) = match purpose {
            Purpose::Fix { gates } => (
                &[Trigger::GateFailed, Trigger::CiFailed],
                gates.iter().map(ToString::to_string).collect(),
            ),
            Purpose::Conflict { files } => (&[Trigger::MergeConflict], files.clone()),
            _ => return Ok(None),
        };
        for trigger in triggers {
            let note = format!("{trigger}: {}", evidence.join(", "));
            let occurrence = Occurrence {
                trigger: *trigger,
                head: self.task.and_then(|task| task.head.clone()),
                evidence: evidence.clone(),
                hand: Hand::Task,
                note,
            };
            if let Some(text) = self.words_for(&occurrence, None).await? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// The text of the first rule of the project's own that sends this to the agent.
    pub(crate) async fn words_for(
        &self,
        occurrence: &Occurrence,
        said: Option<&Signal>,
    ) -> Result<Option<String>> {
        let own = |reaction: &&Reaction| {
            let rule = &reaction.rule;
            !reaction.built_in
                && reaction.prompt.is_some()
                && rule.trigger == occurrence.trigger
                && rule.deed == Deed::SendToAgent
        };
        let mut own = self.config.reactions().iter().filter(own).peekable();
        if own.peek().is_none() {
            return Ok(None);
        }
        let material = Material::of(
            self.inner,
            self.project,
            self.config,
            self.task,
            occurrence,
            said,
        )
        .await?;
        let case = material.case(self.task, 0);
        let values = material.values(self.project, self.task, occurrence, 1);
        Ok(own
            .find(|reaction| applies(&reaction.rule.when, &case).is_ok())
            .and_then(|reaction| self::said(reaction, &values)))
    }
}

/// What a rule says.
fn said(reaction: &Reaction, values: &Values) -> Option<String> {
    let source = match (&reaction.prompt, reaction.rule.deed) {
        (Some(prompt), _) => prompt.as_str(),
        (None, Deed::SendToAgent) => {
            "This happened to your work: {{trigger}}. See to it.\n{{reason}}{{errors}}{{comments}}{{log}}"
        }
        (None, _) => return None,
    };
    match template::render(source, values) {
        Ok(text) => Some(text),
        // It was checked when the file was read; what is left is better than silence.
        Err(why) => {
            tracing::warn!(
                rule = reaction.rule.id,
                why,
                "a template could not be filled in"
            );
            Some(source.to_owned())
        }
    }
}

fn handled_by(hand: Hand) -> String {
    match hand {
        Hand::Person => "a person sent the task back, with these words".into(),
        _ => "the task goes back to its agent by itself, with the rule's words".into(),
    }
}

fn why_now(rule: &Rule, time: u32, wait: Millis) -> String {
    let which = match rule.limit() {
        Some(max) if max > 1 => format!("time {time} of {max}"),
        _ => format!("time {time}"),
    };
    match wait {
        Millis(0) => which,
        wait => format!("{which}, after a wait of {wait}"),
    }
}

/// The rules that were done for a task, once for each time. What a person asked for does not count.
async fn done_before(inner: &Inner, task: TaskId) -> Result<Vec<String>> {
    let entries = inner
        .store
        .load_entries(EntryFilter {
            task: Some(task),
            ..EntryFilter::of(EntryKind::Reaction)
        })
        .await?;
    let counted = entries.into_iter().filter_map(|entry| {
        let record: Record = serde_json::from_value(entry.doc).ok()?;
        (record.time > 0 && !record.by_person).then_some(record.rule)
    });
    Ok(counted.collect())
}

fn roll() -> Roll {
    clock::event(Actor::Woodward, Fact::HandedBack).roll
}
