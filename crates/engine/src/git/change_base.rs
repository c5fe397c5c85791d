//! Asking git where a head's history meets that of a target branch, and rebuilding a change on a target
//! that was rewritten.
//!
//! A rebuild replaces the commits of a task's branch only after the new ones are written, and one that
//! was cut off is undone by the next one. Nothing here decides whether a rebuild is needed.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use woodward_core::change_base::meeting_points;
use woodward_core::{CommitId, Timestamp, TreeId};

use super::bring::UNDER_WAY;
use super::error::{At, GitError};
use super::merge::{Merged, Pick};
use super::message::{Signature, Trailers, compose, git_date};
use super::object::NewCommit;
use super::repo::{Repo, parse};
use super::worktree::Worktree;

/// The most commits that a head may have outside of its target.
const COMMITS_MAX: usize = 20_000;
/// The most commits of a target that are merged to one base.
const BASES_MAX: usize = 8;
const RESET_MAX: Duration = Duration::from_secs(300);
/// Keeps the commits of a branch from before its change was rebuilt.
const REBUILDS: &str = "refs/woodward/rebuild";
/// Keeps tips that were dropped from a target branch.
const DROPPED: &str = "refs/woodward/dropped";

/// A change to be rebuilt on another commit.
#[derive(Clone, Debug)]
pub struct Rebuild<'a> {
    /// Where the change begins.
    pub base: &'a CommitId,
    /// Where it ends.
    pub head: &'a CommitId,
    /// What it goes on top of.
    pub onto: &'a CommitId,
    /// The task.
    pub task: &'a str,
    /// When.
    pub now: Timestamp,
}

/// What a rebuild would make of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rebuilt {
    /// A commit that has the change on top of the target (the target itself, if that has all of it).
    Commit(CommitId),
    /// The change does not fit; these files conflict.
    Conflict(Vec<String>),
}

/// What is left of a rebuild that was cut off.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CutOff {
    /// Where the branch was before.
    pub(super) head: CommitId,
}

impl Repo {
    /// The newest commits in the history of `head` that are also in the history of any of these tips.
    /// More than one if none of them has all others in its history. Tips that are gone count for nothing.
    pub async fn newest_in_common(
        &self,
        head: &CommitId,
        tips: &[CommitId],
    ) -> Result<Vec<CommitId>, GitError> {
        if tips.contains(head) {
            return Ok(vec![head.clone()]);
        }
        let mut asked = format!("{head}\n");
        for tip in tips {
            asked.push_str(&format!("^{tip}\n"));
        }
        let count = format!("--max-count={}", COMMITS_MAX + 1);
        let git = self.git([
            "rev-list",
            "--parents",
            "--ignore-missing",
            &count,
            "--stdin",
        ]);
        let answer = git.stdin(asked).run().await?;
        let mut outside = BTreeMap::new();
        for line in answer.text().lines() {
            let mut commits = line.split(' ').map(|id| parse("rev-list", id));
            if let Some(commit) = commits.next() {
                outside.insert(commit?, commits.collect::<Result<Vec<_>, _>>()?);
            }
        }
        if outside.len() > COMMITS_MAX {
            return Err(GitError::Limit {
                what: "commits outside of the target branch",
                limit: COMMITS_MAX,
            });
        }
        let found: Vec<CommitId> = meeting_points(head, &outside).into_iter().collect();
        if found.len() < 2 {
            return Ok(found);
        }
        let mut git = self.git(["merge-base", "--independent"]);
        for commit in &found {
            git = git.arg(commit.as_str());
        }
        let answer = git.text().await?;
        answer
            .lines()
            .map(|line| parse("merge-base", line))
            .collect()
    }

    /// One commit that stands for several: their merge, conflicts and all, as git's own merge takes it
    /// where there is more than one merge base. The same inputs give the same commit.
    pub async fn joint_base(&self, commits: &[CommitId]) -> Result<Option<CommitId>, GitError> {
        let mut commits = commits.to_vec();
        commits.sort();
        commits.truncate(BASES_MAX);
        let mut commits = commits.into_iter();
        let Some(mut joint) = commits.next() else {
            return Ok(None);
        };
        let who = Signature::new("Woodward", "woodward@localhost");
        let date = git_date(Timestamp(0));
        for next in commits {
            let tree = self.merged_tree(&joint, &next).await?;
            let new = NewCommit {
                tree: &tree,
                parents: &[&joint, &next],
                author: (&who, &date),
                committer: (&who, &date),
                message: "joint merge base\n",
            };
            joint = self.write_commit(&new).await?;
        }
        Ok(Some(joint))
    }

