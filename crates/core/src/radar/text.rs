//! Two changes of one text: which regions of the base both sides are about.
//!
//! This is git's own rule for a three-way merge: changes that overlap or touch are one region, and a
//! region conflicts unless both sides make the same of it. Lines are given as hashes: they can only
//! be compared.

use alloc::vec::Vec;
use core::ops::Range;

use serde::{Deserialize, Serialize};

/// Changes with at most so many unchanged lines between them are near each other.
pub const NEAR: u32 = 3;

/// Lines of the base that were replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// Which lines of the base, from 0.
    pub base: Range<u32>,
    /// By which lines of the new text.
    pub new: Range<u32>,
}

/// One side's change of a text.
#[derive(Clone, Copy, Debug)]
pub struct Edited<'a> {
    /// What it changed, in order, with at least one unchanged line between two of them.
    pub hunks: &'a [Hunk],
    /// All lines of the new text, as hashes.
    pub lines: &'a [u64],
}

/// What two sides make of one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meets {
    /// Their changes are near each other.
    Near,
    /// Both change it in the same way.
    Alike,
    /// They change it in different ways.
    Differently,
}

/// A region of the base that both sides are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Which lines of the base, from 0. It may be empty: both insert there.
    pub base: Range<u32>,
    /// What they make of it.
    pub meets: Meets,
}

/// Whose change a merged region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Ours,
    Theirs,
    Both,
}

/// A region of all three texts: where it begins and how long it is.
#[derive(Clone, Copy, Debug)]
struct Merged {
    whose: Whose,
    base: (i64, i64),
    ours: (i64, i64),
    theirs: (i64, i64),
}

/// The regions that both sides are about, in order.
pub fn regions(ours: Edited<'_>, theirs: Edited<'_>) -> Vec<Region> {
    let mut found: Vec<Region> = merged(ours, theirs)
        .into_iter()
        .filter(|region| region.whose == Whose::Both)
        .map(|region| Region {
            base: span(region.base),
            meets: if is_alike(&region, ours.lines, theirs.lines) {
                Meets::Alike
            } else {
                Meets::Differently
            },
        })
        .collect();
    let known = |at: &Range<u32>, found: &[Region]| {
        found
            .iter()
            .any(|region| region.base.start <= at.end && at.start <= region.base.end)
    };
    for (a, b) in pairs_in_reach(ours.hunks, theirs.hunks) {
        let same_change = a.base == b.base && same(a, ours.lines, b, theirs.lines);
        let meets = if same_change {
            Meets::Alike
        } else {
            Meets::Near
        };
        let base = a.base.start.min(b.base.start)..a.base.end.max(b.base.end);
        if !known(&base, &found) {
            found.push(Region { base, meets });
        }
    }
    found.sort_by_key(|region| (region.base.start, region.base.end));
    found
}

fn span((start, length): (i64, i64)) -> Range<u32> {
    let bounded = |at: i64| u32::try_from(at.max(0)).unwrap_or(u32::MAX);
    bounded(start)..bounded(start.saturating_add(length))
}

/// The changes of both sides that are near each other, in order.
fn pairs_in_reach<'a>(ours: &'a [Hunk], theirs: &'a [Hunk]) -> Vec<(&'a Hunk, &'a Hunk)> {
    let mut pairs = Vec::new();
    let mut first = 0;
    for a in ours {
        while theirs
            .get(first)
            .is_some_and(|b| b.base.end.saturating_add(NEAR) < a.base.start)
        {
            first += 1;
        }
        for b in &theirs[first..] {
            if a.base.end.saturating_add(NEAR) < b.base.start {
                break;
            }
            pairs.push((a, b));
        }
    }
    pairs
}

fn same(a: &Hunk, ours: &[u64], b: &Hunk, theirs: &[u64]) -> bool {
    let cut = |lines: &'_ [u64], at: &Range<u32>| -> Option<Vec<u64>> {
        lines
            .get(at.start as usize..at.end as usize)
            .map(<[u64]>::to_vec)
    };
    let (ours, theirs) = (cut(ours, &a.new), cut(theirs, &b.new));
    ours.is_some() && ours == theirs
}

