//! Work that has not begun: which files tasks will likely touch, and which of them wait for others.
//!
//! What is foreseen is a guess by declared paths and by history. It may delay a start where the
//! project wants that; it never fails a task.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::reaction::pattern;
use crate::schedule;
use crate::state::{PauseReason, State, StateKind};
use crate::task::Task;

/// Commits that touch more files than this say nothing about which of them belong together.
pub const COMMIT_FILES_MAX: usize = 40;
/// The most patterns and files of one task that are compared.
pub const REACH_MAX: usize = 2_000;
/// Files belong together that changed together at least this often …
const TOGETHER_MIN: u32 = 3;
/// … and in at least this part of the commits that changed the first of them, in percent.
const TOGETHER_PERCENT: u32 = 50;
/// The most companions of a task's files.
const COMPANIONS_MAX: usize = 50;

/// The files that a task is foreseen to touch, or does touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Patterns that were declared.
    pub patterns: Vec<String>,
    /// Those of them that files of the base match.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub grounded: BTreeSet<String>,
    /// The files of the base that match one of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub covers: BTreeSet<String>,
    /// Files that it has changed, or that its prompt names.
    pub files: BTreeSet<String>,
    /// Files that history says will change with them, and with which.
    pub likely: BTreeMap<String, Companion>,
}

impl Reach {
    /// Whether nothing is known of it.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.files.is_empty() && self.likely.is_empty()
    }
}

/// How often a file changed together with another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Companion {
    /// With which.
    pub with: String,
    /// In how many commits.
    pub together: u32,
    /// Of how many that changed the other.
    pub of: u32,
}

/// Why two tasks are foreseen to touch the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreseen {
    /// A file or pattern that both reach.
    pub what: String,
    /// Whether only history says so.
    pub likely: bool,
}

/// What two reaches have in common: what is declared or done first, then what history says. Bounded
/// by `max`.
pub fn common(a: &Reach, b: &Reach, ignored: &[String], max: usize) -> Vec<Foreseen> {
    let is_ignored = |path: &str| ignored.iter().any(|it| pattern::matches(it, path));
    let mut found: BTreeMap<String, bool> = BTreeMap::new();
    let mut add = |what: &str, likely: bool| {
        if !is_ignored(what) {
            let known = found.entry(what.to_string()).or_insert(likely);
            *known &= likely;
        }
    };
    let both: Vec<&String> = a.covers.intersection(&b.covers).collect();
    for p in &a.patterns {
        for q in &b.patterns {
            // Where both are about files that are there, those decide: `a.txt` and `src/**` could
            // meet in a file that nobody has thought of.
            let meet = if a.grounded.contains(p) && b.grounded.contains(q) {
                let matches_both = |file: &&String| {
                    !is_ignored(file) && pattern::matches(p, file) && pattern::matches(q, file)
                };
                both.iter().any(matches_both)
            } else {
                intersect(p, q)
            };
            if meet {
                add(if narrower(p, q) { p } else { q }, false);
            }
        }
    }
    for (one, other) in [(a, b), (b, a)] {
        for file in &one.files {
            let hit = |pattern: &String| pattern::matches(pattern, file);
            if other.files.contains(file) || other.patterns.iter().any(hit) {
                add(file, false);
            }
        }
        for file in one.likely.keys() {
            let hit = |pattern: &String| pattern::matches(pattern, file);
            let sure = other.files.contains(file) || other.patterns.iter().any(hit);
            if sure || other.likely.contains_key(file) {
                add(file, true);
            }
        }
    }
    let mut found: Vec<Foreseen> = found
        .into_iter()
        .map(|(what, likely)| Foreseen { what, likely })
        .collect();
    found.sort_by(|x, y| (x.likely, &x.what).cmp(&(y.likely, &y.what)));
    found.truncate(max);
    found
}

/// The pattern that says more is the better one to show.
fn narrower(p: &str, q: &str) -> bool {
    let plain = |text: &str| text.chars().filter(|c| !matches!(c, '*' | '?')).count();
    plain(p) >= plain(q)
}

/// Whether some path matches both patterns.
pub fn intersect(p: &str, q: &str) -> bool {
    let (p, q) = (parts(p), parts(q));
    // can[i][j]: whether the parts from i and from j on can match one path.
    let mut can = vec![vec![false; q.len() + 1]; p.len() + 1];
    for i in (0..=p.len()).rev() {
        for j in (0..=q.len()).rev() {
            can[i][j] = match (p.get(i), q.get(j)) {
                (None, None) => true,
                (Some(&"**"), Some(_)) => can[i + 1][j] || can[i][j + 1],
                (Some(_), Some(&"**")) => can[i][j + 1] || can[i + 1][j],
                (Some(&"**"), None) => can[i + 1][j],
                (None, Some(&"**")) => can[i][j + 1],
                (Some(a), Some(b)) => can[i + 1][j + 1] && names_intersect(a, b),
                _ => false,
            };
        }
    }
    can[0][0]
}

