//! What is said of two tasks, and which pairs must be looked at again.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::side::Clash;

/// The most files that a verdict names.
pub const PATHS_MAX: usize = 50;

/// How two tasks meet, the worst last.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// They have nothing to do with each other.
    #[default]
    None,
    /// They are foreseen to touch the same files.
    Foreseen,
    /// They change the same files.
    SameFiles,
    /// They change the same lines alike, or lines that are near each other.
    Overlap,
    /// One changes or removes what the other newly uses.
    Calls,
    /// Git can't merge them.
    Conflict,
}

impl Level {
    /// The one word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Foreseen => "foreseen",
            Self::SameFiles => "same-files",
            Self::Overlap => "overlap",
            Self::Calls => "calls",
            Self::Conflict => "conflict",
        }
    }

    /// Whether the agents should know.
    pub fn is_trouble(self) -> bool {
        self >= Self::Calls
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One file that both change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileVerdict {
    /// Its path.
    pub path: String,
    /// How they meet there.
    pub level: Level,
    /// Why it conflicts, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clash: Option<Clash>,
    /// Where, in lines of the common base from 1; the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<(u32, u32)>,
}

/// Something that one side changed or removed and the other newly uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// Where it was declared.
    pub declared: String,
    /// Whether it is gone, rather than changed.
    pub removed: bool,
    /// Whether the first task of the pair changed it; the second uses it then.
    pub by_first: bool,
    /// Where it is used.
    pub used: String,
    /// The line there, from 1.
    pub line: u32,
}

/// What is said of two tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// How they meet.
    pub level: Level,
    /// The files that both change, the worst first, bounded.
    pub files: Vec<FileVerdict>,
    /// How many files both change.
    pub files_total: u32,
    /// What one changes and the other uses, bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// Whether moved files or too much of everything leave a doubt that git could not be asked about.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub unsure: bool,
}

impl Verdict {
    /// Puts a verdict together from what is known of files and names.
    pub fn of(mut files: Vec<FileVerdict>, mut calls: Vec<Call>, unsure: bool) -> Self {
        files.sort_by(|a, b| (b.level, &a.path).cmp(&(a.level, &b.path)));
        let files_total = u32::try_from(files.len()).unwrap_or(u32::MAX);
        let worst = files.first().map_or(Level::None, |file| file.level);
        files.truncate(PATHS_MAX);
        calls.sort();
        calls.dedup();
        calls.truncate(PATHS_MAX);
        let named = if calls.is_empty() {
            Level::None
        } else {
            Level::Calls
        };
        Self {
            level: worst.max(named),
            files,
            files_total,
            calls,
            unsure,
        }
    }

    /// The files that can't be merged.
    pub fn conflicts(&self) -> impl Iterator<Item = &FileVerdict> {
        let conflicting = |file: &&FileVerdict| file.level == Level::Conflict;
        self.files.iter().filter(conflicting)
    }

    /// What this verdict is about, the same while it is: the files that conflict and the names that
    /// break, whatever lines they are on.
    pub fn evidence(&self) -> Vec<String> {
        let files = self.conflicts().map(|file| file.path.clone());
        let names = self.calls.iter().map(|call| {
            let mut text = call.declared.clone();
            text.push('#');
            text.push_str(&call.name);
            text
        });
        let all: BTreeSet<String> = files.chain(names).collect();
        all.into_iter().collect()
    }
}

/// The pairs that must be judged again: those with a side that is new or not what it was when it was
/// judged. Each pair has the smaller one first.
pub fn stale_pairs<Id: Ord + Copy, Stamp: PartialEq>(
    now: &BTreeMap<Id, Stamp>,
    judged: &BTreeMap<Id, Stamp>,
) -> Vec<(Id, Id)> {
    let sides: Vec<(Id, bool)> = now
        .iter()
        .map(|(id, stamp)| (*id, judged.get(id) != Some(stamp)))
        .collect();
    let mut pairs = Vec::new();
    for (at, (b, b_changed)) in sides.iter().enumerate() {
        for (a, a_changed) in &sides[..at] {
            if *a_changed || *b_changed {
                pairs.push((*a, *b));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn file(path: &str, level: Level) -> FileVerdict {
        FileVerdict {
            path: path.into(),
            level,
            clash: None,
            lines: Vec::new(),
        }
    }

    #[test]
    fn only_pairs_with_a_changed_side_are_judged_again() {
        let before = BTreeMap::from([(1, "a"), (2, "b"), (3, "c"), (4, "d")]);
        let mut now = before.clone();
        assert_eq!(stale_pairs(&now, &before), vec![]);
        now.insert(2, "moved");
        assert_eq!(stale_pairs(&now, &before), vec![(1, 2), (2, 3), (2, 4)]);
        now.remove(&2);
        now.insert(5, "new");
        assert_eq!(stale_pairs(&now, &before), vec![(1, 5), (3, 5), (4, 5)]);
        let all = stale_pairs(&before, &BTreeMap::new());
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn the_worst_comes_first_and_what_it_is_about_does_not_depend_on_lines() {
        let mut files = vec![file("b", Level::SameFiles), file("a", Level::Conflict)];
        let first = Verdict::of(files.clone(), Vec::new(), false);
        assert_eq!(first.level, Level::Conflict);
        assert_eq!(first.files[0].path, "a");
        files[1].lines = vec![(3, 7)];
        assert_eq!(
            Verdict::of(files.clone(), Vec::new(), false).evidence(),
            first.evidence()
        );
        files.push(file("c", Level::Conflict));
        assert_ne!(
            Verdict::of(files, Vec::new(), false).evidence(),
            first.evidence()
        );
    }

    #[test]
    fn a_broken_call_is_worse_than_a_shared_file() {
        let call = Call {
            name: "total".into(),
            declared: "src/cart.rs".into(),
            removed: false,
            by_first: true,
            used: "src/till.rs".into(),
            line: 4,
        };
        let files = vec![file("x", Level::Overlap)];
        let verdict = Verdict::of(files, vec![call], false);
        assert_eq!(verdict.level, Level::Calls);
        assert!(verdict.level.is_trouble());
        assert_eq!(verdict.evidence(), vec!["src/cart.rs#total"]);
    }
}
