//! Building what a landing would make of a branch, without touching any worktree, index or branch.
//!
//! Deterministic: the same inputs give the same commit id, so that a build that was cut off is
//! simply done again. A conflict is an answer, not an error.

use woodward_core::{CommitId, Timestamp, TreeId};

use super::door::{Git, Output};
use super::error::GitError;
use super::message::{Signature, Trailers, compose, git_date};
use super::object::NewCommit;
use super::repo::{Repo, parse};

const PICKS_MAX: usize = 500;
const CONFLICTS_MAX: usize = 1_000;

/// How a branch lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// All of it as one commit.
    Squash,
    /// As it is, joined by a merge commit.
    Merge,
    /// Its commits one by one, on top.
    Rebase,
}

/// What to build.
#[derive(Clone, Debug)]
pub struct BuildSpec {
    /// How.
    pub style: Style,
    /// What it goes on top of.
    pub onto: CommitId,
    /// The branch's last commit.
    pub head: CommitId,
    /// The message of the squashed or merge commit. Rebased commits keep their own.
    pub message: String,
    /// Where it comes from; appended to every message.
    pub trailers: Trailers,
    /// Who the squashed or merge commit is by. Rebased commits keep their author.
    pub author: Signature,
    /// Who commits.
    pub committer: Signature,
    /// When.
    pub date: Timestamp,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Build {
    /// A commit on top of `onto`.
    Built {
        /// The commit.
        commit: CommitId,
        /// Its tree: what is gated.
        tree: TreeId,
    },
    /// It does not fit; these files conflict.
    Conflict {
        /// The files, sorted.
        files: Vec<String>,
    },
    /// It changes nothing: everything in it is there already.
    Nothing,
}

/// The reverse of some commits, to be built on top of a branch.
#[derive(Clone, Debug)]
pub struct Reverse {
    /// Where the branch is.
    pub onto: CommitId,
    /// The last of what is taken back.
    pub last: CommitId,
    /// What was before the first of it.
    pub before: CommitId,
    /// The message.
    pub message: String,
    /// Where it comes from; appended to the message.
    pub trailers: Trailers,
    /// Who it is by.
    pub who: Signature,
    /// When.
    pub date: Timestamp,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reversed {
    /// A commit on top of the branch.
    Built(CommitId),
    /// There is nothing to take back any more.
    Nothing,
    /// Later changes are in the way in these files.
    Conflict(Vec<String>),
}

pub(super) enum Merged {
    Clean(CommitId),
    Conflict(Vec<String>),
}

/// A commit to be made again on top of another one.
pub(super) struct Pick {
    pub(super) id: CommitId,
    pub(super) parent: CommitId,
    pub(super) author: Signature,
    pub(super) date: String,
    pub(super) message: String,
}

impl Repo {
    /// Builds the commit that would land.
    pub async fn build(&self, spec: &BuildSpec) -> Result<Build, GitError> {
        match spec.style {
            Style::Rebase => self.build_rebased(spec).await,
            Style::Squash | Style::Merge => self.build_joined(spec).await,
        }
    }

    /// Builds the commit that takes back.
    pub async fn reverse(&self, reverse: &Reverse) -> Result<Reversed, GitError> {
        let merged = self.merge_trees(Some(&reverse.last), &reverse.onto, &reverse.before);
        let tree = match merged.await? {
            Merged::Clean(tree) => TreeId::from(tree),
            Merged::Conflict(files) => return Ok(Reversed::Conflict(files)),
        };
        if tree == self.tree_of(&reverse.onto).await? {
            return Ok(Reversed::Nothing);
        }
        let date = git_date(reverse.date);
        let commit = NewCommit {
            tree: &tree,
            parents: &[&reverse.onto],
            author: (&reverse.who, &date),
            committer: (&reverse.who, &date),
            message: &compose(&reverse.message, &reverse.trailers),
        };
        Ok(Reversed::Built(self.write_commit(&commit).await?))
    }

    /// Whether two commits would merge, and if not, which files conflict.
    pub async fn conflicts(&self, a: &CommitId, b: &CommitId) -> Result<Vec<String>, GitError> {
        Ok(match self.merge_trees(None, a, b).await? {
            Merged::Clean(_) => Vec::new(),
            Merged::Conflict(files) => files,
        })
    }

    async fn build_joined(&self, spec: &BuildSpec) -> Result<Build, GitError> {
        let tree = match self.merge_trees(None, &spec.onto, &spec.head).await? {
            Merged::Clean(tree) => tree,
            Merged::Conflict(files) => return Ok(Build::Conflict { files }),
        };
        self.build_of(spec, tree.into()).await
    }

    /// Builds the squashed or merge commit of a tree that was merged already.
    pub async fn build_of(&self, spec: &BuildSpec, tree: TreeId) -> Result<Build, GitError> {
        if tree == self.tree_of(&spec.onto).await? {
            return Ok(Build::Nothing);
        }
        let date = git_date(spec.date);
        let parents = match spec.style {
            Style::Merge => vec![&spec.onto, &spec.head],
            Style::Squash | Style::Rebase => vec![&spec.onto],
        };
        let message = compose(&spec.message, &spec.trailers);
        let new = NewCommit {
            tree: &tree,
            parents: &parents,
            author: (&spec.author, &date),
            committer: (&spec.committer, &date),
            message: &message,
        };
        let commit = self.write_commit(&new).await?;
        let parents = parents.into_iter().cloned().collect();
        self.learn(&commit, &tree, Some(parents));
        Ok(Build::Built { commit, tree })
    }

