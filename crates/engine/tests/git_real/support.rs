//! A repository to play with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use woodward_core::{CommitId, Timestamp};
use woodward_engine::git::{CommitWith, Door, Repo, Signature, Worktree, WorktreeSpec};

pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// A repository with one commit on `main`, and the handle to it.
pub(crate) struct Scratch {
    _dir: TempDir,
    pub(crate) top: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) repo: Repo,
}

impl Scratch {
    pub(crate) async fn new() -> Self {
        Self::with(&[]).await
    }

    pub(crate) async fn with(init: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        let root = top.join("repo");
        fs::create_dir(&root).unwrap();
        git(&root, &[&["init", "-q", "-b", "main"], init].concat());
        git(&root, &["config", "user.name", "Ada"]);
        git(&root, &["config", "user.email", "ada@example.org"]);
        put(&root, "a.txt", "one\n");
        put(&root, "dir/b.txt", "two\n");
        put(&root, ".gitignore", "ignored/\n.env\n");
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-q", "-m", "first"]);
        let repo = Repo::discover(&Door::new("tests"), &root).await.unwrap();
        Self {
            _dir: dir,
            top,
            root,
            repo,
        }
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.root, args)
    }

    pub(crate) fn head(&self) -> CommitId {
        rev(&self.root, "HEAD")
    }

    pub(crate) fn spec(&self, task: &str) -> WorktreeSpec {
        WorktreeSpec {
            path: self.repo.worktrees_dir().join(task),
            branch: format!("woodward/{task}/1"),
            start: self.head(),
            own: Some(format!("woodward/{task}")),
            lock_reason: format!("woodward: task {task}"),
        }
    }

    pub(crate) async fn worktree(&self, task: &str) -> Worktree {
        self.repo.create_worktree(&self.spec(task)).await.unwrap()
    }

    pub(crate) fn commit_with(&self, task: &str) -> CommitWith {
        CommitWith {
            task: task.into(),
            message: "work\n".into(),
            author: Signature::new("Agent", "agent@example.org"),
            now: NOW,
            is_from_run: false,
        }
    }

    /// Commits a change on a new branch off `from` and goes back to `main`.
    pub(crate) fn branch(&self, name: &str, from: &str, files: &[(&str, &str)]) -> CommitId {
        self.git(&["checkout", "-q", "-b", name, from]);
        let id = self.commit(files);
        self.git(&["checkout", "-q", "main"]);
        id
    }

    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> CommitId {
        for (path, text) in files {
            put(&self.root, path, text);
        }
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "change"]);
        self.head()
    }
}

/// Plain git, as a person or an agent runs it.
pub(crate) fn try_git(dir: &Path, args: &[&str]) -> Output {
    Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C")
        .output()
        .unwrap()
}

#[track_caller]
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let out = try_git(dir, args);
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "git {args:?}: {stderr}");
    String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
}

#[track_caller]
pub(crate) fn rev(dir: &Path, name: &str) -> CommitId {
    git(dir, &["rev-parse", "--verify", name]).parse().unwrap()
}

pub(crate) fn put(dir: &Path, path: &str, text: &str) {
    let file = dir.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

pub(crate) fn read(dir: &Path, path: &str) -> String {
    fs::read_to_string(dir.join(path)).unwrap()
}

#[track_caller]
pub(crate) fn fsck(dir: &Path) {
    git(dir, &["fsck", "--full", "--strict", "--no-dangling"]);
}

/// Waits for a condition; fails when it does not come true.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::yield_now();
    }
}
