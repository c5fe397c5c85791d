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
        let ssh_is_configured = self.ssh_is_configured().await?;
        let asked = self
            .git([
                "ls-remote",
                "--exit-code",
                "--end-of-options",
                remote,
                &theirs,
            ])
            .remote(ssh_is_configured)
            .accept(2)
            .run()
            .await?;
        let ours = fetched_ref(remote, branch);
        if asked.code == 2 {
            return Ok(None);
        }
        let refspec = format!("+{theirs}:{ours}");
        self.git(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"])
            .remote(ssh_is_configured)
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
        let ssh_is_configured = self.ssh_is_configured().await?;
        let pushed = self
            .git(["push", "--quiet", "--no-verify"])
            .remote(ssh_is_configured)
            .arg(format!("--force-with-lease={theirs}:{old}"))
            .arg("--end-of-options")
            .arg(remote)
            .arg(format!("{new}:{theirs}"))
            .run()
            .await;
        // Whatever the push said: what counts is where the branch is.
        match (self.fetch_branch(remote, branch).await?, pushed) {
            (Some(tip), _) if tip == *new => Ok(Advance::Advanced),
            (Some(tip), Err(error)) if tip == *old => match refusal(&error) {
                Some(why) => Ok(Advance::Refused { why }),
                None => Err(error),
            },
            (current, _) => Ok(Advance::Moved { current }),
        }
    }

    /// Whether git's own configuration says how ssh is started.
    async fn ssh_is_configured(&self) -> Result<bool, GitError> {
        let asked = self.git(["config", "--get", "core.sshCommand"]);
        Ok(asked.accept(1).run().await?.code == 0)
    }

    /// Where a branch of a remote was when it was last fetched.
    pub async fn fetched(&self, remote: &str, branch: &str) -> Result<Option<CommitId>, GitError> {
        self.ref_tip(&fetched_ref(remote, branch)).await
    }

    /// Notes what a checkout of a branch shows, before the branch is moved under it.
    pub async fn note_shown(&self, branch: &str, commit: &CommitId) -> Result<(), GitError> {
        self.pin(&shown_ref(branch), commit).await
    }

    /// What a checkout of a branch showed when the branch was moved under it, if it was not brought
    /// along.
    pub async fn shown(&self, branch: &str) -> Result<Option<CommitId>, GitError> {
        self.ref_tip(&shown_ref(branch)).await
    }

    /// A checkout of a branch has been brought along.
    pub async fn forget_shown(&self, branch: &str) -> Result<(), GitError> {
        self.unpin(&shown_ref(branch)).await
    }
}

fn fetched_ref(remote: &str, branch: &str) -> String {
    format!("refs/woodward/remote/{remote}/{branch}")
}

fn shown_ref(branch: &str) -> String {
    format!("refs/woodward/shown/{branch}")
}

/// Why a remote does not want a push, in its own words, if that is why it failed.
fn refusal(error: &GitError) -> Option<String> {
    const MARK: &str = "[remote rejected]";
    let GitError::Failed { stderr, .. } = error else {
        return None;
    };
    let line = stderr.lines().find(|line| line.contains(MARK))?;
    let reason = line
        .rsplit_once('(')
        .map(|(_, reason)| reason.trim_end_matches(')'));
    let said = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("remote:"));
    let said: Vec<&str> = said.chain(reason).map(str::trim).collect();
    let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
    Some(said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_remotes_words_and_a_broken_line_is_none() {
        let failed = |stderr: &str| GitError::Failed {
            verb: "push".into(),
            dir: "/".into(),
            code: Some(1),
            stderr: stderr.into(),
        };
        let refused = failed(
            "remote: no secrets, please        \nremote: \nTo /origin.git\n ! [remote rejected] main -> main \
             (pre-receive hook declined)\nerror: failed to push some refs",
        );
        assert_eq!(
            refusal(&refused).as_deref(),
            Some("no secrets, please; pre-receive hook declined")
        );
        assert_eq!(refusal(&failed("fatal: unable to access: timed out")), None);
    }
}
