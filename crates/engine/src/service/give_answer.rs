//! Handing a person's answer to the agent's program.
//!
//! The answer goes into the run's inbox first and is recorded as given only when the run's host says
//! that the program took it. An answer that was not taken must never reach the agent later as a
//! message of its own. An answer that was taken counts as given even if the program ended right
//! afterwards and the task has moved on: then only what is still possible is recorded.

use std::future::Future;
use std::time::Duration;

use woodward_agents::{Conversation, Letter, files as agent_files};
use woodward_api::{Code, Done, Problem};
use woodward_core::hint::{Hint, NextCommand};
use woodward_core::state::AnswerVia;
use woodward_core::{Actor, Fact, MessageId, RunId, State, Task, TaskName};
use woodward_store::{Delivery, NewMessage, Store, StoreError, TaskClaim, fresh_uuid};

use super::{Answered, Found, person};
use crate::clock;
use crate::engine::{Engine, Inner};
use crate::error::Result;

/// How long the program may take to take an answer.
const TAKEN_MAX: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What became of an answer so far.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// Nothing is known yet.
    Pending,
    /// The program has it.
    Taken,
    /// The program did not take it, and why.
    Refused(String),
    /// The run is over, and nobody took it.
    Over,
}

fn progress(talk: &Conversation, answer: MessageId) -> Progress {
    let settled = talk.delivered.iter().find(|one| one.message == answer);
    match settled {
        Some(one) => match &one.refused {
            Some(note) => Progress::Refused(note.clone()),
            None => Progress::Taken,
        },
        None if talk.ending.is_some() && talk.pending.is_empty() => Progress::Over,
        None => Progress::Pending,
    }
}

