//! Where to look next, so that a queue is settled in the fewest rounds. Pure.
//!
//! A round looks at several prefixes at once. It leaves fewer entries, or a shorter prefix that is
//! known to fail, so what the rest costs can be worked out from the end: for so many waiting entries,
//! of which the first so many hold one that fails, each set of prefixes leads to cheaper states, with
//! known chances. The cheapest set is looked at. A set's cost is the sum over the gaps between its
//! prefixes (the first culprit is in exactly one of them, or behind the last), so the best set is a
//! shortest path.

use alloc::vec;
use alloc::vec::Vec;

use super::plan::Pace;

/// More waiting entries than these are as good as endless.
pub const HORIZON: usize = 64;
/// The chances that are told apart; a finer grid would plan no better.
const CHANCES: [f64; 14] = [
    0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3,
];

/// What is left to do: so many wait, and the first so many of them fail together. None if zero.
#[derive(Clone, Copy, Debug)]
struct Left {
    waiting: usize,
    failed: usize,
}

/// What every state costs, for one pace. Remembered from plan to plan, since it rarely changes.
#[derive(Clone, Debug, Default)]
pub struct Search {
    failing: f64,
    slots: usize,
    batch: usize,
    /// Up to how many waiting entries it is worked out.
    size: usize,
    /// How likely so many entries are to be all good.
    good: Vec<f64>,
    /// In rounds.
    costs: Vec<f64>,
}

/// How many prefixes were chosen, and the last one.
type End = Option<(usize, usize)>;

/// Prefixes, by the cheapest way to each with so many of them chosen freely.
#[derive(Default)]
struct Ways {
    width: usize,
    cost: Vec<f64>,
    from: Vec<(usize, usize)>,
}

impl Search {
    /// Works out what is needed for so many entries at this pace, if it is not known yet.
    pub fn fit(&mut self, pace: Pace, waiting: usize) {
        let failing = nearest(pace.failing);
        let (slots, batch) = (pace.slots.max(1), pace.batch.max(1));
        let size = waiting.min(HORIZON);
        let is_same = (self.failing, self.slots, self.batch) == (failing, slots, batch);
        if is_same && self.size >= size {
            return;
        }
        *self = Self {
            failing,
            slots,
            batch,
            size,
            good: (0..=size).map(|n| power(1.0 - failing, n)).collect(),
            costs: vec![0.0; (size + 1) * (size + 1)],
        };
        let mut ways = Ways::default();
        for waiting in 1..=size {
            // The first alone fails: it goes back.
            self.set(waiting, 1, self.cost(waiting - 1, 0));
            for failed in (2..=waiting).chain([0]) {
                let left = Left { waiting, failed };
                let (cost, _) = self.best(left, &[], slots, &mut ways);
                self.set(waiting, failed, cost);
            }
        }
    }

    /// The prefixes to look at, rising: those that are looked at already, and at most `free` more.
    /// `failed` is the shortest prefix that is known to fail.
    pub fn cuts(
        &self,
        waiting: usize,
        failed: Option<usize>,
        running: &[usize],
        free: usize,
    ) -> Vec<usize> {
        let left = Left {
            waiting: waiting.min(self.size),
            // Who fails beyond what is foreseen is met in time.
            failed: failed.filter(|it| *it <= self.size).unwrap_or(0),
        };
        let (near, far): (Vec<usize>, Vec<usize>) = running
            .iter()
            .copied()
            .partition(|length| *length <= left.most());
        let mut ways = Ways::default();
        let (_, end) = self.best(left, &near, free, &mut ways);
        let mut cuts = ways.back(end);
        cuts.extend(far);
        cuts
    }

    /// How many rounds a queue of so many takes, as far as is foreseen.
    pub fn rounds(&self, waiting: usize) -> f64 {
        self.cost(waiting.min(self.size), 0)
    }

    const fn at(&self, waiting: usize, failed: usize) -> usize {
        waiting * (self.size + 1) + failed
    }

    fn cost(&self, waiting: usize, failed: usize) -> f64 {
        self.costs[self.at(waiting, failed)]
    }

    fn set(&mut self, waiting: usize, failed: usize, cost: f64) {
        let at = self.at(waiting, failed);
        self.costs[at] = cost;
    }

    /// The cheapest prefixes to look at, and what that costs.
    fn best(&self, left: Left, running: &[usize], free: usize, ways: &mut Ways) -> (f64, End) {
        self.find(left, running, free, ways);
        let least = running.last().copied().unwrap_or(1);
        // What is left when all of a prefix pass, who fail together or are all that wait.
        let all = match left.failed {
            0 => 0.0,
            failed => self.good[failed],
        };
        let (mut cheapest, mut end) = (f64::INFINITY, None);
        for cut in least..=left.most() {
            let rest = self.cost(left.waiting - cut, left.failed.saturating_sub(cut));
            let rest = (self.good[cut] - all) * rest;
            for used in 0..=free {
                let cost = ways.cost(used, cut) + rest;
                if cost < cheapest {
                    (cheapest, end) = (cost, Some((used, cut)));
                }
            }
        }
        (1.0 + cheapest / (1.0 - all), end)
    }

