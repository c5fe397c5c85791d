//! Small questions to a repository.

use std::path::Path;

use woodward_core::CommitId;

use super::bring::UNDER_WAY;
use super::diff::Side;
use super::error::GitError;
use super::place::is_spotless_soon;
use super::repo::{FILE_MAX, Repo};
use super::rescue::status;
use super::worktree::Worktree;
use super::worktree::admin::Mark;

/// Where a side of a conflict begins or ends.
const ANY_MARKER: &str = "^(<{7}|>{7}) ";
/// Where the other side of a merge of ours ends; there may be a carriage return.
const OUR_MARKER: &str = "^>{7,} [0-9a-f]{40,64}.?$";
/// The most files with markers that are named.
const LEFTOVERS_MAX: usize = 200;

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
    pub fn loose_tip(&self, branch: &str) -> Option<CommitId> {
        self.loose_ref(&format!("refs/heads/{branch}"))
    }

    /// The same for any ref.
    pub(crate) fn loose_ref(&self, name: &str) -> Option<CommitId> {
        let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if !name.split('/').all(plain) {
            return None;
        }
        let text = std::fs::read_to_string(self.common_dir().join(name)).ok()?;
        text.trim_end().parse().ok()
    }

    /// Whether a worktree's branch is still where it began and no merge is open in it. Its files may
    /// have changed.
    pub fn is_untouched(&self, worktree: &Worktree, base: &CommitId) -> bool {
        self.loose_tip(&worktree.branch).as_ref() == Some(base)
            && !worktree.admin.join("MERGE_HEAD").exists()
            && !worktree.admin.join(UNDER_WAY).exists()
    }

    /// How many commits a branch has that `base` does not have.
    pub async fn commits_beyond(&self, base: &CommitId, branch: &str) -> Result<u32, GitError> {
        if let Some(tip) = self.loose_tip(branch)
            && let Some(count) = self.known_distance(base, &tip)
        {
            return Ok(count);
        }
        let range = format!("{base}..refs/heads/{branch}");
        let count = self
            .git(["rev-list", "--count", "--end-of-options", &range])
            .text()
            .await?;
        Ok(count.parse().unwrap_or_default())
    }

    /// Whether a directory has exactly this commit checked out, with nothing changed or added, not even
    /// what git ignores.
    pub async fn is_clean_at(&self, path: &Path, commit: &CommitId) -> Result<bool, GitError> {
        Ok(self.is_at(path, commit).await? && is_spotless_soon(path).await)
    }

    async fn is_at(&self, path: &Path, commit: &CommitId) -> Result<bool, GitError> {
        if !path.is_dir() {
            return Ok(false);
        }
        let asked = status(|args| self.door().git(path, args)).arg("--branch");
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

    /// The files in which markers of a merge of ours are left that `base` does not have. Ours name the
    /// merged commit in full, which no text has by chance.
    pub async fn merge_leftovers(
        &self,
        base: &CommitId,
        side: Side<'_>,
    ) -> Result<Vec<String>, GitError> {
        let newer = self.side(side).await?;
        let changed = self
            .git(["diff-tree", "-r", "-z", "--name-only", "--no-renames"])
            .arg("--no-ext-diff")
            .arg("--no-textconv")
            .arg("--diff-filter=d")
            .arg(format!("-G{OUR_MARKER}"))
            .arg(base.as_str())
            .arg(&newer);
        let answer = changed.run().await?;
        let files: Vec<String> = answer
            .fields()
            .take(LEFTOVERS_MAX)
            .map(|field| String::from_utf8_lossy(field).into_owned())
            .collect();
        // A line that went away counts as a difference, too.
        self.files_with(OUR_MARKER, &newer, &files).await
    }

    /// Those of these files that have conflict markers in a commit.
    pub async fn conflict_markers(
        &self,
        commit: &CommitId,
        files: &[String],
    ) -> Result<Vec<String>, GitError> {
        self.files_with(ANY_MARKER, commit.as_str(), files).await
    }

    /// Those of these files of a commit or tree that have a line like this.
    async fn files_with(
        &self,
        line: &str,
        tree: &str,
        files: &[String],
    ) -> Result<Vec<String>, GitError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let mut asked = self
            .git(["grep", "-lIz", "-E", "-e", line])
            .accept(1)
            .arg(tree)
            .arg("--")
            .env("GIT_LITERAL_PATHSPECS", "1");
        for file in files {
            asked = asked.arg(file);
        }
        let answer = asked.run().await?;
        let prefix = format!("{tree}:");
        let name = |field: &[u8]| {
            let text = String::from_utf8_lossy(field).into_owned();
            text.strip_prefix(&prefix)
                .map(str::to_owned)
                .unwrap_or(text)
        };
        Ok(answer.fields().map(name).collect())
    }
}
