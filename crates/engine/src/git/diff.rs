//! What changed, as text and as numbers.
//!
//! No external diff and no text conversion of anybody's configuration is run. What is printed is
//! bounded.

use woodward_core::{CommitId, TreeId};

use super::error::GitError;
use super::repo::Repo;
use super::worktree::Worktree;

const FILES_MAX: usize = 20_000;

/// A patch, perhaps cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The text, as git prints it.
    pub text: Vec<u8>,
    /// Whether there is more than this.
    pub cut: bool,
}

/// How much of one file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Its path now.
    pub path: String,
    /// Its path before, when it was renamed.
    pub was: Option<String>,
    /// Lines added and removed; `None` for a binary file.
    pub lines: Option<(u64, u64)>,
}

/// The side of a comparison that is newer.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a> {
    /// A commit.
    Commit(&'a CommitId),
    /// What is in a worktree, committed or not.
    Worktree(&'a Worktree),
}

impl Repo {
    pub(super) async fn side(&self, side: Side<'_>) -> Result<String, GitError> {
        Ok(match side {
            Side::Commit(commit) => commit.to_string(),
            Side::Worktree(worktree) => self.tree_of_worktree(worktree).await?.to_string(),
        })
    }

    /// The patch from `base` to the other side, at most `limit` bytes of it.
    pub async fn diff(
        &self,
        base: &CommitId,
        side: Side<'_>,
        limit: usize,
    ) -> Result<Patch, GitError> {
        let newer = self.side(side).await?;
        let git = self.git([
            "diff-tree",
            "-p",
            "-r",
            "-M",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
        ]);
        let answer = git
            .arg(base.as_str())
            .arg(newer)
            .cut_at(limit)
            .run()
            .await?;
        Ok(Patch {
            text: answer.stdout,
            cut: answer.cut,
        })
    }

    /// The same for some files only, moved ones not told apart.
    pub(crate) async fn diff_of(
        &self,
        base: &CommitId,
        side: Side<'_>,
        paths: &[&str],
        limit: usize,
    ) -> Result<Patch, GitError> {
        if paths.is_empty() {
            return Ok(Patch {
                text: Vec::new(),
                cut: false,
            });
        }
        let newer = self.side(side).await?;
        let mut git = self
            .git([
                "diff-tree",
                "-p",
                "-r",
                "--no-renames",
                "--no-color",
                "--no-ext-diff",
                "--no-textconv",
            ])
            .env("GIT_LITERAL_PATHSPECS", "1")
            .arg(base.as_str())
            .arg(newer)
            .arg("--");
        for path in paths {
            git = git.arg(path);
        }
        let answer = git.cut_at(limit).run().await?;
        Ok(Patch {
            text: answer.stdout,
            cut: answer.cut,
        })
    }

    /// How much of which files changed from `base` to the other side.
    pub async fn numstat(
        &self,
        base: &CommitId,
        side: Side<'_>,
    ) -> Result<Vec<FileStat>, GitError> {
        let newer = self.side(side).await?;
        let git = self.git([
            "diff-tree",
            "-r",
            "-M",
            "--numstat",
            "-z",
            "--no-ext-diff",
            "--no-textconv",
        ]);
        let answer = git.arg(base.as_str()).arg(newer).run().await?;
        let mut fields = answer.fields();
        let mut files = Vec::new();
        while let Some(field) = fields.next() {
            if files.len() == FILES_MAX {
                break;
            }
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let mut parts = field.splitn(3, |b| *b == b'\t');
            let (added, removed) = (number(parts.next()), number(parts.next()));
            let path = parts.next().unwrap_or_default();
            // A rename has an empty path here and its two paths in the next fields.
            let (was, path) = if path.is_empty() {
                let was = fields.next().map(text);
                (was, fields.next().map(text).unwrap_or_default())
            } else {
                (None, text(path))
            };
            let lines = added.zip(removed);
            files.push(FileStat { path, was, lines });
        }
        Ok(files)
    }
}

impl Repo {
    /// The files of a tree: path, and a line that changes with mode, content or path.
    pub async fn list_tree(&self, tree: &TreeId) -> Result<Vec<(String, String)>, GitError> {
        let git = self.git(["ls-tree", "-r", "-z", "--full-tree"]);
        let answer = git.arg(tree.as_str()).run().await?;
        let entry = |field: &[u8]| {
            let line = String::from_utf8_lossy(field).into_owned();
            let path = line
                .split_once('\t')
                .map_or("", |(_, path)| path)
                .to_owned();
            (path, line)
        };
        Ok(answer.fields().map(entry).collect())
    }
}

fn number(field: Option<&[u8]>) -> Option<u64> {
    std::str::from_utf8(field?).ok()?.parse().ok()
}
