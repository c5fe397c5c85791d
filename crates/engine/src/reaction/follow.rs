//! Following the log, a durable cursor for each project, and the clock.
//!
//! The cursor moves in the transaction that records what follows from the events before it. It is
//! also written when there was nothing to record, but not each time: reading an event twice does no
//! harm, since what follows from it has the same key.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use woodward_core::reaction::{Hand, Occurrence, Trigger, may_matter, of_event};
use woodward_core::step::replay;
use woodward_core::{Event, EventSeq, Fact, ProjectId, State, Task, TaskId, Timestamp, Version};
use woodward_store::{CursorMove, LogEntry, LoggedEvent, RecordEntries, StoreError};

use super::consider::{Considered, Place};
use crate::clock;
use crate::config::{Config, Reaction};
use crate::engine::Inner;
use crate::error::Result;
use crate::project::Project;

const PAGE: u32 = 500;
const MINUTE_MS: i64 = 60_000;
/// How long a cursor that only passed by what does not matter may stay unwritten.
const SAVE_EVERY: Duration = Duration::from_secs(5);
/// How late a scheduled time may be noticed: a daemon that was away for longer lets it pass.
const LATE_MINUTES: u32 = 10;

/// How far each project was followed.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    projects: HashMap<ProjectId, Follower>,
    /// The last time of each schedule that is known to be in the ledger.
    scheduled: HashMap<(ProjectId, String), Timestamp>,
}

/// What became of following the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Followed {
    /// Whether something was put into the ledger.
    pub(crate) recorded: bool,
    /// Whether a project's log could not be followed to its end.
    pub(crate) is_behind: bool,
}

#[derive(Debug)]
struct Follower {
    /// What is written.
    saved: EventSeq,
    saved_at: Instant,
    /// What was considered.
    at: EventSeq,
    /// Whether something followed from it, as long as nobody has asked.
    recorded: bool,
}

impl Followers {
    /// Considers all that has happened since.
    pub(crate) async fn follow(&mut self, inner: &Inner) -> Result<Followed> {
        let mut followed = Followed::default();
        for project in inner.all_projects() {
            let follower = match self.projects.remove(&project.id()) {
                Some(follower) => follower,
                None => begin(inner, &project).await?,
            };
            let follower = self.projects.entry(project.id()).or_insert(follower);
            let gone_on = follower.go_on(inner, &project).await;
            followed.recorded |= std::mem::take(&mut follower.recorded);
            if let Err(error) = gone_on {
                // One project in trouble must not keep the others waiting.
                let name = &project.record.name;
                tracing::debug!(project = %name, %error, "its log could not be followed now");
                self.projects.remove(&project.id());
                followed.is_behind = true;
            }
        }
        Ok(followed)
    }

    /// When a cursor that was not written must be: what it has passed is history, whatever rules come.
    pub(crate) fn save_at(&self) -> Option<Instant> {
        let unsaved = (self.projects.values()).filter(|follower| follower.at != follower.saved);
        unsaved.map(|follower| follower.saved_at + SAVE_EVERY).min()
    }

    /// Considers the times that have come; whether one has.
    pub(crate) async fn schedules(&mut self, inner: &Inner) -> bool {
        let mut recorded = false;
        for project in inner.all_projects() {
            match self.schedule(inner, &project).await {
                Ok(some) => recorded |= some,
                Err(error) => tracing::debug!(%error, "schedules could not be looked at now"),
            }
        }
        recorded
    }

