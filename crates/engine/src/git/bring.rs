//! Bringing the target branch into a task's worktree, conflicts and all, for its agent to resolve.

use std::time::Duration;

use woodward_core::CommitId;

use super::error::GitError;
use super::repo::Repo;
use super::worktree::Worktree;

const MERGE_MAX: Duration = Duration::from_secs(300);

impl Repo {
    /// Merges `commit` into the worktree without committing. Where it does not fit, files keep their
    /// conflict markers and the merge stays open; committing everything closes it. Doing it again
    /// changes nothing.
    pub async fn bring_in(&self, worktree: &Worktree, commit: &CommitId) -> Result<(), GitError> {
        self.clear_locks_of(worktree).await?;
        let under_way = worktree.admin.join("MERGE_HEAD").exists();
        if under_way {
            return Ok(());
        }
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
