//! A store and the model, given the same operations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use woodward_core::budget::Spend;
use woodward_core::event::{Fault, Outcome};
use woodward_core::gate::{GateReport, Verdict};
use woodward_core::landing::{Intent, IntentState};
use woodward_core::lease::{Lease, Resource};
use woodward_core::schedule::{Limits, plan};
use woodward_core::state::{Question, RejectionSource};
use woodward_core::task::Worktree;
use woodward_core::{
    Actor, ClaimId, CommitId, Event, EventId, EventSeq, Fact, IntentId, MessageId, Millis, NewTask,
    Note, Policy, ProjectId, Roll, RunId, State, StateKind, Task, TaskId, TaskSpec, Timestamp,
    WorkerId,
};
use woodward_sim::model::{ClaimRequest as ModelClaim, Model};
use woodward_store::{
    ClaimRequest, CloseIntent, CreateTask, CreateTasks, IntentMember, LeaseRequest, LogEntry,
    NewMessage, OpenIntent, Project, Store, fresh_uuid,
};

use crate::steps::Step;

type Checked = Result<(), String>;

pub(crate) struct Pair {
    store: Arc<dyn Store>,
    model: Model,
    project: ProjectId,
    workers: [WorkerId; 3],
    policy: Policy,
    /// Tasks as somebody once knew them, with the last thing that was said of them.
    memories: Vec<Task>,
    said: Vec<(Task, Event)>,
    rights: Vec<Lease>,
    read_up_to: EventSeq,
    clock: i64,
    pub(crate) refused: usize,
}

fn pick<T>(items: &[T], number: usize) -> Option<&T> {
    items.get(number.checked_rem(items.len())?)
}

fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    Timestamp(i64::try_from(since.as_millis()).expect("this century"))
}

fn commit(digit: usize) -> CommitId {
    format!("{:040x}", digit % 7 + 1)
        .parse()
        .expect("40 hex digits")
}

impl Pair {
    pub(crate) async fn on(store: Arc<dyn Store>) -> Self {
        let project = Project {
            id: ProjectId::new(fresh_uuid()),
            name: "shop".parse().expect("a valid name"),
            root: "/src/shop".into(),
            created_at: Timestamp(1),
        };
        let project = store.save_project(project).await.expect("saves").id;
        Self {
            store,
            model: Model::new(),
            project,
            workers: [(); 3].map(|()| WorkerId::new(fresh_uuid())),
            policy: Policy {
                lease_losses_max: 2,
                ..Policy::default()
            },
            memories: Vec::new(),
            said: Vec::new(),
            rights: Vec::new(),
            read_up_to: EventSeq(0),
            clock: 1_000,
            refused: 0,
        }
    }

    pub(crate) fn kinds(&self) -> Vec<StateKind> {
        self.tasks().iter().map(|task| task.state.kind()).collect()
    }

    fn tasks(&self) -> Vec<Task> {
        self.model.tasks().map(|task| Task::clone(task)).collect()
    }

    fn event(&mut self, actor: Actor, fact: Fact) -> Event {
        self.clock += 1;
        Event {
            id: EventId::new(fresh_uuid()),
            at: Timestamp(self.clock),
            actor,
            roll: Roll(7),
            fact,
        }
    }

    /// Both must say the same.
    fn agree<A: std::fmt::Debug, B: std::fmt::Debug>(
        &mut self,
        store: Result<A, woodward_store::StoreError>,
        model: Result<B, woodward_sim::model::Refused>,
    ) -> Checked {
        self.refused += usize::from(store.is_err());
        if store.is_ok() == model.is_ok() {
            Ok(())
        } else {
            Err(format!("the store says {store:?}, the model {model:?}"))
        }
    }

    /// What the store has logged since the last look.
    async fn news(&mut self) -> Vec<Event> {
        let page = self.store.events_after(self.read_up_to, 1_000).await;
        let page = page.expect("reads");
        self.read_up_to = page.next;
        page.events
            .into_iter()
            .map(|logged| match logged.entry {
                LogEntry::Task { event, .. } => event,
                LogEntry::Retention(_) => panic!("nobody retains here"),
            })
            .collect()
    }

