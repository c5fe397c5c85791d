//! How a worker performs each effect: in small steps, each of which may be the last before a crash.
//!
//! Performing the same effect twice must leave the world as performing it once does.

use woodward_core::effect::DependencyNews;
use woodward_core::event::{Fault, Outcome};
use woodward_core::state::Question;
use woodward_core::task::Worktree;
use woodward_core::{
    Action, Actor, Effect, EffectKey, Epoch, Fact, MessageId, Note, RunId, TaskId, Version,
};

use super::{Then, Worker};
use crate::agents;
use crate::env::{Env, t, w};
use crate::gates;
use crate::machines::{Agent, Asking};

/// An effect under way.
pub(super) struct Deed {
    effect: Effect,
    stage: Stage,
}

enum Stage {
    Begin,
    /// Gates are running; so many steps are left.
    Gates(u64),
    /// These dependents have yet to be told.
    Telling(Vec<TaskId>),
    /// A report is out; its answer ends the effect.
    Reported,
    Done,
}

impl Deed {
    pub(super) const fn new(effect: Effect) -> Self {
        Self {
            effect,
            stage: Stage::Begin,
        }
    }

    pub(super) const fn key(&self) -> &EffectKey {
        &self.effect.key
    }

    pub(super) fn concerns(&self, task: TaskId, epoch: Epoch) -> bool {
        self.effect.task == task && self.effect.epoch == epoch
    }

    /// The store has answered the report about it.
    pub(super) fn answered(&mut self) {
        if matches!(self.stage, Stage::Reported) {
            self.stage = Stage::Done;
        }
    }
}

impl Worker {
    /// Takes one effect a step further.
    pub(super) fn perform(&mut self, env: &mut Env) -> bool {
        let mut open =
            (0..self.deeds.len()).filter(|i| !matches!(self.deeds[*i].stage, Stage::Reported));
        let count = open.clone().count();
        if count == 0 {
            return false;
        }
        let Some(chosen) = open.nth(env.rng.index(count)) else {
            return false;
        };
        let mut deed = self.deeds.swap_remove(chosen);
        if matches!(deed.stage, Stage::Done) {
            env.model.finish_effect(deed.key());
            return true;
        }
        deed.stage = self.advance(env, &deed.effect, deed.stage);
        self.deeds.push(deed);
        true
    }

    fn advance(&mut self, env: &mut Env, effect: &Effect, stage: Stage) -> Stage {
        match (&effect.action, stage) {
            (Action::PrepareWorktree { .. }, _) => self.prepare(env, effect),
            (Action::StartRun { run, messages, .. }, _) => self.start(env, effect, *run, messages),
            (Action::DeliverMessage { run, message }, _) => hand_over(env, *run, *message),
            (Action::StopRun { run }, _) => {
                env.machines.stop_run(*run);
                Stage::Done
            }
            (Action::RunGates { .. }, Stage::Begin) => Stage::Gates(env.rng.between(0, 3)),
            (Action::RunGates { commit }, Stage::Gates(0)) => {
                let fact = Fact::GatesFinished {
                    commit: commit.clone(),
                    tree: commit.as_str().parse().ok(),
                    reports: gates::run(env, commit),
                    risky: env.rng.chance(500),
                    embedded: Vec::new(),
                    next_run: env.ids.run(),
                };
                self.report_on(env, effect, fact)
            }
            (Action::RunGates { .. }, Stage::Gates(left)) => Stage::Gates(left - 1),
            (Action::StopGates { .. }, _) => {
                // Gates are known by task, claim and commit: those of a newer claim go on.
                for deed in &mut self.deeds {
                    let gates = matches!(deed.effect.action, Action::RunGates { .. });
                    if gates && deed.concerns(effect.task, effect.epoch) {
                        deed.stage = Stage::Done;
                    }
                }
                Stage::Done
            }
            (Action::RemoveWorktree { worktree }, _) => {
                let name = (worktree.worker, effect.task, worktree.made_by);
                env.machines.stop_worktree(name);
                env.machines.worktrees.remove(&name);
                env.machines.removed.insert(name);
                Stage::Done
            }
            (Action::TellDependents { news, as_of }, Stage::Telling(left)) => {
                tell(env, effect.task, news, *as_of, left)
            }
            (Action::TellDependents { .. }, _) => Stage::Telling(dependents(env, effect.task)),
            (_, stage) => stage,
        }
    }

    fn report_on(&mut self, env: &mut Env, effect: &Effect, fact: Fact) -> Stage {
        let then = Then::Finish(effect.key.clone());
        self.report(env, effect.task, effect.epoch, fact, then);
        Stage::Reported
    }

