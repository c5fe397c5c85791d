//! A lander: takes the landing right, builds the merges, looks at those that the planner wants looked
//! at, records the intent, moves main.
//!
//! One turn is one step of the protocol, so that a crash or a stall can fall between any two. Two
//! landers may both believe to have the right. Recovery decides by looking at the ref, never by
//! remembering. It must never move main to anything but what its intent names.

use std::collections::BTreeMap;
use std::sync::Arc;

use woodward_core::gate::{Overall, overall};
use woodward_core::landing::{Intent, IntentState, Recovery, RefSeen, recover};
use woodward_core::queue::entry_of;
use woodward_core::queue::plan::{Known, Next, Pace, plan};
use woodward_core::queue::search::Search;
use woodward_core::{
    Actor, CommitId, Epoch, Event, Fact, GateName, IntentId, Millis, Note, Task, TaskId, Timestamp,
    WorkerId,
};

use crate::env::{Env, t, w};
use crate::gates;
use crate::git::{MAIN, Tree};
use crate::guards::Guards;
use crate::ids::{PROJECT, short};
use crate::model::{Committed, Refused};

/// A task that lands, and its approved commit as the lander saw it: the next moment another one may
/// be approved.
type Member = (TaskId, CommitId);

/// A merge on its way: what lands with it, where main was, what it becomes.
#[derive(Clone)]
struct Batch {
    members: Vec<Member>,
    old: CommitId,
    new: CommitId,
}

#[derive(Clone)]
enum Stage {
    /// It has no right, or thinks so.
    Outside,
    /// It looks for what others left behind.
    Recover,
    Pick,
    /// It looks at one of the merges that were planned.
    Look(Batch),
    Open(Batch),
    /// The intent is on record; main is to move.
    Move(Intent),
    Close(IntentId, IntentState),
    /// With no intent on record: main is to move blindly.
    MoveUnrecorded(Batch),
    /// Main has moved; the record is made up afterwards.
    RecordAfterwards(Batch),
}

pub(crate) struct Lander {
    id: WorkerId,
    guards: Guards,
    batch_max: usize,
    epoch: Epoch,
    stage: Stage,
    renew_at: Timestamp,
    /// What it found out about trees, until it crashes.
    known: BTreeMap<Tree, Verdict>,
    search: Search,
}

/// What the gates said of a tree.
#[derive(Clone)]
enum Verdict {
    Passed,
    Failed(Vec<GateName>),
    Broken(Vec<GateName>),
}

/// The right is gone: stop and forget.
struct Fenced;

impl Lander {
    pub(crate) fn new(id: WorkerId, guards: Guards, batch_max: usize) -> Self {
        Self {
            id,
            guards,
            batch_max,
            epoch: Epoch(0),
            stage: Stage::Outside,
            renew_at: Timestamp(0),
            known: BTreeMap::new(),
            search: Search::default(),
        }
    }

    /// One step. Returns how long until the next.
    pub(crate) fn turn(&mut self, env: &mut Env) -> Millis {
        let id = self.id;
        // Around the move a crash or a stall is worth most, and the moment is short.
        let weight = if self.is_moving() { 4 } else { 1 };
        if env.rng.chance(env.faults.lander_crash * weight) {
            env.stats.crashes += 1;
            env.say(|| format!("lander W{} crashes", w(id)));
            *self = Self::new(self.id, self.guards, self.batch_max);
            return env.rng.span(500, 100_000);
        }
        if env.rng.chance(env.faults.lander_stall * weight) {
            env.stats.stalls += 1;
            env.say(|| format!("lander W{} stalls", w(id)));
            return env.rng.span(20_000, 220_000);
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Outside);
        match self.step(env, stage) {
            Ok(next) => self.stage = next,
            Err(Fenced) => env.say(|| format!("lander W{} has lost the landing right", w(id))),
        }
        if matches!(self.stage, Stage::Outside) {
            env.rng.span(1_000, 6_000)
        } else {
            env.rng.span(50, 1_500)
        }
    }

    const fn is_moving(&self) -> bool {
        matches!(self.stage, Stage::Move(_) | Stage::Close(..))
    }

