//! Git repositories inside a task's worktree that no `.gitmodules` declares: how they are found, and
//! how a person's choice about one is carried out.
//!
//! Such a repository belongs to the agent. Git is never started inside it or with its configuration,
//! a `.git` in it is moved but never followed, and nothing of it is deleted: what is taken out of the
//! worktree is kept in `.embedded` beside the worktrees.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use woodward_core::risk::{EmbeddedChoice, declared_submodules};
use woodward_core::{CommitId, Timestamp};

use super::commit::CommitWith;
use super::diff::FileStat;
use super::error::{At, GitError};
use super::index::Index;
use super::message::{git_date, signed};
use super::repo::{Repo, parse};
use super::worktree::Worktree;
use super::worktree::admin::unique;
use crate::files;

/// The file in a worktree's administrative directory that lists repositories without a commit.
const WITHOUT_COMMIT: &str = "woodward-embedded.json";
/// The most repositories without a commit that are listed.
const LISTED_MAX: usize = 100;
/// Where declared submodules are listed.
const GITMODULES: &str = ".gitmodules";
/// The directory beside the worktrees for what a choice moved aside.
const KEPT: &str = ".embedded";
/// The most of a path that is part of a directory's name.
const NAME_BYTES_MAX: usize = 60;

/// What became of an embedded repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedEmbedded {
    /// Where the task's branch is now; never the commit that was reviewed.
    pub head: CommitId,
    /// Where that which was moved out of the worktree is kept.
    pub kept: Option<PathBuf>,
}

impl Repo {
    /// The submodule entries of `head` that a change adds, or whose declaration it removes, and that
    /// the `.gitmodules` of `head` does not declare. Git is asked only where the change touches a
    /// submodule entry or `.gitmodules`.
    pub async fn undeclared_submodules(
        &self,
        base: &CommitId,
        head: &CommitId,
        files: &[FileStat],
    ) -> Result<Vec<String>, GitError> {
        let is_new = |file: &&FileStat| {
            let was_there = file.was.is_none()
                && (file.before.as_ref()).is_some_and(super::FileObject::is_submodule);
            file.now
                .as_ref()
                .is_some_and(super::FileObject::is_submodule)
                && !was_there
        };
        let mut found: BTreeSet<String> = (files.iter().filter(is_new))
            .map(|file| file.path.clone())
            .collect();
        let is_declaration =
            |file: &FileStat| file.path == GITMODULES || file.was.as_deref() == Some(GITMODULES);
        if files.iter().any(is_declaration) {
            let declared = self.declared_submodules(base).await?;
            if !declared.is_empty() {
                let there = self.submodule_entries(head).await?;
                found.extend(there.into_iter().filter(|path| declared.contains(path)));
            }
        }
        if !found.is_empty() {
            let declared = self.declared_submodules(head).await?;
            found.retain(|path| !declared.contains(path));
        }
        Ok(found.into_iter().collect())
    }

    /// What the `.gitmodules` of a commit declares; nothing where it can't be read as configuration.
    async fn declared_submodules(&self, commit: &CommitId) -> Result<BTreeSet<String>, GitError> {
        let blob = format!("--blob={commit}:{GITMODULES}");
        let listed = self
            .git(["config", &blob, "--no-includes", "--null", "--list"])
            .accept(1)
            .accept(3)
            .accept(128)
            .run()
            .await?;
        if listed.code != 0 {
            return Ok(BTreeSet::new());
        }
        let entries: Vec<String> = listed
            .fields()
            .map(|entry| String::from_utf8_lossy(entry).into_owned())
            .collect();
        let pairs = entries.iter().filter_map(|entry| entry.split_once('\n'));
        let declared = declared_submodules(pairs);
        Ok(declared.into_iter().map(str::to_owned).collect())
    }

    async fn submodule_entries(&self, commit: &CommitId) -> Result<Vec<String>, GitError> {
        let listed = self.git(["ls-tree", "-r", "-z", commit.as_str()]);
        let listed = listed.run().await?;
        let entry = |entry: &[u8]| {
            let text = String::from_utf8_lossy(entry.strip_prefix(b"160000 ")?).into_owned();
            Some(text.split_once('\t')?.1.to_owned())
        };
        Ok(listed.fields().filter_map(entry).collect())
    }

