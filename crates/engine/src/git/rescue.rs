//! Work that is not committed, saved where nothing deletes it.
//!
//! A rescue is a commit below `refs/woodward/rescue/<task>/`, in the form of a stash, so that
//! `git stash apply` brings it back. Taking one touches neither the worktree nor its index nor its
//! branch. No code of ours ever deletes a rescue ref.

use std::fs;

use woodward_core::{CommitId, Timestamp, TreeId};

use super::door::Git;
use super::error::{At, GitError};
use super::message::{Signature, git_date, signed};
use super::repo::{Repo, batch_check, parse};
use super::worktree::admin::unique;
use super::worktree::{Worktree, check_branch};

const RESCUES_MAX: usize = 1_000;
pub(crate) const RESCUE: &str = "refs/woodward/rescue";
pub(crate) const ADD_MAX: std::time::Duration = std::time::Duration::from_secs(600);

/// Saved work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescue {
    /// The ref that keeps it.
    pub name: String,
    /// The saved commit.
    pub commit: CommitId,
    /// When it was saved, in seconds since 1970.
    pub time: i64,
    /// Why.
    pub why: String,
}

impl Rescue {
    /// The command that brings the work back into a checkout.
    pub fn restore_hint(&self) -> String {
        format!("git stash apply {}", self.name)
    }
}

/// What is in a worktree beyond its commit.
pub(crate) struct Loose {
    /// The commit that is checked out.
    pub(crate) head: CommitId,
    /// The tree of that commit.
    pub(crate) head_tree: CommitId,
    /// All files that are not ignored.
    pub(crate) files: CommitId,
    /// What is staged, when it can be written as a tree.
    pub(crate) staged: Option<CommitId>,
}

impl Loose {
    fn is_clean(&self) -> bool {
        let staged = self.staged.as_ref().unwrap_or(&self.files);
        self.files == self.head_tree && *staged == self.head_tree
    }
}

/// Some of a worktree could not be staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotAdded {
    /// The embedded repositories among it: those without a commit.
    pub(crate) repositories: Vec<String>,
}

/// The question what differs from the commit, whatever an agent's configuration would leave out.
pub(crate) fn status(git: impl FnOnce(&[&str]) -> Git) -> Git {
    let args = [
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=normal",
        // What is uncommitted inside an embedded repository can't be saved here, and looking for it
        // would start git there.
        "--ignore-submodules=dirty",
    ];
    git(&args).config("core.untrackedCache=false")
}

impl Repo {
    /// Saves what is uncommitted or untracked (and not ignored) in a worktree; `None` when that is
    /// nothing.
    pub async fn snapshot(
        &self,
        worktree: &Worktree,
        task: &str,
        why: &str,
        now: Timestamp,
    ) -> Result<Option<Rescue>, GitError> {
        check_branch(task)?;
        if self.is_pristine(worktree).await {
            return Ok(None);
        }
        let loose = self.loose(worktree).await?;
        if loose.is_clean() {
            return Ok(None);
        }
        let commit = self.stash_commit(&loose, why, now).await?;
        Ok(Some(self.pin_rescue(task, commit, why, now).await?))
    }

    /// Whether git says that there is nothing in a worktree beyond its commit, staged or not. Whatever
    /// keeps it from answering means no.
    pub(crate) async fn is_pristine(&self, worktree: &Worktree) -> bool {
        if !worktree.path.is_dir() {
            return false;
        }
        let asked = status(|args| self.git_in(worktree, args));
        matches!(asked.timeout(ADD_MAX).run().await, Ok(answer) if answer.stdout.is_empty())
    }

    /// The tree of all files in a worktree that are not ignored, committed or not.
    pub async fn tree_of_worktree(&self, worktree: &Worktree) -> Result<TreeId, GitError> {
        Ok(TreeId::from(self.loose(worktree).await?.files))
    }

