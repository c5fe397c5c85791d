//! What the reference model promises by itself, as the real stores must.

use std::sync::Arc;

use uuid::Uuid;
use woodward_core::landing::{Intent, IntentState};
use woodward_core::lease::{LeaseTiming, Resource};
use woodward_core::schedule::Limits;
use woodward_core::{
    Action, Actor, ClaimId, CommitId, Epoch, Event, EventId, EventSeq, Fact, IntentId, NewTask,
    Note, Policy, ProjectId, Roll, RunId, State, Task, TaskId, TaskSpec, Timestamp, WorkerId,
};
use woodward_sim::model::{Claim, ClaimRequest, Committed, Model, Refused};

const PROJECT: ProjectId = ProjectId::new(Uuid::from_u128(1));
const ANN: WorkerId = WorkerId::new(Uuid::from_u128(1));
const BOB: WorkerId = WorkerId::new(Uuid::from_u128(2));

struct Fixture {
    model: Model,
    policy: Policy,
    events: u128,
}

impl Fixture {
    fn new() -> Self {
        Self {
            model: Model::new(),
            policy: Policy {
                review: woodward_core::policy::ReviewRule::Never,
                ..Policy::default()
            },
            events: 0,
        }
    }

    fn event(&mut self, actor: Actor, fact: Fact) -> Event {
        self.events += 1;
        Event {
            id: EventId::new(Uuid::from_u128(self.events)),
            at: Timestamp(0),
            actor,
            roll: Roll(0),
            fact,
        }
    }

    fn create(&mut self, number: u128, after: &[TaskId]) -> TaskId {
        let new = NewTask {
            id: TaskId::new(Uuid::from_u128(number)),
            project: PROJECT,
            name: format!("task-{number}").parse().expect("a name"),
            spec: TaskSpec {
                after: after.to_vec(),
                ..TaskSpec::default()
            },
            prompted: true,
            blockers: Default::default(),
        };
        let id = new.id;
        let event = self.event(Actor::Person("ada".into()), Fact::Created(new));
        self.model.create(event, &self.policy).expect("it is new");
        id
    }

    fn claim(&mut self, id: u128, worker: WorkerId, wanted: u128) -> Vec<Claim> {
        let events = (0..wanted)
            .map(|n| {
                let run = RunId::new(Uuid::from_u128(id * 100 + n));
                self.event(Actor::Woodward, Fact::Claimed { worker, run })
            })
            .collect();
        let request = ClaimRequest {
            id: ClaimId::new(Uuid::from_u128(id)),
            worker,
            events,
            limits: Limits::default(),
        };
        self.model
            .claim(request, &self.policy, Timestamp(0))
            .expect("the plan and step agree")
    }

    fn task(&self, id: TaskId) -> Arc<Task> {
        self.model.task(id).cloned().expect("it exists")
    }

    /// Brings a freshly claimed task into the merge queue.
    fn bring_to_landing(&mut self, claim: &Claim) -> Arc<Task> {
        let task = claim.task.id;
        let State::Preparing { run, .. } = claim.task.state else {
            panic!("a claimed task is preparing");
        };
        let facts = [
            Fact::Prepared {
                worktree: woodward_core::task::Worktree {
                    branch: "woodward/task/1".into(),
                    made_by: claim.lease.epoch,
                    worker: ANN,
                    base: commit('a'),
                },
                rebuilt: None,
            },
            Fact::RunFinished {
                run,
                outcome: woodward_core::event::Outcome::Done {
                    commit: commit('b'),
                },
                total: woodward_core::budget::Spend::NONE,
            },
            Fact::GatesFinished {
                commit: commit('b'),
                tree: None,
                reports: vec![woodward_core::gate::GateReport::new(
                    "test".parse().expect("a name"),
                    woodward_core::gate::Verdict::Pass,
                    true,
                )],
                risky: false,
                embedded: Vec::new(),
                next_run: RunId::new(Uuid::from_u128(999)),
            },
        ];
        for fact in facts {
            let actor = Actor::Claim {
                worker: ANN,
                epoch: claim.lease.epoch,
            };
            let event = self.event(actor, fact);
            self.model
                .record(task, event, &self.policy)
                .expect("each fact follows from the one before");
        }
        self.task(task)
    }

