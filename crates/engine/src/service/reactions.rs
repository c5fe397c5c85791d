//! Rules as people see them: what there is, what would happen, what did.

use std::path::Path;

use woodward_api::{Code, Problem, ReactionEntry, ReactionTest, ReactionTrial, ReactionView};
use woodward_core::reaction::{Decision, Deed, Escalation, Hand, Occurrence, Trigger};
use woodward_core::{ProjectId, Task, TaskId};
use woodward_store::{Entry, EntryFilter, EntryKind, EntryState};

use super::{Answered, TaskRef};
use crate::config::{Reaction, nearest};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::gate::LastFailure;
use crate::reaction::Record;
use crate::reaction::consider::Place;
use crate::reaction::signal::Signal;

/// The most lines of the log that one answer has.
const LINES_MAX: u32 = 500;

impl Engine {
    /// The rules of a project, in order.
    ///
    /// # Errors
    /// When there is no project, or its rules make no sense.
    pub async fn reactions(&self, root: &Path) -> Answered<Vec<ReactionView>> {
        let project = self.project_of(root).await?;
        let config = project.load_config().await?;
        Ok(config.reactions().iter().map(view).collect())
    }

    /// What rules would do if something happened to a task now. Nothing is done.
    ///
    /// # Errors
    /// When there is no such task or trigger.
    pub async fn reaction_test(
        &self,
        wanted: &TaskRef<'_>,
        trigger: &str,
        text: &str,
    ) -> Answered<ReactionTest> {
        let trigger = known_trigger(trigger)?;
        let found = self.find(wanted).await?;
        let task = &found.task;
        let of_project = trigger.is_of_project();
        let mut signal = Signal::of(trigger);
        signal.errors = text.to_owned();
        signal.text = text.to_owned();
        let place = Place {
            inner: &self.inner,
            project: &found.project,
            config: &found.config,
            task: (!of_project).then_some(task),
        };
        let occurrence = self.imagined(task, trigger, &signal);
        let said = trigger.is_signal() && (!text.is_empty() || trigger != Trigger::CiFailed);
        let (judged, _) = place.judge(&occurrence, said.then_some(&signal)).await?;
        let rules = judged.into_iter().map(|judged| {
            let handled =
                judged.reaction.rule.deed == Deed::SendToAgent && occurrence.hand == Hand::Task;
            let (fires, why) = match judged.decision {
                Decision::Fire { time, .. } if handled => (
                    true,
                    format!("time {time}: the task goes back by itself, with these words"),
                ),
                Decision::Fire { time, wait, .. } if wait.0 > 0 => {
                    (true, format!("time {time}, after a wait of up to {wait}"))
                }
                Decision::Fire { time, .. } => (true, format!("time {time}")),
                Decision::Skip { reason, escalate } => match escalate {
                    Some(_) => (false, format!("{reason}; a person would be asked")),
                    None => (false, reason),
                },
            };
            ReactionTrial {
                rule: judged.reaction.rule.id.clone(),
                action: judged.reaction.rule.deed.to_string(),
                fires,
                why,
                text: judged.text.filter(|_| fires),
            }
        });
        Ok(ReactionTest {
            task: task.name.clone(),
            trigger: trigger.to_string(),
            rules: rules.collect(),
        })
    }

    /// Something that has not happened.
    fn imagined(&self, task: &Task, trigger: Trigger, signal: &Signal) -> Occurrence {
        let hand = match trigger {
            Trigger::GateFailed | Trigger::MergeConflict => Hand::Task,
            _ => Hand::Nobody,
        };
        let mut occurrence = Occurrence {
            trigger,
            hand,
            head: task.head.clone(),
            ..signal.occurrence()
        };
        if trigger == Trigger::GateFailed {
            let failed = LastFailure::load(&self.inner.options.paths, task.id);
            let gates = failed.unwrap_or_default().gates;
            occurrence.evidence = gates.iter().map(|gate| gate.name.to_string()).collect();
        }
        if !trigger.is_signal() || trigger == Trigger::MergeConflict {
            occurrence.note = "a trial".into();
        }
        occurrence
    }

