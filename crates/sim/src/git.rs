//! A model of one git repository: commits, their trees, refs that move by compare-and-swap.
//!
//! A tree is the set of changes in it, each at a revision. Which changes clash is drawn once from
//! the seed, so the same tree always has the same colour: gates are pure functions of trees, here
//! as in Woodward. It must know nothing of tasks' states, leases or intents.

use std::collections::BTreeMap;
use std::rc::Rc;

use woodward_core::{CommitId, TaskId};

use crate::ids;
use crate::rng::mix;

/// Something that was done to the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// What a task's agent did.
    Task(TaskId),
    /// What somebody pushed past Woodward.
    Foreign(u32),
}

impl Change {
    fn number(self) -> u64 {
        match self {
            Self::Task(task) => ids::number(task.as_uuid()) as u64,
            Self::Foreign(number) => 1_000_000 + u64::from(number),
        }
    }
}

/// Changes and their revisions.
pub(crate) type Tree = BTreeMap<Change, u32>;

#[derive(Clone, Debug)]
pub(crate) struct Commit {
    /// The first is the branch it was made on.
    pub(crate) parents: Vec<CommitId>,
    pub(crate) tree: Rc<Tree>,
    /// The task that this commit, if it is a landing merge, brings to the target branch.
    pub(crate) lands: Option<TaskId>,
}

/// How often changes are bad, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nature {
    pub(crate) seed: u64,
    /// A revision fails its own gates.
    pub(crate) buggy: u32,
    /// Two changes fit textually and fail together.
    pub(crate) clashing: u32,
    /// Two changes touch the same lines.
    pub(crate) conflicting: u32,
}

/// From this revision on an agent has learnt: its change is good. Without such a bound no history
/// would have to end.
const LEARNT_AT: u32 = 4;

/// The refusal of a compare-and-swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefMoved;

#[derive(Debug)]
pub(crate) struct Repository {
    nature: Nature,
    commits: BTreeMap<CommitId, Commit>,
    refs: BTreeMap<String, CommitId>,
    compare: bool,
}

pub(crate) const MAIN: &str = "main";

impl Repository {
    /// A repository with one empty commit on main. Without `compare`, refs move blindly.
    pub(crate) fn new(nature: Nature, compare: bool) -> Self {
        let mut repository = Self {
            nature,
            commits: BTreeMap::new(),
            refs: BTreeMap::new(),
            compare,
        };
        let root = repository.commit(Vec::new(), Tree::new(), None);
        repository.refs.insert(MAIN.to_owned(), root);
        repository
    }

    pub(crate) fn commit(
        &mut self,
        parents: Vec<CommitId>,
        tree: Tree,
        lands: Option<TaskId>,
    ) -> CommitId {
        let id = ids::commit(self.commits.len() as u64 + 1);
        let commit = Commit {
            parents,
            tree: Rc::new(tree),
            lands,
        };
        self.commits.insert(id.clone(), commit);
        id
    }

    /// The commit of that name, which this repository must have made.
    pub(crate) fn show(&self, id: &CommitId) -> &Commit {
        self.commits
            .get(id)
            .unwrap_or_else(|| unreachable!("{id} was made by this repository"))
    }

    pub(crate) fn tip(&self, name: &str) -> Option<&CommitId> {
        self.refs.get(name)
    }

    /// Where main is.
    pub(crate) fn main(&self) -> CommitId {
        self.tip(MAIN)
            .cloned()
            .unwrap_or_else(|| unreachable!("main is made with the repository"))
    }

    /// Moves a ref, if it is where its mover thinks it is.
    pub(crate) fn update_ref(
        &mut self,
        name: &str,
        new: &CommitId,
        expected_old: Option<&CommitId>,
    ) -> Result<(), RefMoved> {
        if self.compare && self.refs.get(name) != expected_old {
            return Err(RefMoved);
        }
        self.refs.insert(name.to_owned(), new.clone());
        Ok(())
    }

    /// Whether `descendant` is `ancestor` or has it in its history.
    pub(crate) fn contains(&self, descendant: &CommitId, ancestor: &CommitId) -> bool {
        let mut stack = vec![descendant];
        let mut seen = std::collections::BTreeSet::new();
        while let Some(at) = stack.pop() {
            if at == ancestor {
                return true;
            }
            // Commits are numbered as they are made: nothing older can have a younger ancestor.
            if at > ancestor && seen.insert(at) {
                stack.extend(&self.show(at).parents);
            }
        }
        false
    }