fn is_alike(region: &Merged, ours: &[u64], theirs: &[u64]) -> bool {
    // Git does not look closer where one side has nothing left.
    if region.ours.1 == 0 || region.theirs.1 == 0 {
        return false;
    }
    let cut = |lines: &'_ [u64], (start, length): (i64, i64)| -> Option<Vec<u64>> {
        let start = usize::try_from(start).ok()?;
        let length = usize::try_from(length).ok()?;
        lines
            .get(start..start.checked_add(length)?)
            .map(<[u64]>::to_vec)
    };
    let (ours, theirs) = (cut(ours, region.ours), cut(theirs, region.theirs));
    ours.is_some() && ours == theirs
}

/// Where a hunk is, in numbers that may go below zero on the way.
#[derive(Clone, Copy)]
struct At {
    base: i64,
    taken: i64,
    new: i64,
    given: i64,
}

impl From<&Hunk> for At {
    fn from(hunk: &Hunk) -> Self {
        Self {
            base: i64::from(hunk.base.start),
            taken: i64::from(hunk.base.end) - i64::from(hunk.base.start),
            new: i64::from(hunk.new.start),
            given: i64::from(hunk.new.end) - i64::from(hunk.new.start),
        }
    }
}

/// Joins the changes of two sides as git's merge does.
fn merged(ours: Edited<'_>, theirs: Edited<'_>) -> Vec<Merged> {
    let mut regions: Vec<Merged> = Vec::new();
    let (mut a, mut b) = (0, 0);
    let grown = |hunks: &[Hunk]| -> i64 {
        hunks
            .iter()
            .map(At::from)
            .map(|at| at.given - at.taken)
            .sum()
    };
    let (ours_grown, theirs_grown) = (grown(ours.hunks), grown(theirs.hunks));
    loop {
        let (x, y) = (
            ours.hunks.get(a).map(At::from),
            theirs.hunks.get(b).map(At::from),
        );
        match (x, y) {
            (None, None) => return regions,
            (Some(x), None) => {
                let theirs = x.base + theirs_grown;
                append(&mut regions, only_ours(x, theirs));
                a += 1;
            }
            (None, Some(y)) => {
                let ours = y.base + ours_grown;
                append(&mut regions, only_theirs(y, ours));
                b += 1;
            }
            (Some(x), Some(y)) if x.base + x.taken < y.base => {
                append(&mut regions, only_ours(x, y.new - y.base + x.base));
                a += 1;
            }
            (Some(x), Some(y)) if y.base + y.taken < x.base => {
                append(&mut regions, only_theirs(y, x.new - x.base + y.base));
                b += 1;
            }
            (Some(x), Some(y)) => {
                let same_change = x.base == y.base
                    && x.taken == y.taken
                    && x.given == y.given
                    && same(&ours.hunks[a], ours.lines, &theirs.hunks[b], theirs.lines);
                if !same_change {
                    append(&mut regions, both(x, y));
                }
                let (x_end, y_end) = (x.base + x.taken, y.base + y.taken);
                if x_end >= y_end {
                    b += 1;
                }
                if y_end >= x_end {
                    a += 1;
                }
            }
        }
    }
}

const fn only_ours(x: At, theirs: i64) -> Merged {
    Merged {
        whose: Whose::Ours,
        base: (x.base, x.taken),
        ours: (x.new, x.given),
        theirs: (theirs, x.taken),
    }
}

const fn only_theirs(y: At, ours: i64) -> Merged {
    Merged {
        whose: Whose::Theirs,
        base: (y.base, y.taken),
        ours: (ours, y.taken),
        theirs: (y.new, y.given),
    }
}

