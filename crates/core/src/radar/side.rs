//! A task's change, path by path, and where two of them meet.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// A file as one side has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Git's mode: what kind of file, and whether it can be run.
    pub mode: u32,
    /// A name of the content: equal names are equal contents.
    pub content: String,
}

impl Entry {
    const fn kind(&self) -> u32 {
        self.mode & 0o170_000
    }

    const fn is_text_file(&self) -> bool {
        self.kind() == 0o100_000
    }
}

/// What happened to one path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// What was there.
    pub old: Option<Entry>,
    /// What is there now.
    pub new: Option<Entry>,
    /// Where it came from, or went to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<String>,
}

/// All that a task has changed since the commit that a comparison begins at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// By path.
    pub files: BTreeMap<String, Change>,
    /// Whether there is more than this.
    pub cut: bool,
}

impl Side {
    /// Whether it moved any file.
    pub fn moves(&self) -> bool {
        self.files.values().any(|change| change.moved.is_some())
    }
}

/// Why two changes of one path can't be joined, whatever the text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clash {
    /// Both change the same lines.
    Lines,
    /// One changes what the other removes.
    Removed,
    /// Both add it, differently.
    Added,
    /// It is no text.
    Binary,
    /// Both change whether it can be run, or what kind of file it is.
    Mode,
    /// A file in one, a directory in the other.
    Directory,
    /// A file was moved, and git says so.
    Moved,
}

impl Clash {
    /// In words, after the path.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lines => "both change the same lines",
            Self::Removed => "one removes what the other changes",
            Self::Added => "both add it, differently",
            Self::Binary => "both change it, and it can't be merged as text",
            Self::Mode => "both change its kind or mode",
            Self::Directory => "a file in one, a directory in the other",
            Self::Moved => "a file that one of them moved",
        }
    }
}

impl fmt::Display for Clash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What two changes of one path mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// Both did the same.
    Alike,
    /// They fit together whatever they are.
    Fits,
    /// The texts decide.
    Texts,
    /// They don't fit.
    Clashes(Clash),
}

/// Why only git itself can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unsure {
    /// One of them moved files that the other touches, or left a directory that the other adds to.
    Moves,
    /// There is more than is known here.
    Cut,
}

/// Where two sides meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meeting {
    /// The paths that both change.
    pub shared: Vec<(String, Shared)>,
    /// Why this is not all that there is to say.
    pub unsure: Option<Unsure>,
}

impl Meeting {
    /// Whether they have nothing to do with each other.
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.unsure.is_none()
    }
}

/// Says where two sides that begin at the same commit meet.
pub fn meet(a: &Side, b: &Side) -> Meeting {
    let mut meeting = Meeting::default();
    let (few, many) = if a.files.len() <= b.files.len() {
        (a, b)
    } else {
        (b, a)
    };
    for (path, one) in &few.files {
        if let Some(other) = many.files.get(path) {
            meeting.shared.push((path.clone(), classify(one, other)));
        }
    }
    for (one, other) in [(a, b), (b, a)] {
        for file in directories_for_files(one, other) {
            meeting
                .shared
                .push((file, Shared::Clashes(Clash::Directory)));
        }
    }
    meeting.shared.sort_by(|(x, _), (y, _)| x.cmp(y));
    meeting.shared.dedup_by(|later, kept| {
        let again = later.0 == kept.0;
        if again && matches!(later.1, Shared::Clashes(_)) {
            kept.1 = later.1;
        }
        again
    });
    if moves_matter(a, b) || moves_matter(b, a) {
        meeting.unsure = Some(Unsure::Moves);
    } else if (a.cut || b.cut) && !(a.files.is_empty() && b.files.is_empty()) {
        meeting.unsure = Some(Unsure::Cut);
    }
    meeting
}

/// Two changes of one path.
fn classify(a: &Change, b: &Change) -> Shared {
    match (&a.new, &b.new) {
        (None, None) => Shared::Alike,
        (None, Some(_)) | (Some(_), None) => Shared::Clashes(Clash::Removed),
        (Some(x), Some(y)) if x == y => Shared::Alike,
        (Some(x), Some(y)) => match &a.old {
            None => Shared::Clashes(Clash::Added),
            Some(old) => changed(old, x, y),
        },
    }
}

fn changed(old: &Entry, x: &Entry, y: &Entry) -> Shared {
    if x.kind() != y.kind() || x.kind() != old.kind() {
        return Shared::Clashes(Clash::Mode);
    }
    let modes_fit = x.mode == y.mode || x.mode == old.mode || y.mode == old.mode;
    if !modes_fit {
        return Shared::Clashes(Clash::Mode);
    }
    if x.content == y.content || x.content == old.content || y.content == old.content {
        return Shared::Fits;
    }
    if x.is_text_file() {
        Shared::Texts
    } else {
        Shared::Clashes(Clash::Binary)
    }
}

