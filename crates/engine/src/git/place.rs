//! Checkouts that belong to Woodward alone: clean, detached, thrown away at will.
//!
//! Never used for a directory that an agent or a person works in.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use woodward_core::CommitId;

use super::error::{At, GitError};
use super::index::Index;
use super::os_path;
use super::repo::Repo;

const CHECKOUT_MAX: Duration = Duration::from_secs(900);
/// The longest list of files that is read.
const ENTRIES_BYTES_MAX: usize = 1 << 20;

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
        if !is_spotless_soon(path).await {
            let clean = ["clean", "--quiet", "--force", "-d"];
            self.door().git(path, clean).write().run().await?;
        }
        Ok(())
    }

    async fn make_place(&self, path: &Path, commit: &CommitId) -> Result<(), GitError> {
        let _turn = self.turn().await?;
        let shown = path.to_string_lossy();
        if path.exists() {
            fs::remove_dir_all(path).at("remove", path)?;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).at("make", parent)?;
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

    /// Removes a checkout that [`Self::checkout_detached`] made, with everything in it.
    pub async fn discard_detached(&self, path: &Path) -> Result<(), GitError> {
        let _turn = self.turn().await?;
        self.unregister(path).await?;
        match tokio::fs::remove_dir_all(path).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            removed => removed.at("remove", path)?,
        }
        // Git refuses a directory whose own files are broken, but not one that is gone.
        self.unregister(path).await
    }

    async fn unregister(&self, path: &Path) -> Result<(), GitError> {
        // Twice --force: whatever state it is in, it is ours alone. 128: git knows none of that path.
        let args = ["worktree", "remove", "--force", "--force", "--"];
        let git = self.git(args).arg(path).write().accept(128);
        git.timeout(CHECKOUT_MAX).run().await?;
        Ok(())
    }

    /// Files and directories of a checkout that git ignores, each directory once; at most `limit`.
    pub async fn ignored_entries(
        &self,
        path: &Path,
        limit: usize,
    ) -> Result<Vec<String>, GitError> {
        self.other_entries(path, &["--ignored"], limit).await
    }

    /// Files and directories of a checkout that git neither tracks nor ignores; at most `limit`.
    pub async fn untracked_entries(
        &self,
        path: &Path,
        limit: usize,
    ) -> Result<Vec<String>, GitError> {
        self.other_entries(path, &[], limit).await
    }

    async fn other_entries(
        &self,
        path: &Path,
        which: &[&str],
        limit: usize,
    ) -> Result<Vec<String>, GitError> {
        let args = [
            "ls-files",
            "--others",
            "--exclude-standard",
            "--directory",
            "--no-empty-directory",
            "-z",
        ];
        let args = args.iter().chain(which);
        let git = self.door().git(path, args).cut_at(ENTRIES_BYTES_MAX);
        let output = git.run().await?;
        let text = |field: &[u8]| String::from_utf8(field.to_vec()).ok();
        let fields = output.fields().filter(|field| !field.is_empty());
        Ok(fields.filter_map(text).take(limit).collect())
    }
}

/// [`is_spotless`], off the thread that others wait for.
pub(super) async fn is_spotless_soon(path: &Path) -> bool {
    let path = path.to_owned();
    let spotless = tokio::task::spawn_blocking(move || is_spotless(&path));
    spotless.await.unwrap_or(false)
}

/// Whether a checkout certainly has no file or directory but those of its commit, not even ignored
/// ones: then there is nothing to clean.
fn is_spotless(path: &Path) -> bool {
    let Some(index) = Index::load(path) else {
        return false;
    };
    let mut files = HashSet::new();
    let mut dirs = HashSet::new();
    for row in &index.rows {
        // What is in a submodule or left out is for git to say.
        if row.odd || row.is_submodule() {
            return false;
        }
        let file = os_path(&row.path);
        for dir in file.ancestors().skip(1) {
            if !dirs.insert(dir.to_owned()) {
                break;
            }
        }
        files.insert(file);
    }
    only(path, PathBuf::new(), &files, &dirs)
}

fn only(root: &Path, dir: PathBuf, files: &HashSet<PathBuf>, dirs: &HashSet<PathBuf>) -> bool {
    let Ok(mut entries) = fs::read_dir(root.join(&dir)) else {
        return false;
    };
    entries.all(|entry| {
        let Ok(entry) = entry else { return false };
        let path = dir.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => dirs.contains(&path) && only(root, path, files, dirs),
            Ok(_) => files.contains(&path) || path == Path::new(".git"),
            Err(_) => false,
        }
    })
}