/// The smallest region of all three texts that holds both changes.
fn both(x: At, y: At) -> Merged {
    let ahead = x.base - y.base;
    let beyond = ahead + x.taken - y.taken;
    let (mut base, mut ours, mut theirs) = (x.base, x.new, y.new);
    if ahead > 0 {
        base -= ahead;
        ours -= ahead;
    } else {
        theirs += ahead;
    }
    let mut base_length = x.base + x.taken - base;
    let mut ours_length = x.new + x.given - ours;
    let mut theirs_length = y.new + y.given - theirs;
    if beyond < 0 {
        base_length -= beyond;
        ours_length -= beyond;
    } else {
        theirs_length += beyond;
    }
    Merged {
        whose: Whose::Both,
        base: (base, base_length),
        ours: (ours, ours_length),
        theirs: (theirs, theirs_length),
    }
}

/// Adds a region; one that touches the last one becomes part of it.
fn append(regions: &mut Vec<Merged>, next: Merged) {
    if let Some(last) = regions.last_mut()
        && (next.ours.0 <= last.ours.0 + last.ours.1
            || next.theirs.0 <= last.theirs.0 + last.theirs.1)
    {
        if next.whose != last.whose {
            last.whose = Whose::Both;
        }
        last.base.1 = next.base.0 + next.base.1 - last.base.0;
        last.ours.1 = next.ours.0 + next.ours.1 - last.ours.0;
        last.theirs.1 = next.theirs.0 + next.theirs.1 - last.theirs.0;
    } else {
        regions.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn hunk(base: Range<u32>, new: Range<u32>) -> Hunk {
        Hunk { base, new }
    }

    fn meets(ours: Edited<'_>, theirs: Edited<'_>) -> Vec<(Range<u32>, Meets)> {
        let found = regions(ours, theirs);
        found.into_iter().map(|r| (r.base, r.meets)).collect()
    }

    #[test]
    fn changes_of_the_same_line_conflict_unless_they_are_alike() {
        let hunks = [hunk(1..2, 1..2)];
        let (a, b) = ([1, 20, 3], [1, 21, 3]);
        let edited = |lines| Edited {
            hunks: &hunks,
            lines,
        };
        assert_eq!(
            meets(edited(&a), edited(&b)),
            vec![(1..2, Meets::Differently)]
        );
        assert_eq!(meets(edited(&a), edited(&a)), vec![(1..2, Meets::Alike)]);
    }

    #[test]
    fn changes_that_touch_conflict_and_one_line_between_them_is_enough() {
        let at = |n: u32| {
            let mut lines: Vec<u64> = (0..10).collect();
            lines[n as usize] = 100;
            ([hunk(n..n + 1, n..n + 1)], lines)
        };
        let (first, second, third, far) = (at(1), at(2), at(3), at(8));
        fn edited((hunks, lines): &([Hunk; 1], Vec<u64>)) -> Edited<'_> {
            Edited { hunks, lines }
        }
        assert_eq!(
            meets(edited(&first), edited(&second)),
            vec![(1..3, Meets::Differently)]
        );
        assert_eq!(
            meets(edited(&first), edited(&third)),
            vec![(1..4, Meets::Near)]
        );
        assert_eq!(meets(edited(&first), edited(&far)), vec![]);
    }

    #[test]
    fn two_insertions_at_one_place_conflict() {
        let (a, b) = ([1, 10, 2], [1, 11, 2]);
        let hunks = [hunk(1..1, 1..2)];
        let ours = Edited {
            hunks: &hunks,
            lines: &a,
        };
        let theirs = Edited {
            hunks: &hunks,
            lines: &b,
        };
        assert_eq!(meets(ours, theirs), vec![(1..1, Meets::Differently)]);
    }

    #[test]
    fn what_both_make_of_a_region_by_different_steps_is_alike() {
        // Ours changes lines 0 and 2, theirs says all three anew: the result is one.
        let result = [10, 1, 12];
        let ours = Edited {
            hunks: &[hunk(0..1, 0..1), hunk(2..3, 2..3)],
            lines: &result,
        };
        let theirs = Edited {
            hunks: &[hunk(0..3, 0..3)],
            lines: &result,
        };
        assert_eq!(meets(ours, theirs), vec![(0..3, Meets::Alike)]);
    }
}