    pub(crate) async fn take(&mut self, step: &Step) -> Checked {
        match *step {
            Step::Create {
                priority,
                after,
                prompted,
            } => self.create(priority, after, prompted).await,
            Step::Claim {
                worker,
                wanted,
                limits,
                runs_out,
            } => self.claim(worker, wanted, limits, runs_out).await,
            Step::Hold { memory, choice } => self.hold(memory, choice).await,
            Step::Repeat { memory } => self.repeat(memory).await,
            Step::Decide { task, choice } => self.decide(task, choice).await,
            Step::Expire => self.expire().await,
            Step::AcquireRight { worker } => self.acquire_right(worker).await,
            Step::OpenIntent { task, right } => self.open_intent(task, right).await,
            Step::CloseIntent { right, landed } => self.close_intent(right, landed).await,
            Step::SendBack { task, right } => self.send_back(task, right).await,
        }
    }

    async fn create(&mut self, priority: i8, after: Option<usize>, prompted: bool) -> Checked {
        let tasks = self.tasks();
        let after = after.and_then(|number| pick(&tasks, number));
        let spec = TaskSpec {
            priority,
            after: after.iter().map(|task| task.id).collect(),
            ..TaskSpec::default()
        };
        let id = TaskId::new(fresh_uuid());
        let new = NewTask {
            id,
            project: self.project,
            name: format!("task-{}", tasks.len())
                .parse()
                .expect("a valid name"),
            spec: spec.clone(),
            prompted,
            blockers: BTreeMap::new(),
        };
        let event = self.event(person(), Fact::Created(new.clone()));
        let prompt = NewMessage {
            id: MessageId::new(fresh_uuid()),
            body: "do it".into(),
        };
        let created = self
            .store
            .create_tasks(CreateTasks {
                tasks: vec![CreateTask {
                    id,
                    event: event.id,
                    project: self.project,
                    name: new.name,
                    spec,
                    prompt: prompted.then_some(prompt),
                    idempotency_key: None,
                }],
                actor: event.actor.clone(),
                at: event.at,
            })
            .await;
        let event = self.news().await.pop().unwrap_or(event);
        let modelled = self.model.create(event, &Policy::default());
        self.agree(created, modelled)
    }

    async fn claim(
        &mut self,
        worker: usize,
        wanted: u32,
        limits: Option<(u32, u32)>,
        runs_out: bool,
    ) -> Checked {
        let worker = *pick(&self.workers, worker).expect("there are workers");
        let limits = limits.map_or_else(Limits::default, |(running, review)| Limits {
            running_max: Some(running),
            review_max: Some(review),
        });
        let claim = ClaimId::new(fresh_uuid());
        let claims = self
            .store
            .claim(ClaimRequest {
                claim,
                worker,
                project: self.project,
                wanted,
                lease: if runs_out {
                    Millis(0)
                } else {
                    Millis::from_mins(10)
                },
                limits,
                policy: self.policy.clone(),
                except: Vec::new(),
                among: None,
            })
            .await
            .map_err(|error| error.to_string())?;
        let events = self.news().await;
        let planned = plan(&self.tasks(), limits, wanted, now()).start;
        let claimed: Vec<TaskId> = claims.tasks.iter().map(|task| task.id).collect();
        if claimed != planned {
            return Err(format!("claimed {claimed:?}, planned {planned:?}"));
        }
        let request = ModelClaim {
            id: claim,
            worker,
            events,
            limits,
        };
        self.model
            .claim(request, &self.policy, now())
            .map_err(|refused| refused.to_string())?;
        self.memories.extend(claims.tasks);
        Ok(())
    }

