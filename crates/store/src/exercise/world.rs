//! A small world to exercise a store in: one project, some workers, tasks driven to where a case
//! needs them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use woodward_core::budget::Spend;
use woodward_core::event::Outcome;
use woodward_core::gate::{GateReport, Verdict};
use woodward_core::landing::{Intent, IntentState};
use woodward_core::lease::{Lease, Resource};
use woodward_core::policy::ReviewRule;
use woodward_core::schedule::Limits;
use woodward_core::task::Worktree;
use woodward_core::{
    Actor, ClaimId, CommitId, Epoch, Event, EventId, Fact, IntentId, MessageId, Millis, Policy,
    ProjectId, Roll, RunId, State, StateKind, Task, TaskId, TaskSpec, Timestamp, WorkerId,
};

use crate::ids::fresh_uuid;
use crate::records::{
    ClaimRequest, Claims, CloseIntent, CreateTask, CreateTasks, Created, GateDetail, GateResult,
    IntentMember, LeaseRequest, NewMessage, OpenIntent, Project, TaskClaim,
};
use crate::store::Store;

/// Long enough not to run out during a case.
pub(crate) const LONG: Millis = Millis::from_mins(10);
/// Has run out as soon as it is granted.
pub(crate) const SPENT: Millis = Millis(0);

/// One project on one store.
#[derive(Clone)]
#[expect(
    missing_debug_implementations,
    reason = "a store has no useful debug form"
)]
pub struct World {
    /// The store under test.
    pub store: Arc<dyn Store>,
    /// Its project.
    pub project: ProjectId,
    /// A worker.
    pub worker: WorkerId,
    /// What tasks are driven under.
    pub policy: Policy,
    clock: Arc<AtomicI64>,
}

impl World {
    /// A fresh project on a store.
    pub async fn on(store: Arc<dyn Store>) -> Self {
        let project = Project {
            id: ProjectId::new(fresh_uuid()),
            name: "shop".parse().expect("a valid name"),
            root: "/src/shop".into(),
            created_at: Timestamp(1),
        };
        let project = store.save_project(project).await.expect("saves").id;
        Self {
            store,
            project,
            worker: new_worker(),
            policy: Policy::default(),
            clock: Arc::new(AtomicI64::new(1_000)),
        }
    }