    /// Finds the cheapest ways to every prefix that leave out none that is looked at already. Their
    /// costs are weighed by chances of all entries, whether or not some are known to fail.
    fn find(&self, left: Left, running: &[usize], free: usize, ways: &mut Ways) {
        ways.begin(left.most() + 1, free + 1);
        for cut in 1..=left.most() {
            let runs = running.contains(&cut);
            let before = running.iter().rev().find(|it| **it < cut);
            let passed = before.copied().unwrap_or(0);
            let first = if runs {
                passed
            } else {
                passed.max(cut.saturating_sub(self.batch))
            };
            let chosen = usize::from(!runs);
            for start in first..cut {
                let fails = self.good[start] - self.good[cut];
                let step = fails * self.cost(left.waiting - start, cut - start);
                for used in 0..(free + 1).saturating_sub(chosen) {
                    let cost = ways.cost(used, start) + step;
                    ways.offer((used + chosen, cut), cost, (used, start));
                }
            }
        }
    }
}

impl Left {
    /// The longest prefix that is worth a look.
    const fn most(self) -> usize {
        match self.failed {
            0 => self.waiting,
            failed => failed - 1,
        }
    }
}

impl Ways {
    fn begin(&mut self, width: usize, height: usize) {
        self.width = width;
        self.cost.clear();
        self.cost.resize(width * height, f64::INFINITY);
        self.cost[0] = 0.0;
        self.from.clear();
        self.from.resize(width * height, (0, 0));
    }

    fn cost(&self, used: usize, cut: usize) -> f64 {
        self.cost[used * self.width + cut]
    }

    fn offer(&mut self, (used, cut): (usize, usize), cost: f64, from: (usize, usize)) {
        let at = used * self.width + cut;
        if cost < self.cost[at] {
            self.cost[at] = cost;
            self.from[at] = from;
        }
    }

    fn back(&self, end: End) -> Vec<usize> {
        let mut cuts = Vec::new();
        let mut at = end;
        while let Some((used, cut)) = at.filter(|(_, cut)| *cut > 0) {
            cuts.push(cut);
            at = Some(self.from[used * self.width + cut]);
        }
        cuts.reverse();
        cuts
    }
}

fn nearest(failing: f64) -> f64 {
    let above = CHANCES.iter().position(|chance| *chance >= failing);
    match above {
        None => CHANCES[CHANCES.len() - 1],
        Some(0) => CHANCES[0],
        // Closer as a ratio: that is what matters for how many go together.
        Some(at) if failing * failing < CHANCES[at - 1] * CHANCES[at] => CHANCES[at - 1],
        Some(at) => CHANCES[at],
    }
}

pub(super) fn power(base: f64, times: usize) -> f64 {
    (0..times).fold(1.0, |product, _| product * base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(failing: f64, slots: usize) -> Search {
        let pace = Pace {
            slots,
            batch: HORIZON,
            failing,
            one_by_one: false,
        };
        let mut search = Search::default();
        search.fit(pace, 40);
        search
    }

    #[test]
    fn it_is_as_cheap_as_it_can_be() {
        // Worked out by trying every set of prefixes in every state.
        for (failing, slots, rounds) in [
            (0.05, 1, 11.67),
            (0.1, 1, 19.02),
            (0.2, 1, 29.20),
            (0.05, 2, 7.55),
            (0.1, 2, 12.27),
            (0.2, 2, 19.04),
        ] {
            let found = search(failing, slots).rounds(40);
            assert!((found - rounds).abs() < 0.01, "{failing}, {slots}: {found}");
        }
    }

    #[test]
    fn it_looks_where_it_learns_most() {
        let two = search(0.05, 2);
        assert_eq!(two.cuts(40, None, &[], 2), [9, 20]);
        assert_eq!(two.cuts(40, Some(9), &[], 2), [3, 6]);
        assert_eq!(two.cuts(3, None, &[], 2), [1, 3]);
        assert_eq!(search(0.05, 1).cuts(40, Some(2), &[], 1), [1]);
        assert_eq!(search(0.002, 1).cuts(40, None, &[], 1), [40]);
        assert_eq!(search(0.002, 1).cuts(400, None, &[], 1), [40], "foreseen");
    }

    #[test]
    fn what_is_looked_at_already_stays() {
        let two = search(0.05, 2);
        let cuts = two.cuts(40, None, &[12], 1);
        assert!(cuts.contains(&12) && cuts.len() == 2, "{cuts:?}");
        assert_eq!(two.cuts(40, Some(9), &[3], 1), [3, 6]);
        assert_eq!(two.cuts(40, None, &[3, 50], 0), [3, 50]);
    }

    #[test]
    fn nobody_goes_with_more_than_are_allowed() {
        let pace = Pace {
            slots: 2,
            batch: 4,
            failing: 0.01,
            one_by_one: false,
        };
        let mut search = Search::default();
        search.fit(pace, 30);
        assert_eq!(search.cuts(30, None, &[], 2), [4, 8]);
    }

    #[test]
    fn chances_are_told_apart_as_far_as_it_matters() {
        for (given, taken) in [(0.0, 0.002), (0.011, 0.01), (0.06, 0.05), (0.9, 0.3)] {
            assert!((nearest(given) - taken).abs() < 1e-9, "{given}");
        }
    }
}