    /// The files in which a change conflicts with a commit.
    pub async fn change_conflicts(
        &self,
        base: &CommitId,
        onto: &CommitId,
        head: &CommitId,
    ) -> Result<Vec<String>, GitError> {
        Ok(match self.merge_trees(Some(base), onto, head).await? {
            Merged::Clean(_) => Vec::new(),
            Merged::Conflict(files) => files,
        })
    }

    /// Builds a change on top of another commit: its commits one by one where they all fit, otherwise
    /// all of it as one. No branch and no worktree is touched.
    pub async fn rebuild(&self, rebuild: &Rebuild<'_>) -> Result<Rebuilt, GitError> {
        let Rebuild {
            base, head, onto, ..
        } = rebuild;
        let tree = match self.merge_trees(Some(base), onto, head).await? {
            Merged::Clean(tree) => TreeId::from(tree),
            Merged::Conflict(files) => return Ok(Rebuilt::Conflict(files)),
        };
        if tree == self.tree_of(onto).await? {
            return Ok(Rebuilt::Commit((*onto).clone()));
        }
        let picks = self.picks(base, head).await?;
        if let Some(commit) = self.replay(rebuild, &picks, &tree).await? {
            return Ok(Rebuilt::Commit(commit));
        }
        let who = Signature::new("Woodward", "woodward@localhost");
        let author = picks.last().map_or(&who, |pick| &pick.author);
        let date = git_date(rebuild.now);
        let mut message = format!("{}: rebuilt on its target branch\n", rebuild.task);
        for pick in &picks {
            message.push('\n');
            message.push_str(pick.message.trim());
            message.push('\n');
        }
        let new = NewCommit {
            tree: &tree,
            parents: &[onto],
            author: (author, &date),
            committer: (&who, &date),
            message: &compose(&message, &Trailers::default()),
        };
        Ok(Rebuilt::Commit(self.write_commit(&new).await?))
    }

    /// The commits of a change, one by one on top of another commit; `None` if that does not come to the
    /// same tree.
    async fn replay(
        &self,
        rebuild: &Rebuild<'_>,
        picks: &[Pick],
        wanted: &TreeId,
    ) -> Result<Option<CommitId>, GitError> {
        let who = Signature::new("Woodward", "woodward@localhost");
        let date = git_date(rebuild.now);
        let mut on = rebuild.onto.clone();
        let mut on_tree = self.tree_of(&on).await?;
        for pick in picks {
            let tree = match self.merge_trees(Some(&pick.parent), &on, &pick.id).await? {
                Merged::Clean(tree) => TreeId::from(tree),
                Merged::Conflict(_) => return Ok(None),
            };
            if tree == on_tree {
                continue;
            }
            let new = NewCommit {
                tree: &tree,
                parents: &[&on],
                author: (&pick.author, &pick.date),
                committer: (&who, &date),
                message: &pick.message,
            };
            on = self.write_commit(&new).await?;
            on_tree = tree;
        }
        Ok((on_tree == *wanted).then_some(on))
    }

    /// Rebuilds the change of a worktree's branch in place. What is not committed there is saved first.
    /// Where the change does not fit and `keep_conflicts` is said, the files keep their conflict markers,
    /// uncommitted, for somebody to resolve; otherwise nothing happens then.
    pub async fn rebuild_in(
        &self,
        worktree: &Worktree,
        rebuild: &Rebuild<'_>,
        keep_conflicts: bool,
    ) -> Result<Rebuilt, GitError> {
        let rebuilt = self.rebuild(rebuild).await?;
        let to = match &rebuilt {
            Rebuilt::Commit(commit) => commit,
            Rebuilt::Conflict(_) if keep_conflicts => rebuild.onto,
            Rebuilt::Conflict(_) => return Ok(rebuilt),
        };
        self.clear_locks_of(worktree).await?;
        let why = "the target branch was rewritten and the change was rebuilt";
        self.snapshot(worktree, rebuild.task, why, rebuild.now)
            .await?;
        self.pin(&format!("{REBUILDS}/{}", rebuild.task), rebuild.head)
            .await?;
        let mark = worktree.admin.join(UNDER_WAY);
        let cut_off = CutOff {
            head: rebuild.head.clone(),
        };
        let text = serde_json::to_vec(&cut_off).unwrap_or_default();
        fs::write(&mark, text).at("write", &mark)?;
        self.reset_to(worktree, to).await?;
        if matches!(rebuilt, Rebuilt::Conflict(_)) {
            self.pick_change(worktree, rebuild).await?;
        }
        fs::remove_file(&mark).at("remove", &mark)?;
        Ok(rebuilt)
    }