/// Files of `other` where `one` has made a directory.
fn directories_for_files(one: &Side, other: &Side) -> Vec<String> {
    let added = one
        .files
        .iter()
        .filter(|(_, change)| change.old.is_none() && change.new.is_some());
    let mut found: Vec<String> = added
        .flat_map(|(path, _)| above(path))
        .filter(|directory| {
            let there = other.files.get(*directory);
            there.is_some_and(|change| change.new.is_some())
        })
        .map(String::from)
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The directories that a path is in, the nearest first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = path;
    core::iter::from_fn(move || {
        rest = &rest[..rest.rfind('/')?];
        Some(rest)
    })
}

/// Whether files that `one` moved have to do with what `other` does.
fn moves_matter(one: &Side, other: &Side) -> bool {
    let moved = one
        .files
        .iter()
        .filter(|(_, change)| change.moved.is_some());
    let mut left: Vec<&str> = Vec::new();
    for (path, change) in moved {
        if other.files.contains_key(path) {
            return true;
        }
        if change.new.is_none() {
            left.extend(above(path).take(1));
        }
    }
    if left.is_empty() {
        return false;
    }
    let added = other
        .files
        .iter()
        .filter(|(_, change)| change.old.is_none() && change.new.is_some());
    added
        .flat_map(|(path, _)| above(path))
        .any(|directory| left.contains(&directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn entry(content: &str) -> Option<Entry> {
        Some(Entry {
            mode: 0o100_644,
            content: content.into(),
        })
    }

    fn change(old: &str, new: &str) -> Change {
        let given = |text: &str| if text.is_empty() { None } else { entry(text) };
        Change {
            old: given(old),
            new: given(new),
            moved: None,
        }
    }

    fn side(files: &[(&str, Change)]) -> Side {
        Side {
            files: files
                .iter()
                .map(|(path, change)| ((*path).to_string(), change.clone()))
                .collect(),
            cut: false,
        }
    }

    fn one(a: Change, b: Change) -> Shared {
        let met = meet(&side(&[("f", a)]), &side(&[("f", b)]));
        assert_eq!(met.unsure, None);
        met.shared[0].1
    }

    #[test]
    fn each_way_to_share_a_path_has_its_meaning() {
        let executable = |mut change: Change| {
            change.new.as_mut().unwrap().mode = 0o100_755;
            change
        };
        let link = |mut change: Change| {
            change.new.as_mut().unwrap().mode = 0o120_000;
            change
        };
        for (a, b, expected) in [
            (change("o", "a"), change("o", "b"), Shared::Texts),
            (change("o", "a"), change("o", "a"), Shared::Alike),
            (change("o", ""), change("o", ""), Shared::Alike),
            (
                change("o", ""),
                change("o", "b"),
                Shared::Clashes(Clash::Removed),
            ),
            (
                change("", "a"),
                change("", "b"),
                Shared::Clashes(Clash::Added),
            ),
            (change("", "a"), change("", "a"), Shared::Alike),
            (executable(change("o", "o")), change("o", "b"), Shared::Fits),
            (
                link(change("o", "a")),
                change("o", "b"),
                Shared::Clashes(Clash::Mode),
            ),
            (
                executable(change("", "a")),
                change("", "a"),
                Shared::Clashes(Clash::Added),
            ),
        ] {
            assert_eq!(one(a.clone(), b.clone()), expected, "{a:?} {b:?}");
            assert_eq!(one(b.clone(), a.clone()), expected, "{b:?} {a:?}");
        }
    }

    #[test]
    fn a_file_can_not_be_where_the_other_makes_a_directory() {
        let a = side(&[("x", change("", "a"))]);
        let b = side(&[("x/y/z", change("", "b"))]);
        for met in [meet(&a, &b), meet(&b, &a)] {
            let clash = Shared::Clashes(Clash::Directory);
            assert_eq!(met.shared, vec![("x".to_string(), clash)]);
        }
    }

    #[test]
    fn only_git_knows_what_becomes_of_moved_files() {
        let gone = Change {
            moved: Some("new/f".into()),
            ..change("o", "")
        };
        let come = Change {
            moved: Some("old/f".into()),
            ..change("", "o")
        };
        let mover = side(&[("old/f", gone), ("new/f", come)]);
        for (other, unsure) in [
            (side(&[("old/f", change("o", "a"))]), true),
            (side(&[("old/g", change("", "a"))]), true),
            (side(&[("old/deeper/g", change("", "a"))]), true),
            (side(&[("elsewhere/g", change("", "a"))]), false),
            (side(&[("old/h", change("o", "a"))]), false),
        ] {
            assert_eq!(meet(&mover, &other).unsure.is_some(), unsure, "{other:?}");
            assert_eq!(meet(&other, &mover).unsure.is_some(), unsure, "{other:?}");
        }
    }

    #[test]
    fn sides_that_share_nothing_do_not_meet() {
        let a = side(&[("a/f", change("o", "a"))]);
        let b = side(&[("b/f", change("o", "a"))]);
        assert!(meet(&a, &b).is_empty());
    }
}
