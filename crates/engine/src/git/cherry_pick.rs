//! Applying commits to a task's branch.
//!
//! The worktree is left as it was where a commit does not fit. Commits are always new ones, never the ones
//! that are applied, so that what was part of another branch is not taken for part of it here.

use woodward_core::CommitId;

use super::door::Git;
use super::error::GitError;
use super::repo::Repo;
use super::worktree::Worktree;

impl Repo {
    /// Applies commits to a worktree's branch, in order; `false` where one does not fit. Applying them again
    /// adds empty commits and changes no file.
    pub(crate) async fn cherry_pick(
        &self,
        worktree: &Worktree,
        commits: &[CommitId],
    ) -> Result<bool, GitError> {
        let prepared = |git: Git| {
            git.config("user.name=Woodward")
                .config("user.email=woodward@localhost")
                .config("commit.gpgSign=false")
                .config("core.editor=true")
                .write()
        };
        let mut git = self.git_in(worktree, ["cherry-pick", "-x", "--keep-redundant-commits"]);
        for commit in commits {
            git = git.arg(commit.as_str());
        }
        match prepared(git).run().await {
            Ok(_) => Ok(true),
            Err(GitError::Failed { code: Some(_), .. }) => {
                let abort = self.git_in(worktree, ["cherry-pick", "--abort"]);
                prepared(abort).accept(128).run().await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