    async fn build_rebased(&self, spec: &BuildSpec) -> Result<Build, GitError> {
        let committed = git_date(spec.date);
        let mut on = spec.onto.clone();
        let mut on_tree = self.tree_of(&on).await?;
        for pick in self.picks(&spec.onto, &spec.head).await? {
            let tree = match self.merge_trees(Some(&pick.parent), &on, &pick.id).await? {
                Merged::Clean(tree) => TreeId::from(tree),
                Merged::Conflict(files) => return Ok(Build::Conflict { files }),
            };
            if tree == on_tree {
                continue;
            }
            let new = NewCommit {
                tree: &tree,
                parents: &[&on],
                author: (&pick.author, &pick.date),
                committer: (&spec.committer, &committed),
                message: &compose(&pick.message, &spec.trailers),
            };
            on = self.write_commit(&new).await?;
            on_tree = tree;
        }
        Ok(if on == spec.onto {
            Build::Nothing
        } else {
            Build::Built {
                commit: on,
                tree: on_tree,
            }
        })
    }

    /// The first-parent commits of a branch that are not in another history, oldest first.
    pub(super) async fn picks(
        &self,
        onto: &CommitId,
        head: &CommitId,
    ) -> Result<Vec<Pick>, GitError> {
        let range = format!("{onto}..{head}");
        let count = format!("--max-count={}", PICKS_MAX + 1);
        let format = "--format=%H%n%P%n%an%n%ae%n%ad%n%B";
        let args = [
            "log",
            "-z",
            "--first-parent",
            "--date=raw",
            &count,
            format,
            "--end-of-options",
            &range,
        ];
        let answer = self.git(args).run().await?;
        let mut picks = answer.fields().map(pick).collect::<Result<Vec<_>, _>>()?;
        if picks.len() > PICKS_MAX {
            return Err(GitError::Limit {
                what: "commits to rebase",
                limit: PICKS_MAX,
            });
        }
        picks.reverse();
        Ok(picks)
    }

    pub(super) async fn merge_trees(
        &self,
        base: Option<&CommitId>,
        ours: &CommitId,
        theirs: &CommitId,
    ) -> Result<Merged, GitError> {
        let mut git = self.merging();
        if let Some(base) = base {
            git = git.arg(format!("--merge-base={base}"));
        }
        let git = git.arg(ours.as_str()).arg(theirs.as_str());
        let merge = MergeTree::of(&git.durable().run().await?)?;
        Ok(match merge.is_clean {
            true => Merged::Clean(merge.tree),
            false => Merged::Conflict(merge.files),
        })
    }

    /// The tree of a merge of two commits, with conflict markers where they do not fit.
    pub(super) async fn merged_tree(&self, a: &CommitId, b: &CommitId) -> Result<TreeId, GitError> {
        let git = self.merging().arg(a.as_str()).arg(b.as_str());
        Ok(MergeTree::of(&git.durable().run().await?)?.tree.into())
    }

    /// The command that merges without a checkout, but for what is merged. There is only this one:
    /// whoever foresees a merge must foresee what will happen.
    pub(super) fn merging(&self) -> Git {
        self.git([
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
        ])
        .config("merge.renames=true")
        .config("merge.directoryRenames=conflict")
        .accept(1)
    }
}

/// What the command answers.
pub(super) struct MergeTree {
    pub(super) is_clean: bool,
    /// The tree; with markers in it if it is not clean.
    pub(super) tree: CommitId,
    /// The files that conflict, sorted.
    pub(super) files: Vec<String>,
}

impl MergeTree {
    pub(super) fn of(answer: &Output) -> Result<Self, GitError> {
        let mut fields = answer.fields().map(String::from_utf8_lossy);
        let tree = parse("merge-tree", &fields.next().unwrap_or_default())?;
        let names = fields.filter(|name| !name.is_empty()).take(CONFLICTS_MAX);
        let mut files: Vec<String> = names.map(|name| name.into_owned()).collect();
        files.sort();
        files.dedup();
        Ok(Self {
            is_clean: answer.code == 0,
            tree,
            files,
        })
    }
}

fn pick(field: &[u8]) -> Result<Pick, GitError> {
    let text = String::from_utf8_lossy(field);
    let mut parts = text.splitn(6, '\n');
    let mut next = || parts.next().unwrap_or_default();
    let id = parse("log", next())?;
    let parent = next().split(' ').next().unwrap_or_default().to_owned();
    let parent = parse("log", &parent)?;
    let (name, email) = (next(), next());
    Ok(Pick {
        id,
        parent,
        author: Signature::new(name, email),
        date: format!("@{}", next()),
        message: next().to_owned(),
    })
}