    /// Submodule entries of an index at which a repository is checked out. `git add` would start git
    /// inside those.
    pub(super) async fn checked_out_submodules<G>(
        &self,
        worktree: &Worktree,
        index: &Path,
        with: &G,
    ) -> Result<Vec<Vec<u8>>, GitError>
    where
        G: Fn(&[&str]) -> super::door::Git,
    {
        if !index.exists() {
            return Ok(Vec::new());
        }
        let all: Vec<Vec<u8>> = match Index::load_file(index) {
            Some(index) => (index.rows.into_iter())
                .filter(super::index::Row::is_submodule)
                .map(|row| row.path)
                .collect(),
            None => {
                // 128: the index is broken. It is replaced later.
                let listed = with(&["ls-files", "--stage", "-z"])
                    .accept(128)
                    .run()
                    .await?;
                let entry = |entry: &[u8]| {
                    let entry = entry.strip_prefix(b"160000 ")?;
                    let tab = entry.iter().position(|byte| *byte == b'\t')?;
                    Some(entry[tab + 1..].to_vec())
                };
                listed.fields().filter_map(entry).collect()
            }
        };
        let is_checked_out = |path: &Vec<u8>| {
            let dot_git = worktree.path.join(super::os_path(path)).join(".git");
            fs::symlink_metadata(dot_git).is_ok()
        };
        Ok(all.into_iter().filter(is_checked_out).collect())
    }

    /// Records which repositories of a worktree could not be committed because they have no commit.
    pub(super) fn save_without_commit(
        &self,
        worktree: &Worktree,
        paths: &[String],
    ) -> Result<(), GitError> {
        let file = worktree.admin.join(WITHOUT_COMMIT);
        if paths.is_empty() {
            return match fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(error).at("remove", &file)
                }
                _ => Ok(()),
            };
        }
        let listed = &paths[..paths.len().min(LISTED_MAX)];
        files::save_json(&file, &listed).at("write", &file)
    }

    /// The repositories without a commit that were in a worktree when its work was committed last, and
    /// still are. No process is started.
    pub fn repositories_without_commit(&self, worktree: &Worktree) -> Vec<String> {
        let file = worktree.admin.join(WITHOUT_COMMIT);
        let listed: Vec<String> = files::load_json(&file).unwrap_or_default();
        let is_there = |path: &String| {
            is_below(path) && fs::symlink_metadata(worktree.path.join(path).join(".git")).is_ok()
        };
        listed
            .into_iter()
            .take(LISTED_MAX)
            .filter(is_there)
            .collect()
    }

    /// Carries out what a person decided about an embedded repository, and commits it on the task's
    /// branch. After a crash at any point, doing it again completes it.
    ///
    /// # Errors
    /// When files can't be moved or git refuses.
    pub async fn decide_embedded(
        &self,
        worktree: &Worktree,
        path: &str,
        choice: &EmbeddedChoice,
        reviewed: &CommitId,
        with: &CommitWith,
    ) -> Result<DecidedEmbedded, GitError> {
        let dir = worktree.path.join(path);
        if !is_below(path) || !has_plain_parents(&worktree.path, path) {
            return Err(GitError::PathTaken(dir));
        }
        let is_dir = fs::symlink_metadata(&dir).is_ok_and(|meta| meta.is_dir());
        let mut kept = None;
        match choice {
            EmbeddedChoice::AddFiles => {
                if is_dir {
                    kept = keep_history(worktree, path, with, "")?;
                }
                self.change_index(worktree, &["--force-remove"], path)
                    .await?;
            }
            EmbeddedChoice::Drop => {
                if fs::symlink_metadata(&dir).is_ok() {
                    let aside = kept_path(worktree, path, with, "")?;
                    fs::rename(&dir, &aside).at("move", &dir)?;
                    kept = Some(aside);
                }
                self.change_index(worktree, &["--force-remove"], path)
                    .await?;
            }
            EmbeddedChoice::Submodule { url } => {
                self.declare_submodule(worktree, path, url).await?;
            }
        }
        let done = self.commit_all(worktree, with).await?;
        if let EmbeddedChoice::Submodule { .. } = choice
            && is_dir
        {
            // It may hold the only copy of the commit that lands, and the worktree goes then.
            kept = keep_history(worktree, path, with, "submodule-")?;
        }
        let head = if done.head == *reviewed {
            self.commit_same_tree(worktree, &done.head, with).await?
        } else {
            done.head
        };
        Ok(DecidedEmbedded { head, kept })
    }

    /// Changes one path of a worktree's index.
    async fn change_index(
        &self,
        worktree: &Worktree,
        args: &[&str],
        path: &str,
    ) -> Result<(), GitError> {
        self.clear_locks_of(worktree).await?;
        let args = [&["update-index"], args, &["-z", "--stdin"]].concat();
        let git = self.git_in(worktree, args).write();
        git.stdin(format!("{path}\0")).run().await.map(|_| ())
    }

    async fn declare_submodule(
        &self,
        worktree: &Worktree,
        path: &str,
        url: &str,
    ) -> Result<(), GitError> {
        let file = worktree.path.join(GITMODULES);
        match fs::symlink_metadata(&file) {
            Ok(meta) if !meta.is_file() => return Err(GitError::PathTaken(file)),
            _ => {}
        }
        for (key, value) in [("path", path), ("url", url)] {
            // It is not declared before both are there.
            let key = format!("submodule.{path}.{key}");
            let git = self.git(["config", "--file"]).arg(&file);
            let git = git.arg("--").arg(key).arg(value);
            git.write().run().await?;
        }
        self.change_index(worktree, &["--add"], GITMODULES).await
    }

    /// A commit without changes, so that a result whose tree stays the same is verified again.
    async fn commit_same_tree(
        &self,
        worktree: &Worktree,
        head: &CommitId,
        with: &CommitWith,
    ) -> Result<CommitId, GitError> {
        let tree = self.tree_of(head).await?;
        let date = git_date(with.now);
        let git = self.git(["commit-tree", tree.as_str(), "-p", head.as_str()]);
        let git = signed(git, (&with.author, &date), (&with.author, &date));
        let made = git.stdin(with.message.as_str()).durable().text().await?;
        let made = parse("commit-tree", &made)?;
        let own = format!("refs/heads/{}", worktree.branch);
        self.move_branch(&own, &made, head).await?;
        Ok(made)
    }

    /// Deletes what choices moved aside before a moment. Says how many directories that were.
    pub fn empty_kept_repositories(
        &self,
        worktrees: &Path,
        before: Timestamp,
    ) -> Result<usize, GitError> {
        let mut emptied = 0;
        for dir in files::subdirectories(&worktrees.join(KEPT)) {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            let moved_at = name.split('-').next().and_then(|ms| ms.parse::<i64>().ok());
            if moved_at.is_some_and(|ms| ms < before.0) {
                fs::remove_dir_all(&dir).at("remove", &dir)?;
                emptied += 1;
            }
        }
        Ok(emptied)
    }
}

