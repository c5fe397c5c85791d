//! Doing what rules ask for.
//!
//! An entry comes at least once; doing it twice does what doing it once does, because every fact,
//! message and run gets an id that follows from the entry's key. What can't be done any more is
//! dropped with the reason; what can't be done now comes again.

use std::sync::Arc;

use woodward_core::hint::NextCommand;
use woodward_core::reaction::{Deed, Trigger};
use woodward_core::state::RejectionSource;
use woodward_core::{
    Actor, CommitId, Event, EventId, Fact, MessageId, Millis, Note, Refusal, State, Task, TaskId,
    TaskName, TaskSpec,
};
use woodward_store::{
    CreateTask, CreateTasks, EntryKind, EntryState, NewEntry, NewMessage, RecordEntries,
    StoreError, TakenEntry,
};

use super::{Record, derived_id};
use crate::config::Reaction;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::project::Project;
use crate::supervise::{self, Cause, Launch, Seen};
use crate::{clock, run_env};

const TAKEN_AT_ONCE: u32 = 16;
/// How long an entry is ours.
const LENGTH: Millis = Millis::from_secs(60);
/// How long one waits that can't be done now: longer each time.
const AGAIN: Millis = Millis::from_secs(1);
const AGAIN_MAX: Millis = Millis::from_secs(60);
/// How often a command that runs is looked at.
const LOOK_AGAIN: Millis = Millis(500);
/// How much of a command's last words the log keeps.
const LAST_WORDS_BYTES: usize = 1_000;

/// What became of a try.
enum Done {
    /// It is done, in these words.
    Yes(String),
    /// It is not done, and never will be.
    No(String),
    /// It comes again after a while; with a reason where that is worth a word.
    Later(Millis, Option<String>),
}

/// Takes what is due and performs it.
pub(crate) async fn take(inner: &Arc<Inner>) -> Result<()> {
    loop {
        let taken = inner
            .store
            .take_entries(inner.worker, EntryKind::Reaction, TAKEN_AT_ONCE, LENGTH)
            .await?;
        let full = taken.len() == TAKEN_AT_ONCE as usize;
        for entry in &taken {
            perform_and_report(inner, entry).await?;
        }
        if !full {
            return Ok(());
        }
    }
}

async fn perform_and_report(inner: &Arc<Inner>, taken: &TakenEntry) -> Result<()> {
    let store = &inner.store;
    let Ok(mut record) = serde_json::from_value::<Record>(taken.entry.doc.clone()) else {
        tracing::warn!(
            key = taken.entry.key,
            "an entry of the ledger makes no sense"
        );
        return Ok(store.finish_entry(taken, EntryState::Dropped, None).await?);
    };
    let done = match perform(inner, taken, &record).await {
        Ok(done) => done,
        Err(error) => {
            tracing::warn!(key = taken.entry.key, %error, "a reaction could not be performed; it comes again");
            let wait = Millis((AGAIN.0 << taken.attempt.min(6)).min(AGAIN_MAX.0));
            Done::Later(wait, Some(error.to_string()))
        }
    };
    let (state, outcome) = match done {
        Done::Later(wait, why) => {
            let doc = why.map(|why| {
                record.outcome = Some(why);
                serde_json::json!(record)
            });
            store.postpone_entry(taken, wait, doc).await?;
            return Ok(());
        }
        Done::Yes(outcome) => (EntryState::Done, outcome),
        Done::No(outcome) => (EntryState::Dropped, outcome),
    };
    tracing::info!(key = taken.entry.key, outcome, "a reaction");
    record.outcome = Some(outcome);
    let doc = serde_json::json!(record);
    store.finish_entry(taken, state, Some(doc)).await?;
    Ok(())
}