    /// The next moment of the world's own time, which lies far in the past of the database's.
    pub(crate) fn tick(&self) -> Timestamp {
        Timestamp(self.clock.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn event(&self, actor: Actor, fact: Fact) -> Event {
        Event {
            id: EventId::new(fresh_uuid()),
            at: self.tick(),
            actor,
            roll: Roll(0),
            fact,
        }
    }

    pub(crate) fn asked(&self, name: &str, spec: TaskSpec) -> CreateTask {
        CreateTask {
            id: TaskId::new(fresh_uuid()),
            event: EventId::new(fresh_uuid()),
            project: self.project,
            name: name.parse().expect("a valid name"),
            spec,
            prompt: Some(message("do it")),
            idempotency_key: None,
        }
    }

    pub(crate) async fn try_create(&self, tasks: Vec<CreateTask>) -> crate::Result<Vec<Created>> {
        let tasks = CreateTasks {
            tasks,
            actor: person(),
            at: self.tick(),
        };
        self.store.create_tasks(tasks).await
    }

    /// A task in the queue.
    pub async fn queued(&self, name: &str) -> Task {
        self.queued_as(name, TaskSpec::default()).await
    }

    pub(crate) async fn queued_as(&self, name: &str, spec: TaskSpec) -> Task {
        let mut created = self
            .try_create(vec![self.asked(name, spec)])
            .await
            .expect("creates");
        created.pop().expect("one task was asked for").task
    }

    /// Two tasks at once, all or none.
    pub async fn create_two(
        &self,
        first: &str,
        second: &str,
        spec: TaskSpec,
    ) -> crate::Result<Vec<Created>> {
        let batch = vec![self.asked(first, spec.clone()), self.asked(second, spec)];
        self.try_create(batch).await
    }

    /// A task with a prompt of this many bytes.
    pub async fn create_large(&self, name: &str, bytes: usize) -> crate::Result<Vec<Created>> {
        let mut asked = self.asked(name, TaskSpec::default());
        asked.prompt = Some(message(&"x".repeat(bytes)));
        self.try_create(vec![asked]).await
    }

    pub(crate) fn request(&self, wanted: u32) -> ClaimRequest {
        ClaimRequest {
            claim: ClaimId::new(fresh_uuid()),
            worker: self.worker,
            project: self.project,
            wanted,
            lease: LONG,
            limits: Limits::default(),
            policy: self.policy.clone(),
            except: Vec::new(),
            among: None,
        }
    }

    pub(crate) async fn claim(&self, wanted: u32) -> Claims {
        self.store
            .claim(self.request(wanted))
            .await
            .expect("claims")
    }

    /// Claims the one task that is first in line.
    pub async fn claim_one(&self) -> Task {
        self.claim_one_for(LONG).await
    }

    pub(crate) async fn claim_one_for(&self, lease: Millis) -> Task {
        let request = ClaimRequest {
            lease,
            ..self.request(1)
        };
        let mut claims = self.store.claim(request).await.expect("claims");
        claims.tasks.pop().expect("a task is in line")
    }

    /// A fact said by the holder of the task's claim.
    pub(crate) async fn holder_says(&self, task: &Task, fact: Fact) -> Task {
        let event = self.event(holder(task), fact);
        self.store
            .commit(task, &event, &self.policy)
            .await
            .expect("the holder may say so")
            .next
    }

    /// A fact said by a person.
    pub(crate) async fn person_says(&self, task: &Task, fact: Fact) -> Task {
        let event = self.event(person(), fact);
        self.store
            .advance(task.id, event, self.policy.clone())
            .await
            .expect("a person may say so")
            .next
    }

    pub(crate) async fn working(&self, name: &str) -> Task {
        self.queued(name).await;
        let task = self.claim_one().await;
        self.holder_says(&task, prepared(&task)).await
    }

    /// Drives a claimed task to review.
    pub(crate) async fn to_review(&self, claimed: &Task) -> Task {
        let task = self.holder_says(claimed, prepared(claimed)).await;
        let State::Working { run, .. } = task.state else {
            panic!("a prepared task works: {:?}", task.state);
        };
        let outcome = Outcome::Done {
            commit: commit_of(&task),
        };
        let task = self
            .holder_says(
                &task,
                Fact::RunFinished {
                    run,
                    outcome,
                    total: Spend::NONE,
                },
            )
            .await;
        self.holder_says(&task, gates(&task, Verdict::Pass)).await
    }

    pub(crate) async fn in_review(&self, name: &str) -> Task {
        self.queued(name).await;
        let task = self.claim_one().await;
        self.to_review(&task).await
    }

    /// Drives a new task into the merge queue.
    pub(crate) async fn landing(&self, name: &str) -> Task {
        let task = self.in_review(name).await;
        self.approve(&task).await
    }

    pub(crate) async fn approve(&self, task: &Task) -> Task {
        let commit = commit_of(task);
        self.person_says(task, Fact::Approved { commit }).await
    }

    /// The right to land on `main`.
    pub(crate) async fn landing_right(&self) -> Lease {
        let request = LeaseRequest {
            resource: Resource::Landing {
                project: self.project,
                branch: "main".into(),
            },
            worker: self.worker,
            claim: ClaimId::new(fresh_uuid()),
            length: LONG,
        };
        self.store.acquire_lease(request).await.expect("is free")
    }

    pub(crate) fn intent(&self, right: &Lease, members: &[&Task]) -> OpenIntent {
        let old = "a".repeat(40).parse().expect("40 hex digits");
        let new: CommitId = "b".repeat(40).parse().expect("40 hex digits");
        OpenIntent {
            intent: Intent {
                id: IntentId::new(fresh_uuid()),
                project: self.project,
                branch: "main".into(),
                epoch: right.epoch,
                old,
                new: new.clone(),
                members: members.iter().map(|task| task.id).collect(),
            },
            worker: right.holder,
            members: members
                .iter()
                .enumerate()
                .map(|(nth, task)| IntentMember {
                    task: (*task).clone(),
                    event: EventId::new(fresh_uuid()),
                    result: match nth + 1 == members.len() {
                        true => new.clone(),
                        false => format!("{nth:040x}").parse().expect("40 hex digits"),
                    },
                })
                .collect(),
            at: self.tick(),
            policy: self.policy.clone(),
        }
    }

    pub(crate) fn closing(
        &self,
        right: &Lease,
        intent: IntentId,
        outcome: IntentState,
    ) -> CloseIntent {
        CloseIntent {
            intent,
            outcome,
            worker: right.holder,
            epoch: right.epoch,
            at: self.tick(),
            policy: self.policy.clone(),
        }
    }

    /// Lands a task that is in the merge queue.
    pub(crate) async fn land(&self, task: &Task) {
        let right = self.landing_right().await;
        let open = self.intent(&right, &[task]);
        let id = open.intent.id;
        self.store.open_intent(open).await.expect("opens");
        let close = self.closing(&right, id, IntentState::Landed);
        self.store.close_intent(close).await.expect("closes");
    }

    /// The task as the store has it.
    pub async fn reload(&self, task: &Task) -> Task {
        self.store
            .load_task(task.id)
            .await
            .expect("loads")
            .expect("exists")
    }

    /// Which state the store has the task in.
    pub(crate) async fn state_of(&self, task: &Task) -> StateKind {
        self.reload(task).await.state.kind()
    }

    /// A world whose tasks land without a person.
    #[must_use]
    pub(crate) fn without_review(mut self) -> Self {
        self.policy.review = ReviewRule::Never;
        self
    }

    /// The same world seen by another worker.
    #[must_use]
    pub(crate) fn as_other_worker(&self) -> Self {
        Self {
            worker: new_worker(),
            ..self.clone()
        }
    }
}

pub(crate) fn new_worker() -> WorkerId {
    WorkerId::new(fresh_uuid())
}

pub(crate) fn person() -> Actor {
    Actor::Person("ada".into())
}

/// The holder of the claim that a task was loaded under.
pub fn holder(task: &Task) -> Actor {
    Actor::Claim {
        worker: task.holder.expect("the task is claimed"),
        epoch: task.epoch,
    }
}

pub(crate) fn claim_of(task: &Task) -> TaskClaim {
    TaskClaim {
        task: task.id,
        epoch: task.epoch,
    }
}

/// A commit that is this task's alone.
pub(crate) fn commit_of(task: &Task) -> CommitId {
    format!("{}00000000", task.id.as_uuid().simple())
        .parse()
        .expect("32 and 8 hex digits are 40")
}

/// The fact that a claimed task's worktree is ready.
pub fn prepared(task: &Task) -> Fact {
    Fact::Prepared {
        worktree: Worktree {
            branch: format!("woodward/{}/{}", task.name, task.epoch),
            made_by: task.epoch,
            worker: task.holder.expect("the task is claimed"),
            base: "0".repeat(40).parse().expect("40 hex digits"),
        },
        rebuilt: None,
    }
}

pub(crate) fn gates(task: &Task, verdict: Verdict) -> Fact {
    Fact::GatesFinished {
        commit: commit_of(task),
        tree: None,
        reports: vec![GateReport::new(
            "test".parse().expect("a valid name"),
            verdict,
            true,
        )],
        risky: false,
        embedded: Vec::new(),
        next_run: RunId::new(fresh_uuid()),
    }
}

pub(crate) fn message(body: &str) -> NewMessage {
    NewMessage {
        id: MessageId::new(fresh_uuid()),
        body: body.into(),
    }
}

/// How often each item occurs.
pub(crate) fn counts<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    counts
}

/// What a gate that fails says of a commit.
pub(crate) fn failing(commit: CommitId) -> GateResult {
    GateResult {
        commit,
        gate: "test".parse().expect("a valid name"),
        verdict: Verdict::Fail,
        command: "cargo test".into(),
        exit_code: Some(101),
        duration: Millis(1_234),
        at: Timestamp(30),
        detail: GateDetail::default(),
    }
}

/// An epoch that a task had before.
pub(crate) fn earlier(epoch: Epoch) -> Epoch {
    Epoch(epoch.0 - 1)
}