    async fn schedule(&mut self, inner: &Inner, project: &Arc<Project>) -> Result<bool> {
        let mut recorded = false;
        let config = project.config().await?;
        for reaction in config.reactions() {
            let Some(cron) = &reaction.cron else {
                continue;
            };
            let Some(due) = cron.last(clock::now(), LATE_MINUTES) else {
                continue;
            };
            let known = (project.id(), reaction.rule.id.clone());
            if self.scheduled.get(&known) == Some(&due) {
                continue;
            }
            let occurrence = Occurrence {
                trigger: Trigger::Schedule,
                head: None,
                evidence: vec![due.0.to_string()],
                hand: Hand::Nobody,
                note: "its time has come".into(),
            };
            let place = Place {
                inner,
                project,
                config: &config,
                task: None,
            };
            let Considered { mut entries, close } = place.consider(&occurrence, None).await?;
            // Each schedule has its own time; the others of the project are not due with it.
            let own = format!("reaction/{}/", reaction.rule.id);
            entries.retain(|entry| entry.key.starts_with(&own));
            inner
                .store
                .record_entries(RecordEntries {
                    cursor: None,
                    entries,
                    close,
                })
                .await?;
            self.scheduled.insert(known, due);
            recorded = true;
        }
        Ok(recorded)
    }
}

/// When schedules must be looked at next: at the next full minute if there are any, or if rules can't be
/// read now.
pub(crate) async fn next_schedule(inner: &Inner) -> Option<Instant> {
    let mut any = false;
    for project in inner.all_projects() {
        any |= match project.config().await {
            Ok(config) => config.reactions().iter().any(|rule| rule.cron.is_some()),
            Err(_) => true,
        };
    }
    any.then(|| {
        let into_minute = clock::now().0.rem_euclid(MINUTE_MS).unsigned_abs();
        let left = MINUTE_MS.unsigned_abs() - into_minute;
        Instant::now() + Duration::from_millis(left)
    })
}

fn cursor_name(project: &Project) -> String {
    format!("reactions/{}", project.id())
}

/// Where a project is followed from: where that was left, or the end of what is there. What was
/// before rules were followed at all is history.
async fn begin(inner: &Inner, project: &Project) -> Result<Follower> {
    let name = cursor_name(project);
    let saved = match inner.store.load_cursor(name.clone()).await? {
        Some(saved) => saved,
        None => {
            let end = end_of_log(inner).await?;
            save(inner, project, None, end, Considered::default()).await?;
            end
        }
    };
    Ok(Follower {
        saved,
        saved_at: Instant::now(),
        at: saved,
        recorded: false,
    })
}

async fn end_of_log(inner: &Inner) -> Result<EventSeq> {
    let mut end = EventSeq(0);
    loop {
        let page = inner.store.events_after(end, 1_000).await?;
        let is_last = page.events.is_empty();
        end = page.next;
        if is_last {
            return Ok(end);
        }
    }
}

async fn save(
    inner: &Inner,
    project: &Project,
    from: Option<EventSeq>,
    to: EventSeq,
    considered: Considered,
) -> Result<(), StoreError> {
    inner
        .store
        .record_entries(RecordEntries {
            cursor: Some(CursorMove {
                name: cursor_name(project),
                from,
                to,
            }),
            entries: considered.entries,
            close: considered.close,
        })
        .await
        .map(drop)
}

