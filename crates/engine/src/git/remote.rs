//! A branch of another repository: fetched before, moved by a push that is a compare-and-swap, looked
//! at afterwards.
//!
//! The person's own refs of that repository are left to them: what is fetched is kept under a ref of
//! ours. A password is never asked for: nobody sits there to type it.

use woodward_core::CommitId;

use super::error::GitError;
use super::land::Advance;
use super::repo::Repo;

impl Repo {
    /// Where a branch of a remote is, with everything that leads there; `None` if there is none.
    pub async fn fetch_branch(
        &self,
        remote: &str,
        branch: &str,
    ) -> Result<Option<CommitId>, GitError> {
        let theirs = format!("refs/heads/{branch}");
        let asked = self
            .git([
                "ls-remote",
                "--exit-code",
                "--end-of-options",
                remote,
                &theirs,
            ])
            .env("GIT_TERMINAL_PROMPT", "0")
            .accept(2)
            .run()
            .await?;
        let ours = format!("refs/woodward/remote/{remote}/{branch}");
        if asked.code == 2 {
            return Ok(None);
        }
        let refspec = format!("+{theirs}:{ours}");
        self.git(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"])
            .env("GIT_TERMINAL_PROMPT", "0")
            .arg("--end-of-options")
            .arg(remote)
            .arg(&refspec)
            .durable()
            .run()
            .await?;
        self.ref_tip(&ours).await
    }

    /// Moves a branch of a remote from `old` to `new`, and not from anywhere else.
    pub async fn push_branch(
        &self,
        remote: &str,
        branch: &str,
        new: &CommitId,
        old: &CommitId,
    ) -> Result<Advance, GitError> {
        let theirs = format!("refs/heads/{branch}");
        let pushed = self
            .git(["push", "--quiet", "--no-verify"])
            .env("GIT_TERMINAL_PROMPT", "0")
            .arg(format!("--force-with-lease={theirs}:{old}"))
            .arg("--end-of-options")
            .arg(remote)
            .arg(format!("{new}:{theirs}"))
            .run()
            .await;
        // Whatever the push said: what counts is where the branch is.
        match (self.fetch_branch(remote, branch).await?, pushed) {
            (Some(tip), _) if tip == *new => Ok(Advance::Advanced),
            (Some(tip), Err(error)) if tip == *old => Err(error),
            (current, _) => Ok(Advance::Moved { current }),
        }
    }
}