async fn perform(inner: &Arc<Inner>, taken: &TakenEntry, record: &Record) -> Result<Done> {
    let project = inner.require_project(taken.entry.project)?;
    let work = Work {
        inner,
        project: &project,
        key: &taken.entry.key,
        record,
    };
    let task = match taken.entry.task {
        None => None,
        Some(id) => match inner.store.load_task(id).await? {
            Some(task) => Some(task),
            None => return Ok(Done::No("its task is gone".into())),
        },
    };
    if taken.attempt > 1
        && let Some(task) = &task
        && work.was_recorded(task).await?
    {
        return Ok(Done::Yes("it was done before a restart".into()));
    }
    match (record.deed, &task) {
        (Deed::Notify, _) => work.notify(task.as_ref(), "rule").await,
        (Deed::Run, _) => work.run(task.as_ref()).await,
        (Deed::Create, _) => work.create().await,
        (_, None) => Ok(Done::No("it is about no task".into())),
        (Deed::SendToAgent, Some(task)) => work.send(task).await,
        (Deed::Retry, Some(task)) => work.retry(task).await,
        (Deed::Merge | Deed::Approve, Some(task)) => work.approve(task).await,
        (Deed::Escalate, Some(task)) => work.escalate(task).await,
        (Deed::Pause, Some(task)) => {
            let reason = Note::from(work.said());
            let fact = Fact::Paused { reason };
            work.record(task, fact, "it is paused").await
        }
        (Deed::Cancel, Some(task)) => {
            let reason = Note::from(work.said());
            let fact = Fact::Cancelled { reason };
            work.record(task, fact, "it is cancelled").await
        }
    }
}

struct Work<'a> {
    inner: &'a Arc<Inner>,
    project: &'a Arc<Project>,
    key: &'a str,
    record: &'a Record,
}