impl Follower {
    async fn go_on(&mut self, inner: &Inner, project: &Arc<Project>) -> Result<()> {
        loop {
            let page = inner.store.events_after(self.at, PAGE).await?;
            let is_last = page.events.len() < PAGE as usize;
            let mut config = None;
            for logged in &page.events {
                let mut considered = Considered::default();
                if logged.project == Some(project.id()) {
                    let config = match &config {
                        Some(config) => Arc::clone(config),
                        None => Arc::clone(config.insert(project.config().await?)),
                    };
                    considered = consider(inner, project, &config, logged).await?;
                }
                self.at = logged.seq;
                if !considered.entries.is_empty() && !self.save(inner, project, considered).await? {
                    return Ok(());
                }
            }
            self.at = page.next;
            let is_time = !is_last || self.saved_at.elapsed() >= SAVE_EVERY;
            if self.at != self.saved && is_time {
                self.save(inner, project, Considered::default()).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Records what follows, and that everything up to here was considered. `false` if another
    /// machine was first: what it has recorded has the same keys, and it is followed from there.
    async fn save(
        &mut self,
        inner: &Inner,
        project: &Project,
        considered: Considered,
    ) -> Result<bool> {
        let some = !considered.entries.is_empty();
        match save(inner, project, Some(self.saved), self.at, considered).await {
            Ok(()) => {
                self.recorded |= some;
                self.saved = self.at;
                self.saved_at = Instant::now();
                Ok(true)
            }
            Err(StoreError::Conflict { .. }) => {
                let name = cursor_name(project);
                self.saved = inner.store.load_cursor(name).await?.unwrap_or(self.saved);
                self.at = self.saved;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What follows from one event.
async fn consider(
    inner: &Inner,
    project: &Arc<Project>,
    config: &Config,
    logged: &LoggedEvent,
) -> Result<Considered> {
    let mut all = Considered::default();
    let LogEntry::Task {
        task,
        version,
        event,
    } = &logged.entry
    else {
        return Ok(all);
    };
    let answers =
        |reaction: &Reaction| !reaction.built_in && reaction.rule.trigger != Trigger::Schedule;
    if !config.reactions().iter().any(answers) {
        return Ok(all);
    }
    if !may_matter(&event.fact) || is_spent_in_a_run_that_goes_on(inner, *task, &event.fact).await?
    {
        return Ok(all);
    }
    let Some((before, after)) = around(inner, *task, *version).await? else {
        return Ok(all);
    };
    for (occurrence, of_project) in occurrences(inner, project, &before, &after, event).await? {
        let place = Place {
            inner,
            project,
            config,
            task: (!of_project).then_some(&after),
        };
        let considered = place.consider(&occurrence, None).await?;
        all.entries.extend(considered.entries);
        all.close.extend(considered.close);
    }
    Ok(all)
}

/// Whether a fact says what an agent spent whose run goes on. That is said throughout a run and means
/// nothing to rules: a budget that is used up ends the run, and no run comes back.
async fn is_spent_in_a_run_that_goes_on(inner: &Inner, task: TaskId, fact: &Fact) -> Result<bool> {
    let Fact::Spent { run: spent, .. } = fact else {
        return Ok(false);
    };
    let now = inner.store.load_task(task).await?.map(|task| task.state);
    Ok(match now {
        Some(State::Working { run, .. } | State::Waiting { run, .. }) => run == *spent,
        _ => false,
    })
}

/// What an event means to rules; with each, whether it is about the whole project.
async fn occurrences(
    inner: &Inner,
    project: &Project,
    before: &Task,
    after: &Task,
    event: &Event,
) -> Result<Vec<(Occurrence, bool)>> {
    let mut found: Vec<(Occurrence, bool)> = of_event(before, after, event)
        .into_iter()
        .map(|occurrence| (occurrence, false))
        .collect();
    let finished = |task: &Task| task.state.kind().is_finished();
    if finished(after) && !finished(before) {
        // Whichever of them is looked at, the one that finished last is the same.
        if let Some(last) = inner.all_done(project.id()).await? {
            let occurrence = Occurrence {
                trigger: Trigger::AllDone,
                head: None,
                evidence: vec![format!("{}@{}", last.id, last.version)],
                hand: Hand::Nobody,
                note: "no task is open any more".into(),
            };
            found.push((occurrence, true));
        }
    }
    Ok(found)
}

/// The task before and after its change to a version.
async fn around(inner: &Inner, task: TaskId, version: Version) -> Result<Option<(Task, Task)>> {
    let history = inner.store.load_history(task).await?;
    let log = || history.iter().map(|(event, policy)| (event, policy));
    let place = usize::try_from(version.0).unwrap_or(usize::MAX);
    let (Ok(Some(before)), Ok(Some(after))) = (
        replay(log().take(place.saturating_sub(1))),
        replay(log().take(place)),
    ) else {
        // Its creation, or a log that retention has shortened.
        return Ok(None);
    };
    Ok((after.version == version).then_some((before, after)))
}
