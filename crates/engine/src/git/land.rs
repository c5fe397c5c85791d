//! Moving a branch that people share: by compare-and-swap, on the disk when it returns.

use std::fs;
use std::path::{Path, PathBuf};

use woodward_core::{CommitId, IntentId};

use super::error::GitError;
use super::repo::Repo;

const LANDINGS: &str = "refs/woodward/land";

/// What became of a branch that was to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advance {
    /// It is where it should be (or was already).
    Advanced,
    /// Somebody else has moved it; this is where it is now. `None`: it is gone.
    Moved {
        /// Where it is.
        current: Option<CommitId>,
    },
    /// The other side does not want it, and says why. The branch is where it was.
    Refused {
        /// Its words.
        why: String,
    },
}

impl Repo {
    /// Moves a branch from `old` to `new`, and not from anywhere else.
    pub async fn advance(
        &self,
        branch: &str,
        new: &CommitId,
        old: &CommitId,
    ) -> Result<Advance, GitError> {
        self.move_by_swap(branch, new, old, "woodward: landed")
            .await
    }

    /// Moves a branch back from `from` to `to`, and not from anywhere else.
    pub(crate) async fn set_back(
        &self,
        branch: &str,
        to: &CommitId,
        from: &CommitId,
    ) -> Result<Advance, GitError> {
        let message = "woodward: moved an agent's commits to its own branch";
        self.move_by_swap(branch, to, from, message).await
    }

    async fn move_by_swap(
        &self,
        branch: &str,
        new: &CommitId,
        old: &CommitId,
        message: &str,
    ) -> Result<Advance, GitError> {
        let name = format!("refs/heads/{branch}");
        let args = [
            "update-ref",
            "-m",
            message,
            &name,
            new.as_str(),
            old.as_str(),
        ];
        let Err(error) = self.git(args).durable().run().await else {
            return Ok(Advance::Advanced);
        };
        match self.tip(branch).await? {
            Some(tip) if tip == *new => Ok(Advance::Advanced),
            // It is where we expected it, so something else is wrong: a lock, a full disk.
            Some(tip) if tip == *old => Err(error),
            current => Ok(Advance::Moved { current }),
        }
    }

    /// Whether a commit is another one, or directly on top of it on the first-parent line.
    pub async fn is_on(&self, commit: &CommitId, below: &CommitId) -> Result<bool, GitError> {
        if commit == below {
            return Ok(true);
        }
        if let Some(parent) = self.known_parent(commit) {
            return Ok(parent == *below);
        }
        let found = self.objects([format!("{commit}^1^{{commit}}")]).await?;
        Ok(found.into_iter().flatten().next().as_ref() == Some(below))
    }

    /// Keeps what a landing has built until it is decided, so that no gc drops it.
    pub async fn pin_landing(&self, intent: IntentId, commit: &CommitId) -> Result<(), GitError> {
        self.pin(&landing_ref(intent), commit).await
    }

    /// What a landing has built, if it is kept.
    pub async fn pinned_landing(&self, intent: IntentId) -> Result<Option<CommitId>, GitError> {
        self.ref_tip(&landing_ref(intent)).await
    }

    /// Forgets what a landing has built: it is on the branch, or never will be.
    pub async fn unpin_landing(&self, intent: IntentId) -> Result<(), GitError> {
        self.unpin(&landing_ref(intent)).await
    }

    /// The landings for which something is kept.
    pub async fn pinned_landings(&self) -> Result<Vec<IntentId>, GitError> {
        let names = match self.own_refs(LANDINGS) {
            Some(names) => names,
            None => {
                let listed = self.git(["for-each-ref", "--format=%(refname)", LANDINGS]);
                listed.text().await?.lines().map(str::to_owned).collect()
            }
        };
        let ids = names.iter().filter_map(|name| name.rsplit('/').next());
        Ok(ids.filter_map(|id| id.parse().ok()).collect())
    }

    /// The checkout that has a branch checked out, the person's own or a linked one.
    pub async fn checkout_of(&self, branch: &str) -> Result<Option<PathBuf>, GitError> {
        if self.is_plain()
            && let Some(found) = self.plain_checkout_of(branch)
        {
            return Ok(found);
        }
        let answer = self
            .git(["worktree", "list", "--porcelain", "-z"])
            .run()
            .await?;
        let wanted = format!("branch refs/heads/{branch}");
        let mut path = None;
        for field in answer.fields() {
            if let Some(found) = field.strip_prefix(b"worktree ") {
                path = Some(super::os_path(found));
            } else if field == wanted.as_bytes() {
                return Ok(path
                    .map(|path| self.listed(path))
                    .filter(|path| path.is_dir()));
            }
        }
        Ok(None)
    }

    /// The same as the files say that git keeps of its worktrees; `None` where they don't say.
    fn plain_checkout_of(&self, branch: &str) -> Option<Option<PathBuf>> {
        let here = |dir: &Path| branch_of(dir).is_some_and(|head| head == branch);
        if here(self.common_dir()) {
            return Some(Some(self.root().to_owned()));
        }
        let entries = fs::read_dir(self.admins()).into_iter().flatten().flatten();
        let admins: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        let all = admins.iter().map(PathBuf::as_path);
        if all
            .chain([self.common_dir()])
            .any(|dir| dir.join("HEAD").is_symlink())
        {
            return None;
        }
        let checkouts = admins.iter().filter(|dir| here(dir)).filter_map(|admin| {
            let text = fs::read(admin.join("gitdir")).ok()?;
            // Git may have written it relative to where it says so.
            let pointer = admin.join(super::os_path(text.trim_ascii_end()));
            pointer.parent().map(Path::to_owned)
        });
        Some(checkouts.into_iter().find(|path| path.is_dir()))
    }

    /// Whether the main checkout is the ordinary one: a directory with its `.git` in it.
    fn is_plain(&self) -> bool {
        !self.is_reftable() && self.root().join(".git") == self.common_dir() && self.root().is_dir()
    }

    /// Git lists the main worktree by its git directory where that is not named `.git`.
    fn listed(&self, path: PathBuf) -> PathBuf {
        if path == self.common_dir()
            || Some(path.as_path()) == self.common_dir().parent().map(Path::new)
        {
            self.root().to_owned()
        } else {
            path
        }
    }
}

/// The branch that a git directory has checked out, as its HEAD says.
pub(crate) fn branch_of(dir: &Path) -> Option<String> {
    let head = fs::read_to_string(dir.join("HEAD")).ok()?;
    let branch = head.trim_end().strip_prefix("ref: refs/heads/")?;
    Some(branch.to_owned())
}

fn landing_ref(intent: IntentId) -> String {
    format!("{LANDINGS}/{intent}")
}
