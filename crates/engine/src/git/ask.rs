//! Small questions to a repository.

use std::path::Path;

use woodward_core::CommitId;

use super::error::GitError;
use super::repo::{FILE_MAX, Repo};
use super::worktree::Worktree;
use super::worktree::admin::Mark;

impl Repo {
    /// Where a branch is; an error that names it when there is none.
    pub async fn require_tip(&self, branch: &str) -> Result<CommitId, GitError> {
        self.tip(branch)
            .await?
            .ok_or_else(|| GitError::NoSuchCommit {
                rev: branch.to_owned(),
                repo: self.root().to_owned(),
            })
    }

    /// A file as a branch has it; `None` when it has none at that path, or there is no such branch.
    pub async fn file_at_branch(
        &self,
        branch: &str,
        path: &str,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let name = format!("refs/heads/{branch}:{path}");
        let asked = self.git(["cat-file", "blob", &name]).accept(128);
        let answer = asked.cut_at(FILE_MAX + 1).run().await?;
        if answer.code != 0 {
            return Ok(None);
        }
        if answer.stdout.len() > FILE_MAX {
            return Err(GitError::Limit {
                what: "bytes in one file",
                limit: FILE_MAX,
            });
        }
        Ok(Some(answer.stdout))
    }

    /// The worktree of ours that is at a path, whatever it was made for.
    pub fn occupant(&self, path: &Path) -> Option<Worktree> {
        let admin = self.admin_of(path)?;
        let mark = Mark::load(&admin)?;
        Some(Worktree {
            path: path.to_owned(),
            branch: mark.branch,
            admin,
        })
    }

    /// Where a branch is, as its own file says; no process is started. `None` where git keeps it in
    /// another way.
    pub fn loose_tip(&self, branch: &str) -> Option<String> {
        let file = self.common_dir().join("refs/heads").join(branch);
        std::fs::read_to_string(file).ok()
    }

    /// How many commits a branch has that `base` does not have.
    pub async fn commits_beyond(&self, base: &CommitId, branch: &str) -> Result<u32, GitError> {
        let range = format!("{base}..refs/heads/{branch}");
        let count = self
            .git(["rev-list", "--count", "--end-of-options", &range])
            .text()
            .await?;
        Ok(count.parse().unwrap_or_default())
    }

    /// Whether a directory has exactly this commit checked out, with nothing changed or added.
    pub async fn is_clean_at(&self, path: &Path, commit: &CommitId) -> Result<bool, GitError> {
        if !path.is_dir() {
            return Ok(false);
        }
        let asked = self
            .door()
            .git(path, ["status", "--porcelain=v2", "--branch", "-z"]);
        // Whatever an agent made of its directory, it is not clean then.
        let Ok(answer) = asked.run().await else {
            return Ok(false);
        };
        let wanted = format!("# branch.oid {commit}");
        let mut here = false;
        for field in answer.fields() {
            here |= field == wanted.as_bytes();
            if !field.starts_with(b"# ") {
                return Ok(false);
            }
        }
        Ok(here)
    }

    /// Those of these files that have conflict markers in a commit.
    pub async fn conflict_markers(
        &self,
        commit: &CommitId,
        files: &[String],
    ) -> Result<Vec<String>, GitError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut asked = self
            .git(["grep", "-lIz", "-E", "-e", "^(<{7}|>{7}) "])
            .accept(1)
            .arg(commit.as_str())
            .arg("--")
            .env("GIT_LITERAL_PATHSPECS", "1");
        for file in files {
            asked = asked.arg(file);
        }
        let answer = asked.run().await?;
        let prefix = format!("{commit}:");
        let name = |field: &[u8]| {
            let text = String::from_utf8_lossy(field).into_owned();
            text.strip_prefix(&prefix)
                .map(str::to_owned)
                .unwrap_or(text)
        };
        Ok(answer.fields().map(name).collect())
    }
}
