//! The planner and what it learns, played against chance: does it land as many as the formula says?

#![expect(clippy::cast_precision_loss, reason = "small numbers")]

use woodward_core::Millis;
use woodward_core::queue::learn::{BATCH_MAX, Learned, throughput};
use woodward_core::queue::plan::{Known, Next, plan};

/// A small generator of chance, the same every time.
struct Chance(u64);

impl Chance {
    fn draw(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let mut bits = self.0;
        bits ^= bits >> 33;
        bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
        bits ^= bits >> 33;
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// One entry: who it is, and whether it fails.
type Entry = (usize, bool);

/// A queue under test. One look takes one unit of time, as long as no more run than there are slots.
struct World {
    now: f64,
    waiting: Vec<Entry>,
    /// What the branch has, then the members.
    known: std::collections::HashMap<Vec<usize>, bool>,
    running: Vec<(Vec<usize>, f64, usize)>,
    landed: usize,
    returned: usize,
    looks: usize,
    learned: Learned,
    history: Vec<usize>,
}

impl World {
    fn key(&self, count: usize) -> Vec<usize> {
        let members = self.waiting[..count].iter().map(|(id, _)| *id);
        self.history.iter().copied().chain(members).collect()
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
            let window = self.waiting.len().min(3 * BATCH_MAX);
            let prefixes: Vec<Known> = (1..=window)
                .map(|count| {
                    let key = self.key(count);
                    match self.known.get(&key) {
                        Some(true) => Known::Passed,
                        Some(false) => Known::Failed,
                        None if self.running.iter().any(|(of, ..)| *of == key) => Known::Running,
                        None => Known::Unknown,
                    }
                })
                .collect();
            let pace = self.learned.pace(self.waiting.len(), slots, false);
            let planned = plan(&prefixes, pace);
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
                    let wanted: Vec<_> = planned.look.iter().map(|n| self.key(*n)).collect();
                    self.running.retain(|(of, ..)| wanted.contains(of));
                    let at_once = wanted.len();
                    for key in wanted {
                        if !self.running.iter().any(|(of, ..)| *of == key) {
                            self.looks += 1;
                            self.running.push((key, self.now + 1.0, at_once));
                        }
                    }
                    let next = self.running.iter().enumerate();
                    let next = next
                        .min_by(|a, b| a.1.1.total_cmp(&b.1.1))
                        .expect("one runs")
                        .0;
                    let (key, at, at_once) = self.running.remove(next);
                    self.now = at;
                    let bad =
                        |id: &usize| self.waiting.iter().any(|(of, fails)| of == id && *fails);
                    let passes = !key.iter().any(bad);
                    self.known.insert(key, passes);
                    self.learned.looked(at_once, Millis(1_000), false);
                }
            }
        }
    }

    fn land(&mut self, count: usize) {
        for (id, fails) in self.waiting.drain(..count) {
            assert!(!fails, "a bad one landed");
            self.landed += 1;
            self.learned.landed();
            self.history.push(id);
        }
    }
}

fn world() -> World {
    World {
        now: 0.0,
        waiting: Vec::new(),
        known: std::collections::HashMap::new(),
        running: Vec::new(),
        landed: 0,
        returned: 0,
        looks: 0,
        learned: Learned::default(),
        history: Vec::new(),
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
            let expected = best(failing, slots);
            // It must learn first; where nobody fails, it is the window and not chance that limits.
            let least = if failing == 0.0 { 0.6 } else { 0.9 };
            assert!(
                landed > least * expected,
                "{slots} slots, {failing} fail: {landed:.2} of {expected:.2}"
            );
        }
    }
}
