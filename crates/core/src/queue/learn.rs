//! What the merge queue has learned of a repository, and the pace that follows from it. Pure.
//!
//! Three things decide how many entries go into one look: how often an entry fails, how many looks can
//! really run at once, and how many entries wait. All are estimates: a wrong one costs time, never
//! correctness.

use serde::{Deserialize, Serialize};

use super::plan::Pace;
use super::search::{HORIZON, power};
use crate::time::Millis;

/// The most entries between one looked-at prefix and the next.
pub const BATCH_MAX: usize = HORIZON;
/// The most looks at once that are ever learned about.
pub const SLOTS_MAX: usize = 8;
/// Who fails more often than this is tried one by one: searching in batches would cost more.
const FAILING_MAX: f64 = 0.3;
/// What is believed before anything is known: one of twenty fails, as if ten had been seen.
const PRIOR_FAILED: f64 = 0.5;
const PRIOR_SEEN: f64 = 10.0;
/// How much an entry seen counts after the next one.
const FADING: f64 = 0.99;
/// How much of a mean is the newest value.
const NEWEST: f64 = 0.3;
/// After so many looks a duration is measured anew.
const STALE: u32 = 60;

/// What was learned, for one repository on one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    seen: f64,
    failed: f64,
    flaky: f64,
    looks: u32,
    /// How long a look takes while so many (less one) run.
    took: [Option<Took>; SLOTS_MAX],
}

/// A mean duration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Took {
    millis: f64,
    /// At which look it was measured last.
    at: u32,
}

impl Learned {
    /// An entry has landed.
    pub fn landed(&mut self) {
        self.see(0.0);
    }

    /// An entry failed by itself.
    pub fn returned(&mut self) {
        self.see(1.0);
    }

    fn see(&mut self, failed: f64) {
        self.seen = self.seen * FADING + 1.0;
        self.failed = self.failed * FADING + failed;
    }

    /// A look is over that took so long, while `at_once` of them ran all the time.
    pub fn looked(&mut self, at_once: usize, took: Millis, was_flaky: bool) {
        self.looks = self.looks.saturating_add(1);
        self.flaky = self.flaky * FADING + if was_flaky { 1.0 } else { 0.0 };
        let Some(slot) = at_once.checked_sub(1).and_then(|n| self.took.get_mut(n)) else {
            return;
        };
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let millis = took.0 as f64;
        let before = slot.map_or(millis, |took| took.millis);
        *slot = Some(Took {
            millis: before + NEWEST * (millis - before),
            at: self.looks,
        });
    }

    /// How likely an entry is to fail on top of what passed.
    pub fn failing(&self) -> f64 {
        (self.failed + PRIOR_FAILED) / (self.seen + PRIOR_SEEN)
    }

    /// How many of the looks are flaky, roughly.
    pub fn flaky(&self) -> f64 {
        let looks = f64::from(self.looks.min(100));
        if looks > 0.0 { self.flaky / looks } else { 0.0 }
    }

    /// How long a look takes while so many run, or else by itself.
    pub fn look(&self, at_once: usize) -> Option<Millis> {
        let took = self.fresh(at_once.clamp(1, SLOTS_MAX)).or(self.fresh(1));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate"
        )]
        took.map(|millis| Millis(millis as u64))
    }

    fn fresh(&self, at_once: usize) -> Option<f64> {
        let took = self.took.get(at_once - 1).copied().flatten()?;
        (self.looks - took.at < STALE).then_some(took.millis)
    }

    /// How much gets done with so many looks at once, compared with one; `None` if not known.
    pub fn speedup(&self, at_once: usize) -> Option<f64> {
        let alone = self.fresh(1)?;
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let count = at_once as f64;
        self.fresh(at_once)
            .map(|together| count * alone / together.max(1.0))
    }

    /// How many looks at once are worth it, of those that may be. What is not known is tried: first
    /// one alone, then more.
    pub fn slots(&self, most: usize) -> usize {
        let most = most.clamp(1, SLOTS_MAX);
        if self.fresh(1).is_none() {
            return 1;
        }
        let (mut best, mut most_done) = (1, 1.0);
        for at_once in 2..=most {
            let Some(done) = self.speedup(at_once) else {
                return at_once;
            };
            // A little more is not worth the noise.
            if done > most_done * 1.15 {
                (best, most_done) = (at_once, done);
            }
        }
        best
    }

    /// The pace for so many waiting entries, with at most so many looks at once.
    pub fn pace(&self, backlog: usize, most: usize, strict: bool) -> Pace {
        let slots = self.slots(most);
        // What fails is run once more: only who is unlucky twice looks like a culprit.
        let failing = (self.failing() + self.flaky() * self.flaky()).min(1.0);
        Pace {
            slots,
            batch: BATCH_MAX,
            failing,
            // Who is looked at by itself anyway needs no company.
            one_by_one: strict || backlog <= slots || failing > FAILING_MAX,
        }
    }
}

