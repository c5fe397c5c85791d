//! The entries of a branch's queue, merged one on top of the other, without any checkout.
//!
//! A link is built when it is first needed, and kept for as long as what is below it stays what it
//! was. Nothing here moves anything.

use std::collections::HashMap;

use woodward_core::{CommitId, IntentId, Task, TaskId, TreeId};
use woodward_store::fresh_uuid;

use crate::clock;
use crate::config::{Config, MergeStyle};
use crate::error::Result;
use crate::git::{Build, BuildSpec, Repo, Signature, Style, Trailers};

/// An entry: a task, and the commit of it that was approved.
pub(super) type Key = (TaskId, CommitId);

/// One entry on top of all before it.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) key: Key,
    pub(super) commit: CommitId,
    pub(super) tree: TreeId,
    /// Named in the commit, if it is to land by itself.
    pub(super) intent: Option<IntentId>,
}

/// An entry to be merged.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) task: &'a Task,
    /// What was approved.
    pub(super) commit: &'a CommitId,
    pub(super) message: String,
    /// Whether it lands by itself, and its commit names its landing.
    pub(super) by_itself: bool,
}

/// What came of adding an entry.
#[derive(Debug)]
pub(super) enum Added {
    Linked,
    /// It does not fit; these files conflict.
    Conflict(Vec<String>),
}

/// Merges that are remembered, at most.
const MERGES_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Where the branch is.
    base: Option<CommitId>,
    /// What the first link is built on, if not on that: the last of those that were joined to the
    /// branch. It has the same tree, so nothing needs to be built anew on top of it.
    ground: Option<CommitId>,
    /// What joined the last of some links to the branch.
    joined: Option<Joined>,
    links: Vec<Link>,
    /// What entries make of trees, so that they need not be merged again when only commits change.
    merged: HashMap<(TreeId, CommitId), TreeId>,
}

#[derive(Clone, Debug)]
struct Joined {
    by: CommitId,
    last: CommitId,
}

impl Chain {
    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }

    /// Where the branch was when it was last built on.
    pub(super) const fn base(&self) -> Option<&CommitId> {
        self.base.as_ref()
    }

    /// Whether its links were made to land by themselves; `None` if there are none.
    pub(super) fn is_by_itself(&self) -> Option<bool> {
        self.links.first().map(|link| link.intent.is_some())
    }

    /// Links up to this one were joined to the branch by a commit.
    pub(super) fn is_joined(&mut self, last: &CommitId, by: CommitId) {
        let last = last.clone();
        self.joined = Some(Joined { by, last });
    }

    /// Keeps what is still right: on top of `base`, of these entries in this order.
    pub(super) fn fit(&mut self, base: &CommitId, wanted: &[Key]) {
        if self.base.as_ref() != Some(base) {
            let joined = self.joined.take().filter(|joined| joined.by == *base);
            let ground = joined.map(|joined| joined.last);
            // What landed takes nothing away from those on top of it.
            let landed = ground.as_ref().unwrap_or(base);
            match self.links.iter().rposition(|link| link.commit == *landed) {
                Some(landed) => {
                    drop(self.links.drain(..=landed));
                    self.ground = ground;
                }
                None => self.take_apart(),
            }
            self.base = Some(base.clone());
        }
        let pairs = self.links.iter().zip(wanted);
        let fitting = pairs.take_while(|(link, key)| link.key == **key).count();
        self.links.truncate(fitting);
    }

    /// Forgets all links, to be made anew.
    pub(super) fn take_apart(&mut self) {
        self.links.clear();
        self.ground = None;
    }

    /// What the next link goes on top of.
    pub(super) fn top(&self) -> Option<&CommitId> {
        let last = self.links.last().map(|link| &link.commit);
        last.or(self.ground.as_ref()).or(self.base.as_ref())
    }

    /// Adds an entry: merged by git, or as a tree that was merged otherwise.
    pub(super) async fn add(
        &mut self,
        repo: &Repo,
        config: &Config,
        entry: Entry<'_>,
        merged: Option<TreeId>,
    ) -> Result<Added> {
        if entry.by_itself && self.links.is_empty() {
            // It becomes the branch, so it must be on top of it.
            self.ground = None;
        }
        let Some(onto) = self.top().cloned() else {
            return Ok(Added::Conflict(Vec::new()));
        };
        let Entry { task, commit, .. } = entry;
        let intent = entry.by_itself.then(|| IntentId::new(fresh_uuid()));
        let who = signature();
        let spec = BuildSpec {
            style: style(config),
            onto: onto.clone(),
            head: commit.clone(),
            message: entry.message,
            trailers: Trailers {
                task: Some(task.name.to_string()),
                intent: intent.map(|intent| intent.to_string()),
                ..Trailers::default()
            },
            author: who.clone(),
            committer: who,
            date: clock::now(),
        };
        let below = match self.links.last() {
            Some(link) => link.tree.clone(),
            None => repo.tree_of(&onto).await?,
        };
        // What is rebased is more than its tree.
        let may_know = spec.style == Style::Squash;
        let place = (below, commit.clone());
        let known = self.merged.get(&place).filter(|_| may_know).cloned();
        let built = match merged.or(known) {
            Some(tree) => repo.build_of(&spec, tree).await?,
            None => repo.build(&spec).await?,
        };
        let (made, tree) = match built {
            Build::Built { commit, tree } => (commit, tree),
            // All of it is there already: it lands where the others bring the branch.
            Build::Nothing => {
                let tree = repo.tree_of(&onto).await?;
                (onto, tree)
            }
            Build::Conflict { files } => return Ok(Added::Conflict(files)),
        };
        if self.merged.len() >= MERGES_MAX {
            self.merged.clear();
        }
        self.merged.insert(place, tree.clone());
        self.links.push(Link {
            key: (task.id, commit.clone()),
            commit: made,
            tree,
            intent,
        });
        Ok(Added::Linked)
    }
}

