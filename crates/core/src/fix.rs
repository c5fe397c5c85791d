//! Fix cycles: a failing gate goes back to the agent, a bounded number of times, and no longer than
//! that leads somewhere.
//!
//! The counts are part of the task and so survive every restart.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::gate::{FAILURES_MAX, GateKind};
use crate::id::TreeId;
use crate::name::GateName;

/// The most failing gates that one fix cycle is about; what is cut fails again in the next.
pub const GATES_MAX: usize = 64;
/// The most earlier results that are remembered.
const LOOKS_MAX: usize = 8;
/// So many results in a row that fail alike are a circle.
const ALIKE_MAX: usize = 3;
/// Two sets of failures are alike if they share so much of what is in either, in percent.
const ALIKE_PERCENT: usize = 80;

/// How many fix cycles a task may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixBudget {
    /// For any one gate.
    pub per_gate_max: u32,
    /// For all gates together.
    pub total_max: u32,
    /// For any one gate of a kind, instead of `per_gate_max`.
    #[serde(default)]
    pub per_kind_max: KindLimits,
}

/// Limits for gates of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KindLimits {
    /// Tests.
    pub test: Option<u32>,
    /// Lints.
    pub lint: Option<u32>,
    /// Builds.
    pub build: Option<u32>,
    /// All else.
    pub custom: Option<u32>,
}

impl FixBudget {
    const fn max(&self, kind: GateKind) -> u32 {
        let own = match kind {
            GateKind::Test => self.per_kind_max.test,
            GateKind::Lint => self.per_kind_max.lint,
            GateKind::Build => self.per_kind_max.build,
            GateKind::Custom => self.per_kind_max.custom,
        };
        match own {
            Some(max) => max,
            None => self.per_gate_max,
        }
    }
}

impl Default for FixBudget {
    fn default() -> Self {
        Self {
            per_gate_max: 3,
            total_max: 6,
            per_kind_max: KindLimits::default(),
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
    /// The results that failed, oldest first, bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<Look>,
}

/// A result that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Its content.
    pub tree: TreeId,
    /// What failed (see [`crate::gate::GateReport::failures`]), of all gates.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub failures: BTreeSet<u64>,
}

impl Look {
    /// Whether both fail in nearly the same way. What can't be told apart is not alike.
    fn is_like(&self, other: &Self) -> bool {
        let both = self.failures.intersection(&other.failures).count();
        let either = self.failures.union(&other.failures).count();
        either > 0 && both * 100 >= either * ALIKE_PERCENT
    }
}

/// A failing gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Which.
    pub gate: GateName,
    /// Its kind.
    pub kind: GateKind,
}

/// What to do about failing gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Back to the agent; this is the tally with the new cycle counted.
    Fix(FixTally),
    /// Enough: this is the gate whose budget is spent, or `None` when the total is.
    GiveUp(Option<GateName>),
    /// More cycles would lead nowhere.
    Circle(Circle),
}

/// Why more cycles would lead nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Circle {
    /// The agent was asked to repair it and changed nothing.
    NothingChanged,
    /// The agent came back to a result that had failed before, so many cycles ago.
    Returned {
        /// How many.
        cycles: usize,
    },
    /// The same failures, so many results in a row.
    Alike {
        /// How many.
        results: usize,
    },
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::NothingChanged => String::from("asked to repair it, the agent changed nothing"),
            Self::Returned { cycles } => {
                format!("the agent came back to a result that failed {cycles} cycles ago")
            }
            Self::Alike { results } => {
                format!("{results} results in a row fail in the same way")
            }
        })
    }
}

/// Decides whether the failing gates go back to the agent once more. `look` is the result that
/// failed, where that is known.
pub fn decide(
    tally: &FixTally,
    budget: FixBudget,
    failing: &[Failing],
    look: Option<Look>,
) -> Decision {
    let used = |gate| tally.per_gate.get(gate).copied().unwrap_or(0);
    if let Some(circle) = look.as_ref().and_then(|look| circle(&tally.looks, look)) {
        return Decision::Circle(circle);
    }
    if let Some(spent) = failing
        .iter()
        .find(|failing| used(&failing.gate) >= budget.max(failing.kind))
    {
        return Decision::GiveUp(Some(spent.gate.clone()));
    }
    if tally.total >= budget.total_max {
        return Decision::GiveUp(None);
    }
    let mut counted = tally.clone();
    counted.total += 1;
    let mut named: Vec<&GateName> = failing.iter().map(|failing| &failing.gate).collect();
    named.sort_unstable();
    named.dedup();
    for gate in named {
        *counted.per_gate.entry(gate.clone()).or_default() += 1;
    }
    if let Some(mut look) = look {
        while look.failures.len() > FAILURES_MAX {
            look.failures.pop_last();
        }
        counted.looks.push(look);
        let surplus = counted.looks.len().saturating_sub(LOOKS_MAX);
        counted.looks.drain(..surplus);
    }
    Decision::Fix(counted)
}