    /// The tasks landed by the first-parent history of `tip`, newest first, down to but without
    /// `until`.
    pub(crate) fn landings<'a>(
        &'a self,
        tip: &'a CommitId,
        until: Option<&'a CommitId>,
    ) -> impl Iterator<Item = TaskId> + 'a {
        std::iter::successors(Some(tip), |at| self.show(at).parents.first())
            .take_while(move |at| Some(*at) != until)
            .filter_map(|at| self.show(at).lands)
    }

    /// Merges a task's result into `onto`, or names the changes it conflicts with.
    pub(crate) fn merge(
        &mut self,
        onto: &CommitId,
        tip: &CommitId,
        task: TaskId,
    ) -> Result<CommitId, Vec<String>> {
        let (ours, theirs) = (self.show(onto).tree.clone(), self.show(tip).tree.clone());
        let change = Change::Task(task);
        let revision = theirs.get(&change).copied().unwrap_or_default();
        let files: Vec<String> = ours
            .iter()
            .filter(|(other, _)| **other != change && !theirs.contains_key(*other))
            .filter(|(other, at)| self.conflicts((change, revision), (**other, **at)))
            .map(|(other, _)| format!("src/change_{}.rs", other.number()))
            .collect();
        if !files.is_empty() {
            return Err(files);
        }
        let mut tree = (*ours).clone();
        tree.insert(change, revision);
        Ok(self.commit(vec![onto.clone(), tip.clone()], tree, Some(task)))
    }

    /// Whether the tree of `commit` passes its gates, by nature, whatever a gate run says.
    pub(crate) fn is_green(&self, commit: &CommitId) -> bool {
        self.is_green_tree(&self.show(commit).tree)
    }

    pub(crate) fn is_green_tree(&self, tree: &Tree) -> bool {
        let sound = |(change, revision): (&Change, &u32)| !self.buggy(*change, *revision);
        let fit = |(i, (a, at)): (usize, (&Change, &u32))| {
            tree.iter()
                .skip(i + 1)
                .all(|(b, bt)| !self.clashes((*a, *at), (*b, *bt)))
        };
        tree.iter().all(sound) && tree.iter().enumerate().all(fit)
    }

    fn buggy(&self, change: Change, revision: u32) -> bool {
        revision < LEARNT_AT
            && matches!(change, Change::Task(_))
            && self.drawn(1, (change, revision), (change, revision), self.nature.buggy)
    }

    fn clashes(&self, a: (Change, u32), b: (Change, u32)) -> bool {
        a.1.max(b.1) < LEARNT_AT && self.drawn(2, a, b, self.nature.clashing)
    }

    fn conflicts(&self, a: (Change, u32), b: (Change, u32)) -> bool {
        a.1 < LEARNT_AT && self.drawn(3, a, b, self.nature.conflicting)
    }

    fn drawn(&self, salt: u64, a: (Change, u32), b: (Change, u32), permille: u32) -> bool {
        let key = |(change, revision): (Change, u32)| change.number() * 1_000 + u64::from(revision);
        let (low, high) = (key(a).min(key(b)), key(a).max(key(b)));
        let drawn = mix(mix(mix(self.nature.seed ^ salt) ^ low) ^ high);
        drawn % 1_000 < u64::from(permille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn task(number: u128) -> TaskId {
        TaskId::new(Uuid::from_u128(number))
    }

    #[test]
    fn a_ref_moves_only_from_where_its_mover_thinks_it_is() {
        let mut git = Repository::new(Nature::default(), true);
        let root = git.main();
        let next = git.commit(vec![root.clone()], Tree::new(), None);
        assert_eq!(git.update_ref(MAIN, &next, Some(&root)), Ok(()));
        assert_eq!(git.update_ref(MAIN, &next, Some(&root)), Err(RefMoved));
        assert!(git.contains(&next, &root));
        assert!(!git.contains(&root, &next));
    }

    #[test]
    fn a_landing_merge_is_counted_once() {
        let mut git = Repository::new(Nature::default(), true);
        let root = git.main();
        let work = git.commit(
            vec![root.clone()],
            Tree::from([(Change::Task(task(1)), 1)]),
            None,
        );
        let merged = git
            .merge(&root, &work, task(1))
            .expect("nothing to conflict with");
        assert_eq!(
            git.landings(&merged, Some(&root)).collect::<Vec<_>>(),
            [task(1)]
        );
        assert!(git.contains(&merged, &work));
    }
}
