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

use super::search::Search;

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How many prefixes are looked at at once.
    pub slots: usize,
    /// How many entries may lie between one looked-at prefix and the next.
    pub batch: usize,
    /// How likely an entry is to fail.
    pub failing: f64,
    /// Whether nobody lands but by its own tree.
    pub one_by_one: bool,
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

/// Plans. `prefixes[k]` is what is known of the first `k + 1` entries together. `search` is a memory
/// of what was worked out before, and changes nothing.
pub fn plan(prefixes: &[Known], pace: Pace, search: &mut Search) -> Plan {
    let next = next(prefixes, pace);
    let look = match next {
        Next::Look => look(prefixes, pace, search),
        _ => Vec::new(),
    };
    Plan { next, look }
}

fn next(prefixes: &[Known], pace: Pace) -> Next {
    let passed = prefixes.iter().rposition(|known| *known == Known::Passed);
    match (prefixes.first(), passed) {
        (Some(Known::Passed), _) => Next::LandFirst,
        // Who comes later may repair what failed before.
        (_, Some(last)) if !pace.one_by_one => Next::LandTogether(last + 1),
        (Some(Known::Failed), _) => Next::Return,
        _ => Next::Look,
    }
}

fn look(prefixes: &[Known], pace: Pace, search: &mut Search) -> Vec<usize> {
    let slots = pace.slots.max(1);
    let failed = prefixes.iter().position(|known| *known == Known::Failed);
    // What holds a failing one fails as well: somebody in it must be found first.
    let end = failed.unwrap_or(prefixes.len());
    let known = |length: usize| prefixes[length - 1];
    if pace.one_by_one {
        let open = (1..=end).filter(|length| known(*length) != Known::Passed);
        return open.take(slots).collect();
    }
    let running = (1..=end).filter(|length| known(*length) == Known::Running);
    let running: Vec<usize> = running.take(slots).collect();
    let failed = failed.map(|before| before + 1);
    search.fit(pace, prefixes.len());
    search.cuts(prefixes.len(), failed, &running, slots - running.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const PACE: Pace = Pace {
        slots: 2,
        batch: 3,
        failing: 0.05,
        one_by_one: false,
    };

    /// `.` unknown, `r` running, `p` passed, `f` failed.
    fn of(line: &str, pace: Pace) -> Plan {
        let known = line.chars().map(|known| match known {
            'r' => Known::Running,
            'p' => Known::Passed,
            'f' => Known::Failed,
            _ => Known::Unknown,
        });
        plan(&known.collect::<Vec<_>>(), pace, &mut Search::default())
    }

    #[test]
    fn prefixes_are_looked_at_at_most_a_batch_apart() {
        assert_eq!(of("........", PACE).look, [3, 6]);
        assert_eq!(of("..r.....", PACE).look, [3, 6]);
        assert!(of("", PACE).look.is_empty());
        let one = Pace {
            one_by_one: true,
            ..PACE
        };
        assert_eq!(of("....", one).look, [1, 2]);
    }

    #[test]
    fn a_failing_prefix_is_split_until_its_culprit_is_first() {
        assert_eq!(of("........f...", PACE).look, [3, 6]);
        assert_eq!(of("pf", PACE).next, Next::LandFirst);
        assert_eq!(of("f..", PACE).next, Next::Return);
        // What was planned before the failure still helps, what is beyond does not.
        let plan = of("..r..f..r", PACE);
        assert_eq!((plan.next, plan.look), (Next::Look, vec![1, 3]));
        assert_eq!(of(".f", PACE).look, [1]);
    }

    #[test]
    fn what_passed_lands_with_all_before_it() {
        assert_eq!(of("..p..", PACE).next, Next::LandTogether(3));
        assert_eq!(of("p.p..", PACE).next, Next::LandFirst);
        assert_eq!(of("f.p", PACE).next, Next::LandTogether(3));
        let strict = Pace {
            one_by_one: true,
            ..PACE
        };
        assert_eq!(of(".p...", strict).next, Next::Look);
        assert_eq!(of(".p...", strict).look, [1, 3]);
    }
}
