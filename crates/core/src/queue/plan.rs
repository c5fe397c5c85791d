//! What the merge queue does next, from one look at everything that is known. Pure.
//!
//! Entries are merged one on top of the other, in order, onto the branch as it is. What is looked at
//! is always the tree that the first so many of them make together, a *prefix*. A tree that passed may
//! become the branch; one that failed has somebody in it who must be found. Nobody is ever blamed
//! because of what others did: only an entry that failed by itself on top of the branch goes back.
//!
//! Every event plans anew. What was found out is known by tree, so planning anew costs nothing, and it
//! does not matter whether the planner remembers what it planned before: it does not.

use alloc::vec::Vec;

/// What is known of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// Nothing.
    Unknown,
    /// It is being looked at.
    Running,
    /// It may become the branch.
    Passed,
    /// It may not.
    Failed,
}

/// How the queue goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How many prefixes are looked at at once.
    pub slots: usize,
    /// How many entries lie between one looked-at prefix and the next.
    pub batch: usize,
    /// Whether every entry's own commit must have passed.
    pub strict: bool,
}

impl Pace {
    /// Whether nobody lands but by its own tree.
    const fn is_one_by_one(self) -> bool {
        self.strict || self.batch <= 1
    }
}

/// What happens now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing but looking.
    Look,
    /// The first entry lands by itself.
    LandFirst,
    /// The first so many land, as one: what lies between was not looked at.
    LandTogether(usize),
    /// The first entry fails by itself: it goes back.
    Return,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What happens now. If it is not [`Next::Look`], there is another plan afterwards.
    pub next: Next,
    /// If nothing else happens now: the prefixes that shall be looked at, by their lengths, rising. What
    /// runs besides is of no use any more.
    pub look: Vec<usize>,
}

/// Plans. `prefixes[k]` is what is known of the first `k + 1` entries together.
pub fn plan(prefixes: &[Known], pace: Pace) -> Plan {
    Plan {
        next: next(prefixes, pace),
        look: look(prefixes, pace),
    }
}

fn next(prefixes: &[Known], pace: Pace) -> Next {
    let passed = prefixes.iter().rposition(|known| *known == Known::Passed);
    match (prefixes.first(), passed) {
        (Some(Known::Passed), _) => Next::LandFirst,
        // Who comes later may repair what failed before.
        (_, Some(last)) if !pace.is_one_by_one() => Next::LandTogether(last + 1),
        (Some(Known::Failed), _) => Next::Return,
        _ => Next::Look,
    }
}

fn look(prefixes: &[Known], pace: Pace) -> Vec<usize> {
    let slots = pace.slots.max(1);
    let failed = prefixes.iter().position(|known| *known == Known::Failed);
    // What holds a failing one fails as well: somebody in it must be found first.
    let end = failed.unwrap_or(prefixes.len());
    let known = |length: usize| prefixes[length - 1];
    if pace.is_one_by_one() {
        let open = (1..=end).filter(|length| known(*length) != Known::Passed);
        return open.take(slots).collect();
    }
    let running = (1..=end).filter(|length| known(*length) == Known::Running);
    let mut look: Vec<usize> = running.take(slots).collect();
    let free = slots - look.len();
    match failed {
        Some(before) => split(&mut look, before + 1, free),
        None => {
            let mut last = look.last().copied().unwrap_or(0);
            for _ in 0..free {
                let cut = last.saturating_add(pace.batch).min(end);
                if cut > last {
                    look.push(cut);
                }
                last = cut;
            }
        }
    }
    look
}

/// Puts `count` more cuts before the prefix that failed: evenly, or into the widest gaps between those
/// that are there.
fn split(look: &mut Vec<usize>, failed: usize, count: usize) {
    if look.is_empty() {
        let cuts = (1..=count).map(|cut| (cut * failed).div_ceil(count + 1));
        look.extend(cuts.filter(|cut| *cut < failed));
        look.dedup();
        return;
    }
    for _ in 0..count {
        let (mut before, mut from, mut widest) = (0, 0, 0);
        for &cut in look.iter().chain([&failed]) {
            if cut - before > widest {
                (from, widest) = (before, cut - before);
            }
            before = cut;
        }
        if widest < 2 {
            return;
        }
        look.push(from + widest.div_ceil(2));
        look.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const PACE: Pace = Pace {
        slots: 2,
        batch: 3,
        strict: false,
    };

    /// `.` unknown, `r` running, `p` passed, `f` failed.
    fn of(line: &str, pace: Pace) -> Plan {
        let known = line.chars().map(|known| match known {
            'r' => Known::Running,
            'p' => Known::Passed,
            'f' => Known::Failed,
            _ => Known::Unknown,
        });
        plan(&known.collect::<Vec<_>>(), pace)
    }

    #[test]
    fn prefixes_are_looked_at_a_batch_apart() {
        assert_eq!(of("........", PACE).look, [3, 6]);
        assert_eq!(of("..r.....", PACE).look, [3, 6]);
        assert_eq!(of("....", PACE).look, [3, 4]);
        assert!(of("", PACE).look.is_empty());
        let one = Pace { batch: 1, ..PACE };
        assert_eq!(of("....", one).look, [1, 2]);
    }

    #[test]
    fn a_failing_prefix_is_split_until_its_culprit_is_first() {
        assert_eq!(of(".....f...", PACE).look, [2, 4]);
        assert_eq!(of("pf", PACE).next, Next::LandFirst);
        assert_eq!(of("f..", PACE).next, Next::Return);
        // What was planned before the failure still helps, what is beyond does not.
        let plan = of("..r..f..r", PACE);
        assert_eq!((plan.next, plan.look), (Next::Look, vec![2, 3]));
        assert_eq!(of(".f", PACE).look, [1]);
    }

    #[test]
    fn what_passed_lands_with_all_before_it() {
        assert_eq!(of("..p..", PACE).next, Next::LandTogether(3));
        assert_eq!(of("p.p..", PACE).next, Next::LandFirst);
        assert_eq!(of("f.p", PACE).next, Next::LandTogether(3));
        let strict = Pace {
            strict: true,
            batch: 1,
            ..PACE
        };
        assert_eq!(of(".p...", strict).next, Next::Look);
        assert_eq!(of(".p...", strict).look, [1, 3]);
    }
}