    async fn reset_to(&self, worktree: &Worktree, commit: &CommitId) -> Result<(), GitError> {
        // Files that only git's index does not know yet are in the way of a reset.
        for args in [
            &["add", "--all"][..],
            &["reset", "--hard", "--quiet", commit.as_str()],
        ] {
            let git = self.git_in(worktree, args).write();
            git.timeout(RESET_MAX).run().await?;
        }
        Ok(())
    }

    /// Applies a whole change to a worktree, with conflict markers where it does not fit.
    async fn pick_change(
        &self,
        worktree: &Worktree,
        rebuild: &Rebuild<'_>,
    ) -> Result<(), GitError> {
        let tree = self.tree_of(rebuild.head).await?;
        let who = Signature::new("Woodward", "woodward@localhost");
        let date = git_date(rebuild.now);
        let whole = NewCommit {
            tree: &tree,
            parents: &[rebuild.base],
            author: (&who, &date),
            committer: (&who, &date),
            message: &compose(&format!("change of {}", rebuild.task), &Trailers::default()),
        };
        let whole = self.write_commit(&whole).await?;
        let args = ["cherry-pick", "--no-commit", "--allow-empty"];
        let git = self.git_in(worktree, args).arg(whole.as_str()).accept(1);
        git.config("user.name=Woodward")
            .config("user.email=woodward@localhost")
            .config("merge.conflictStyle=zdiff3")
            .write()
            .timeout(RESET_MAX)
            .run()
            .await?;
        Ok(())
    }

    /// Whether files of a worktree wait for somebody to resolve their conflicts.
    pub(super) async fn has_unmerged(&self, worktree: &Worktree) -> Result<bool, GitError> {
        let answer = self.git_in(worktree, ["ls-files", "--unmerged"]);
        Ok(!answer.cut_at(1 << 10).run().await?.stdout.is_empty())
    }

    /// Undoes a merge or rebuild in a worktree that was cut off; what it left is saved.
    pub(crate) async fn undo_cut_off(
        &self,
        worktree: &Worktree,
        task: &str,
        now: Timestamp,
    ) -> Result<bool, GitError> {
        let mark = worktree.admin.join(UNDER_WAY);
        let Ok(text) = fs::read(&mark) else {
            return Ok(false);
        };
        let why = "bringing in the target branch was cut off";
        self.snapshot(worktree, task, why, now).await?;
        let to = match serde_json::from_slice::<CutOff>(&text) {
            Ok(cut_off) => cut_off.head.to_string(),
            Err(_) => "HEAD".to_owned(),
        };
        // Only what the index knows is reset: files that git had just written are not, yet.
        for args in [&["add", "--all"][..], &["reset", "--hard", "--quiet", &to]] {
            let git = self.git_in(worktree, args).write();
            git.timeout(RESET_MAX).run().await?;
        }
        fs::remove_file(&mark).at("remove", &mark)?;
        Ok(true)
    }

    /// Keeps a tip that was dropped from a target branch, so that no gc drops it.
    pub(crate) async fn pin_dropped(&self, tip: &CommitId) -> Result<(), GitError> {
        self.pin(&format!("{DROPPED}/{tip}"), tip).await
    }

    /// A dropped tip is not needed any more.
    pub(crate) async fn unpin_dropped(&self, tip: &CommitId) -> Result<(), GitError> {
        self.unpin(&format!("{DROPPED}/{tip}")).await
    }

    /// Only these tasks may still need what their branches had before their changes were rebuilt.
    pub(crate) async fn unpin_rebuilds(&self, but_for: &[&str]) -> Result<(), GitError> {
        let listed = self.git(["for-each-ref", "--format=%(refname)", REBUILDS]);
        for name in listed.text().await?.lines() {
            let task = name.strip_prefix(REBUILDS).unwrap_or(name);
            if !but_for.contains(&task.trim_start_matches('/')) {
                self.unpin(name).await?;
            }
        }
        Ok(())
    }
}
