//! A real git repository in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A repository with a `main` branch, removed with its directory when dropped.
#[derive(Debug)]
pub struct TestRepo {
    directory: tempfile::TempDir,
    root: PathBuf,
}

impl TestRepo {
    /// A repository without a commit.
    ///
    /// # Panics
    /// When git can't make one.
    pub fn empty() -> Self {
        Self::empty_as(&[])
    }

    /// A repository without a commit, made with more arguments of `git init`.
    ///
    /// # Panics
    /// When git can't make one.
    pub fn empty_as(more: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory
            .path()
            .canonicalize()
            .expect("a real path")
            .join("shop");
        let repo = Self { directory, root };
        std::fs::create_dir(&repo.root).expect("a new directory");
        let init = ["init", "--quiet", "--initial-branch=main"];
        repo.git(&[&init, more].concat());
        repo
    }

    /// A repository with one commit of these files.
    ///
    /// # Panics
    /// When git can't make one.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let repo = Self::empty();
        repo.commit("first", files);
        repo
    }

    /// Its checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory around it, for whatever belongs to the same test.
    pub fn around(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file of the checkout.
    ///
    /// # Panics
    /// When it can't be written.
    pub fn write(&self, file: &str, text: &str) {
        let path = self.root.join(file);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    /// Reads a file of the checkout.
    ///
    /// # Panics
    /// When it can't be read.
    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.root.join(file)).expect("a readable file")
    }

    /// Commits these files, and nothing else, on the branch that is checked out.
    ///
    /// # Panics
    /// When git refuses.
    pub fn commit(&self, message: &str, files: &[(&str, &str)]) -> String {
        let mut add = vec!["add", "--"];
        for (file, text) in files {
            self.write(file, text);
            add.push(file);
        }
        self.git(&add);
        self.git(&["commit", "--quiet", "-m", message]);
        self.head("HEAD")
    }

    /// Commits all that was changed in the checkout.
    ///
    /// # Panics
    /// When git refuses.
    pub fn commit_all(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", message]);
        self.head("HEAD")
    }

    /// The commit of a revision.
    ///
    /// # Panics
    /// When there is none.
    pub fn head(&self, revision: &str) -> String {
        self.git(&["rev-parse", "--verify", revision])
    }

    /// What git says in the checkout.
    ///
    /// # Panics
    /// When it fails.
    pub fn git(&self, args: &[&str]) -> String {
        let output = self.try_git(args);
        let said = String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {said}{error}");
        said
    }

    /// Asserts that git finds the repository in order.
    ///
    /// `git fsck` takes an object that is written, or a worktree that goes away, under its eyes for
    /// damage. Real damage stays, so it may look again until a daemon at work has come to rest.
    ///
    /// # Panics
    /// When the damage is there to stay.
    pub fn fsck(&self) {
        let mut said = String::new();
        let sound = crate::patience::holds(|| {
            let output = self.try_git(&["fsck", "--strict", "--no-dangling"]);
            said = String::from_utf8_lossy(&output.stderr).into_owned();
            output.status.success()
        });
        assert!(sound, "git fsck: {said}");
    }

    /// What git says in the checkout, also when it fails.
    ///
    /// # Panics
    /// When there is no git.
    pub fn try_git(&self, args: &[&str]) -> Output {
        git(&self.root).args(args).output().expect("git runs")
    }
}

/// git in a directory, free of what the machine's own configuration says.
pub fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Ada")
        .env("GIT_AUTHOR_EMAIL", "ada@example.org")
        .env("GIT_COMMITTER_NAME", "Ada")
        .env("GIT_COMMITTER_EMAIL", "ada@example.org")
        .env("GIT_TERMINAL_PROMPT", "0");
    command
}
