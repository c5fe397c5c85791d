//! The state diagram in `ARCHITECTURE.md` is what `step` does, edge by edge.
//!
//! The edges of `step` are found by search: from every state that can be reached, every fact there
//! is, in every form that can make a difference, under a policy whose limits are never reached and
//! one whose limits are all reached at once.

#[expect(
    dead_code,
    reason = "each test file uses its part of the common module"
)]
mod common;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::fmt::Write as _;
use std::path::Path;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use woodward_core::backoff::Backoff;
use woodward_core::budget::Budget;
use woodward_core::fix::FixBudget;
use woodward_core::policy::ReviewRule;
use woodward_core::time::{Millis, Timestamp};
use woodward_core::{Fact, Policy, StateKind, Task};

use common::facts::alphabet;
use common::histories::histories;
use common::{World, new_task};

/// From, fact, to.
type Edge = (String, String, String);

const START: &str = "[*]";

fn edge(from: &str, fact: &str, to: &str) -> Edge {
    (from.to_owned(), fact.to_owned(), to.to_owned())
}

/// One policy under which no limit is ever reached, and one under which each is reached at once.
fn policies() -> [Policy; 2] {
    let backoff = Backoff {
        base: Millis(0),
        rate_limit_floor: Millis(0),
        ..Backoff::default()
    };
    let with = |limit: u32, attempts_max, review, tokens_max| Policy {
        attempts_max,
        lease_losses_max: limit,
        conflicts_max: limit,
        backoff,
        fix: FixBudget {
            per_gate_max: limit,
            total_max: limit,
            ..FixBudget::default()
        },
        budget: Budget {
            tokens_max,
            micro_usd_max: None,
        },
        review,
    };
    [
        with(u32::MAX, u32::MAX, ReviewRule::Risky, None),
        with(0, 1, ReviewRule::Always, Some(1)),
    ]
}

/// What tells two tasks apart as far as `step` under these policies can: not how often something
/// happened, not which claim it is.
fn essence(task: &Task) -> String {
    let state = serde_json::to_string(&task.state).expect("plain data");
    let standings = task.blockers.values().map(|blocker| &blocker.standing);
    let blockers = serde_json::to_string(&standings.collect::<Vec<_>>()).expect("plain data");
    let made = (task.worktree.is_some(), task.head.is_some(), task.prompted);
    let spent = (task.tally.spent.tokens > 0, task.spec.budget);
    let unread = !task.unread.is_empty();
    format!("{state} {blockers} {made:?} {spent:?} {unread}")
}

fn edges_of_step() -> BTreeSet<Edge> {
    let mut edges = BTreeSet::new();
    let mut seen = HashSet::new();
    let mut open = VecDeque::new();
    for (prompted, blockers) in [
        (false, &[][..]),
        (true, &[]),
        (false, &[100]),
        (true, &[100]),
    ] {
        for policy in policies() {
            let world = World::create(new_task(prompted, blockers), policy);
            edges.insert(edge(START, "created", world.task.state.kind().as_str()));
            if seen.insert(essence(&world.task)) {
                open.push_back(world);
            }
        }
    }
    while let Some(mut world) = open.pop_front() {
        let from = world.task.state.kind();
        for (actor, fact) in alphabet(&world.task, 1, Timestamp(0)) {
            for policy in policies() {
                world.policy = policy;
                let Ok(done) = world.step(actor.clone(), fact.clone()) else {
                    continue;
                };
                let to = done.next.state.kind();
                edges.insert(edge(from.as_str(), fact.as_str(), to.as_str()));
                if seen.insert(essence(&done.next)) {
                    open.push_back(World {
                        task: done.next,
                        ..world.clone()
                    });
                }
            }
        }
    }
    edges
}

/// The diagram as it is written.
#[derive(Default)]
struct Diagram {
    /// Each group with its members, groups among them.
    groups: BTreeMap<String, Vec<String>>,
    /// From, label, to.
    arrows: Vec<(String, String, String)>,
}

impl Diagram {
    fn load() -> Self {
        let file = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo tells"))
            .join("../../ARCHITECTURE.md");
        let text = std::fs::read_to_string(&file).expect("ARCHITECTURE.md is there");
        let blocks: Vec<&str> = text
            .split("```mermaid\n")
            .skip(1)
            .filter_map(|rest| rest.split("```").next())
            .filter(|block| block.starts_with("stateDiagram-v2\n"))
            .collect();
        let [block] = blocks[..] else {
            panic!("{} state diagrams in {}", blocks.len(), file.display());
        };
        Self::parse(block)
    }

