//! What is known of commits for good: a commit's tree and parents never change.
//!
//! Saves asking git again for what it was just told or has just said. Bounded, in memory only, and
//! never a proof that a commit is still in the repository.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use woodward_core::{CommitId, TreeId};

use super::follow::Change;
use super::repo::Repo;

/// Commits of one generation. When it is full, the one before it is forgotten.
const GENERATION_MAX: usize = 1_024;
/// How far back a history is followed by what is known.
const STEPS_MAX: u32 = 256;
/// How many comparisons of two commits are kept, and the most changes that one of them may have.
const COMPARED_MAX: usize = 8;
const CHANGES_MAX: usize = 10_000;

/// What was learned of a repository's commits.
#[derive(Debug, Default)]
pub(crate) struct Known {
    commits: Mutex<Commits>,
    compared: Mutex<Vec<Compared>>,
}

/// The commits of the last two generations, so that those learned last are never forgotten.
#[derive(Debug, Default)]
struct Commits {
    recent: HashMap<CommitId, Facts>,
    earlier: HashMap<CommitId, Facts>,
}

impl Commits {
    fn get(&self, commit: &CommitId) -> Option<&Facts> {
        self.recent.get(commit).or_else(|| self.earlier.get(commit))
    }

    fn insert(&mut self, commit: CommitId, facts: Facts) {
        if self.recent.len() >= GENERATION_MAX {
            self.earlier = std::mem::take(&mut self.recent);
        }
        self.recent.insert(commit, facts);
    }
}

#[derive(Clone, Debug)]
struct Facts {
    tree: TreeId,
    /// `None`: nobody has asked for them.
    parents: Option<Vec<CommitId>>,
    /// Whether Woodward made the commit from what a run left uncommitted.
    is_from_run: bool,
}