    /// What rules did and did not, newest first; of one task, or of the project.
    ///
    /// # Errors
    /// When there is no such project or task.
    pub async fn reaction_log(
        &self,
        root: &Path,
        task: Option<&TaskRef<'_>>,
        limit: u32,
    ) -> Answered<Vec<ReactionEntry>> {
        let (project, task) = match task {
            Some(wanted) => {
                let found = self.find(wanted).await?;
                (found.project.id(), Some(found.task.id))
            }
            None => (self.project_of(root).await?.id(), None),
        };
        let limit = limit.clamp(1, LINES_MAX);
        let mut lines: Vec<(i64, ReactionEntry)> = Vec::new();
        for (kind, state) in [
            (EntryKind::Reaction, None),
            // News that something followed from is told by what followed.
            (EntryKind::Signal, Some(EntryState::Dropped)),
        ] {
            let entries = self.ledger(kind, state, project, task, limit).await?;
            lines.extend(entries.into_iter().filter_map(line));
        }
        lines.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
        lines.truncate(limit as usize);
        let mut answer = Vec::with_capacity(lines.len());
        for (_, mut entry) in lines {
            if entry.task.is_none()
                && let Some(task) = task
                && let Some(task) = self
                    .inner
                    .store
                    .load_task(task)
                    .await
                    .map_err(EngineError::from)?
            {
                entry.task = Some(task.name);
            }
            answer.push(entry);
        }
        Ok(answer)
    }

    async fn ledger(
        &self,
        kind: EntryKind,
        state: Option<EntryState>,
        project: ProjectId,
        task: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<Entry>> {
        let filter = EntryFilter {
            project: Some(project),
            task,
            state,
            limit: Some(limit),
            ..EntryFilter::of(kind)
        };
        Ok(self.inner.store.load_entries(filter).await?)
    }
}

fn known_trigger(word: &str) -> Result<Trigger, Problem> {
    Trigger::from_word(word).ok_or_else(|| {
        let words = || Trigger::ALL.iter().map(|trigger| trigger.as_str());
        let what = format!("there is no trigger `{}`", word.escape_debug());
        let problem = Problem::new(Code::Usage, what);
        match nearest(word, words()) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint(format!(
                "there are {}",
                words().collect::<Vec<_>>().join(", ")
            )),
        }
    })
}

fn line(entry: Entry) -> Option<(i64, ReactionEntry)> {
    let pending = entry.state == EntryState::Pending;
    let state = entry.state.as_str().to_owned();
    let due = pending.then_some(entry.run_at);
    let line = match entry.kind {
        EntryKind::Reaction => {
            let record: Record = serde_json::from_value(entry.doc).ok()?;
            ReactionEntry {
                at: entry.created_at,
                trigger: record.trigger.to_string(),
                rule: Some(record.rule),
                action: Some(record.deed.to_string()),
                task: record.task,
                state,
                note: record.note,
                why: record.why,
                outcome: record.outcome,
                text: record.text,
                due,
            }
        }
        EntryKind::Signal => {
            let signal: Signal = serde_json::from_value(entry.doc).ok()?;
            ReactionEntry {
                at: entry.created_at,
                trigger: signal.trigger.to_string(),
                rule: None,
                action: None,
                task: None,
                state,
                note: signal.note(),
                why: signal.outcome.unwrap_or_default(),
                outcome: None,
                text: None,
                due,
            }
        }
        EntryKind::Notification | EntryKind::Comment => return None,
    };
    Some((entry.id, line))
}

fn view(reaction: &Reaction) -> ReactionView {
    let rule = &reaction.rule;
    let when = &rule.when;
    let mut conditions = Vec::new();
    if let Some(schedule) = &reaction.schedule {
        conditions.push(format!("at {schedule} (UTC)"));
    }
    if !when.labels.is_empty() {
        conditions.push(format!("label {}", when.labels.join(" or ")));
    }
    if !when.paths.is_empty() {
        conditions.push(format!("changes {}", when.paths.join(" or ")));
    }
    if let Some(agent) = &when.agent {
        conditions.push(format!("agent {agent}"));
    }
    if let Some(attempts) = when.attempts {
        conditions.push(format!("after {attempts} attempts"));
    }
    match when.risk {
        Some(true) => conditions.push("risky".into()),
        Some(false) => conditions.push("not risky".into()),
        None => {}
    }
    if let Some(times) = rule.limit() {
        conditions.push(format!("at most {times} times a task"));
    }
    if let Some(wait) = rule.backoff {
        conditions.push(format!("waits up to {wait}, doubling"));
    }
    match rule.escalation {
        Escalation::Never | Escalation::WhenSpent => {}
        Escalation::AfterTimes(times) => {
            conditions.push(format!("asks a person after {times} times"));
        }
        Escalation::AfterTime(time) => conditions.push(format!("asks a person after {time}")),
    }
    ReactionView {
        rule: rule.id.clone(),
        trigger: rule.trigger.to_string(),
        action: rule.deed.to_string(),
        built_in: reaction.built_in,
        conditions,
        prompt: reaction.prompt.clone(),
        command: reaction.command.as_ref().map(|command| command.shown()),
    }
}