    fn open(&mut self, number: u128, epoch: Epoch, member: &Arc<Task>) -> Result<(), Refused> {
        let intent = Intent {
            id: IntentId::new(Uuid::from_u128(number)),
            project: PROJECT,
            branch: "main".into(),
            epoch,
            old: commit('a'),
            new: commit('c'),
            members: vec![member.id],
        };
        let fact = Fact::IntentRecorded {
            intent: intent.id,
            commit: commit('b'),
            result: commit('c'),
        };
        let event = self.event(Actor::Lander { worker: ANN, epoch }, fact);
        let members = std::slice::from_ref(member);
        self.model
            .open_intent(intent, ANN, members, vec![event], &self.policy)
            .map(drop)
    }
}

fn commit(digit: char) -> CommitId {
    digit.to_string().repeat(40).parse().expect("40 digits")
}

fn landing_right() -> Resource {
    Resource::Landing {
        project: PROJECT,
        branch: "main".into(),
    }
}

#[test]
fn a_new_model_has_no_events() {
    assert!(Model::new().events_after(EventSeq(0)).is_empty());
}

#[test]
fn a_claim_asked_for_twice_claims_once() {
    let mut f = Fixture::new();
    f.create(1, &[]);
    f.create(2, &[]);
    let first = f.claim(1, ANN, 1);
    assert_eq!(f.claim(1, ANN, 1), first, "the same id is the same claim");
    assert_eq!(f.model.held_by(ANN).count(), 1);
    let id = ClaimId::new(Uuid::from_u128(1));
    assert_eq!(f.model.claim_by_id(id), Some(first.as_slice()));
}

#[test]
fn a_task_waits_for_what_it_comes_after() {
    let mut f = Fixture::new();
    let first = f.create(1, &[]);
    f.create(2, &[first]);
    assert_eq!(f.claim(1, ANN, 5).len(), 1);
}

#[test]
fn an_event_is_recorded_once() {
    let mut f = Fixture::new();
    let task = f.create(1, &[]);
    let reason = Note::from("not now");
    let event = f.event(Actor::Person("ada".into()), Fact::Paused { reason });
    let first = f.model.record(task, event.clone(), &f.policy);
    assert!(matches!(first, Ok(Committed::Now(_))));
    let second = f.model.record(task, event, &f.policy);
    assert_eq!(second, Ok(Committed::Before));
    assert_eq!(f.model.events_after(EventSeq(0)).len(), 2);
    assert_eq!(f.model.events_after(EventSeq(1)).len(), 1);
}

#[test]
fn a_write_on_what_has_changed_is_refused() {
    let mut f = Fixture::new();
    let id = f.create(1, &[]);
    let seen = f.task(id);
    f.claim(1, ANN, 1);
    let reason = Note::from("too late");
    let event = f.event(Actor::Person("ada".into()), Fact::Cancelled { reason });
    let answer = f.model.commit(&seen, event, &f.policy);
    assert!(matches!(answer, Err(Refused::Changed { .. })), "{answer:?}");
}

#[test]
fn a_lease_that_ran_out_is_taken_away_and_its_holder_writes_nothing() {
    let mut f = Fixture::new();
    let id = f.create(1, &[]);
    let claim = f.claim(1, ANN, 1).pop().expect("one");
    let timing = LeaseTiming::default();
    let end = claim.lease.expires_at + timing.grace;
    assert_eq!(f.model.expired(Timestamp(end.0 - 1)).count(), 0);
    assert_eq!(f.model.expired(end).count(), 1);

    let epoch = claim.lease.epoch;
    let expired = f.event(Actor::Woodward, Fact::LeaseExpired { epoch });
    let early = Timestamp(end.0 - 1);
    let answer = f.model.expire(id, expired.clone(), &f.policy, early);
    assert_eq!(answer, Err(Refused::Held(ANN)));
    f.model
        .expire(id, expired, &f.policy, end)
        .expect("it ran out");
    let late = f.event(Actor::Claim { worker: ANN, epoch }, Fact::HandedBack);
    let answer = f.model.record(id, late, &f.policy).expect_err("stale");
    assert!(answer.is_stale(), "{answer}");
    let renewal = f.model.renew(&claim.lease.resource, ANN, epoch, end);
    assert!(matches!(renewal, Err(Refused::Stale { .. })));
}