    fn step(&mut self, env: &mut Env, stage: Stage) -> Result<Stage, Fenced> {
        // Not always first: a lander that woke up late must be able to act before it knows.
        let due = !matches!(stage, Stage::Outside) && env.now >= self.renew_at;
        if due && env.rng.chance(400) {
            self.renew(env)?;
            return Ok(stage);
        }
        match stage {
            Stage::Outside => Ok(self.acquire(env)),
            Stage::Recover => Ok(self.find(env)),
            Stage::Pick => self.pick(env),
            Stage::Look(batch) => Ok(self.look_at(env, &batch)),
            Stage::Open(batch) => self.open(env, batch),
            Stage::Move(intent) => Ok(move_main(env, &intent)),
            Stage::Close(intent, state) => self.close(env, intent, state),
            Stage::MoveUnrecorded(batch) => Ok(move_unrecorded(env, batch)),
            Stage::RecordAfterwards(batch) => self.record_afterwards(env, &batch),
        }
    }

    fn actor(&self) -> Actor {
        Env::lander(self.id, self.epoch)
    }

    fn acquire(&mut self, env: &mut Env) -> Stage {
        let right = Env::landing_right();
        let Ok(lease) = env.model.acquire(right, self.id, env.now) else {
            return Stage::Outside;
        };
        let id = self.id;
        env.say(|| format!("lander W{} has the landing right {}", w(id), lease.epoch));
        env.oracle.landing_acquired(self.id, lease.epoch, env.now);
        self.epoch = lease.epoch;
        self.renew_at = env.now + env.timing.renew_every;
        Stage::Recover
    }

    fn renew(&mut self, env: &mut Env) -> Result<(), Fenced> {
        self.renew_at = env.now + env.timing.renew_every;
        let right = Env::landing_right();
        if env
            .model
            .renew(&right, self.id, self.epoch, env.now)
            .is_err()
        {
            env.stats.stale_refused += 1;
            return Err(Fenced);
        }
        env.oracle.landing_renewed(self.id, self.epoch, env.now);
        Ok(())
    }

    /// Decides what to do about a pending intent by looking at main.
    fn find(&self, env: &mut Env) -> Stage {
        let Some(intent) = env.model.pending_intent(PROJECT, MAIN).cloned() else {
            return Stage::Pick;
        };
        let main = env.git.main();
        let seen = RefSeen {
            contains_new: env.git.contains(&main, &intent.new),
            current: Some(main),
        };
        let found = recover(&intent, &seen);
        let id = self.id;
        env.say(|| format!("lander W{} finds a pending intent: {found:?}", w(id)));
        match found {
            Recovery::RecordLanded => {
                env.stats.recovered_landed += 1;
                Stage::Close(intent.id, IntentState::Landed)
            }
            Recovery::MoveRef => {
                env.stats.recovered_moved += 1;
                Stage::Move(intent)
            }
            Recovery::RecordVoid => {
                env.stats.recovered_void += 1;
                Stage::Close(intent.id, IntentState::Void)
            }
        }
    }

    fn pick(&mut self, env: &mut Env) -> Result<Stage, Fenced> {
        if !env.calm && env.rng.chance(30) {
            self.step_aside(env);
            return Ok(Stage::Outside);
        }
        let mut queue: Vec<(i64, TaskId, CommitId)> = env
            .model
            .tasks()
            .filter_map(|task| entry_of(task))
            .map(|entry| (entry.order_key, entry.task, entry.commit))
            .collect();
        queue.sort_unstable();
        let first = queue.into_iter().take(3 * self.batch_max);
        let members = first.map(|(_, task, commit)| (task, commit));
        let Some(chain) = self.build(env, members)? else {
            return Ok(Stage::Pick);
        };
        self.plan(env, &chain)
    }

    /// Gives the right back, so that others get their turn.
    fn step_aside(&self, env: &mut Env) {
        let right = Env::landing_right();
        if env.model.release(&right, self.id, self.epoch).is_ok() {
            env.oracle.landing_released();
        }
    }

    /// Merges one on top of the other what fits. One that conflicts with main itself goes back to its
    /// agent; one that conflicts with those before it waits until they have landed.
    fn build(
        &self,
        env: &mut Env,
        members: impl Iterator<Item = Member>,
    ) -> Result<Option<Vec<Batch>>, Fenced> {
        let old = env.git.main();
        let mut batch = Batch {
            members: Vec::new(),
            new: old.clone(),
            old,
        };
        let mut chain = Vec::new();
        for (task, commit) in members {
            match env.git.merge(&batch.new, &commit, task) {
                Ok(merged) => {
                    batch.new = merged;
                    batch.members.push((task, commit));
                    chain.push(batch.clone());
                }
                Err(files) if batch.members.is_empty() => {
                    self.say_of(env, task, Fact::LandingConflicted { commit, files })?;
                    return Ok(None);
                }
                Err(_) => {}
            }
        }
        Ok(Some(chain))
    }