/// Who lands.
pub(super) fn signature() -> Signature {
    Signature::new("Woodward", "woodward@localhost")
}

fn style(config: &Config) -> Style {
    match config.merge_style {
        MergeStyle::Squash => Style::Squash,
        MergeStyle::Merge => Style::Merge,
        MergeStyle::Rebase => Style::Rebase,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn commit(digit: char) -> CommitId {
        digit.to_string().repeat(40).parse().expect("a commit")
    }

    fn key(digit: char) -> Key {
        (TaskId::new(Uuid::from_u128(digit as u128)), commit(digit))
    }

    fn chain(one_by_one: bool) -> Chain {
        let link = |(of, made): (char, char)| Link {
            key: key(of),
            commit: commit(made),
            tree: TreeId::from(commit(made)),
            intent: one_by_one.then(|| IntentId::new(Uuid::nil())),
        };
        Chain {
            base: Some(commit('0')),
            ground: None,
            joined: None,
            merged: HashMap::new(),
            links: [('1', 'a'), ('2', 'b'), ('3', 'c')].map(link).into(),
        }
    }

    #[test]
    fn what_landed_by_itself_leaves_the_others_as_they_are() {
        let mut chain = chain(true);
        chain.fit(&commit('a'), &[key('2'), key('3'), key('4')]);
        let left: Vec<&CommitId> = chain.links.iter().map(|link| &link.commit).collect();
        assert_eq!(left, [&commit('b'), &commit('c')]);
        chain.fit(&commit('d'), &[key('2')]);
        assert!(chain.links.is_empty(), "somebody else moved the branch");
    }

    #[test]
    fn what_was_joined_to_the_branch_leaves_the_others_as_they_are() {
        let mut chain = chain(false);
        chain.is_joined(&commit('b'), commit('e'));
        chain.fit(&commit('e'), &[key('3'), key('4')]);
        let left: Vec<&CommitId> = chain.links.iter().map(|link| &link.commit).collect();
        assert_eq!(left, [&commit('c')]);
        chain.fit(&commit('e'), &[key('4')]);
        assert_eq!(chain.top(), Some(&commit('b')), "the same tree as the join");
        chain.take_apart();
        assert_eq!(chain.top(), Some(&commit('e')));
    }

    #[test]
    fn a_join_that_did_not_happen_is_of_no_use() {
        let mut chain = chain(false);
        chain.is_joined(&commit('b'), commit('e'));
        chain.fit(&commit('f'), &[key('3')]);
        assert!(chain.links.is_empty());
        assert_eq!(chain.top(), Some(&commit('f')));
    }

    #[test]
    fn who_left_takes_all_on_top_along() {
        let mut chain = chain(false);
        chain.fit(&commit('0'), &[key('1'), key('3')]);
        assert_eq!(chain.links.len(), 1);
        assert_eq!(chain.is_by_itself(), Some(false));
    }
}