    fn parse(block: &str) -> Self {
        let mut diagram = Self::default();
        let mut inside: Vec<String> = Vec::new();
        for line in block.lines().skip(1).map(str::trim) {
            if line.is_empty() || line.starts_with("%%") {
                continue;
            }
            if line == "}" {
                inside.pop().expect("a group to close");
            } else if let Some((from, rest)) = line.split_once(" --> ") {
                let (to, label) = rest.split_once(": ").expect("an arrow has a label");
                let arrow = (from.to_owned(), label.to_owned(), to.to_owned());
                diagram.arrows.push(arrow);
            } else {
                let group = line
                    .strip_prefix("state ")
                    .and_then(|rest| rest.strip_suffix(" {"));
                let name = group.unwrap_or(line);
                if let Some(around) = inside.last() {
                    let members = diagram.groups.entry(around.clone()).or_default();
                    members.push(name.to_owned());
                }
                if group.is_some() {
                    inside.push(name.to_owned());
                }
            }
        }
        assert!(inside.is_empty(), "`{inside:?}` is not closed");
        diagram
    }

    /// The states that a name in the diagram stands for.
    fn states(&self, name: &str) -> Vec<String> {
        match self.groups.get(name) {
            Some(members) => members.iter().flat_map(|m| self.states(m)).collect(),
            None => vec![name.to_owned()],
        }
    }

    /// Each arrow taken apart; an edge that is drawn twice is in it twice.
    fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (from, label, to) in &self.arrows {
            assert!(!self.groups.contains_key(to), "an arrow into group {to}");
            for from in self.states(from) {
                for fact in label.split(", ").flat_map(facts) {
                    edges.push(edge(&from, fact, to));
                }
            }
        }
        edges
    }
}

/// The facts that one part of a label names.
fn facts(part: &str) -> Vec<&str> {
    match part.strip_suffix('*') {
        Some(start) => Fact::WORDS
            .iter()
            .filter(|word| word.starts_with(start))
            .copied()
            .collect(),
        None => vec![part],
    }
}

/// Edges in the diagram's own syntax, ready to be pasted.
fn written<'a>(edges: impl IntoIterator<Item = &'a Edge>) -> String {
    let mut arrows: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (from, fact, to) in edges {
        arrows.entry((from, to)).or_default().push(fact);
    }
    let mut text = String::new();
    for ((from, to), facts) in arrows {
        let _ = writeln!(text, "    {from} --> {to}: {}", facts.join(", "));
    }
    text
}

#[test]
fn the_diagram_shows_what_step_does_and_nothing_else() {
    let drawn: BTreeSet<Edge> = Diagram::load().edges().into_iter().collect();
    let real = edges_of_step();
    let missing = written(real.difference(&drawn));
    let surplus = written(drawn.difference(&real));
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "the state diagram in ARCHITECTURE.md is not what step does\n\
         to be added:\n{missing}to be removed:\n{surplus}"
    );
}

#[test]
fn no_edge_is_drawn_twice() {
    let mut once = BTreeSet::new();
    let drawn = Diagram::load().edges();
    let twice: Vec<&Edge> = drawn.iter().filter(|edge| !once.insert(*edge)).collect();
    assert!(twice.is_empty(), "drawn twice:\n{}", written(twice));
}

#[test]
fn a_box_of_the_diagram_is_what_the_code_calls_so() {
    let diagram = Diagram::load();
    let such = |is: fn(StateKind) -> bool| -> BTreeSet<String> {
        let kinds = StateKind::ALL.iter().filter(|kind| is(**kind));
        kinds.map(|kind| kind.as_str().to_owned()).collect()
    };
    let members = |name| BTreeSet::from_iter(diagram.states(name));
    assert_eq!(members("held"), such(StateKind::is_held));
    assert_eq!(members("open"), such(|kind| !kind.is_finished()));
}

#[test]
fn the_search_meets_every_state_and_tries_every_fact() {
    let edges = edges_of_step();
    let states: BTreeSet<&str> = edges.iter().map(|(_, _, to)| to.as_str()).collect();
    let kinds = StateKind::ALL.iter().map(|kind| kind.as_str());
    assert_eq!(states, kinds.collect());
    let taken: BTreeSet<&str> = edges.iter().map(|(_, fact, _)| fact.as_str()).collect();
    assert_eq!(taken, Fact::WORDS.iter().copied().collect());

    let task = World::create(new_task(true, &[]), Policy::default()).task;
    let tried = alphabet(&task, 1, Timestamp(0));
    let tried: BTreeSet<&str> = tried.iter().map(|(_, fact)| fact.as_str()).collect();
    assert_eq!(tried, Fact::WORDS.iter().copied().collect());
}

#[test]
fn no_random_history_takes_an_edge_that_the_search_missed() {
    let mut taken = BTreeSet::new();
    let mut runner = TestRunner::deterministic();
    for _ in 0..300 {
        let history = histories().new_tree(&mut runner).expect("no filters");
        history.current().live(|seen| {
            if let Ok(done) = seen.result {
                let (from, to) = (seen.before.state.kind(), done.next.state.kind());
                taken.insert(edge(from.as_str(), seen.event.fact.as_str(), to.as_str()));
            }
        });
    }
    let found = edges_of_step();
    let missed = written(taken.difference(&found));
    assert!(missed.is_empty(), "missed:\n{missed}");
    assert!(taken.len() > 70, "only {} edges taken", taken.len());
}
