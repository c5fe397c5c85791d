//! Random histories: what happens next is picked against the task as it is by then.

use proptest::prelude::*;
use woodward_core::backoff::Backoff;
use woodward_core::budget::Budget;
use woodward_core::event::Outcome;
use woodward_core::fix::FixBudget;
use woodward_core::policy::ReviewRule;
use woodward_core::time::{Millis, Roll};
use woodward_core::{Actor, Event, Fact, IllegalTransition, Policy, State, Task, Transition};

use super::facts::{alphabet, spoil};
use super::{World, new_task};

/// How the next fact is picked.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    /// Which of all facts.
    index: u16,
    /// Whether it shall fit, may fit or shall be spoiled.
    mode: u8,
    /// How long after the one before.
    wait: u32,
    roll: u32,
}

/// A task about to be, its policy, and all that happens to it.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) prompted: bool,
    pub(crate) blockers: u8,
    pub(crate) own_review: Option<ReviewRule>,
    pub(crate) policy: Policy,
    pub(crate) picks: Vec<Pick>,
}

/// One fact offered to a task, and what became of it.
pub(crate) struct Happening<'a> {
    pub(crate) before: &'a Task,
    pub(crate) event: &'a Event,
    pub(crate) policy: &'a Policy,
    pub(crate) result: &'a Result<Transition, IllegalTransition>,
}

fn review() -> impl Strategy<Value = ReviewRule> {
    prop_oneof![
        Just(ReviewRule::Never),
        Just(ReviewRule::Risky),
        Just(ReviewRule::Always),
    ]
}

pub(crate) fn policies() -> impl Strategy<Value = Policy> {
    let limits = (0_u32..4, 0_u32..3, 0_u32..3);
    let fixes = (0_u32..3, 0_u32..4);
    let budget = prop_oneof![2 => Just(None), 1 => Just(Some(3)), 1 => Just(Some(1_500))];
    (limits, fixes, budget, review()).prop_map(
        |((attempts, losses, conflicts), (per_gate_max, total_max), tokens_max, review)| Policy {
            attempts_max: attempts,
            lease_losses_max: losses,
            conflicts_max: conflicts,
            backoff: Backoff::default(),
            fix: FixBudget {
                per_gate_max,
                total_max,
                ..FixBudget::default()
            },
            budget: Budget {
                tokens_max,
                micro_usd_max: None,
            },
            review,
        },
    )
}

fn picks() -> impl Strategy<Value = Pick> {
    (any::<u16>(), 0_u8..10, 0_u32..2_000_000, any::<u32>()).prop_map(
        |(index, mode, wait, roll)| Pick {
            index,
            mode,
            wait,
            roll,
        },
    )
}

pub(crate) fn histories() -> impl Strategy<Value = History> {
    (
        prop::bool::weighted(0.8),
        prop_oneof![3 => Just(0_u8), 1 => 1_u8..3],
        prop::option::weighted(0.1, review()),
        policies(),
        prop::collection::vec(picks(), 0..60),
    )
        .prop_map(|(prompted, blockers, own_review, policy, picks)| History {
            prompted,
            blockers,
            own_review,
            policy,
            picks,
        })
}

impl History {
    /// Lives through it; `see` is shown every fact that is offered, taken or not.
    pub(crate) fn live(&self, mut see: impl FnMut(&Happening<'_>)) -> World {
        let blockers: Vec<u128> = (0..self.blockers).map(|n| 100 + u128::from(n)).collect();
        let mut new = new_task(self.prompted, &blockers);
        new.spec.review = self.own_review;
        let mut world = World::create(new, self.policy.clone());
        for pick in &self.picks {
            world.wait(Millis(u64::from(pick.wait)));
            world.roll = Roll(pick.roll);
            let (actor, fact) = next(&world, pick);
            let before = world.task.clone();
            let event = world.event(actor, fact);
            let result = world.record(event.actor.clone(), event.fact.clone());
            see(&Happening {
                before: &before,
                event: &event,
                policy: &self.policy,
                result: &result,
            });
        }
        world
    }
}

fn next(world: &World, pick: &Pick) -> (Actor, Fact) {
    let all = alphabet(&world.task, world.fresh(), world.at);
    let index = usize::from(pick.index);
    let any = all[index % all.len()].clone();
    if pick.mode == 7 {
        return any;
    }
    let fitting: Vec<_> = all
        .into_iter()
        .filter(|(_, fact)| pick.mode > 3 || (leads_on(fact) && !skips_wait(&world.task, fact)))
        .filter(|(_, fact)| pick.mode > 7 || !is_end(fact) || pick.roll.is_multiple_of(8))
        .filter(|(actor, fact)| world.step(actor.clone(), fact.clone()).is_ok())
        .collect();
    let picked = match fitting.len() {
        0 => any,
        _ if pick.mode == 9 => any,
        n => fitting[index % n].clone(),
    };
    if pick.mode > 7 {
        return spoil(pick.roll, picked);
    }
    picked
}

/// A person who does not wait for the next attempt. Picked less often, so that some claims come too early.
const fn skips_wait(task: &Task, fact: &Fact) -> bool {
    matches!((&task.state, fact), (State::Queued { .. }, Fact::Retried))
}

/// Facts of an ordinary course of things. Picked more often, so that histories get far.
const fn leads_on(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::DependencyLanded { .. }
            | Fact::Claimed { .. }
            | Fact::Prepared { .. }
            | Fact::AgentAsked { .. }
            | Fact::Answered { .. }
            | Fact::QuestionWithdrawn { .. }
            | Fact::MessageAccepted { .. }
            | Fact::RunFinished {
                outcome: Outcome::Done { .. },
                ..
            }
            | Fact::GatesFinished { .. }
            | Fact::Approved { .. }
            | Fact::Brought { .. }
            | Fact::IntentRecorded { .. }
            | Fact::Landed { .. }
            | Fact::Resumed
            | Fact::Retried
            | Fact::Restored { .. }
    )
}

/// Facts that end a task. Picked less often, so that histories get long.
const fn is_end(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::Landed { .. } | Fact::Cancelled { .. } | Fact::Superseded { .. }
    )
}
