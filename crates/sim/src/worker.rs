//! A worker: claims tasks, renews its leases, performs effects, watches its agents, reports.
//!
//! One turn is one small act, so that a crash or a stall can fall between any two. What it has in
//! mind (this struct) is lost in a crash and survives a stall: a worker that stood still past its
//! lease goes on with its old intentions, and it is the store that must refuse them. It must never
//! decide anything about a task's state.

mod deeds;

use std::collections::BTreeMap;
use std::sync::Arc;

use woodward_core::budget::Spend;
use woodward_core::lease::Resource;
use woodward_core::{
    Actor, ClaimId, Effect, EffectKey, Epoch, Event, EventId, Fact, MessageId, Millis, RunId,
    TaskId, Timestamp, WorkerId,
};

use crate::env::{Env, t, w};
use crate::machines::{Agent, Asking};
use crate::model::{Claim, ClaimRequest, Committed};
use crate::network::Report;
use crate::oracle::Invariant;
use deeds::Deed;

/// A report whose answer has not come.
struct Outstanding {
    report: Report,
    resend_at: Timestamp,
    /// What is finished, or known, once it is answered.
    then: Then,
}

#[derive(Clone)]
enum Then {
    Finish(EffectKey),
    RunReported(RunId),
    QuestionKnown(RunId),
    WithdrawalKnown(RunId),
    SpendKnown(RunId, u64),
    MessageKnown(RunId, MessageId),
    Nothing,
}

pub(crate) struct Worker {
    index: usize,
    id: WorkerId,
    up: bool,
    held: BTreeMap<TaskId, Epoch>,
    deeds: Vec<Deed>,
    outstanding: BTreeMap<EventId, Outstanding>,
    /// A claim whose answer has not come.
    claim: Option<ClaimId>,
    renew_at: Timestamp,
}

/// Tasks a worker takes at a time.
const CLAIM_MAX: u64 = 2;
/// Tasks a worker works on at once.
const HELD_MAX: usize = 3;
/// Tokens that are worth a report of their own before the run ends.
const TELL_TOKENS: u64 = 30;