fn circle(earlier: &[Look], look: &Look) -> Option<Circle> {
    let back = earlier.iter().rev().position(|it| it.tree == look.tree);
    match back {
        Some(0) => return Some(Circle::NothingChanged),
        Some(back) => return Some(Circle::Returned { cycles: back + 1 }),
        None => {}
    }
    let alike = earlier.iter().rev().take_while(|it| it.is_like(look));
    let results = alike.count() + 1;
    (results >= ALIKE_MAX).then_some(Circle::Alike { results })
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

    fn failing(names: &[&str]) -> Vec<Failing> {
        let failing = |gate| Failing {
            gate,
            kind: GateKind::Test,
        };
        gates(names).into_iter().map(failing).collect()
    }

    fn look(tree: char, failures: &[u64]) -> Look {
        Look {
            tree: core::iter::repeat_n(tree, 40)
                .collect::<String>()
                .parse()
                .expect("a tree"),
            failures: failures.iter().copied().collect(),
        }
    }

    /// What is decided about the last of these results, with a generous budget.
    fn after(looks: &[Look]) -> Decision {
        let budget = FixBudget {
            per_gate_max: 100,
            total_max: 100,
            ..FixBudget::default()
        };
        let mut tally = FixTally::default();
        for look in looks {
            match decide(&tally, budget, &failing(&["test"]), Some(look.clone())) {
                Decision::Fix(next) => tally = next,
                other => return other,
            }
        }
        Decision::Fix(tally)
    }

    #[test]
    fn progress_is_no_circle() {
        let mut looks = Vec::new();
        for (nth, tree) in ('0'..='9').enumerate() {
            let nth = nth as u64;
            looks.push(look(tree, &[nth, nth + 1, nth + 2]));
        }
        let Decision::Fix(tally) = after(&looks) else {
            panic!("it gets somewhere");
        };
        assert_eq!(tally.looks.len(), LOOKS_MAX, "bounded");
        // Failures that can't be told apart say nothing.
        let blind: Vec<Look> = ('0'..='5').map(|tree| look(tree, &[])).collect();
        assert!(matches!(after(&blind), Decision::Fix(_)));
    }

    #[test]
    fn circles_are_seen() {
        let circle = |looks: &[Look]| match after(looks) {
            Decision::Circle(circle) => Some(circle),
            _ => None,
        };
        assert_eq!(
            circle(&[look('a', &[1]), look('a', &[1])]),
            Some(Circle::NothingChanged)
        );
        assert_eq!(
            circle(&[look('a', &[1]), look('b', &[2]), look('a', &[1])]),
            Some(Circle::Returned { cycles: 2 })
        );
        let alike = [
            look('a', &[1, 2, 3, 4, 5]),
            look('b', &[1, 2, 3, 4]),
            look('c', &[1, 2, 3, 4, 5]),
        ];
        assert_eq!(circle(&alike[..2]), None);
        assert_eq!(circle(&alike), Some(Circle::Alike { results: 3 }));
    }

    #[test]
    fn a_kind_has_a_limit_of_its_own() {
        let budget = FixBudget {
            per_kind_max: KindLimits {
                lint: Some(1),
                ..KindLimits::default()
            },
            ..FixBudget::default()
        };
        let lint = [Failing {
            gate: gates(&["fmt"]).remove(0),
            kind: GateKind::Lint,
        }];
        let Decision::Fix(tally) = decide(&FixTally::default(), budget, &lint, None) else {
            panic!("the first is within the limit");
        };
        assert_eq!(
            decide(&tally, budget, &lint, None),
            Decision::GiveUp(gates(&["fmt"]).pop())
        );
    }

    /// Runs cycles until the budget says stop; the names of each cycle's failing gates rotate.
    fn cycles_until_given_up(budget: FixBudget, rounds: &[&[&str]]) -> (u32, Option<GateName>) {
        let mut tally = FixTally::default();
        for round in rounds.iter().cycle() {
            match decide(&tally, budget, &failing(round), None) {
                Decision::Fix(next) => tally = next,
                Decision::GiveUp(gate) => return (tally.total, gate),
                Decision::Circle(circle) => panic!("{circle}"),
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
            &failing(&["test", "test"]),
            None,
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
            ..FixBudget::default()
        };
        assert_eq!(
            decide(&FixTally::default(), none, &failing(&["test"]), None),
            Decision::GiveUp(gates(&["test"]).pop())
        );
    }
}