fn parts(pattern: &str) -> Vec<&str> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if !pattern.contains('/') {
        return if pattern == "**" {
            vec!["**"]
        } else {
            vec!["**", pattern]
        };
    }
    let mut parts: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
    if let Some(last) = parts.last_mut()
        && last.is_empty()
    {
        *last = "**";
    }
    parts
}

fn names_intersect(p: &str, q: &str) -> bool {
    let (p, q): (Vec<char>, Vec<char>) = (p.chars().collect(), q.chars().collect());
    let mut can = vec![vec![false; q.len() + 1]; p.len() + 1];
    for i in (0..=p.len()).rev() {
        for j in (0..=q.len()).rev() {
            can[i][j] = match (p.get(i), q.get(j)) {
                (None, None) => true,
                (Some('*'), _) => can[i + 1][j] || (j < q.len() && can[i][j + 1]),
                (_, Some('*')) => can[i][j + 1] || (i < p.len() && can[i + 1][j]),
                (Some(a), Some(b)) => can[i + 1][j + 1] && (a == b || *a == '?' || *b == '?'),
                _ => false,
            };
        }
    }
    can[0][0]
}

/// The files that history says change together with `files`, best first. `history` is what each
/// commit touched.
pub fn companions(
    history: &[Vec<String>],
    files: &BTreeSet<String>,
) -> BTreeMap<String, Companion> {
    let mut changed: BTreeMap<&str, u32> = BTreeMap::new();
    let mut together: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for commit in history {
        if commit.len() > COMMIT_FILES_MAX {
            continue;
        }
        for own in commit.iter().filter(|file| files.contains(*file)) {
            *changed.entry(own).or_default() += 1;
            for other in commit.iter().filter(|file| !files.contains(*file)) {
                *together.entry((own, other)).or_default() += 1;
            }
        }
    }
    let mut found: Vec<(u32, &str, Companion)> = Vec::new();
    for ((own, other), count) in together {
        let of = changed.get(own).copied().unwrap_or_default();
        if count >= TOGETHER_MIN && count * 100 >= of * TOGETHER_PERCENT {
            let companion = Companion {
                with: own.to_string(),
                together: count,
                of,
            };
            found.push((count * 100 / of.max(1), other, companion));
        }
    }
    found.sort_by(|x, y| (y.0, y.2.together, x.1).cmp(&(x.0, x.2.together, y.1)));
    let mut best = BTreeMap::new();
    for (_, other, companion) in found {
        if best.len() == COMPANIONS_MAX {
            break;
        }
        best.entry(other.to_string()).or_insert(companion);
    }
    best
}

/// A task that waits for another because both are foreseen to touch the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// The one that waits.
    pub task: TaskId,
    /// For which.
    pub behind: TaskId,
    /// Why.
    pub why: Foreseen,
}

/// Which queued tasks that have not begun wait for others: for those under way, and for those before
/// them in line. `freed` are those that a person has let go.
pub fn held_back(
    tasks: &[Task],
    reaches: &BTreeMap<TaskId, Reach>,
    ignored: &[String],
    freed: &BTreeSet<TaskId>,
) -> Vec<HeldBack> {
    let mut line: Vec<(schedule::Rank, &Task)> = tasks
        .iter()
        .filter_map(|task| Some((schedule::rank(task)?, task)))
        .filter(|(rank, _)| rank.fresh)
        .collect();
    line.sort_by_key(|(rank, task)| (*rank, task.id));
    let mut ahead: Vec<&Task> = tasks.iter().filter(|task| is_under_way(task)).collect();
    let empty = Reach::default();
    let reach = |task: &Task| reaches.get(&task.id).unwrap_or(&empty);
    let mut held = Vec::new();
    for (_, task) in line {
        let free = task.spec.anyway || freed.contains(&task.id);
        if !free {
            let first = ahead
                .iter()
                .filter(|other| other.spec.base == task.spec.base)
                .find_map(|other| {
                    let why = common(reach(task), reach(other), ignored, 1).pop()?;
                    Some((other.id, why))
                });
            if let Some((behind, why)) = first {
                held.push(HeldBack {
                    task: task.id,
                    behind,
                    why,
                });
            }
        }
        ahead.push(task);
    }
    held
}

/// Whether a task has begun and is to land. One that failed, or that a person or its budget stopped, is
/// nobody's reason to wait: nobody knows whether it goes on.
fn is_under_way(task: &Task) -> bool {
    if let State::Paused {
        reason: PauseReason::Person(_) | PauseReason::Budget(_) | PauseReason::MovedBranch(_),
        ..
    } = task.state
    {
        return false;
    }
    let kind = task.state.kind();
    if kind.is_finished() || matches!(kind, StateKind::Failed | StateKind::Draft) {
        return false;
    }
    kind != StateKind::Queued || task.worktree.is_some()
}