/// How many entries land in the time of one look, in the long run, if each fails with this
/// probability, so many prefixes are looked at at once, and so many entries lie between them.
pub fn throughput(failing: f64, slots: usize, batch: usize) -> f64 {
    let good = 1.0 - failing;
    let (slots, batch) = (slots.max(1), batch.max(1));
    if failing <= 0.0 {
        return count(slots * batch);
    }
    if slots == 1 {
        return count(batch) * good / searching(good, batch);
    }
    let all = power(good, batch);
    let any = 1.0 - power(all, slots);
    let rounds = if batch == 1 {
        0.0
    } else {
        digits(batch, slots + 1)
    };
    // The good ones before the first bad one of a batch that has one.
    let before: f64 = (0..batch)
        .map(|place| count(place) * power(good, place) * failing)
        .sum::<f64>()
        / (1.0 - all);
    (count(batch) * all * any / (1.0 - all) + any * before) / (1.0 + any * rounds)
}

/// How many looks it takes, one after the other, to settle a batch by halving what fails.
fn searching(good: f64, batch: usize) -> f64 {
    let mut settle = [1.0; BATCH_MAX + 1];
    let mut find = [0.0; BATCH_MAX + 1];
    let batch = batch.min(BATCH_MAX);
    for n in 2..=batch {
        let (left, right) = (n / 2, n - n / 2);
        let bad = 1.0 - power(good, n);
        let bad_is_right = power(good, left) * (1.0 - power(good, right)) / bad;
        find[n] =
            1.0 + bad_is_right * find[right] + (1.0 - bad_is_right) * (find[left] + settle[right]);
        settle[n] = 1.0 + bad * find[n];
    }
    settle[batch]
}

/// How often `number` can be divided by `by` until one is left, rounded up.
fn digits(number: usize, by: usize) -> f64 {
    let (mut reached, mut rounds) = (1, 0.0);
    while reached < number {
        reached *= by;
        rounds += 1.0;
    }
    rounds
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 0.006
    }

    #[test]
    fn the_formula_gives_what_was_simulated() {
        for (failing, slots, batch, expected) in [
            (0.05, 1, 13, 2.94),
            (0.10, 1, 7, 1.77),
            (0.05, 2, 9, 5.19),
            (0.10, 2, 3, 2.87),
            (0.20, 2, 3, 1.70),
            (0.10, 4, 5, 4.21),
            (0.30, 2, 1, 1.19),
            (0.20, 4, 1, 2.36),
        ] {
            let given = throughput(failing, slots, batch);
            assert!(near(given, expected), "{failing} {slots} {batch}: {given}");
        }
    }

    #[test]
    fn the_pace_follows_what_was_seen() {
        let mut learned = Learned::default();
        assert!(learned.pace(1, 2, false).one_by_one);
        assert_eq!(learned.slots(2), 1, "first it is measured alone");
        learned.looked(1, Millis(1_000), false);
        assert_eq!(learned.slots(2), 2, "then together");
        assert_eq!(learned.look(2), Some(Millis(1_000)), "as far as is known");
        learned.looked(2, Millis(2_000), false);
        assert_eq!(learned.look(2), Some(Millis(2_000)));
        assert_eq!(learned.slots(2), 1, "which was of no use");
        learned.looked(1, Millis(1_000), false);
        for _ in 0..10 {
            learned.looked(2, Millis(1_000), false);
        }
        assert_eq!(learned.slots(2), 2);
        assert!(!learned.pace(40, 2, false).one_by_one);
        assert!(learned.pace(40, 2, true).one_by_one);
        for _ in 0..20 {
            learned.landed();
            learned.returned();
        }
        assert!(learned.pace(40, 2, false).one_by_one, "too many fail");
    }
}