/// Moves the `.git` of an embedded repository aside, whatever it is; `None` where there is none.
fn keep_history(
    worktree: &Worktree,
    path: &str,
    with: &CommitWith,
    prefix: &str,
) -> Result<Option<PathBuf>, GitError> {
    let dot_git = worktree.path.join(path).join(".git");
    if fs::symlink_metadata(&dot_git).is_err() {
        return Ok(None);
    }
    let aside = kept_path(worktree, path, with, prefix)?;
    fs::create_dir(&aside).at("create", &aside)?;
    fs::rename(&dot_git, aside.join(".git")).at("move", &dot_git)?;
    Ok(Some(aside))
}

/// A fresh place, on the same file system as the worktree, for what is moved out of it. Where its
/// name begins with the time, that is by which it is deleted one day.
fn kept_path(
    worktree: &Worktree,
    path: &str,
    with: &CommitWith,
    prefix: &str,
) -> Result<PathBuf, GitError> {
    let Some(parent) = worktree.path.parent() else {
        return Err(GitError::Gone(worktree.path.clone()));
    };
    let kept = parent.join(KEPT);
    fs::create_dir_all(&kept).at("create", &kept)?;
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '_'
        }
    };
    let name: String = path.chars().take(NAME_BYTES_MAX).map(plain).collect();
    let stem = format!(
        "{prefix}{}-{}-{name}",
        with.now.0,
        with.task.replace('/', "-")
    );
    Ok(kept.join(unique(&stem)))
}

/// Whether a path names something below a worktree, and nothing of git's own.
fn is_below(path: &str) -> bool {
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        _ => false,
    };
    !path.is_empty() && Path::new(path).components().all(is_plain)
}

/// Whether all directories above a path are real ones: nothing is moved through a symbolic link.
fn has_plain_parents(root: &Path, path: &str) -> bool {
    let parents = Path::new(path).ancestors().skip(1);
    let mut parents = parents.filter(|parent| !parent.as_os_str().is_empty());
    parents.all(|parent| {
        // What is gone leads nowhere.
        fs::symlink_metadata(root.join(parent)).map_or(true, |meta| meta.is_dir())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_below_the_worktree_are_moved() {
        for path in ["lib", "vendor/lib", "-x", "a b"] {
            assert!(is_below(path), "{path}");
        }
        for path in ["", "/etc", "../x", "a/../../x", ".git", "a/.GIT/x", "."] {
            assert!(!is_below(path), "{path}");
        }
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("real")).unwrap();
        std::os::unix::fs::symlink("/etc", root.path().join("link")).unwrap();
        assert!(has_plain_parents(root.path(), "lib"));
        assert!(has_plain_parents(root.path(), "real/lib"));
        assert!(!has_plain_parents(root.path(), "link/lib"));
    }
}