    /// Looks at a worktree through a copy of its index.
    pub(crate) async fn loose(&self, worktree: &Worktree) -> Result<Loose, GitError> {
        if !worktree.path.is_dir() {
            return Err(GitError::Gone(worktree.path.clone()));
        }
        let asked = self.git_in(worktree, ["cat-file", "--batch-check=%(objectname)"]);
        let found = batch_check(asked, ["HEAD^{commit}", "HEAD^{tree}"]).await?;
        let [Some(head), Some(head_tree)] = &found[..] else {
            return Err(GitError::NoSuchCommit {
                rev: "HEAD".into(),
                repo: worktree.path.clone(),
            });
        };
        let index = worktree.admin.join(unique("woodward-index"));
        let looked = self.look(worktree, &index).await;
        for left in [index.clone(), index.with_extension("lock")] {
            let _ = fs::remove_file(left);
        }
        let (files, staged) = looked?;
        Ok(Loose {
            head: head.clone(),
            head_tree: head_tree.clone(),
            files,
            staged,
        })
    }

    async fn look(
        &self,
        worktree: &Worktree,
        index: &std::path::Path,
    ) -> Result<(CommitId, Option<CommitId>), GitError> {
        let real = worktree.admin.join("index");
        if real.is_file() {
            fs::copy(&real, index).at("copy", &real)?;
        }
        let with = |args: &[&str]| self.git_in(worktree, args).env("GIT_INDEX_FILE", index);
        // 128: some paths are unmerged, or the index is broken. The files themselves are saved.
        let staged = with(&["write-tree"]).durable().accept(128).run().await?;
        let staged = (staged.code == 0)
            .then(|| parse("write-tree", &staged.text()))
            .transpose()?;
        let fresh = || self.fresh_index(worktree, index);
        self.add_all(worktree, index, |args| with(args), fresh)
            .await?;
        let files = with(&["write-tree"]).durable().text().await?;
        Ok((parse("write-tree", &files)?, staged))
    }

    /// Replaces an index by what is committed.
    async fn fresh_index(
        &self,
        worktree: &Worktree,
        index: &std::path::Path,
    ) -> Result<(), GitError> {
        let _ = fs::remove_file(index);
        let read = self
            .git_in(worktree, ["read-tree", "HEAD"])
            .env("GIT_INDEX_FILE", index);
        read.write().run().await.map(|_| ())
    }

    /// Stages everything that is not ignored. A broken index is replaced once; what git can't add
    /// (a nested repository without a commit, an unreadable file) is left out and reported. No git is
    /// started inside an embedded repository.
    pub(crate) async fn add_all<G, F, R>(
        &self,
        worktree: &Worktree,
        index: &std::path::Path,
        with: G,
        fresh: F,
    ) -> Result<Option<NotAdded>, GitError>
    where
        G: Fn(&[&str]) -> Git,
        F: Fn() -> R,
        R: Future<Output = Result<(), GitError>>,
    {
        let update = |paths: Vec<u8>| {
            let args = &[
                "update-index",
                "--add",
                "--remove",
                "--replace",
                "-z",
                "--stdin",
            ];
            let git = with(args).durable().stdin(paths);
            git.timeout(ADD_MAX).accept(128).run()
        };
        // `git add` looks for changes inside checked-out submodules with their own configuration;
        // `update-index` only reads which commit is checked out.
        let submodules = self.checked_out_submodules(worktree, index, &with).await?;
        let mut pathspecs = b".\0".to_vec();
        for path in &submodules {
            pathspecs.extend([b":(exclude,literal)", path.as_slice(), b"\0"].concat());
        }
        let add = |args: &[&str]| {
            let git = if submodules.is_empty() {
                with(&[args, &["--", "."]].concat())
            } else {
                let from_stdin = ["--pathspec-from-file=-", "--pathspec-file-nul"];
                with(&[args, &from_stdin].concat()).stdin(pathspecs.clone())
            };
            git.durable().timeout(ADD_MAX).accept(1).accept(128).run()
        };
        let add_submodules = || async {
            if !submodules.is_empty() {
                update([submodules.join(&0), vec![0]].concat()).await?;
            }
            Ok::<(), GitError>(())
        };
        if add(&["add", "--all"]).await?.code == 0 {
            add_submodules().await?;
            return Ok(None);
        }
        if with(&["ls-files", "--stage", "-z"])
            .accept(128)
            .run()
            .await?
            .code
            != 0
        {
            fresh().await?;
        }
        let added = add(&["add", "--all", "--ignore-errors"]).await?;
        add_submodules().await?;
        if added.code == 0 {
            return Ok(None);
        }
        // One path that git refuses must not keep the others out.
        let listed = with(&[
            "ls-files",
            "--others",
            "--modified",
            "--deleted",
            "--exclude-standard",
            "-z",
        ]);
        let listed = listed.run().await?;
        let paths: Vec<u8> = listed
            .fields()
            .filter(|path| !path.ends_with(b"/"))
            .flat_map(|path| [path, b"\0"].concat())
            .collect();
        update(paths).await?;
        let repository = |path: &[u8]| {
            let path = String::from_utf8_lossy(path.strip_suffix(b"/")?).into_owned();
            let dot_git = worktree.path.join(&path).join(".git");
            fs::symlink_metadata(dot_git).is_ok().then_some(path)
        };
        Ok(Some(NotAdded {
            repositories: listed.fields().filter_map(repository).collect(),
        }))
    }