    async fn hold(&mut self, memory: usize, choice: usize) -> Checked {
        // Mostly somebody who holds the task now; else whoever once knew it.
        let held: Vec<Task> = self
            .tasks()
            .into_iter()
            .filter(|task| task.holder.is_some())
            .collect();
        let known = if memory.is_multiple_of(4) {
            &self.memories
        } else {
            &held
        };
        let Some(task) = pick(known, memory).cloned() else {
            return Ok(());
        };
        let actor = match task.holder {
            Some(worker) => Actor::Claim {
                worker,
                epoch: task.epoch,
            },
            None => Actor::Woodward,
        };
        let event = self.event(actor, what_fits(&task, choice));
        self.commit(task, event).await
    }

    async fn commit(&mut self, task: Task, event: Event) -> Checked {
        let written = self.store.commit(&task, &event, &self.policy).await;
        let modelled = self.model.commit(&task, event.clone(), &self.policy);
        if let Ok(transition) = &written {
            self.memories.push(transition.next.clone());
            self.said.push((task, event));
        }
        self.news().await;
        self.agree(written, modelled)
    }

    async fn repeat(&mut self, memory: usize) -> Checked {
        match pick(&self.said, memory).cloned() {
            Some((task, event)) => self.commit(task, event).await,
            None => Ok(()),
        }
    }

    async fn decide(&mut self, task: usize, choice: usize) -> Checked {
        let tasks = self.tasks();
        let Some(task) = pick(&tasks, task) else {
            return Ok(());
        };
        let event = self.event(person(), what_a_person_says(task, &tasks, choice));
        let advanced = self
            .store
            .advance(task.id, event.clone(), self.policy.clone())
            .await;
        let modelled = self.model.record(task.id, event, &self.policy);
        self.news().await;
        self.agree(advanced, modelled)
    }

    async fn expire(&mut self) -> Checked {
        let expired = self
            .store
            .expire_leases(Millis(0), 100, self.policy.clone())
            .await;
        let expired = expired.map_err(|error| error.to_string())?;
        let events = self.news().await;
        for (lease, event) in expired.iter().zip(events) {
            let Resource::Task(task) = lease.resource else {
                return Err(format!("{} was not to run out", lease.resource));
            };
            self.model
                .record(task, event, &self.policy)
                .map_err(|refused| refused.to_string())?;
        }
        Ok(())
    }

    async fn acquire_right(&mut self, worker: usize) -> Checked {
        let worker = *pick(&self.workers, worker).expect("there are workers");
        let resource = Resource::Landing {
            project: self.project,
            branch: "main".into(),
        };
        let acquired = self
            .store
            .acquire_lease(LeaseRequest {
                resource: resource.clone(),
                worker,
                claim: ClaimId::new(fresh_uuid()),
                length: Millis::from_mins(10),
            })
            .await;
        let modelled = self.model.acquire(resource, worker, now());
        if let (Ok(ours), Ok(theirs)) = (&acquired, &modelled) {
            if ours.epoch != theirs.epoch {
                return Err(format!("{ours:?} is not {theirs:?}"));
            }
            self.rights.push(ours.clone());
        }
        self.agree(acquired, modelled)
    }

    /// Mostly the landing right that counts; else a former one.
    fn right(&self, number: usize) -> Option<Lease> {
        if number.is_multiple_of(4) {
            pick(&self.rights, number).cloned()
        } else {
            self.rights.last().cloned()
        }
    }

    /// A task in the merge queue, the commit that was approved, and somebody's landing right.
    fn landing(&self, task: usize, right: usize) -> Option<(Task, CommitId, Lease)> {
        let queue: Vec<(Task, CommitId)> = self
            .tasks()
            .into_iter()
            .filter_map(|task| match &task.state {
                State::Landing { approval, .. } => {
                    let approved = approval.commit.clone();
                    Some((task, approved))
                }
                _ => None,
            })
            .collect();
        let (task, approved) = pick(&queue, task)?.clone();
        Some((task, approved, self.right(right)?))
    }

