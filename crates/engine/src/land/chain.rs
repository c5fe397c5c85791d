//! The entries of a branch's queue, merged one on top of the other, without any checkout.
//!
//! A link is built when it is first needed, and kept for as long as what is below it stays what it
//! was. Nothing here moves anything.

use std::collections::HashMap;

use woodward_core::{CommitId, Task, TaskId, TreeId};

use super::commits::speculative_author;
use crate::clock;
use crate::config::{Config, MergeStyle};
use crate::error::Result;
use crate::git::{Build, BuildSpec, Repo, Style, Trailers};

/// An entry: a task, and the commit of it that was approved.
pub(super) type Key = (TaskId, CommitId);

/// One entry on top of all before it.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) key: Key,
    pub(super) commit: CommitId,
    pub(super) tree: TreeId,
}

/// An entry to be merged.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) task: &'a Task,
    /// What was approved.
    pub(super) commit: &'a CommitId,
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
    links: Vec<Link>,
    /// What entries make of trees, so that they need not be merged again when only commits change.
    merged: HashMap<(TreeId, CommitId), TreeId>,
}

impl Chain {
    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }

    /// Where the branch was when it was last built on.
    pub(super) const fn base(&self) -> Option<&CommitId> {
        self.base.as_ref()
    }

    /// The first `count` links landed as other commits with the same trees, of which `new` is the last:
    /// the rest is put on top of that. Their trees stay what they are, and so do verdicts.
    pub(super) async fn rebuild_on(
        &mut self,
        repo: &Repo,
        config: &Config,
        count: usize,
        new: &CommitId,
    ) -> Result<()> {
        let landed = self.links.drain(..count).next_back();
        self.base = Some(new.clone());
        let rest = std::mem::take(&mut self.links);
        // What is rebased is more than its tree.
        if config.merge_style == MergeStyle::Rebase {
            return Ok(());
        }
        let (mut below, mut below_tree) = match landed {
            Some(landed) => (new.clone(), landed.tree),
            None => return Ok(()),
        };
        for mut link in rest {
            if link.tree == below_tree {
                link.commit = below.clone();
            } else {
                let spec = build_spec(config, &below, &link.key.1);
                let Build::Built { commit, .. } = repo.build_of(&spec, link.tree.clone()).await?
                else {
                    return Ok(());
                };
                link.commit = commit;
            }
            below = link.commit.clone();
            below_tree = link.tree.clone();
            self.links.push(link);
        }
        Ok(())
    }

    /// Keeps what is still right: on top of `base`, of these entries in this order.
    pub(super) fn fit(&mut self, base: &CommitId, wanted: &[Key]) {
        if self.base.as_ref() != Some(base) {
            self.take_apart();
            self.base = Some(base.clone());
        }
        let pairs = self.links.iter().zip(wanted);
        let fitting = pairs.take_while(|(link, key)| link.key == **key).count();
        self.links.truncate(fitting);
    }

    /// Forgets all links, to be made anew.
    pub(super) fn take_apart(&mut self) {
        self.links.clear();
    }

    /// What the next link goes on top of.
    pub(super) fn top(&self) -> Option<&CommitId> {
        let last = self.links.last().map(|link| &link.commit);
        last.or(self.base.as_ref())
    }

    /// Adds an entry: merged by git, or as a tree that was merged otherwise.
    pub(super) async fn add(
        &mut self,
        repo: &Repo,
        config: &Config,
        entry: Entry<'_>,
        merged: Option<TreeId>,
    ) -> Result<Added> {
        let Some(onto) = self.top().cloned() else {
            return Ok(Added::Conflict(Vec::new()));
        };
        let Entry { task, commit, .. } = entry;
        let spec = build_spec(config, &onto, commit);
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
        });
        Ok(Added::Linked)
    }
}

/// A commit that is built to be tested. What lands is written anew, by the person.
fn build_spec(config: &Config, onto: &CommitId, head: &CommitId) -> BuildSpec {
    BuildSpec {
        style: style(config),
        onto: onto.clone(),
        head: head.clone(),
        message: "merge candidate".to_owned(),
        trailers: Trailers::default(),
        author: speculative_author(),
        committer: speculative_author(),
        date: clock::now(),
    }
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
    use crate::git::Door;
    use uuid::Uuid;
    use woodward_testkit::repo::TestRepo;

    fn commit(digit: char) -> CommitId {
        digit.to_string().repeat(40).parse().expect("a commit")
    }

    fn key(digit: char) -> Key {
        (TaskId::new(Uuid::from_u128(digit as u128)), commit(digit))
    }

    fn chain() -> Chain {
        let link = |(of, made): (char, char)| Link {
            key: key(of),
            commit: commit(made),
            tree: TreeId::from(commit(made)),
        };
        Chain {
            base: Some(commit('0')),
            merged: HashMap::new(),
            links: [('1', 'a'), ('2', 'b'), ('3', 'c')].map(link).into(),
        }
    }

    #[test]
    fn a_branch_that_moved_elsewhere_invalidates_the_chain() {
        let mut chain = chain();
        chain.fit(&commit('d'), &[key('1')]);
        assert!(chain.links.is_empty());
        assert_eq!(chain.top(), Some(&commit('d')));
    }

    #[test]
    fn who_left_takes_all_on_top_along() {
        let mut chain = chain();
        chain.fit(&commit('0'), &[key('1'), key('3')]);
        assert_eq!(chain.links.len(), 1);
    }

    #[tokio::test]
    async fn what_did_not_land_keeps_its_tree_on_top_of_what_did() {
        let test = TestRepo::with(&[("a", "1\n")]);
        let repo = Repo::discover(&Door::new("test"), test.root()).await;
        let repo = repo.expect("a repository");
        let config = Config::parse("agent: { command: sh }\n", "test").expect("a configuration");
        let base: CommitId = test.head("main").parse().expect("a commit");
        let mut links = Vec::new();
        for (number, name) in [('1', "b"), ('2', "c"), ('3', "d")] {
            let made = test.commit(name, &[(name, "x\n")]);
            let tree: CommitId = test.head("HEAD^{tree}").parse().expect("a tree");
            links.push(Link {
                key: key(number),
                commit: made.parse().expect("a commit"),
                tree: TreeId::from(tree),
            });
        }
        let trees: Vec<TreeId> = links.iter().map(|link| link.tree.clone()).collect();
        let landed = links[0].commit.clone();
        test.git(&["checkout", "-q", "--detach", landed.as_str()]);
        test.git(&["commit", "-q", "--amend", "-m", "landed"]);
        let new: CommitId = test.head("HEAD").parse().expect("a commit");
        let mut chain = Chain {
            base: Some(base),
            links,
            merged: HashMap::new(),
        };
        let rebuilt = chain.rebuild_on(&repo, &config, 1, &new);
        rebuilt.await.expect("rebuilt");
        chain.fit(&new, &[key('2'), key('3')]);
        let kept: Vec<&TreeId> = chain.links.iter().map(|link| &link.tree).collect();
        assert_eq!(kept, [&trees[1], &trees[2]]);
        let parent = test.head(&format!("{}^", chain.links[0].commit));
        assert_eq!(parent, new.as_str());
    }
}