impl Worker {
    pub(crate) const fn new(index: usize, id: WorkerId) -> Self {
        Self {
            index,
            id,
            up: false,
            held: BTreeMap::new(),
            deeds: Vec::new(),
            outstanding: BTreeMap::new(),
            claim: None,
            renew_at: Timestamp(0),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.up && self.held.is_empty() && self.deeds.is_empty() && self.outstanding.is_empty()
    }

    /// One act. Returns how long until the next.
    pub(crate) fn turn(&mut self, env: &mut Env) -> Millis {
        if !self.up {
            self.come_back(env);
        } else if env.rng.chance(env.faults.crash) {
            return self.crash(env, false);
        } else if env.rng.chance(env.faults.reboot) {
            return self.crash(env, true);
        } else if env.rng.chance(env.faults.stall) {
            env.stats.stalls += 1;
            let id = self.id;
            env.say(|| format!("W{} stalls", w(id)));
            return env.rng.span(20_000, 220_000);
        } else {
            self.act(env);
        }
        env.rng.span(50, 1_500)
    }

    fn crash(&mut self, env: &mut Env, power_off: bool) -> Millis {
        env.stats.crashes += 1;
        let id = self.id;
        env.say(|| {
            let how = if power_off { " with its machine" } else { "" };
            format!("W{} crashes{how}", w(id))
        });
        if power_off {
            env.machines.power_off(self.id);
        }
        *self = Self::new(self.index, self.id);
        env.rng.span(500, 150_000)
    }

    /// Remembers nothing; asks the store what it holds.
    fn come_back(&mut self, env: &mut Env) {
        self.up = true;
        env.mail[self.index].clear();
        self.held = env
            .model
            .held_by(self.id)
            .map(|task| (task.id, task.epoch))
            .collect();
        let (id, held) = (self.id, self.held.len());
        env.say(|| format!("W{} is up and holds {held} tasks", w(id)));
    }

    fn act(&mut self, env: &mut Env) {
        self.read_mail(env);
        // Not always first: a worker that woke up late must be able to act before it knows.
        if env.now >= self.renew_at && env.rng.chance(600) {
            self.renew(env);
            return;
        }
        let first = env.rng.below(6);
        for turn in 0..6 {
            let acted = match (first + turn) % 6 {
                0 | 1 => self.perform(env),
                2 => self.take_effect(env),
                3 => self.watch(env),
                4 => self.resend(env),
                _ => self.claim_more(env),
            };
            if acted {
                return;
            }
        }
        self.keep_house(env);
    }

    fn read_mail(&mut self, env: &mut Env) {
        for reply in std::mem::take(&mut env.mail[self.index]) {
            let task = &reply.task;
            if self.held.contains_key(&task.id)
                && (task.holder != Some(self.id) || self.held.get(&task.id) != Some(&task.epoch))
            {
                self.held.remove(&task.id);
            }
            let Some(outstanding) = self.outstanding.remove(&reply.event) else {
                continue;
            };
            self.follow(env, outstanding.then);
        }
    }

    fn follow(&mut self, env: &mut Env, then: Then) {
        match then {
            Then::Finish(key) => {
                for deed in self.deeds.iter_mut().filter(|deed| *deed.key() == key) {
                    deed.answered();
                }
            }
            Then::RunReported(run) => env.machines.forget(run),
            Then::QuestionKnown(run) => on_disk(env, run, |agent| agent.question_known = true),
            Then::WithdrawalKnown(run) => on_disk(env, run, |agent| agent.asking = Asking::No),
            Then::SpendKnown(run, told) => on_disk(env, run, |agent| {
                agent.told = agent.told.max(told);
            }),
            Then::MessageKnown(run, message) => on_disk(env, run, |agent| {
                agent.taken_known += usize::from(agent.untold() == Some(message));
            }),
            Then::Nothing => {}
        }
    }

    /// Renews all its leases; drops the claims that are gone and stops what runs under them.
    fn renew(&mut self, env: &mut Env) {
        self.renew_at = env.now + env.timing.renew_every;
        for (task, epoch) in self.held.clone() {
            let resource = Resource::Task(task);
            match env.model.renew(&resource, self.id, epoch, env.now) {
                Ok(_) => env.oracle.renewed(task, self.id, epoch, env.now),
                Err(_) => {
                    env.stats.stale_refused += 1;
                    let id = self.id;
                    env.say(|| format!("W{} has lost T{} (epoch {epoch})", w(id), t(task)));
                    self.held.remove(&task);
                    env.machines.stop_worktree((id, task, epoch));
                }
            }
        }
    }

    fn take_effect(&mut self, env: &mut Env) -> bool {
        let is_new = |effect: &&Effect| !self.deeds.iter().any(|deed| *deed.key() == effect.key);
        let new: Vec<&Effect> = env.model.take_effects(self.id).filter(is_new).collect();
        if new.is_empty() {
            return false;
        }
        let effect = new[env.rng.index(new.len())].clone();
        let id = self.id;
        env.trace.say(env.now, || {
            let (task, verb) = (t(effect.task), effect.action.verb());
            format!("W{} takes T{task} {verb} (epoch {})", w(id), effect.epoch)
        });
        if env.rng.chance(env.faults.repeat_effect) {
            self.deeds.push(Deed::new(effect.clone()));
        }
        self.deeds.push(Deed::new(effect));
        true
    }

    /// Looks at its agents and reports what the store does not know.
    fn watch(&mut self, env: &mut Env) -> bool {
        let found = env
            .machines
            .agents
            .iter()
            .filter(|(_, agent)| agent.worker == self.id)
            .find_map(|(run, agent)| self.news_of(*run, agent));
        let Some((task, epoch, news, then)) = found else {
            return self.tell_spend(env);
        };
        self.report(env, task, epoch, news, then);
        true
    }

    /// Reports all tokens that a run has used so far. A worker that restarted says so again.
    fn tell_spend(&mut self, env: &mut Env) -> bool {
        let due = env.machines.agents.iter().find(|(run, agent)| {
            agent.worker == self.id
                && agent.is_alive()
                && agent.used >= agent.told + TELL_TOKENS
                && !self.is_reporting(|then| matches!(then, Then::SpendKnown(r, _) if r == *run))
        });
        let Some((&run, agent)) = due else {
            return false;
        };
        let (task, epoch, used) = (agent.task, agent.epoch, agent.used);
        let total = tokens(used);
        let news = Fact::Spent { run, total };
        self.report(env, task, epoch, news, Then::SpendKnown(run, used));
        true
    }

    const fn claimed(&self, epoch: Epoch) -> Actor {
        Actor::Claim {
            worker: self.id,
            epoch,
        }
    }

    fn is_reporting(&self, wanted: impl Fn(&Then) -> bool) -> bool {
        self.outstanding
            .values()
            .any(|outstanding| wanted(&outstanding.then))
    }

    fn claim_more(&mut self, env: &mut Env) -> bool {
        if let Some(id) = self.claim.take() {
            let claims = env.model.claim_by_id(id).unwrap_or_default().to_vec();
            self.hold(&claims);
            return true;
        }
        if self.held.len() >= HELD_MAX || !env.model.has_due(env.now) {
            return false;
        }
        let id = env.ids.claim();
        let claims = self.ask_for_claims(env, id);
        if claims.is_empty() {
            return false;
        }
        if env.rng.chance(env.faults.lost_claim) {
            let me = self.id;
            env.say(|| format!("W{} does not hear what it claimed", w(me)));
            self.claim = Some(id);
        } else {
            self.hold(&claims);
        }
        true
    }

    fn hold(&mut self, claims: &[Claim]) {
        let held = |claim: &Claim| (claim.task.id, claim.lease.epoch);
        self.held.extend(claims.iter().map(held));
    }

    fn ask_for_claims(&self, env: &mut Env, id: ClaimId) -> Vec<Claim> {
        let worker = self.id;
        let events: Vec<Event> = (0..env.rng.between(1, CLAIM_MAX))
            .map(|_| {
                let run = env.ids.run();
                env.event(Actor::Woodward, Fact::Claimed { worker, run })
            })
            .collect();
        let request = ClaimRequest {
            id,
            worker,
            events: events.clone(),
            limits: env.limits,
        };
        let claims = env
            .model
            .claim(request, &env.policy, env.now)
            .unwrap_or_else(|refused| {
                env.oracle.require(false, Invariant::Structure, || {
                    format!("the plan offers what step refuses: {refused}")
                });
                Vec::new()
            });
        for (claim, event) in claims.iter().zip(&events) {
            let answer = Ok(Committed::Now(Arc::clone(&claim.task)));
            env.heard(claim.task.id, event, &answer);
        }
        claims
    }

    /// Sends a report, again and again until it is answered.
    fn report(&mut self, env: &mut Env, task: TaskId, epoch: Epoch, fact: Fact, then: Then) {
        let report = Report {
            task,
            event: env.event(self.claimed(epoch), fact),
            reply_to: Some(self.index),
        };
        let outstanding = Outstanding {
            report: report.clone(),
            resend_at: env.now + env.rng.span(2_000, 10_000),
            then,
        };
        self.outstanding.insert(report.event.id, outstanding);
        env.send(report);
    }

    fn resend(&mut self, env: &mut Env) -> bool {
        let now = env.now;
        let Some(late) = self
            .outstanding
            .values_mut()
            .find(|outstanding| outstanding.resend_at <= now)
        else {
            return false;
        };
        late.resend_at = now + env.rng.span(2_000, 10_000);
        let report = late.report.clone();
        env.send(report);
        true
    }

    /// What a worker does when there is nothing else: gives a task back, or tidies up.
    fn keep_house(&mut self, env: &mut Env) {
        if env.rng.chance(env.faults.hand_back)
            && let Some((task, epoch)) = self.held.first_key_value()
        {
            let (task, epoch) = (*task, *epoch);
            self.report(env, task, epoch, Fact::HandedBack, Then::Nothing);
        } else if !env.lifts.sweep {
            self.sweep(env);
        }
    }

    /// Removes a worktree of this machine that was never recorded, that no claim may still need and
    /// that nobody lives in.
    fn sweep(&self, env: &mut Env) {
        let orphan = env.machines.worktrees.keys().copied().find(|name| {
            let (worker, task, epoch) = *name;
            let current = env
                .model
                .task(task)
                .is_some_and(|task| task.holder == Some(worker) && task.epoch == epoch);
            let inhabited = || {
                env.machines.agents.values().any(|agent| {
                    agent.is_alive() && (agent.worker, agent.task, agent.epoch) == *name
                })
            };
            worker == self.id
                && !env.machines.named.contains(name)
                && !inhabited()
                && !current
                && !self.deeds.iter().any(|deed| deed.concerns(task, epoch))
        });
        if let Some(name) = orphan {
            let id = self.id;
            env.say(|| {
                format!(
                    "W{} sweeps a worktree of T{} (epoch {})",
                    w(id),
                    t(name.1),
                    name.2
                )
            });
            env.machines.worktrees.remove(&name);
        }
    }
}

const fn tokens(tokens: u64) -> Spend {
    Spend {
        tokens,
        ..Spend::NONE
    }
}

/// Notes something in a run's directory.
fn on_disk(env: &mut Env, run: RunId, note: impl FnOnce(&mut Agent)) {
    if let Some(agent) = env.machines.agents.get_mut(&run) {
        note(agent);
    }
}
