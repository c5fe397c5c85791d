//! Fix cycles: a failing gate goes back to the agent, a bounded number of times.
//!
//! The counts are part of the task and so survive every restart.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::name::GateName;

/// The most failing gates that one fix cycle is about; what is cut fails again in the next.
pub const GATES_MAX: usize = 64;

/// How many fix cycles a task may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixBudget {
    /// For any one gate.
    pub per_gate_max: u32,
    /// For all gates together.
    pub total_max: u32,
}

impl Default for FixBudget {
    fn default() -> Self {
        Self {
            per_gate_max: 3,
            total_max: 6,
        }
    }
}

/// How many fix cycles a task has used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixTally {
    /// For each gate that ever failed.
    pub per_gate: BTreeMap<GateName, u32>,
    /// In total. A cycle that two gates asked for is one cycle.
    pub total: u32,
}

/// What to do about failing gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Back to the agent; this is the tally with the new cycle counted.
    Fix(FixTally),
    /// Enough: this is the gate whose budget is spent, or `None` when the total is.
    GiveUp(Option<GateName>),
}

/// Decides whether the failing gates go back to the agent once more.
pub fn decide(tally: &FixTally, budget: FixBudget, failing: &[GateName]) -> Decision {
    let used = |gate| tally.per_gate.get(gate).copied().unwrap_or(0);
    if let Some(spent) = failing
        .iter()
        .find(|gate| used(gate) >= budget.per_gate_max)
    {
        return Decision::GiveUp(Some(spent.clone()));
    }
    if tally.total >= budget.total_max {
        return Decision::GiveUp(None);
    }
    let mut counted = tally.clone();
    counted.total += 1;
    let mut named: Vec<&GateName> = failing.iter().collect();
    named.sort_unstable();
    named.dedup();
    for gate in named {
        *counted.per_gate.entry(gate.clone()).or_default() += 1;
    }
    Decision::Fix(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gates(names: &[&str]) -> Vec<GateName> {
        names
            .iter()
            .map(|name| name.parse().expect("valid name"))
            .collect()
    }

    /// Runs cycles until the budget says stop; the names of each cycle's failing gates rotate.
    fn cycles_until_given_up(budget: FixBudget, rounds: &[&[&str]]) -> (u32, Option<GateName>) {
        let mut tally = FixTally::default();
        for round in rounds.iter().cycle() {
            match decide(&tally, budget, &gates(round)) {
                Decision::Fix(next) => tally = next,
                Decision::GiveUp(gate) => return (tally.total, gate),
            }
        }
        unreachable!("a cycle over a non-empty slice never ends by itself")
    }

    #[test]
    fn one_gate_gives_up_at_its_own_limit() {
        let (cycles, gate) = cycles_until_given_up(FixBudget::default(), &[&["test"]]);
        assert_eq!((cycles, gate), (3, gates(&["test"]).pop()));
    }

    #[test]
    fn many_gates_give_up_at_the_total() {
        let budget = FixBudget::default();
        let (cycles, gate) = cycles_until_given_up(budget, &[&["a"], &["b"], &["c"], &["d"]]);
        assert_eq!((cycles, gate), (6, None));
    }

    #[test]
    fn a_gate_named_twice_counts_once() {
        let Decision::Fix(tally) = decide(
            &FixTally::default(),
            FixBudget::default(),
            &gates(&["test", "test"]),
        ) else {
            panic!("the first cycle is always within budget");
        };
        assert_eq!(tally.per_gate.values().copied().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_budget_of_zero_never_fixes() {
        let none = FixBudget {
            per_gate_max: 0,
            total_max: 0,
        };
        assert_eq!(
            decide(&FixTally::default(), none, &gates(&["test"])),
            Decision::GiveUp(gates(&["test"]).pop())
        );
    }
}
