//! People: they create tasks, prompt, answer, approve, change their minds.
//!
//! They decide on what they saw, and their decisions arrive later, perhaps twice, perhaps crossing
//! another one. Once faults have stopped they only help. They must never do what only a worker may.

use std::collections::BTreeMap;
use std::sync::Arc;

use woodward_core::budget::Budget;
use woodward_core::state::{Purpose, RejectionSource, ResumePoint, State};
use woodward_core::task::{Blocker, Standing};
use woodward_core::{Actor, Epoch, Fact, Millis, NewTask, Note, Task, TaskId, TaskName, TaskSpec};

use crate::agents;
use crate::env::Env;
use crate::ids::PROJECT;
use crate::network::Report;

pub(crate) struct Person {
    name: &'static str,
    /// Tasks this person will still create.
    to_create: u64,
    retries: BTreeMap<TaskId, u32>,
}

/// How often a person retries one failed task before leaving it.
const RETRIES_MAX: u32 = 3;

impl Person {
    pub(crate) const fn new(name: &'static str, to_create: u64) -> Self {
        Self {
            name,
            to_create,
            retries: BTreeMap::new(),
        }
    }

    fn actor(&self) -> Actor {
        Actor::Person(self.name.to_owned())
    }

    /// One decision. Returns how long until the next.
    pub(crate) fn turn(&mut self, env: &mut Env) -> Millis {
        if self.to_create > 0 && (env.calm || env.rng.chance(700)) {
            self.create(env);
        } else if let Some(task) = pick(env) {
            self.attend(env, &task);
        }
        env.rng.span(200, if env.calm { 1_500 } else { 5_000 })
    }

    fn create(&mut self, env: &mut Env) {
        self.to_create -= 1;
        let id = env.ids.task();
        let existing: Vec<TaskId> = env.model.tasks().map(|task| task.id).collect();
        let mut after = Vec::new();
        if !existing.is_empty() && env.rng.chance(350) {
            for _ in 0..env.rng.between(1, 2) {
                let on = existing[env.rng.index(existing.len())];
                if !after.contains(&on) {
                    after.push(on);
                }
            }
        }
        let spec = TaskSpec {
            priority: env.rng.between(0, 2) as i8,
            after,
            budget: env.rng.chance(250).then(|| drawn(env)),
            ..TaskSpec::default()
        };
        let new = NewTask {
            id,
            project: PROJECT,
            name: name_of(id),
            spec,
            prompted: env.rng.chance(700),
            blockers: BTreeMap::new(),
        };
        env.stats.tasks += 1;
        let event = env.event(self.actor(), Fact::Created(new));
        let answer = env.model.create(event.clone(), &env.policy);
        env.heard(id, &event, &answer);
    }

    fn attend(&mut self, env: &mut Env, task: &Task) {
        let fickle = env.rng.chance(env.faults.fickle);
        if fickle && let Some(fact) = self.change_of_mind(env, task) {
            self.decide(env, task, fact);
            // Sometimes two decisions about the same thing cross.
            if env.rng.chance(500) {
                return;
            }
        }
        if let Some(fact) = self.help(env, task) {
            self.decide(env, task, fact);
        }
    }

    fn decide(&self, env: &mut Env, seen: &Task, fact: Fact) {
        let event = env.event(self.actor(), fact);
        env.send(Report {
            task: seen.id,
            event,
            reply_to: None,
        });
    }

    /// What brings the task on.
    fn help(&mut self, env: &mut Env, task: &Task) -> Option<Fact> {
        Some(match &task.state {
            // What somebody made elsewhere only has to land.
            State::Draft if task.blockers.is_empty() && env.rng.chance(150) => {
                let base = env.git.main();
                Fact::Brought {
                    commit: agents::commit(env, task.id, Epoch(0), &base),
                    message: env.ids.message(),
                }
            }
            State::Draft => Fact::PromptGiven {
                message: env.ids.message(),
            },
            State::Waiting { question, .. } => Fact::Answered {
                question: question.id,
                message: env.ids.message(),
            },
            State::Review { commit, .. } => Fact::Approved {
                commit: commit.clone(),
            },
            State::Paused { back, .. } if is_too_dear(task, back) => match env.rng.below(4) {
                0 => Fact::Cancelled {
                    reason: Note::from("too dear"),
                },
                1 if !env.calm => Fact::Resumed,
                _ => Fact::BudgetSet {
                    budget: raised(env, task),
                },
            },
            State::Paused { .. } => Fact::Resumed,
            State::Failed { .. } => return self.retry(task.id),
            State::Queued { .. } if env.calm => match self.hopeless_dependency(env, task)? {
                on if env.rng.chance(500) => Fact::DependencyDropped { task: on },
                _ => Fact::Cancelled {
                    reason: Note::from("what it comes after will not land"),
                },
            },
            _ => return None,
        })
    }

