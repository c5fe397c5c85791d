//! Bringing the target branch into a task's worktree, conflicts and all, for its agent to resolve.

use std::fs;
use std::time::Duration;

use woodward_core::{CommitId, Timestamp};

use super::error::{At, GitError};
use super::repo::Repo;
use super::worktree::Worktree;

const MERGE_MAX: Duration = Duration::from_secs(300);

/// There while a merge is being written: what is in the directory then is nobody's work but git's.
pub(super) const UNDER_WAY: &str = "woodward-bringing-in";

impl Repo {
    /// Merges `commit` into the worktree without committing. Where it does not fit, files keep their
    /// conflict markers and the merge stays open; committing everything closes it. Doing it again
    /// changes nothing. One that was cut off is undone first, and what it left is saved.
    pub async fn bring_in(
        &self,
        worktree: &Worktree,
        commit: &CommitId,
        task: &str,
        now: Timestamp,
    ) -> Result<(), GitError> {
        self.clear_locks_of(worktree).await?;
        let mark = worktree.admin.join(UNDER_WAY);
        if !self.undo_cut_off(worktree, task, now).await?
            && (worktree.admin.join("MERGE_HEAD").exists() || self.has_unmerged(worktree).await?)
        {
            return Ok(());
        }
        fs::write(&mark, "").at("write", &mark)?;
        let merged = self.merge_in(worktree, commit).await;
        if !matches!(&merged, Err(error) if !is_refusal(error)) {
            fs::remove_file(&mark).at("remove", &mark)?;
        }
        merged
    }

    async fn merge_in(&self, worktree: &Worktree, commit: &CommitId) -> Result<(), GitError> {
        let args = [
            "merge",
            "--quiet",
            "--no-ff",
            "--no-commit",
            "--no-verify",
            "--no-edit",
        ];
        let git = self.git_in(worktree, args).arg(commit.as_str()).accept(1);
        git.config("user.name=Woodward")
            .config("user.email=woodward@localhost")
            .config("merge.conflictStyle=zdiff3")
            .write()
            .timeout(MERGE_MAX)
            .run()
            .await?;
        Ok(())
    }
}

/// Git said no before it changed anything.
const fn is_refusal(error: &GitError) -> bool {
    matches!(error, GitError::Failed { code: Some(_), .. })
}