    async fn open_intent(&mut self, task: usize, right: usize) -> Checked {
        let Some((task, approved, right)) = self.landing(task, right) else {
            return Ok(());
        };
        let intent = Intent {
            id: IntentId::new(fresh_uuid()),
            project: self.project,
            branch: "main".into(),
            epoch: right.epoch,
            old: commit(1),
            new: commit(2),
            members: vec![task.id],
        };
        let actor = Actor::Lander {
            worker: right.holder,
            epoch: right.epoch,
        };
        let fact = Fact::IntentRecorded {
            intent: intent.id,
            commit: approved,
            result: intent.new.clone(),
        };
        let event = Event {
            roll: Roll(0),
            ..self.event(actor, fact)
        };
        let opened = self
            .store
            .open_intent(OpenIntent {
                intent: intent.clone(),
                worker: right.holder,
                members: vec![IntentMember {
                    task: task.clone(),
                    event: event.id,
                    result: intent.new.clone(),
                }],
                at: event.at,
                policy: self.policy.clone(),
            })
            .await;
        self.news().await;
        let members = [Arc::new(task.clone())];
        let modelled =
            self.model
                .open_intent(intent, right.holder, &members, vec![event], &self.policy);
        self.agree(opened, modelled)
    }

    async fn close_intent(&mut self, right: usize, landed: bool) -> Checked {
        let pending = self.model.pending_intent(self.project, "main").cloned();
        let (Some(intent), Some(right)) = (pending, self.right(right)) else {
            return Ok(());
        };
        let outcome = if landed {
            IntentState::Landed
        } else {
            IntentState::Void
        };
        let actor = Actor::Lander {
            worker: right.holder,
            epoch: right.epoch,
        };
        let event = self.event(actor.clone(), Fact::Landed { intent: intent.id });
        let closed = self
            .store
            .close_intent(CloseIntent {
                intent: intent.id,
                outcome,
                worker: right.holder,
                epoch: right.epoch,
                at: event.at,
                policy: self.policy.clone(),
            })
            .await;
        let mut events = self.news().await;
        if events.is_empty() {
            events.push(event);
        }
        let modelled = self
            .model
            .close_intent(intent.id, outcome, &actor, events, &self.policy);
        self.agree(closed, modelled)
    }

    async fn send_back(&mut self, task: usize, right: usize) -> Checked {
        let Some((task, approved, right)) = self.landing(task, right) else {
            return Ok(());
        };
        let actor = Actor::Lander {
            worker: right.holder,
            epoch: right.epoch,
        };
        let fact = Fact::LandingConflicted {
            commit: approved,
            files: vec!["src/lib.rs".into()],
        };
        let event = self.event(actor, fact);
        self.commit(task.clone(), event).await
    }

    /// Both have the same tasks, the same logs, the same leases.
    pub(crate) async fn compare(&mut self) -> Checked {
        for theirs in self.tasks() {
            let ours = self.store.load_task(theirs.id).await.expect("loads");
            if ours.as_ref() != Some(&theirs) {
                return Err(format!("the store has\n{ours:#?}\nthe model\n{theirs:#?}"));
            }
        }
        let mut logged: BTreeMap<TaskId, Vec<EventId>> = BTreeMap::new();
        for recorded in self.model.events_after(EventSeq(0)) {
            logged
                .entry(recorded.task)
                .or_default()
                .push(recorded.event.id);
        }
        for (task, theirs) in logged {
            let history = self.store.load_history(task).await.expect("loads");
            let ours: Vec<EventId> = history.iter().map(|(event, _)| event.id).collect();
            if ours != theirs {
                return Err(format!("{task}: the logs differ: {ours:?} {theirs:?}"));
            }
        }
        let leases = |leases: Vec<Lease>| -> Vec<_> {
            let mut all: Vec<_> = leases
                .into_iter()
                .map(|lease| (lease.resource, lease.holder, lease.epoch))
                .collect();
            all.sort();
            all
        };
        let ours = leases(self.store.load_leases(None).await.expect("loads"));
        let theirs = leases(self.model.leases().cloned().collect());
        if ours != theirs {
            return Err(format!("leases: the store {ours:?}, the model {theirs:?}"));
        }
        Ok(())
    }
}

fn person() -> Actor {
    Actor::Person("ada".into())
}

