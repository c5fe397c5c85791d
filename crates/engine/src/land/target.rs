//! The branch that lands: the local one, or one of a remote that the local one follows.
//!
//! With a remote, git's push is the compare-and-swap, and where the remote's branch is says whether a
//! landing happened. The local branch is brought along if nothing of the person's is in the way; a
//! local commit that the remote does not have is never pushed by us.

use std::time::{Duration, Instant};

use woodward_api::{Code, Problem};
use woodward_core::CommitId;

use super::right::Right;
use crate::error::{EngineError, Result};
use crate::git::Advance;

/// How long what a remote said is believed, while nothing of ours moves there.
const FRESH: Duration = Duration::from_secs(5);

/// Where a remote's branch was, and when.
pub(super) type Seen = Option<(Instant, CommitId)>;

impl Right<'_> {
    /// The remote that is pushed to, if there is one.
    pub(super) async fn remote(&self) -> Result<Option<String>> {
        Ok(self.project.config().await?.queue.remote.clone())
    }

    /// Where the branch is now, wherever that is decided; `None` if there is none.
    pub(super) async fn tip(&self, branch: &str) -> Result<Option<CommitId>> {
        let repo = &self.project.repo;
        match self.remote().await? {
            Some(remote) => Ok(repo.fetch_branch(&remote, branch).await?),
            None => Ok(repo.tip(branch).await?),
        }
    }

    /// What entries are merged onto. A remote is asked again only after a while, or if `seen` is empty.
    pub(super) async fn base(&self, branch: &str, seen: &mut Seen) -> Result<CommitId> {
        let repo = &self.project.repo;
        let local = repo.require_tip(branch).await?;
        let Some(remote) = self.remote().await? else {
            self.project.observe(branch, &local).await?;
            return Ok(local);
        };
        let base = match seen {
            Some((at, tip)) if at.elapsed() < FRESH => tip.clone(),
            _ => {
                let tip = repo.fetch_branch(&remote, branch).await?;
                let tip = tip.ok_or_else(|| no_branch(&remote, branch))?;
                *seen = Some((Instant::now(), tip.clone()));
                tip
            }
        };
        if repo.is_ancestor(&local, &base).await? {
            self.project.observe(branch, &base).await?;
            return Ok(base);
        }
        let what = format!("your `{branch}` has commits that {remote} does not have");
        let hint = format!(
            "push them, or move them to another branch: git log {remote}/{branch}..{branch}"
        );
        Err(EngineError::Problem(
            Problem::new(Code::Conflict, what).hint(hint),
        ))
    }

    /// Moves the branch from `old` to `new`, and not from anywhere else.
    pub(super) async fn advance(
        &self,
        branch: &str,
        new: &CommitId,
        old: &CommitId,
    ) -> Result<Advance> {
        let repo = &self.project.repo;
        match self.remote().await? {
            Some(remote) => Ok(repo.push_branch(&remote, branch, new, old).await?),
            None => Ok(repo.advance(branch, new, old).await?),
        }
    }

    /// What a person's checkout of the branch shows: where the local branch is.
    pub(super) async fn shown(&self, branch: &str, base: &CommitId) -> Result<CommitId> {
        Ok(match self.remote().await? {
            Some(_) => self.project.repo.require_tip(branch).await?,
            None => base.clone(),
        })
    }

    /// Brings the local branch, and a checkout of it, to what a remote has now, if nothing is in the way.
    /// What the checkout shows is noted first: whoever is killed in between leaves it to the next one.
    pub(super) async fn catch_up(&self, branch: &str, new: &CommitId) -> Result<()> {
        let repo = &self.project.repo;
        let Some(local) = repo.tip(branch).await? else {
            return Ok(());
        };
        if let Some(shown) = repo.shown(branch).await? {
            self.follow(branch, &shown, &local).await?;
            repo.forget_shown(branch).await?;
        }
        if local == *new || !repo.is_ancestor(&local, new).await? {
            return Ok(());
        }
        if let Some(checkout) = repo.checkout_of(branch).await?
            && !repo.blockers(&checkout, &local, new).await?.is_empty()
        {
            tracing::warn!(
                branch,
                "the local branch stays behind: your checkout is in the way"
            );
            return Ok(());
        }
        repo.note_shown(branch, &local).await?;
        if repo.advance(branch, new, &local).await? == Advance::Advanced {
            self.follow(branch, &local, new).await?;
        }
        Ok(repo.forget_shown(branch).await?)
    }
}

fn no_branch(remote: &str, branch: &str) -> EngineError {
    let what = format!("{remote} has no branch `{branch}`");
    let hint = format!("make it: git push {remote} {branch}");
    EngineError::Problem(Problem::new(Code::NotFound, what).hint(hint))
}