impl Work<'_> {
    /// What a person reads: the rule's own words, or what happened.
    fn said(&self) -> String {
        match &self.record.text {
            Some(text) => text.clone(),
            None => format!("{}: {}", self.record.trigger, self.record.note),
        }
    }

    /// Whether an earlier try got as far as the fact that is all there is to do.
    async fn was_recorded(&self, task: &Task) -> Result<bool> {
        let only_a_fact = !matches!(
            self.record.deed,
            Deed::Notify | Deed::Run | Deed::Create | Deed::Escalate
        );
        if !only_a_fact {
            return Ok(false);
        }
        let id = EventId::new(derived_id(self.key, "event"));
        let history = self.inner.store.load_history(task.id).await?;
        Ok(history.iter().any(|(event, _)| event.id == id))
    }

    /// Records a fact under the entry's own event id.
    async fn record(&self, task: &Task, fact: Fact, outcome: &str) -> Result<Done> {
        let config = self.project.config().await?;
        let event = Event {
            id: EventId::new(derived_id(self.key, "event")),
            ..clock::event(Actor::Woodward, fact)
        };
        let waits_for_answer = matches!(task.state, State::Waiting { .. });
        let rejects = matches!(event.fact, Fact::ChangesRequested { .. });
        match self.inner.persist(task.id, event, &config.policy()).await {
            Ok(_) => Ok(Done::Yes(outcome.into())),
            Err(EngineError::Store(StoreError::Illegal(illegal))) => Ok(match illegal.refusal {
                Refusal::AlreadyApplied => Done::Yes(outcome.into()),
                Refusal::LandingUnderWay => {
                    Done::Later(AGAIN, Some("it is landing just now".into()))
                }
                Refusal::WrongState if rejects => {
                    Done::Later(AGAIN, Some("its result changed just now".into()))
                }
                Refusal::TooManyMessages(_) => Done::Later(AGAIN_MAX, Some(illegal.to_string())),
                Refusal::WrongState if waits_for_answer => Done::Later(
                    AGAIN,
                    Some("its agent waits for the answer to a question".into()),
                ),
                _ => Done::No(illegal.to_string()),
            }),
            Err(EngineError::Store(StoreError::NotFound { .. })) => {
                Ok(Done::No("the task is archived".into()))
            }
            Err(error) => Err(error),
        }
    }

    async fn send(&self, task: &Task) -> Result<Done> {
        let kind = task.state.kind();
        if kind.is_finished() {
            return Ok(Done::No(format!("the task is {kind}")));
        }
        if task.state == State::Draft {
            return Ok(Done::No("the task has no prompt of its own yet".into()));
        }
        let Some(text) = self.record.text.clone().filter(|t| !t.trim().is_empty()) else {
            return Ok(Done::No("there is nothing to say".into()));
        };
        let message = MessageId::new(derived_id(self.key, "message"));
        let posted = NewMessage {
            id: message,
            body: text,
        };
        // What is said to an agent that asks is its answer.
        let answers = self.record.trigger == Trigger::AgentWaiting;
        let fact = match &task.state {
            State::Waiting { question, .. } if answers && !question.via.is_command() => {
                return Ok(Done::No("it can be answered only in its terminal".into()));
            }
            State::Waiting { question, .. } if answers => Fact::Answered {
                question: question.id,
                message,
            },
            _ if answers => return Ok(Done::No("its agent asks no longer".into())),
            _ => match self.rejects(task) {
                Some(source) => Fact::ChangesRequested { message, source },
                None => Fact::PromptGiven { message },
            },
        };
        self.inner
            .store
            .post_message(task.id, Actor::Woodward, clock::now(), posted)
            .await?;
        self.record(task, fact, "its agent is told").await
    }

    /// What rejects the task's current result, if what happened does.
    fn rejects(&self, task: &Task) -> Option<RejectionSource> {
        let source = match self.record.trigger {
            Trigger::CiFailed => RejectionSource::CiFailed,
            Trigger::ChangesRequested => RejectionSource::Review,
            _ => return None,
        };
        let (State::Review { .. } | State::Landing { intent: None, .. }) = task.state else {
            return None;
        };
        let about = self.record.head.as_ref();
        let is_current = about.is_none_or(|head| Some(head) == task.head.as_ref());
        is_current.then_some(source)
    }

    async fn retry(&self, task: &Task) -> Result<Done> {
        match task.state {
            State::Failed { .. } => self.record(task, Fact::Retried, "it is tried again").await,
            _ => {
                let kind = task.state.kind();
                Ok(Done::No(format!("the task has not failed, it is {kind}")))
            }
        }
    }

    async fn approve(&self, task: &Task) -> Result<Done> {
        match &task.state {
            State::Landing { .. } | State::Landed { .. } => {
                Ok(Done::Yes("it is on its way already".into()))
            }
            State::Review { commit, .. } => {
                if let Some(other) = self.other_commit(commit) {
                    return Ok(Done::No(other));
                }
                let commit = commit.clone();
                let fact = Fact::Approved { commit };
                self.record(task, fact, "it is queued for landing").await
            }
            State::Verifying { .. } => Ok(Done::Later(AGAIN, Some("its gates run".into()))),
            other => {
                let kind = other.kind();
                Ok(Done::No(format!(
                    "there is no result to land: it is {kind}"
                )))
            }
        }
    }

    /// Whether the approval would be for something else than what it is about.
    fn other_commit(&self, reviewed: &CommitId) -> Option<String> {
        let about = self.record.head.as_ref()?;
        (about != reviewed).then(|| "its result is another one by now".into())
    }

    /// Puts the task before a person: it stops, with the reason, and somebody is told.
    async fn escalate(&self, task: &Task) -> Result<Done> {
        if self.record.unless_better && is_better(task, self.record.head.as_ref()) {
            return Ok(Done::No("the task is better by now".into()));
        }
        let kind = task.state.kind();
        if kind.is_finished() {
            return Ok(Done::No(format!("the task is {kind}")));
        }
        // Where it waits for a person anyway, it stays as it is.
        let goes_on = !matches!(
            task.state,
            State::Draft | State::Waiting { .. } | State::Paused { .. } | State::Failed { .. }
        );
        if goes_on {
            let reason = Note::from(self.escalated());
            let stopped = self.record(task, Fact::Paused { reason }, "").await?;
            if !matches!(stopped, Done::Yes(_)) {
                return Ok(stopped);
            }
        }
        self.notify(Some(task), "escalation").await?;
        Ok(Done::Yes(if goes_on {
            "it stopped and waits for a person".into()
        } else {
            "a person is told".into()
        }))
    }

    fn escalated(&self) -> String {
        match (&self.record.text, self.record.why.is_empty()) {
            (Some(text), _) => text.clone(),
            (None, false) if self.record.time == 0 => self.record.why.clone(),
            _ => self.said(),
        }
    }

    /// Leaves word for whoever tells people.
    async fn notify(&self, task: Option<&Task>, reason: &str) -> Result<Done> {
        let key = format!("notice/{}", self.key);
        let show = |task: &Task| NextCommand::Show {
            task: task.name.clone(),
        };
        let (text, level, command) = if reason == "escalation" {
            (
                self.escalated(),
                "urgent",
                task.map(|task| show(task).to_string()),
            )
        } else {
            let command = match task {
                Some(task) => show(task).to_string(),
                None => NextCommand::Status.to_string(),
            };
            (self.said(), "normal", Some(command))
        };
        let notice = serde_json::json!({
            "key": key,
            "project": self.project.id(),
            "task": task.map(|task| task.id),
            "name": task.map(|task| &task.name),
            "reason": reason,
            "level": level,
            "text": Note::from(text),
            "command": command,
            "at": clock::now(),
        });
        self.inner
            .store
            .record_entries(RecordEntries {
                entries: vec![NewEntry {
                    key,
                    kind: EntryKind::Notification,
                    project: self.project.id(),
                    task: task.map(|task| task.id),
                    state: EntryState::Pending,
                    wait: Millis(0),
                    doc: notice,
                }],
                ..RecordEntries::default()
            })
            .await?;
        Ok(Done::Yes("a person is told".into()))
    }

    /// The rule as the project has it now.
    async fn rule(&self) -> Result<Option<Reaction>> {
        let config = self.project.config().await?;
        let mut rules = config.reactions().iter();
        Ok(rules
            .find(|reaction| reaction.rule.id == self.record.rule)
            .cloned())
    }

    /// Runs the rule's command in the project's root, once, however often it is looked at.
    async fn run(&self, task: Option<&Task>) -> Result<Done> {
        let Some(rule) = self.rule().await? else {
            return Ok(Done::No("the rule is gone".into()));
        };
        let Some(command) = &rule.command else {
            return Ok(Done::No("the rule has no command any more".into()));
        };
        let id = derived_id(self.key, "run");
        let dir = self.inner.options.paths.state().join("runs");
        let dir = dir.join(format!("reaction-{id}"));
        let seen = match supervise::look(&dir)? {
            Seen::Absent => {
                let config = self.project.config().await?;
                let launch = Launch {
                    command: command.argv(),
                    cwd: self.project.root().to_owned(),
                    env: self.env(&config, task),
                    stdin: None,
                    mark: format!("reaction-{id}"),
                    output_max_bytes: config.log_bytes_max,
                    time_limit_ms: Some(rule.timeout.0),
                    stall_limit_ms: None,
                    term_grace_ms: 5_000,
                    jobs: None,
                    repeatable: false,
                };
                supervise::launch(&dir, &launch, &self.inner.options.supervisor).await?;
                supervise::look(&dir)?
            }
            seen => seen,
        };
        let last = || {
            let words = supervise::output::head_and_tail(&dir, 0, LAST_WORDS_BYTES);
            let words = words.unwrap_or_default();
            match words.trim() {
                "" => String::new(),
                words => format!("; it wrote: {words}"),
            }
        };
        Ok(match seen {
            Seen::Running(_) | Seen::Absent => {
                Done::Later(LOOK_AGAIN, Some("its command runs".into()))
            }
            Seen::Forbidden | Seen::Lost => {
                Done::No("its command was ended before it could finish".into())
            }
            Seen::Ended(exit) => match exit.cause {
                Cause::Exited(0) => Done::Yes(format!("its command succeeded{}", last())),
                Cause::Exited(code) => {
                    Done::No(format!("its command failed with {code}{}", last()))
                }
                Cause::TimedOut => Done::No(format!(
                    "its command took longer than {}{}",
                    rule.timeout,
                    last()
                )),
                cause => Done::No(format!("its command was ended: {cause:?}{}", last())),
            },
        })
    }

    fn env(
        &self,
        config: &crate::config::Config,
        task: Option<&Task>,
    ) -> std::collections::BTreeMap<String, String> {
        let mut env = match task.and_then(|task| Some((task, task.worktree.as_ref()?))) {
            Some((task, worktree)) => {
                let path = self.project.worktree(&task.name);
                run_env::of_task(self.inner, self.project, config, task, worktree, &path)
            }
            None => run_env::of_project(self.inner, self.project, config),
        };
        if let Some(task) = task {
            env.insert("WOODWARD_TASK".into(), task.name.to_string());
        }
        env.insert("WOODWARD_TRIGGER".into(), self.record.trigger.to_string());
        env.insert("WOODWARD_REASON".into(), self.record.note.clone());
        if let Some(head) = &self.record.head {
            env.insert("WOODWARD_COMMIT".into(), head.to_string());
        }
        env
    }

    /// Makes a task, once.
    async fn create(&self) -> Result<Done> {
        let Some(rule) = self.rule().await? else {
            return Ok(Done::No("the rule is gone".into()));
        };
        let Some(prompt) = self.record.text.clone().filter(|t| !t.trim().is_empty()) else {
            return Ok(Done::No("there is nothing to say".into()));
        };
        let config = self.project.config().await?;
        let name = match self.name(&rule) {
            Ok(name) => name,
            Err(why) => return Ok(Done::No(why)),
        };
        let made = self
            .inner
            .store
            .create_tasks(CreateTasks {
                tasks: vec![CreateTask {
                    id: TaskId::new(derived_id(self.key, "task")),
                    event: EventId::new(derived_id(self.key, "event")),
                    project: self.project.id(),
                    name,
                    spec: TaskSpec {
                        base: self.project.base(&config),
                        ..TaskSpec::default()
                    },
                    prompt: Some(NewMessage {
                        id: MessageId::new(derived_id(self.key, "message")),
                        body: prompt,
                    }),
                    idempotency_key: Some(self.key.to_owned()),
                }],
                actor: Actor::Woodward,
                at: clock::now(),
            })
            .await;
        Ok(match made {
            Ok(made) => {
                self.inner.look.notify_one();
                let name = made.first().map(|made| made.task.name.to_string());
                Done::Yes(format!("task {} is made", name.unwrap_or_default()))
            }
            Err(error @ StoreError::NameTaken { .. }) => Done::No(error.to_string()),
            Err(error) => return Err(error.into()),
        })
    }

    /// The new task's name: the rule's, made fit to be one, or the trigger and what is unique.
    fn name(&self, rule: &Reaction) -> Result<TaskName, String> {
        let unique = &derived_id(self.key, "name").simple().to_string()[..6];
        let wanted = match &rule.name {
            Some(source) => {
                let mut values = super::template::Values::default();
                values.set("trigger", self.record.trigger.as_str());
                values.set("project", self.project.record.name.to_string());
                if let Some(task) = &self.record.task {
                    values.set("task", task.as_str());
                }
                super::template::render(source, &values)?
            }
            None => format!("{}-{unique}", self.record.trigger),
        };
        wanted
            .trim()
            .parse()
            .map_err(|bad: woodward_core::name::BadName| bad.to_string())
    }
}

/// Whether a task has come on since it was about `head`.
fn is_better(task: &Task, head: Option<&CommitId>) -> bool {
    match &task.state {
        State::Landed { .. } | State::Landing { .. } => true,
        State::Review { commit, .. } => Some(commit) != head,
        _ => false,
    }
}