    fn retry(&mut self, task: TaskId) -> Option<Fact> {
        let retries = self.retries.entry(task).or_default();
        *retries += 1;
        (*retries <= RETRIES_MAX).then_some(Fact::Retried)
    }

    /// A task that it depends on and that nobody will bring on.
    fn hopeless_dependency(&self, env: &Env, task: &Task) -> Option<TaskId> {
        let is_hopeless = |on: TaskId, blocker: &Blocker| {
            matches!(blocker.standing, Standing::Failed(_))
                && env.model.task(on).is_some_and(|on| self.has_left(on))
        };
        let mut hopeless = task.blockers.iter();
        hopeless
            .find(|(on, blocker)| is_hopeless(**on, blocker))
            .map(|(on, _)| *on)
    }

    /// Whether this person will not touch the task again.
    pub(crate) fn has_left(&self, task: &Task) -> bool {
        let spent = self.retries.get(&task.id).copied().unwrap_or_default() >= RETRIES_MAX;
        task.state.kind().is_finished() || (spent && matches!(task.state, State::Failed { .. }))
    }

    pub(crate) const fn has_created_all(&self) -> bool {
        self.to_create == 0
    }

    /// What does not bring it on, at any moment at which a person could say it.
    fn change_of_mind(&self, env: &mut Env, task: &Task) -> Option<Fact> {
        let reason = Note::from("on second thoughts");
        Some(match env.rng.below(14) {
            0..3 => Fact::Paused { reason },
            3 => Fact::Cancelled { reason },
            4..6 => Fact::ChangesRequested {
                message: env.ids.message(),
                source: RejectionSource::Review,
            },
            6 => Fact::Superseded { by: any(env) },
            7 if env.rng.chance(500) => Fact::Restored { worktree: None },
            7 => Fact::Retried,
            8..10 => return self.push_by_hand(env, task),
            10 => Fact::BudgetSet { budget: drawn(env) },
            11 => Fact::Resumed,
            12 => return rewrite_target(task),
            _ => Fact::PromptGiven {
                message: env.ids.message(),
            },
        })
    }

    /// A person commits to the task's branch after its result was verified.
    fn push_by_hand(&self, env: &mut Env, task: &Task) -> Option<Fact> {
        let (State::Review { .. } | State::Landing { .. }) = task.state else {
            return None;
        };
        let worktree = task.worktree.as_ref()?;
        let commit = agents::commit(env, task.id, worktree.made_by, &worktree.base.clone());
        Some(Fact::HeadMoved { commit })
    }
}

/// A person rewrites the target branch below a result, which is then rebuilt.
fn rewrite_target(task: &Task) -> Option<Fact> {
    let commit = match &task.state {
        State::Review { commit, .. } => commit,
        State::Landing { approval, .. } => &approval.commit,
        _ => return None,
    };
    Some(Fact::TargetRewritten {
        commit: commit.clone(),
    })
}

fn drawn(env: &mut Env) -> Budget {
    Budget {
        tokens_max: Some(env.rng.between(40, 200)),
        micro_usd_max: None,
    }
}

/// More than was spent. Calmly it is more than all runs to come can use, so that there is an end.
fn raised(env: &mut Env, task: &Task) -> Budget {
    let more = env.rng.between(1, 200);
    Budget {
        tokens_max: (!env.calm).then_some(task.tally.spent.tokens + more),
        micro_usd_max: None,
    }
}

/// Any task at all.
fn any(env: &mut Env) -> TaskId {
    let tasks: Vec<TaskId> = env.model.tasks().map(|task| task.id).collect();
    tasks[env.rng.index(tasks.len())]
}

/// Whether resuming is refused until the budget is raised: money does not grow back. What needs no
/// agent any more can be resumed nevertheless.
fn is_too_dear(task: &Task, back: &ResumePoint) -> bool {
    let reached = task
        .spec
        .budget
        .is_some_and(|budget| budget.reached_by(task.tally.spent).is_some());
    reached && (runs_an_agent(back) || !task.unread.is_empty())
}

const fn runs_an_agent(back: &ResumePoint) -> bool {
    match back {
        ResumePoint::Queue { purpose, .. } => !matches!(purpose, Purpose::Verify { .. }),
        ResumePoint::Review { .. } | ResumePoint::Landing { .. } => false,
    }
}

fn name_of(id: TaskId) -> TaskName {
    format!("task-{}", crate::env::t(id))
        .parse()
        .unwrap_or_else(|_| unreachable!("letters and digits are a name"))
}

/// Some task; finished ones only rarely.
fn pick(env: &mut Env) -> Option<Arc<Task>> {
    let finished = env.rng.chance(50);
    let tasks: Vec<&Arc<Task>> = env
        .model
        .tasks()
        .filter(|task| finished || !task.state.kind().is_finished())
        .collect();
    if tasks.is_empty() {
        return None;
    }
    Some(Arc::clone(tasks[env.rng.index(tasks.len())]))
}