impl Engine {
    /// Gives an answer to the program that asked, and waits until it has it.
    pub(super) async fn give_answer(
        &self,
        found: Found,
        run: RunId,
        question: MessageId,
        text: String,
        said: &str,
    ) -> Answered<Done> {
        let name = found.task.name.clone();
        let dir = self.inner.options.paths.run(run);
        let id = MessageId::new(fresh_uuid());
        let letter = Letter::Answer {
            id,
            question,
            text: text.clone(),
        };
        agent_files::post(&dir, &letter, clock::now()).map_err(|error| {
            Problem::new(
                Code::Unavailable,
                format!("the answer can't be handed over: {error}"),
            )
            .hint(attach(&name))
        })?;
        let deadline = tokio::time::Instant::now() + TAKEN_MAX;
        loop {
            let talk = agent_files::load_conversation(&dir).unwrap_or_default();
            match progress(&talk, id) {
                Progress::Taken => break,
                Progress::Refused(note) => return Err(not_taken(&name, &note)),
                Progress::Over => return Err(not_taken(&name, "the program has ended")),
                Progress::Pending if tokio::time::Instant::now() > deadline => {
                    return Err(unconfirmed(&name));
                }
                Progress::Pending => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
        self.inner
            .record_answer(&found.task, question, id, text)
            .await?;
        let task = self.inner.store.load_task(found.task.id).await;
        let task = task.map_err(crate::error::EngineError::from)?;
        let found = Found {
            task: task.unwrap_or(found.task),
            ..found
        };
        let state = found.task.state.clone();
        let mut done = self.done(found, format!("{name} {said}")).await?;
        if has_moved_on(&state, run) {
            let state = state.kind().as_str();
            done.message = format!("{}; its run has ended, and it is {state} now", done.message);
            let show = NextCommand::Show { task: name };
            done.hints.push(show.purpose("see why").to_string());
        }
        Ok(done)
    }
}

impl Inner {
    /// Records an answer that the program has taken. Recording it twice changes nothing.
    pub(crate) async fn record_answer(
        &self,
        task: &Task,
        question: MessageId,
        message: MessageId,
        text: String,
    ) -> Result<()> {
        let posted = NewMessage {
            id: message,
            body: text,
        };
        let facts = [
            (person(), Fact::Answered { question, message }),
            (self.claim(task.epoch), Fact::MessageAccepted { message }),
        ];
        let record = |actor, fact| async move { self.record(task, actor, fact).await.map(drop) };
        record_taken(self.store.as_ref(), task, posted, facts, record).await
    }
}

/// Stores an answer as delivered and records the facts that the task can still take. A task that has
/// moved on takes none of them, which changes nothing about the answer.
async fn record_taken<F>(
    store: &dyn Store,
    task: &Task,
    posted: NewMessage,
    facts: [(Actor, Fact); 2],
    record: impl Fn(Actor, Fact) -> F,
) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let message = posted.id;
    store
        .post_message(task.id, person(), clock::now(), posted)
        .await?;
    for (actor, fact) in facts {
        match record(actor, fact).await {
            Err(error) if !(error.is_repeated() || error.is_stale()) => return Err(error),
            _ => {}
        }
    }
    let current = store.load_task(task.id).await?;
    let claim = TaskClaim {
        task: task.id,
        epoch: current.map_or(task.epoch, |current| current.epoch),
    };
    match store
        .record_delivery(claim, message, Delivery::Accepted)
        .await
    {
        Ok(()) | Err(StoreError::NotFound { .. } | StoreError::Stale { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a task no longer is in the run that was answered.
fn has_moved_on(state: &State, answered: RunId) -> bool {
    match state {
        State::Working { run, .. } | State::Waiting { run, .. } => *run != answered,
        _ => true,
    }
}

/// The question of a task that can be answered only in the program's terminal.
pub(super) fn only_in_terminal(task: &Task) -> Option<Problem> {
    let State::Waiting { question, .. } = &task.state else {
        return None;
    };
    (question.via == AnswerVia::Terminal).then(|| {
        let name = &task.name;
        let what = format!("{name} asks in its terminal, and can be answered only there");
        Problem::new(Code::WrongState, what).hint(NextCommand::Attach { task: name.clone() })
    })
}

fn not_taken(name: &TaskName, note: &str) -> Problem {
    let what = format!("the program of {name} did not take the answer: {note}");
    Problem::new(Code::WrongState, what)
        .hint(attach(name))
        .hint(NextCommand::Show { task: name.clone() }.purpose("see how it stands"))
}

fn unconfirmed(name: &TaskName) -> Problem {
    let seconds = TAKEN_MAX.as_secs();
    let what = format!("the program of {name} has not confirmed the answer within {seconds} s");
    Problem::new(Code::Unavailable, what)
        .hint(NextCommand::Show { task: name.clone() }.purpose("see whether it still asks"))
        .hint(attach(name))
}

fn attach(name: &TaskName) -> Hint {
    NextCommand::Attach { task: name.clone() }.purpose("answer in its terminal")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use woodward_agents::Delivered;
    use woodward_core::budget::Spend;
    use woodward_core::event::Outcome;
    use woodward_core::schedule::Limits;
    use woodward_core::state::Question;
    use woodward_core::task::Worktree;
    use woodward_core::{
        ClaimId, EventId, Millis, Note, Policy, ProjectId, StateKind, TaskId, TaskSpec, WorkerId,
    };
    use woodward_store::{ClaimRequest, CreateTask, CreateTasks, Project, SqliteStore};

    use super::*;

    #[test]
    fn an_answer_is_given_only_when_the_program_took_it() {
        let id = MessageId::new(fresh_uuid());
        let mut talk = Conversation::default();
        assert_eq!(progress(&talk, id), Progress::Pending);
        talk.ending = Some(woodward_agents::Ending::Interrupted);
        assert_eq!(progress(&talk, id), Progress::Over);
        talk.delivered.push(Delivered {
            message: id,
            refused: Some("the dialog changed".into()),
        });
        let refused = Progress::Refused("the dialog changed".into());
        assert_eq!(progress(&talk, id), refused);
        talk.delivered[0].refused = None;
        assert_eq!(progress(&talk, id), Progress::Taken);
    }

    async fn advance(store: &dyn Store, task: &Task, actor: Actor, fact: Fact) -> Result<Task> {
        let event = clock::event(actor, fact);
        let moved = store.advance(task.id, event, Policy::default()).await?;
        Ok(moved.next)
    }

    /// A task whose agent's program asks.
    async fn waiting(store: &dyn Store, question: MessageId) -> Task {
        let project = Project {
            id: ProjectId::new(fresh_uuid()),
            name: "shop".parse().unwrap(),
            root: "/home/ada/shop".into(),
            created_at: clock::now(),
        };
        let project = store.save_project(project).await.unwrap().id;
        let new = CreateTask {
            id: TaskId::new(fresh_uuid()),
            event: EventId::new(fresh_uuid()),
            project,
            name: "one".parse().unwrap(),
            spec: TaskSpec::default(),
            prompt: Some(NewMessage {
                id: MessageId::new(fresh_uuid()),
                body: "Do it.".into(),
            }),
            idempotency_key: None,
        };
        let tasks = CreateTasks {
            tasks: vec![new],
            actor: person(),
            at: clock::now(),
        };
        store.create_tasks(tasks).await.unwrap();
        let request = ClaimRequest {
            claim: ClaimId::new(fresh_uuid()),
            worker: WorkerId::new(fresh_uuid()),
            project,
            wanted: 1,
            lease: Millis::from_mins(10),
            limits: Limits::default(),
            policy: Policy::default(),
            except: Vec::new(),
            among: None,
        };
        let task = store.claim(request).await.unwrap().tasks.remove(0);
        let worktree = Worktree {
            branch: "woodward/one/1".into(),
            made_by: task.epoch,
            worker: task.holder.unwrap(),
            base: "0".repeat(40).parse().unwrap(),
        };
        let prepared = Fact::Prepared {
            worktree,
            rebuilt: None,
        };
        let task = advance(store, &task, holder(&task), prepared)
            .await
            .unwrap();
        let question = Question {
            id: question,
            text: Note::from(String::from("Do you trust it?")),
            choices: Vec::new(),
            via: AnswerVia::Command,
        };
        let run = run_of(&task);
        let asked = Fact::AgentAsked { run, question };
        advance(store, &task, holder(&task), asked).await.unwrap()
    }

    fn run_of(task: &Task) -> RunId {
        match &task.state {
            State::Working { run, .. } | State::Waiting { run, .. } => *run,
            other => panic!("no run: {other:?}"),
        }
    }

    fn holder(task: &Task) -> Actor {
        Actor::Claim {
            worker: task.holder.unwrap(),
            epoch: task.epoch,
        }
    }

    /// The program takes an answer; then `next` happens to the task before the answer is recorded.
    async fn answered_after(next: impl FnOnce(&Task) -> (Actor, Fact), expected: StateKind) {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("woodward.db")).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let store = store.as_ref();
        let question = MessageId::new(fresh_uuid());
        let task = waiting(store, question).await;
        let (actor, fact) = next(&task);
        let moved = advance(store, &task, actor, fact).await.unwrap();
        assert_eq!(moved.state.kind(), expected);
        assert!(has_moved_on(&moved.state, run_of(&task)));
        let message = MessageId::new(fresh_uuid());
        for _ in 0..2 {
            let posted = NewMessage {
                id: message,
                body: "No, exit".into(),
            };
            let facts = [
                (person(), Fact::Answered { question, message }),
                (holder(&task), Fact::MessageAccepted { message }),
            ];
            let task = &task;
            let record =
                |actor, fact| async move { advance(store, task, actor, fact).await.map(drop) };
            let recorded = record_taken(store, task, posted, facts, record).await;
            assert!(recorded.is_ok(), "{recorded:?}");
        }
        let after = store.load_task(task.id).await.unwrap().unwrap();
        assert_eq!(after.state, moved.state, "a late answer changes no state");
        assert!(!after.unread.contains(&message), "nobody is told it again");
        let messages = store.load_messages(task.id).await.unwrap();
        let kept = messages.iter().find(|kept| kept.id == message).unwrap();
        assert_eq!(kept.delivery, Delivery::Accepted);
    }

    #[tokio::test]
    async fn an_answer_that_ended_the_program_counts_as_given() {
        let ended = |task: &Task| {
            let outcome = Outcome::NeedsPerson {
                note: Note::from(String::from("ended after `No, exit` was chosen")),
            };
            let fact = Fact::RunFinished {
                run: run_of(task),
                outcome,
                total: Spend::NONE,
            };
            (holder(task), fact)
        };
        answered_after(ended, StateKind::Failed).await;
    }

    #[tokio::test]
    async fn an_answer_taken_before_the_task_was_paused_counts_as_given() {
        let paused = |_: &Task| {
            let reason = Note::from(String::from("wait"));
            (person(), Fact::Paused { reason })
        };
        answered_after(paused, StateKind::Paused).await;
    }
}