    fn plan(&mut self, env: &mut Env, chain: &[Batch]) -> Result<Stage, Fenced> {
        let verdict = |batch: &Batch| self.known.get(&*env.git.show(&batch.new).tree);
        let known = chain.iter().map(|batch| match verdict(batch) {
            None => Known::Unknown,
            Some(Verdict::Passed) => Known::Passed,
            Some(Verdict::Failed(_) | Verdict::Broken(_)) => Known::Failed,
        });
        let known: Vec<Known> = known.collect();
        let pace = Pace {
            slots: 2,
            batch: self.batch_max,
            failing: 0.05,
            one_by_one: self.batch_max == 1,
        };
        let planned = plan(&known, pace, &mut self.search);
        match planned.next {
            Next::LandFirst => Ok(self.open_or_move(chain[0].clone())),
            Next::LandTogether(count) => Ok(self.open_or_move(chain[count - 1].clone())),
            Next::Return => {
                // Should it come again, it is looked at again: trouble passes.
                let verdict = self.known.remove(&*env.git.show(&chain[0].new).tree);
                let (task, commit) = chain[0].members[0].clone();
                let fact = match verdict {
                    Some(Verdict::Failed(gates)) => Fact::LandingFailed {
                        commit,
                        gates,
                        kinds: Vec::new(),
                    },
                    Some(Verdict::Broken(gates)) => Fact::LandingBroken {
                        commit,
                        note: Note::from(gates.first().map_or("", GateName::as_str)),
                    },
                    Some(Verdict::Passed) | None => return Ok(Stage::Pick),
                };
                self.say_of(env, task, fact)?;
                Ok(Stage::Pick)
            }
            Next::Look if planned.look.is_empty() => Ok(Stage::Recover),
            // They run at once: any of them may end first.
            Next::Look => {
                let any = planned.look[env.rng.index(planned.look.len())];
                Ok(Stage::Look(chain[any - 1].clone()))
            }
        }
    }

    const fn open_or_move(&self, batch: Batch) -> Stage {
        if self.guards.intent {
            Stage::Open(batch)
        } else {
            Stage::MoveUnrecorded(batch)
        }
    }

    /// Only a tree whose gates pass may become main.
    fn look_at(&mut self, env: &mut Env, batch: &Batch) -> Stage {
        let verdict = match overall(&gates::run(env, &batch.new)) {
            Overall::Pass => Verdict::Passed,
            Overall::Fail(gates) => Verdict::Failed(gates),
            Overall::Broken(gates) => Verdict::Broken(gates),
            Overall::Flaky(_) | Overall::Baseline(_) | Overall::Unverified => return Stage::Pick,
        };
        let tree = Tree::clone(&env.git.show(&batch.new).tree);
        self.known.insert(tree, verdict);
        Stage::Pick
    }

    /// Records a fact on a task as it is now: the commit it names is what protects the task.
    fn say_of(&self, env: &mut Env, task: TaskId, fact: Fact) -> Result<(), Fenced> {
        let event = env.event(self.actor(), fact);
        match env.record(task, event) {
            Err(Refused::Stale { .. }) => Err(Fenced),
            _ => Ok(()),
        }
    }

    fn intent_for(&self, env: &mut Env, batch: &Batch) -> Intent {
        Intent {
            id: env.ids.intent(),
            project: PROJECT,
            branch: MAIN.to_owned(),
            epoch: self.epoch,
            old: batch.old.clone(),
            new: batch.new.clone(),
            members: batch.members.iter().map(|(task, _)| *task).collect(),
        }
    }

    fn open(&self, env: &mut Env, batch: Batch) -> Result<Stage, Fenced> {
        let intent = self.intent_for(env, &batch);
        let recorded = self.record_intent(env, &intent, &batch)?;
        // If not, a member's approval is gone or another intent is pending: look again.
        Ok(if recorded {
            Stage::Move(intent)
        } else {
            Stage::Recover
        })
    }