    async fn stash_commit(
        &self,
        loose: &Loose,
        why: &str,
        now: Timestamp,
    ) -> Result<CommitId, GitError> {
        let by = Signature::new("Woodward", "woodward@localhost");
        let date = git_date(now);
        let commit = |tree: CommitId, parents: Vec<CommitId>, text: String| {
            let mut git = self.git(["commit-tree", tree.as_str()]);
            for parent in parents {
                git = git.arg("-p").arg(parent.as_str());
            }
            let git = signed(git, (&by, &date), (&by, &date)).durable();
            async move { parse("commit-tree", &git.stdin(text).text().await?) }
        };
        let staged = loose
            .staged
            .clone()
            .unwrap_or_else(|| loose.head_tree.clone());
        let index = commit(staged, vec![loose.head.clone()], "index\n".into()).await?;
        let parents = vec![loose.head.clone(), index];
        let text = super::message::compose(why, &super::message::Trailers::default());
        commit(loose.files.clone(), parents, text).await
    }

    /// Keeps a commit under a new rescue ref.
    pub(crate) async fn pin_rescue(
        &self,
        task: &str,
        commit: CommitId,
        why: &str,
        now: Timestamp,
    ) -> Result<Rescue, GitError> {
        let name = format!("{RESCUE}/{task}/{}", woodward_store::fresh_uuid());
        self.pin(&name, &commit).await?;
        Ok(Rescue {
            name,
            commit,
            time: now.0.div_euclid(1_000),
            why: why.to_owned(),
        })
    }

    /// What was saved of a task, newest first.
    pub async fn rescues(&self, task: &str) -> Result<Vec<Rescue>, GitError> {
        check_branch(task)?;
        let format = "--format=%(refname)%00%(objectname)%00%(creatordate:unix)%00%(subject)%00";
        let count = format!("--count={RESCUES_MAX}");
        let below = format!("{RESCUE}/{task}/");
        let asked = self.git([
            "for-each-ref",
            &count,
            "--sort=-creatordate",
            format,
            &below,
        ]);
        let answer = asked.run().await?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let fields: Vec<&str> = text
            .split('\0')
            .map(|field| field.trim_start_matches('\n'))
            .collect();
        fields
            .chunks_exact(4)
            .map(|row| {
                Ok(Rescue {
                    name: row[0].to_owned(),
                    commit: parse("for-each-ref", row[1])?,
                    time: row[2].parse().unwrap_or_default(),
                    why: row[3].to_owned(),
                })
            })
            .collect()
    }
}
