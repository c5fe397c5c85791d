//! A task with its log, and the ids, actors and facts that tests feed to `step`.

pub(crate) mod facts;
pub(crate) mod histories;

use std::collections::BTreeMap;

use uuid::Uuid;
use woodward_core::task::{Blocker, Standing, Worktree};
use woodward_core::time::{Millis, Roll, Timestamp};
use woodward_core::{
    Actor, CommitId, Effect, Event, EventId, Fact, IllegalTransition, IntentId, MessageId, NewTask,
    Policy, ProjectId, RunId, Task, TaskId, TaskSpec, Transition, TreeId, Version, WorkerId, step,
};

pub(crate) fn task_id(n: u128) -> TaskId {
    TaskId::new(Uuid::from_u128(n))
}

pub(crate) fn run(n: u128) -> RunId {
    RunId::new(Uuid::from_u128(n))
}

pub(crate) fn message(n: u128) -> MessageId {
    MessageId::new(Uuid::from_u128(n))
}

pub(crate) fn intent(n: u128) -> IntentId {
    IntentId::new(Uuid::from_u128(n))
}

pub(crate) fn worker(n: u128) -> WorkerId {
    WorkerId::new(Uuid::from_u128(n))
}

pub(crate) fn commit(n: u128) -> CommitId {
    format!("{n:040x}").parse().expect("40 hex digits")
}

pub(crate) fn tree(n: u128) -> TreeId {
    format!("{n:040x}").parse().expect("40 hex digits")
}

pub(crate) fn person() -> Actor {
    Actor::Person("ada".into())
}

pub(crate) fn lander() -> Actor {
    Actor::Lander {
        worker: worker(1),
        epoch: woodward_core::Epoch(1),
    }
}

/// The holder of the task's claim; worker 1 if nobody holds it.
pub(crate) fn holder(task: &Task) -> Actor {
    Actor::Claim {
        worker: task.holder.unwrap_or(worker(1)),
        epoch: task.epoch,
    }
}

/// The worktree that the holder finds on its machine or makes there.
pub(crate) fn worktree(task: &Task) -> Worktree {
    match &task.worktree {
        Some(there) if Some(there.worker) == task.holder => there.clone(),
        _ => new_worktree(task),
    }
}

pub(crate) fn new_worktree(task: &Task) -> Worktree {
    Worktree {
        branch: format!("woodward/{}/{}", task.name, task.epoch),
        made_by: task.epoch,
        worker: task.holder.unwrap_or(worker(1)),
        base: commit(0xba5e),
    }
}

/// A blocker that is under way, known from the other's third version.
pub(crate) const fn pending() -> Blocker {
    Blocker {
        standing: Standing::Pending,
        as_of: Version(3),
    }
}

pub(crate) fn new_task(prompted: bool, blockers: &[u128]) -> NewTask {
    let after: Vec<TaskId> = blockers.iter().copied().map(task_id).collect();
    NewTask {
        id: task_id(7),
        project: ProjectId::new(Uuid::from_u128(1)),
        name: "fix-login".parse().expect("valid name"),
        spec: TaskSpec {
            after: after.clone(),
            ..TaskSpec::default()
        },
        prompted,
        blockers: BTreeMap::from_iter(after.into_iter().map(|on| (on, pending()))),
    }
}

/// A task as it lives: every accepted fact goes to its log, every effect to its list.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) task: Task,
    pub(crate) policy: Policy,
    pub(crate) at: Timestamp,
    pub(crate) roll: Roll,
    pub(crate) log: Vec<(Event, Policy)>,
    pub(crate) effects: Vec<Effect>,
}

impl World {
    pub(crate) fn create(new: NewTask, policy: Policy) -> Self {
        let at = Timestamp(1_000_000);
        let event = Event {
            id: EventId::new(Uuid::from_u128(1)),
            at,
            actor: person(),
            roll: Roll(0),
            fact: Fact::Created(new.clone()),
        };
        let Transition { next, effects } = woodward_core::step::create(&new, &event);
        Self {
            task: next,
            at,
            roll: Roll(0),
            log: vec![(event, policy.clone())],
            effects,
            policy,
        }
    }

    /// A task with a prompt, under this policy.
    pub(crate) fn queued(policy: Policy) -> Self {
        Self::create(new_task(true, &[]), policy)
    }

    /// A number no id of this history has yet.
    pub(crate) fn fresh(&self) -> u128 {
        self.log.len() as u128 + 1_000
    }

    pub(crate) fn wait(&mut self, span: Millis) -> &mut Self {
        self.at = self.at + span;
        self
    }

    pub(crate) fn event(&self, actor: Actor, fact: Fact) -> Event {
        Event {
            id: EventId::new(Uuid::from_u128(self.fresh())),
            at: self.at,
            actor,
            roll: self.roll,
            fact,
        }
    }

    pub(crate) fn step(&self, actor: Actor, fact: Fact) -> Result<Transition, IllegalTransition> {
        step(&self.task, &self.event(actor, fact), &self.policy)
    }

    /// Records a fact if it applies.
    pub(crate) fn record(
        &mut self,
        actor: Actor,
        fact: Fact,
    ) -> Result<Transition, IllegalTransition> {
        let event = self.event(actor, fact);
        let transition = step(&self.task, &event, &self.policy)?;
        self.task = transition.next.clone();
        self.log.push((event, self.policy.clone()));
        self.effects.extend(transition.effects.iter().cloned());
        Ok(transition)
    }
}