#[derive(Debug)]
struct Compared {
    old: CommitId,
    new: CommitId,
    changes: Arc<Vec<Change>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Repo {
    /// Notes what a commit is made of.
    pub(crate) fn learn(&self, commit: &CommitId, tree: &TreeId, parents: Option<Vec<CommitId>>) {
        self.learn_facts(commit, tree, parents, false);
    }

    /// Notes a commit that Woodward made from what a run left uncommitted.
    pub(super) fn learn_from_run(&self, commit: &CommitId, tree: &TreeId, parent: &CommitId) {
        self.learn_facts(commit, tree, Some(vec![parent.clone()]), true);
    }

    fn learn_facts(
        &self,
        commit: &CommitId,
        tree: &TreeId,
        parents: Option<Vec<CommitId>>,
        is_from_run: bool,
    ) {
        let mut commits = lock(&self.place.known.commits);
        let earlier = commits.get(commit);
        let facts = Facts {
            tree: tree.clone(),
            is_from_run: is_from_run || earlier.is_some_and(|facts| facts.is_from_run),
            parents: parents.or_else(|| earlier?.parents.clone()),
        };
        commits.insert(commit.clone(), facts);
    }

    /// Whether all commits from `head` down to one of `bases` are known to be what Woodward made from what
    /// runs left uncommitted. `false` if that is not known.
    pub(super) fn is_known_from_runs(&self, head: &CommitId, bases: &[&CommitId]) -> bool {
        let commits = lock(&self.place.known.commits);
        let mut at = head;
        for _ in 0..STEPS_MAX {
            if bases.contains(&at) {
                return true;
            }
            let from_run = commits.get(at).filter(|facts| facts.is_from_run);
            let Some([parent]) = from_run.and_then(|facts| facts.parents.as_deref()) else {
                return false;
            };
            at = parent;
        }
        false
    }

    /// The tree of a commit, if it is known.
    pub(super) fn known_tree(&self, commit: &CommitId) -> Option<TreeId> {
        let commits = lock(&self.place.known.commits);
        commits.get(commit).map(|facts| facts.tree.clone())
    }

    /// How many commits `head` is ahead of `base`, if it is known that there is nothing but a straight
    /// line between them.
    pub(super) fn known_distance(&self, base: &CommitId, head: &CommitId) -> Option<u32> {
        let commits = lock(&self.place.known.commits);
        let mut at = head;
        for steps in 0..STEPS_MAX {
            if at == base {
                return Some(steps);
            }
            let [parent] = &commits.get(at)?.parents.as_ref()?[..] else {
                return None;
            };
            at = parent;
        }
        None
    }

    /// Where the history of `head` leaves that of these tips, if it is known that nothing but straight
    /// lines lead from all of them to `base`.
    pub(crate) fn known_fork(
        &self,
        head: &CommitId,
        base: &CommitId,
        tips: &[CommitId],
    ) -> Option<CommitId> {
        let own = self.known_line(base, head)?;
        let mut newest = own.len();
        for tip in tips {
            let theirs = self.known_line(base, tip)?;
            let shared = own.iter().position(|commit| theirs.contains(commit));
            newest = newest.min(shared.unwrap_or(own.len()));
        }
        Some(own.get(newest).unwrap_or(base).clone())
    }

    /// The commits from `head` down to `base`, without it, if it is known that there is nothing but a
    /// straight line between them.
    fn known_line(&self, base: &CommitId, head: &CommitId) -> Option<Vec<CommitId>> {
        let commits = lock(&self.place.known.commits);
        let mut line = Vec::new();
        let mut at = head;
        while at != base {
            if line.len() >= STEPS_MAX as usize {
                return None;
            }
            line.push(at.clone());
            let [parent] = &commits.get(at)?.parents.as_ref()?[..] else {
                return None;
            };
            at = parent;
        }
        Some(line)
    }

    /// Whether `old` is known to be on the first-parent line of `new`. `false` means only that it is not
    /// known.
    pub(crate) fn is_known_below(&self, old: &CommitId, new: &CommitId) -> bool {
        let commits = lock(&self.place.known.commits);
        let mut at = new;
        for _ in 0..STEPS_MAX {
            if at == old {
                return true;
            }
            let facts = commits.get(at).and_then(|facts| facts.parents.as_ref());
            match facts.and_then(|parents| parents.first()) {
                Some(parent) => at = parent,
                None => return false,
            }
        }
        false
    }

    /// The first parent of a commit, if it is known.
    pub(super) fn known_parent(&self, commit: &CommitId) -> Option<CommitId> {
        let commits = lock(&self.place.known.commits);
        commits.get(commit)?.parents.as_ref()?.first().cloned()
    }

    /// What differs between two commits, if that was just found out.
    pub(super) fn known_changes(&self, old: &CommitId, new: &CommitId) -> Option<Arc<Vec<Change>>> {
        let compared = lock(&self.place.known.compared);
        let found = compared
            .iter()
            .find(|one| one.old == *old && one.new == *new);
        found.map(|one| Arc::clone(&one.changes))
    }

    /// Notes that two commits have one tree: what differs from `old` is the same for both.
    pub(crate) fn learn_same_changes(&self, old: &CommitId, known: &CommitId, new: &CommitId) {
        if let Some(changes) = self.known_changes(old, known) {
            self.learn_changes(old, new, &changes);
        }
    }

    /// Notes what differs between two commits.
    pub(super) fn learn_changes(&self, old: &CommitId, new: &CommitId, changes: &Arc<Vec<Change>>) {
        if changes.len() > CHANGES_MAX {
            return;
        }
        let mut compared = lock(&self.place.known.compared);
        if compared.len() >= COMPARED_MAX {
            compared.remove(0);
        }
        compared.push(Compared {
            old: old.clone(),
            new: new.clone(),
            changes: Arc::clone(changes),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_commits_the_last_ones_are_known() {
        let commit = |number: usize| format!("{number:040x}").parse::<CommitId>().unwrap();
        let facts = Facts {
            tree: TreeId::from(commit(0)),
            parents: None,
            is_from_run: false,
        };
        let mut commits = Commits::default();
        let count = 5 * GENERATION_MAX;
        for number in 0..count {
            commits.insert(commit(number), facts.clone());
            let last = number.saturating_sub(GENERATION_MAX - 1);
            assert!(commits.get(&commit(last)).is_some());
            assert!(commits.recent.len() + commits.earlier.len() <= 2 * GENERATION_MAX);
        }
        assert!(commits.get(&commit(0)).is_none());
    }
}