    fn prepare(&mut self, env: &mut Env, effect: &Effect) -> Stage {
        if env.rng.chance(env.faults.prepare_fails) {
            let fault = match env.rng.below(8) {
                0 => Fault::Permanent,
                1 => Fault::NeedsPerson,
                _ => Fault::Transient,
            };
            let note = Note::from("disk full");
            return self.report_on(
                env,
                effect,
                Fact::PrepareFailed {
                    fault,
                    note,
                    in_setup: false,
                },
            );
        }
        let name = (self.id, effect.task, effect.epoch);
        if !env.lifts.tombstones && env.machines.removed.contains(&name) {
            return Stage::Done;
        }
        let main = env.git.main();
        let base = env.machines.worktrees.entry(name).or_insert(main).clone();
        let worktree = Worktree {
            branch: agents::branch(effect.task, effect.epoch),
            made_by: effect.epoch,
            worker: self.id,
            base,
        };
        self.report_on(
            env,
            effect,
            Fact::Prepared {
                worktree,
                rebuilt: None,
            },
        )
    }

    /// Starts the agent, unless it was started or stopped before.
    fn start(&self, env: &mut Env, effect: &Effect, run: RunId, messages: &[MessageId]) -> Stage {
        let began = env.machines.starts.contains_key(&run);
        let stopped = !env.lifts.tombstones && env.machines.stopped.contains(&run);
        let worktree = (self.id, effect.task, effect.epoch);
        let Some(base) = env.machines.worktrees.get(&worktree).cloned() else {
            return Stage::Done;
        };
        if began || stopped {
            return Stage::Done;
        }
        let id = self.id;
        env.say(|| {
            format!(
                "W{} starts R{} on T{} (epoch {})",
                w(id),
                crate::ids::number(run.as_uuid()),
                t(effect.task),
                effect.epoch
            )
        });
        let given = messages.to_vec();
        agents::start(env, run, (effect.task, effect.epoch, id), base, given);
        Stage::Done
    }

    /// What the store does not know about one agent. What it has taken comes before its end: a
    /// message that is still unread then is given to another run.
    pub(super) fn news_of(&self, run: RunId, agent: &Agent) -> Option<(TaskId, Epoch, Fact, Then)> {
        let is = |wanted: fn(&Then) -> Option<RunId>| {
            self.is_reporting(|then| wanted(then) == Some(run))
        };
        let reporting_end = is(|then| match then {
            Then::RunReported(run) => Some(*run),
            _ => None,
        });
        let reporting_question = is(|then| match then {
            Then::QuestionKnown(run) | Then::WithdrawalKnown(run) => Some(*run),
            _ => None,
        });
        if let Some(message) = agent.untold() {
            let then = Then::MessageKnown(run, message);
            let reporting = self.is_reporting(
                |then| matches!(then, Then::MessageKnown(r, m) if (*r, *m) == (run, message)),
            );
            let fact = Fact::MessageAccepted { message };
            return (!reporting).then_some((agent.task, agent.epoch, fact, then));
        }
        let (fact, then) = match (&agent.end, agent.asking) {
            (Some(outcome), _) if !reporting_end => {
                (finished(run, agent, outcome), Then::RunReported(run))
            }
            (None, Asking::Now(id)) if !agent.question_known && !reporting_question => {
                (asked(run, id), Then::QuestionKnown(run))
            }
            (None, Asking::Withdrawn(question)) if agent.question_known && !reporting_question => (
                Fact::QuestionWithdrawn { question },
                Then::WithdrawalKnown(run),
            ),
            _ => return None,
        };
        Some((agent.task, agent.epoch, fact, then))
    }
}

fn finished(run: RunId, agent: &Agent, outcome: &Outcome) -> Fact {
    Fact::RunFinished {
        run,
        outcome: outcome.clone(),
        total: super::tokens(agent.used),
    }
}

fn asked(run: RunId, id: MessageId) -> Fact {
    let question = Question {
        id,
        text: Note::from("which one?"),
        choices: Vec::new(),
        via: Default::default(),
    };
    Fact::AgentAsked { run, question }
}

/// An agent that is gone takes nothing: the message stays unread.
fn hand_over(env: &mut Env, run: RunId, message: MessageId) -> Stage {
    if let Some(agent) = env.machines.agents.get_mut(&run)
        && agent.is_alive()
    {
        agent.hand_over(message);
    }
    Stage::Done
}

fn dependents(env: &Env, on: TaskId) -> Vec<TaskId> {
    env.model
        .tasks()
        .filter(|task| task.spec.after.contains(&on))
        .map(|task| task.id)
        .collect()
}

/// Tells one dependent what the effect says, however old that is by now.
fn tell(
    env: &mut Env,
    task: TaskId,
    news: &DependencyNews,
    as_of: Version,
    mut left: Vec<TaskId>,
) -> Stage {
    let Some(dependent) = left.pop() else {
        return Stage::Done;
    };
    let fact = match news {
        DependencyNews::Landed => Fact::DependencyLanded { task },
        DependencyNews::Failed(reason) => Fact::DependencyFailed {
            task,
            reason: reason.clone(),
            as_of,
        },
        DependencyNews::Reopened => Fact::DependencyReopened { task, as_of },
    };
    let event = env.event(Actor::Woodward, fact);
    // Refused when it was told this or something newer: telling twice is telling once.
    let _ = env.record(dependent, event);
    Stage::Telling(left)
}
