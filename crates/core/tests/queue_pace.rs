//! The planner and what it learns, played against chance: does it land as many as the formula says?

#![expect(clippy::cast_precision_loss, reason = "small numbers")]

use woodward_core::Millis;
use woodward_core::queue::learn::{BATCH_MAX, Learned, throughput};
use woodward_core::queue::plan::{Known, Next, plan};
use woodward_core::queue::search::{HORIZON, Search};

/// A small generator of chance, the same every time.
struct Chance(u64);

impl Chance {
    fn bits(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut bits = self.0;
        bits ^= bits >> 33;
        bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
        bits ^ bits >> 33
    }

    fn draw(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// One entry: who it is, and whether it fails.
type Entry = (usize, bool);

/// The entries of a branch, in order, as one number: the same tree is the same number, whether its last
/// entries have landed or are merged on top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Tree(u64);

impl Tree {
    fn with(self, (id, _): &Entry) -> Self {
        Self(Chance(self.0 ^ *id as u64).bits())
    }
}

/// A queue under test. One look takes one unit of time, as long as no more run than there are slots.
struct World {
    now: f64,
    waiting: Vec<Entry>,
    /// What the branch has.
    branch: Tree,
    known: std::collections::HashMap<Tree, bool>,
    /// The tree, whether it passes, when that is known, and how many were begun with it.
    running: Vec<(Tree, bool, f64, usize)>,
    landed: usize,
    returned: usize,
    looks: usize,
    learned: Learned,
    search: Search,
}

impl World {
    /// The branch with the first so many merged on top, and whether that passes.
    fn candidate(&self, count: usize) -> (Tree, bool) {
        let members = &self.waiting[..count];
        let tree = members.iter().fold(self.branch, Tree::with);
        (tree, !members.iter().any(|(_, fails)| *fails))
    }

    fn run(
        &mut self,
        slots: usize,
        until: impl Fn(&Self) -> bool,
        mut feed: impl FnMut(&mut Self),
    ) {
        loop {
            feed(self);
            if until(self) {
                return;
            }
            let window = self.waiting.len().min(BATCH_MAX);
            let prefixes: Vec<Known> = (1..=window)
                .map(|count| {
                    let (tree, _) = self.candidate(count);
                    match self.known.get(&tree) {
                        Some(true) => Known::Passed,
                        Some(false) => Known::Failed,
                        None if self.running.iter().any(|(of, ..)| *of == tree) => Known::Running,
                        None => Known::Unknown,
                    }
                })
                .collect();
            let pace = self.learned.pace(self.waiting.len(), slots, false);
            let planned = plan(&prefixes, pace, &mut self.search);
            match planned.next {
                Next::LandFirst => self.land(1),
                Next::LandTogether(count) => self.land(count),
                Next::Return => {
                    let (_, fails) = self.waiting.remove(0);
                    assert!(fails, "a good one was returned");
                    self.returned += 1;
                    self.learned.returned();
                }
                Next::Look => {
                    let wanted: Vec<_> = planned.look.iter().map(|n| self.candidate(*n)).collect();
                    self.running
                        .retain(|(of, ..)| wanted.iter().any(|(tree, _)| tree == of));
                    let at_once = wanted.len();
                    for (tree, passes) in wanted {
                        if !self.running.iter().any(|(of, ..)| *of == tree) {
                            self.looks += 1;
                            self.running.push((tree, passes, self.now + 1.0, at_once));
                        }
                    }
                    let next = self.running.iter().enumerate();
                    let next = next
                        .min_by(|a, b| a.1.2.total_cmp(&b.1.2))
                        .expect("one runs")
                        .0;
                    let (tree, passes, at, at_once) = self.running.remove(next);
                    self.now = at;
                    self.known.insert(tree, passes);
                    self.learned.looked(at_once, Millis(1_000), false);
                }
            }
        }
    }

    fn land(&mut self, count: usize) {
        for entry in self.waiting.drain(..count) {
            assert!(!entry.1, "a bad one landed");
            self.branch = self.branch.with(&entry);
            self.landed += 1;
            self.learned.landed();
        }
    }
}

fn world() -> World {
    World {
        now: 0.0,
        waiting: Vec::new(),
        branch: Tree::default(),
        known: std::collections::HashMap::new(),
        running: Vec::new(),
        landed: 0,
        returned: 0,
        looks: 0,
        learned: Learned::default(),
        search: Search::default(),
    }
}

fn best(failing: f64, slots: usize) -> f64 {
    (1..=BATCH_MAX)
        .map(|batch| throughput(failing, slots, batch))
        .fold(0.0, f64::max)
}

#[test]
fn an_endless_queue_lands_as_many_as_the_formula_says() {
    for slots in [1, 2, 4] {
        for failing in [0.0_f64, 0.02, 0.05, 0.1, 0.2] {
            let mut chance = Chance(7);
            let mut world = world();
            let mut made = 0;
            world.run(
                slots,
                |world| world.landed >= 1_000,
                |world| {
                    while world.waiting.len() < 100 {
                        world.waiting.push((made, chance.draw() < failing));
                        made += 1;
                    }
                },
            );
            let landed = world.landed as f64 / world.now;
            // Where nobody fails, it is what is foreseen and not chance that limits.
            let expected = best(failing, slots).min(HORIZON as f64);
            // It must learn first.
            assert!(
                landed > 0.9 * expected,
                "{slots} slots, {failing} fail: {landed:.2} of {expected:.2}"
            );
        }
    }
}

/// Fewer wait than would be looked at: the end of a queue costs rounds that the formula knows nothing
/// of, and is still near it, whoever the failing ones are.
#[test]
fn a_queue_of_forty_lands_as_fast_as_the_formula_says() {
    const ENTRIES: usize = 40;
    for slots in [1, 2] {
        for failing in [2_usize, 4, 8] {
            let mut chance = Chance(7);
            let (mut landed, mut took) = (0, 0.0);
            for _ in 0..60 {
                let mut world = world();
                // As it is after many others of the same kind.
                for number in 0..100 {
                    match number * failing % ENTRIES < failing {
                        true => world.learned.returned(),
                        false => world.learned.landed(),
                    }
                }
                world.learned.looked(1, Millis(1_000), false);
                world
                    .learned
                    .looked(2, Millis(1_000 * 2 / slots as u64), false);
                let mut left = failing;
                for id in 0..ENTRIES {
                    let fails = chance.draw() < left as f64 / (ENTRIES - id) as f64;
                    left -= usize::from(fails);
                    world.waiting.push((id, fails));
                }
                world.run(slots, |world| world.waiting.is_empty(), |_| {});
                assert_eq!(world.returned, failing);
                landed += world.landed;
                took += world.now;
            }
            let reached = landed as f64 / took;
            let expected = best(failing as f64 / ENTRIES as f64, slots);
            assert!(
                reached > 0.9 * expected,
                "{slots} slots, {failing} of {ENTRIES} fail: {reached:.2} of {expected:.2}"
            );
        }
    }
}
