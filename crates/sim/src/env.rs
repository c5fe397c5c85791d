//! Everything the actors of one history share, and the doors they write through.
//!
//! Every write to the store or to main goes through here, so that the oracle hears of all of them.

use std::sync::Arc;

use woodward_core::lease::{LeaseTiming, Resource};
use woodward_core::schedule::Limits;
use woodward_core::{Actor, Epoch, Event, Fact, Policy, TaskId, Timestamp, WorkerId};

use crate::faults::Faults;
use crate::git::{MAIN, Repository};
use crate::ids::{self, Ids, PROJECT};
use crate::lifts::Lifts;
use crate::machines::Machines;
use crate::model::{Committed, Model, Refused};
use crate::network::{Network, Reply, Report};
use crate::oracle::Oracle;
use crate::rng::Rng;
use crate::stats::Stats;
use crate::trace::Trace;

pub(crate) struct Env {
    pub(crate) now: Timestamp,
    pub(crate) calm: bool,
    pub(crate) rng: Rng,
    pub(crate) ids: Ids,
    pub(crate) faults: Faults,
    pub(crate) lifts: Lifts,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) timing: LeaseTiming,
    pub(crate) model: Model,
    pub(crate) git: Repository,
    pub(crate) machines: Machines,
    pub(crate) network: Network,
    /// Answers that wait for each worker.
    pub(crate) mail: Vec<Vec<Reply>>,
    pub(crate) oracle: Oracle,
    pub(crate) trace: Trace,
    pub(crate) stats: Stats,
}

pub(crate) const fn t(task: TaskId) -> u128 {
    ids::number(task.as_uuid())
}

pub(crate) const fn w(worker: WorkerId) -> u128 {
    ids::number(worker.as_uuid())
}

impl Env {
    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        self.trace.say(self.now, line);
    }

    pub(crate) fn event(&mut self, actor: Actor, fact: Fact) -> Event {
        Event {
            id: self.ids.event(),
            at: self.now,
            actor,
            roll: self.rng.roll(),
            fact,
        }
    }

    /// Tells the oracle, the trace and the counts what the store said to one event.
    pub(crate) fn heard(
        &mut self,
        task: TaskId,
        sent: &Event,
        answer: &Result<Committed, Refused>,
    ) {
        let word = sent.fact.as_str();
        match answer {
            Ok(Committed::Now(next)) => {
                self.stats.events += 1;
                self.say(|| {
                    format!(
                        "T{} {word} by {} -> {} (epoch {}, version {})",
                        t(task),
                        by(&sent.actor),
                        next.state.kind(),
                        next.epoch,
                        next.version
                    )
                });
                self.oracle.recorded(sent, next, self.now);
                if let Some(named) = &next.worktree {
                    let name = (named.worker, task, named.made_by);
                    self.machines.named.insert(name);
                }
            }
            Ok(Committed::Before) => {
                self.stats.duplicates += 1;
                self.say(|| format!("T{} {word} had been recorded", t(task)));
            }
            Err(refused) => {
                self.stats.stale_refused += u64::from(refused.is_stale());
                self.say(|| {
                    format!(
                        "T{} {word} by {} refused: {refused}",
                        t(task),
                        by(&sent.actor)
                    )
                });
            }
        }
    }

    /// Records a fact on the task as it is.
    pub(crate) fn record(&mut self, task: TaskId, event: Event) -> Result<Committed, Refused> {
        let answer = self.model.record(task, event.clone(), &self.policy);
        self.heard(task, &event, &answer);
        answer
    }

    pub(crate) fn send(&mut self, report: Report) {
        self.network
            .send(report, self.now, &self.faults, &mut self.rng);
    }

    /// The next report arrives at the store, and its answer, with luck, at its sender.
    pub(crate) fn deliver(&mut self) {
        let Some(Report {
            task,
            event,
            reply_to,
        }) = self.network.receive()
        else {
            return;
        };
        let id = event.id;
        // The answer itself does not matter to a sender: what counts is the task as it is now.
        let _ = self.record(task, event);
        let (Some(to), Some(task)) = (reply_to, self.model.task(task)) else {
            return;
        };
        let reply = Reply {
            event: id,
            task: Arc::clone(task),
        };
        if !self.rng.chance(self.faults.lost_report) {
            self.mail[to].push(reply);
        }
    }

    pub(crate) fn landing_right() -> Resource {
        Resource::Landing {
            project: PROJECT,
            branch: MAIN.to_owned(),
        }
    }

    pub(crate) fn lander(worker: WorkerId, epoch: Epoch) -> Actor {
        Actor::Lander { worker, epoch }
    }
}

fn by(actor: &Actor) -> String {
    match actor {
        Actor::Person(name) => name.clone(),
        Actor::Claim { worker, epoch } => format!("W{} (epoch {epoch})", w(*worker)),
        Actor::Lander { worker, epoch } => format!("lander W{} (right {epoch})", w(*worker)),
        Actor::Woodward => "woodward".to_owned(),
    }
}