/// A fact that its holder could say of a task as it knows it.
fn what_fits(task: &Task, choice: usize) -> Fact {
    let run = || RunId::new(fresh_uuid());
    match &task.state {
        State::Preparing { .. } => match choice % 6 {
            0 => Fact::HandedBack,
            1 => Fact::PrepareFailed {
                fault: [Fault::Transient, Fault::Permanent, Fault::NeedsPerson][choice % 3],
                note: Note::from("no space"),
                in_setup: choice.is_multiple_of(2),
            },
            _ => Fact::Prepared {
                worktree: Worktree {
                    branch: format!("woodward/{}/{}", task.name, task.epoch),
                    made_by: task.epoch,
                    worker: task.holder.unwrap_or(WorkerId::new(fresh_uuid())),
                    base: commit(0),
                },
                rebuilt: None,
            },
        },
        State::Working { run, .. } | State::Waiting { run, .. } => match choice % 8 {
            0 => Fact::AgentAsked {
                run: *run,
                question: Question {
                    id: MessageId::new(fresh_uuid()),
                    text: Note::from("Which colour?"),
                    choices: vec![],
                    via: Default::default(),
                },
            },
            1 => Fact::Spent {
                run: *run,
                total: Spend {
                    tokens: 10,
                    ..Spend::NONE
                },
            },
            2 => match task.unread.first() {
                Some(message) => Fact::MessageAccepted { message: *message },
                None => Fact::HandedBack,
            },
            _ => Fact::RunFinished {
                run: *run,
                outcome: match choice % 11 {
                    0 => Outcome::Empty,
                    1 => Outcome::Broke {
                        note: Note::from("exit 1"),
                    },
                    2 => Outcome::RateLimited {
                        until: Timestamp(5),
                    },
                    3 => Outcome::NeedsPerson {
                        note: Note::from("no login"),
                    },
                    _ => Outcome::Done {
                        commit: commit(choice),
                    },
                },
                total: Spend::NONE,
            },
        },
        State::Verifying { commit } => Fact::GatesFinished {
            commit: commit.clone(),
            tree: None,
            reports: vec![GateReport::new(
                "test".parse().expect("a valid name"),
                match choice % 8 {
                    0 | 1 => Verdict::Fail,
                    2 => Verdict::Broken,
                    3 => Verdict::Flaky,
                    _ => Verdict::Pass,
                },
                true,
            )],
            risky: false,
            embedded: Vec::new(),
            next_run: run(),
        },
        _ => Fact::HandedBack,
    }
}

/// Something that a person could say of a task as it is, or could not.
fn what_a_person_says(task: &Task, tasks: &[Task], choice: usize) -> Fact {
    let message = || MessageId::new(fresh_uuid());
    let note = || Note::from("because");
    match (&task.state, choice % 10) {
        (State::Review { commit, .. }, 0..7) => Fact::Approved {
            commit: commit.clone(),
        },
        (State::Waiting { question, .. }, 0..7) => Fact::Answered {
            question: question.id,
            message: message(),
        },
        (State::Draft, 0..5) | (_, 0) => Fact::PromptGiven { message: message() },
        (State::Paused { .. }, 1..6) => Fact::Resumed,
        (State::Failed { .. } | State::Cancelled { .. }, 1..4) => Fact::Retried,
        (_, 1) => Fact::ChangesRequested {
            message: message(),
            source: RejectionSource::Review,
        },
        (_, 2) => Fact::Paused { reason: note() },
        (_, 3) => Fact::Cancelled { reason: note() },
        (_, 4) => match pick(tasks, choice) {
            Some(other) => Fact::Superseded { by: other.id },
            None => Fact::Resumed,
        },
        (_, 5) => match task.blockers.keys().next() {
            Some(on) if choice % 20 < 10 => Fact::DependencyLanded { task: *on },
            Some(on) => Fact::DependencyDropped { task: *on },
            None => Fact::Resumed,
        },
        _ => Fact::HeadMoved {
            commit: commit(choice),
        },
    }
}
