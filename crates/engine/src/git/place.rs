//! Checkouts that belong to Woodward alone: clean, detached, thrown away at will.
//!
//! Never used for a directory that an agent or a person works in.

use std::path::Path;
use std::time::Duration;

use woodward_core::CommitId;

use super::error::{At, GitError};
use super::repo::Repo;

const CHECKOUT_MAX: Duration = Duration::from_secs(900);

impl Repo {
    /// Makes `path` a clean checkout of `commit`. Ignored files stay: they are what makes the next
    /// gate fast.
    pub async fn checkout_detached(&self, path: &Path, commit: &CommitId) -> Result<(), GitError> {
        if path.join(".git").exists() {
            match self.move_place(path, commit).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a checkout of ours is made anew");
                }
            }
        }
        self.make_place(path, commit).await
    }

    async fn move_place(&self, path: &Path, commit: &CommitId) -> Result<(), GitError> {
        let swept = self.sweep_locks().await?;
        for lock in swept.removed {
            tracing::info!(lock = %lock.display(), "removed a lock file that nobody holds");
        }
        let args = [
            "checkout",
            "--quiet",
            "--force",
            "--detach",
            commit.as_str(),
        ];
        let git = self.door().git(path, args).write();
        git.timeout(CHECKOUT_MAX).run().await?;
        let clean = ["clean", "--quiet", "--force", "-d"];
        self.door().git(path, clean).write().run().await?;
        Ok(())
    }

    async fn make_place(&self, path: &Path, commit: &CommitId) -> Result<(), GitError> {
        let _turn = self.turn().await?;
        let shown = path.to_string_lossy();
        if path.exists() {
            std::fs::remove_dir_all(path).at("remove", path)?;
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).at("make", parent)?;
        }
        // Twice --force: a registration whose directory is gone is no obstacle.
        let args = [
            "worktree", "add", "--quiet", "--force", "--force", "--detach",
        ];
        let git = self
            .git(args)
            .arg("--")
            .arg(&*shown)
            .arg(commit.as_str())
            .write();
        git.timeout(CHECKOUT_MAX).run().await?;
        Ok(())
    }
}
