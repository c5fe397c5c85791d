//! What a plan ends in: entries land, or go back to their agents, or wait for a person.
//!
//! A branch moves only to a tree that passed, and nobody goes back who did not fail by itself.

use woodward_core::gate::Overall;
use woodward_core::hint::NextCommand;
use woodward_core::landing::HoldCause;
use woodward_core::queue::learn::Learned;
use woodward_core::queue::plan::Known;
use woodward_core::{CommitId, Fact, GateName, Note, Task};
use woodward_store::Queued;

use super::super::hold::Hold;
use super::super::met;
use super::super::right::Moved;
use super::{Line, Turn, View, key};
use crate::config::Config;
use crate::error::Result;
use crate::gate::LastFailure;

impl Line<'_> {
    /// Lands the first so many.
    pub(super) async fn land(&mut self, view: &View, count: usize) -> Result<Turn> {
        if self.is_in_the_way(view, count).await? {
            return Ok(Turn::Acted);
        }
        let mut members = Vec::with_capacity(count);
        for (link, queued) in self.chain.links().iter().zip(&view.entries).take(count) {
            let Some(task) = self.right.landing(&link.key).await? else {
                self.aside.insert(key(queued));
                return Ok(Turn::Acted);
            };
            if self.right.has_moved(&task, &link.key.1).await? {
                return Ok(Turn::Acted);
            }
            members.push(task);
        }
        let links = self.chain.links()[..count].to_vec();
        if self.known(view, &links[count - 1]) != Known::Passed {
            return Ok(Turn::Acted);
        }
        let said = self.verdicts.get(&links[count - 1].tree);
        let results = said.map(|said| said.results.clone()).unwrap_or_default();
        let tasks = members.iter().map(|task| task.id).collect();
        self.right.save_results(tasks, results).await?;
        self.seen = None;
        let moved = self
            .right
            .move_branch(self.branch, members, &view.base, &links, &view.config)
            .await;
        match moved {
            Ok(Moved::To(new)) => {
                let repo = &self.right.project.repo;
                let rest = self.chain.rebuild_on(repo, &view.config, count, &new);
                if rest.await.is_err() {
                    // Whoever merges them anew says what is wrong.
                    self.chain.take_apart();
                }
                for _ in 0..count {
                    self.right.learn(Learned::landed);
                }
            }
            Ok(Moved::Not) => self.chain.take_apart(),
            Ok(Moved::Held(hold)) => {
                for queued in &view.entries[..count] {
                    self.hold(queued, hold.clone()).await?;
                }
            }
            Ok(Moved::Refused(why)) if count == 1 => {
                self.chain.take_apart();
                self.right.refused(&view.entries[0], why).await?;
            }
            Ok(Moved::Refused(_)) => {
                self.chain.take_apart();
                let members = view.entries[..count].iter().map(key);
                self.apart.extend(members);
            }
            // Nothing can land before that is settled, and whoever takes the right next does it first.
            Ok(Moved::Stuck) => return Ok(Turn::Idle),
            Err(error) if self.right.is_of_the_world(&error) => {
                let hold = self.right.hold_for(self.branch, error).await;
                for queued in &view.entries[..count] {
                    self.hold(queued, hold.clone()).await?;
                }
            }
            Err(error) => return Err(error),
        }
        Ok(Turn::Acted)
    }

    /// The first entry fails by itself: its agent hears of it.
    pub(super) async fn send_back(&mut self, view: &View) -> Result<Turn> {
        let (link, queued) = (self.chain.links()[0].clone(), &view.entries[0]);
        // Should it come again, it is looked at again: trouble passes.
        let Some(said) = self.verdicts.remove(&link.tree) else {
            return Ok(Turn::Acted);
        };
        let Some(task) = self.right.landing(&link.key).await? else {
            self.aside.insert(key(queued));
            return Ok(Turn::Acted);
        };
        let results = said.results.clone();
        self.right.save_results(vec![task.id], results).await?;
        if !said.failed.is_empty() {
            LastFailure::save(&self.right.inner.options.paths, task.id, &said.failed)?;
            met::save(self.right, &task, &link.key.1, &view.base).await?;
        }
        let commit = link.key.1;
        let fact = match &said.overall {
            Overall::Fail(gates) => {
                self.right.learn(Learned::returned);
                let gates = gates.clone();
                let kind = |name: &GateName| {
                    let mut all = view.config.gates().iter();
                    all.find(|gate| gate.name == *name).map(|gate| gate.kind)
                };
                let kinds = gates.iter().map(|name| kind(name).unwrap_or_default());
                Fact::LandingFailed {
                    commit,
                    kinds: kinds.collect(),
                    gates,
                }
            }
            // Nobody has looked at it by itself.
            Overall::Broken(gates) if gates.is_empty() => return Ok(Turn::Acted),
            // Only a person may say yes to these.
            Overall::Baseline(gates) => {
                let why = format!("`{}` itself fails: {}", self.branch, names(gates));
                return self.leave_to_persons(&view.base, queued, &task, &why).await;
            }
            Overall::Flaky(gates) => {
                let why = format!("it passes only now and then: {}", names(gates));
                return self.leave_to_persons(&view.base, queued, &task, &why).await;
            }
            Overall::Broken(gates) => Fact::LandingBroken {
                commit,
                note: Note::from(format!(
                    "on the merged tree these gates did not really run: {}",
                    names(gates)
                )),
            },
            Overall::Pass | Overall::Unverified => return Ok(Turn::Acted),
        };
        self.say(queued, &task, fact, &view.config).await?;
        Ok(Turn::Acted)
    }

    /// No rule may land an entry: it waits for a person's yes, or until the branch is somewhere else.
    pub(super) async fn leave_to_persons(
        &self,
        base: &CommitId,
        queued: &Queued,
        task: &Task,
        why: &str,
    ) -> Result<Turn> {
        let reason = format!(
            "{why}; repair that, and it lands by itself, or say yes yourself: {}",
            NextCommand::Approve {
                task: task.name.clone()
            }
        );
        let cause = HoldCause::Approval;
        self.hold(queued, Hold { cause, reason }).await?;
        self.right.leave_to_persons(task.id, base);
        Ok(Turn::Acted)
    }

    pub(super) async fn say(
        &mut self,
        queued: &Queued,
        task: &Task,
        fact: Fact,
        config: &Config,
    ) -> Result<()> {
        if self.right.say(task, fact, config).await? {
            return Ok(());
        }
        let key = key(queued);
        match self.right.landing(&key).await? {
            // It is tried again after a while.
            Some(task) if self.right.must_wait(&task) => {}
            _ => drop(self.aside.insert(key)),
        }
        Ok(())
    }
}

fn names(gates: &[GateName]) -> String {
    let names: Vec<&str> = gates.iter().map(GateName::as_str).collect();
    names.join(", ")
}