#[test]
fn an_effect_is_due_until_it_is_finished_or_its_claim_is_gone() {
    let mut f = Fixture::new();
    let id = f.create(1, &[]);
    f.claim(1, ANN, 1);
    assert_eq!(f.model.take_effects(BOB).count(), 0, "it is Ann's");
    assert_eq!(f.model.take_effects(ANN).count(), 1);
    assert_eq!(f.model.take_effects(ANN).count(), 1, "taking hides nothing");

    let reason = Note::from("not now");
    let pause = f.event(Actor::Person("ada".into()), Fact::Paused { reason });
    f.model.record(id, pause, &f.policy).expect("it may");
    let due: Vec<_> = f.model.take_effects(ANN).cloned().collect();
    assert!(
        matches!(due.as_slice(), [stop] if matches!(stop.action, Action::StopRun { .. })),
        "preparing is void, stopping is not: {due:?}"
    );
    f.model.finish_effect(&due[0].key);
    assert_eq!(f.model.due_effects().count(), 0);
}

#[test]
fn the_landing_right_changes_hands_with_a_growing_epoch() {
    let mut f = Fixture::new();
    let now = Timestamp(0);
    let ann = f.model.acquire(landing_right(), ANN, now).expect("free");
    let held = f.model.acquire(landing_right(), BOB, now);
    assert_eq!(held, Err(Refused::Held(ANN)));
    f.model
        .release(&landing_right(), ANN, ann.epoch)
        .expect("hers");
    let bob = f.model.acquire(landing_right(), BOB, now).expect("free");
    assert!(bob.epoch > ann.epoch);
    let stale = f.model.renew(&landing_right(), ANN, ann.epoch, now);
    assert!(matches!(stale, Err(Refused::Stale { .. })));
}

#[test]
fn a_branch_has_one_pending_intent_and_only_the_holder_opens_it() {
    let mut f = Fixture::new();
    f.create(1, &[]);
    f.create(2, &[]);
    let claims = f.claim(1, ANN, 2);
    let first = f.bring_to_landing(&claims[0]);
    let second = f.bring_to_landing(&claims[1]);
    let refused = f.open(1, Epoch(1), &first);
    assert!(
        matches!(refused, Err(Refused::Stale { .. })),
        "no right yet"
    );

    let lease = f
        .model
        .acquire(landing_right(), ANN, Timestamp(0))
        .expect("free");
    f.open(1, lease.epoch, &first).expect("all is well");
    let pending = f.open(2, lease.epoch, &second);
    assert!(matches!(pending, Err(Refused::IntentPending(_))));

    let lander = Actor::Lander {
        worker: ANN,
        epoch: lease.epoch,
    };
    let intent = IntentId::new(Uuid::from_u128(1));
    let landed = f.event(lander.clone(), Fact::Landed { intent });
    f.model
        .close_intent(
            intent,
            IntentState::Landed,
            &lander,
            vec![landed],
            &f.policy,
        )
        .expect("pending");
    assert!(matches!(f.task(first.id).state, State::Landed { .. }));
    assert_eq!(f.model.pending_intent(PROJECT, "main"), None);
    f.open(3, lease.epoch, &second).expect("its turn");
}

#[test]
fn an_intent_for_what_has_changed_writes_nothing() {
    let mut f = Fixture::new();
    f.create(1, &[]);
    let claim = f.claim(1, ANN, 1).pop().expect("one");
    let seen = f.bring_to_landing(&claim);
    let lease = f
        .model
        .acquire(landing_right(), ANN, Timestamp(0))
        .expect("free");
    let reason = Note::from("not now");
    let pause = f.event(Actor::Person("ada".into()), Fact::Paused { reason });
    f.model.record(seen.id, pause, &f.policy).expect("it may");
    let refused = f.open(1, lease.epoch, &seen);
    assert!(matches!(refused, Err(Refused::Changed { .. })));
    assert_eq!(f.model.intents().count(), 0);
}