    fn record_intent(&self, env: &mut Env, intent: &Intent, batch: &Batch) -> Result<bool, Fenced> {
        let events: Vec<Event> = batch
            .members
            .iter()
            .map(|(_, commit)| {
                let fact = Fact::IntentRecorded {
                    intent: intent.id,
                    commit: commit.clone(),
                    result: intent.new.clone(),
                };
                env.event(self.actor(), fact)
            })
            .collect();
        let policy = env.policy.clone();
        // As they are now: that nothing else was approved meanwhile is for `step` to say.
        let members = as_they_are(env, &intent.members);
        let answer =
            env.model
                .open_intent(intent.clone(), self.id, &members, events.clone(), &policy);
        heard_all(env, &intent.members, &events, answer)
    }

    fn close(&self, env: &mut Env, id: IntentId, state: IntentState) -> Result<Stage, Fenced> {
        let members = env
            .model
            .intents()
            .find(|(intent, _)| intent.id == id)
            .map(|(intent, _)| intent.members.clone())
            .unwrap_or_default();
        let fact = match state {
            IntentState::Landed => Fact::Landed { intent: id },
            IntentState::Void | IntentState::Pending => Fact::IntentVoided { intent: id },
        };
        let events: Vec<Event> = members
            .iter()
            .map(|_| env.event(self.actor(), fact.clone()))
            .collect();
        let policy = env.policy.clone();
        let answer = env
            .model
            .close_intent(id, state, &self.actor(), events.clone(), &policy);
        heard_all(env, &members, &events, answer)?;
        Ok(Stage::Recover)
    }

    /// What a lander without intents does: first the move, then the books.
    fn record_afterwards(&self, env: &mut Env, batch: &Batch) -> Result<Stage, Fenced> {
        let intent = self.intent_for(env, batch);
        let recorded = self.record_intent(env, &intent, batch)?;
        Ok(if recorded {
            Stage::Close(intent.id, IntentState::Landed)
        } else {
            Stage::Recover
        })
    }
}

/// Tells the oracle what became of each member's event; whether all were recorded.
fn heard_all(
    env: &mut Env,
    members: &[TaskId],
    events: &[Event],
    answer: Result<Vec<Committed>, Refused>,
) -> Result<bool, Fenced> {
    match answer {
        Ok(committed) => {
            for ((task, event), one) in members.iter().zip(events).zip(committed) {
                env.heard(*task, event, &Ok(one));
            }
            Ok(true)
        }
        Err(refused) => {
            env.stats.stale_refused += u64::from(refused.is_stale());
            env.say(|| format!("landing write refused: {refused}"));
            if matches!(refused, Refused::Stale { .. }) {
                Err(Fenced)
            } else {
                Ok(false)
            }
        }
    }
}

fn as_they_are(env: &Env, members: &[TaskId]) -> Vec<Arc<Task>> {
    members
        .iter()
        .filter_map(|id| env.model.task(*id).cloned())
        .collect()
}

/// The compare-and-swap. The same intent may be moved twice: only once does it move anything.
fn move_main(env: &mut Env, intent: &Intent) -> Stage {
    if swap(env, &intent.old, &intent.new) {
        Stage::Close(intent.id, IntentState::Landed)
    } else {
        env.stats.swaps_lost += 1;
        Stage::Recover
    }
}

fn move_unrecorded(env: &mut Env, batch: Batch) -> Stage {
    if swap(env, &batch.old, &batch.new) {
        Stage::RecordAfterwards(batch)
    } else {
        env.stats.swaps_lost += 1;
        Stage::Recover
    }
}

fn swap(env: &mut Env, old: &CommitId, new: &CommitId) -> bool {
    let really = env.git.main();
    let moved = env.git.update_ref(MAIN, new, Some(old)).is_ok();
    env.say(|| {
        let how = if moved { "moves" } else { "does not move" };
        format!("main {how} from {} to {}", short(old), short(new))
    });
    if moved {
        let pending = env.model.pending_intent(PROJECT, MAIN);
        let members = pending.map_or_else(Vec::new, |intent| as_they_are(env, &intent.members));
        env.oracle
            .main_moved(&env.git, &really, new, pending, &members);
        for task in members {
            env.say(|| format!("T{} is on main", t(task.id)));
        }
    }
    moved
}
