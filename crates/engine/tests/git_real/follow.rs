//! A checkout follows its branch, and nobody's work is touched.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use woodward_core::CommitId;

use crate::support::{Scratch, git, put, read, rev};

/// A repository whose `main` is to go from `old` to `new`, with all kinds of changes between them.
struct Moving {
    scratch: Scratch,
    old: CommitId,
    new: CommitId,
}

impl Moving {
    async fn new() -> Self {
        let scratch = Scratch::new().await;
        let root = &scratch.root;
        put(root, "exec.sh", "#!/bin/sh\n");
        put(root, "was-file", "f\n");
        put(root, "was-dir/x", "x\n");
        put(root, "was-dir/deep/y", "y\n");
        put(root, "gone/only", "o\n");
        put(root, "kept.txt", "kept\n");
        symlink("a.txt", root.join("link")).unwrap();
        let old = scratch.commit(&[]);
        scratch.git(&["checkout", "-q", "-b", "next"]);
        fs::set_permissions(root.join("exec.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(root.join("was-file")).unwrap();
        fs::remove_dir_all(root.join("was-dir")).unwrap();
        fs::remove_dir_all(root.join("gone")).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink("dir/b.txt", root.join("link")).unwrap();
        let new = scratch.commit(&[
            ("a.txt", "one\nnew\n"),
            ("was-file/inside", "i\n"),
            ("was-dir", "now a file\n"),
            ("new dir/\"new\".txt", "n\n"),
        ]);
        scratch.git(&["checkout", "-q", "main"]);
        Self { scratch, old, new }
    }

    fn root(&self) -> &Path {
        &self.scratch.root
    }

    /// Lands: the branch moves first, as it does in life.
    fn advance(&self) {
        let args = [
            "update-ref",
            "refs/heads/main",
            self.new.as_str(),
            self.old.as_str(),
        ];
        self.scratch.git(&args);
    }

    async fn blockers(&self) -> Vec<String> {
        let repo = &self.scratch.repo;
        repo.blockers(self.root(), &self.old, &self.new)
            .await
            .unwrap()
    }

    async fn follow(&self) -> Vec<String> {
        let repo = &self.scratch.repo;
        repo.follow(self.root(), &self.old, &self.new)
            .await
            .unwrap()
            .left
    }

    fn status(&self) -> String {
        self.scratch
            .git(&["status", "--porcelain", "--untracked-files=all"])
    }
}

#[tokio::test]
async fn a_clean_checkout_follows() {
    let moving = Moving::new().await;
    assert_eq!(moving.blockers().await, [""; 0]);
    moving.advance();
    assert_eq!(moving.follow().await, [""; 0]);
    assert_eq!(moving.status(), "");
    assert_eq!(read(moving.root(), "was-dir"), "now a file\n");
    assert!(!moving.root().join("gone").exists());
    // Once more changes nothing.
    let repo = &moving.scratch.repo;
    let again = repo
        .follow(moving.root(), &moving.old, &moving.new)
        .await
        .unwrap();
    assert_eq!((again.changed, again.left.len()), (0, 0));
    assert_eq!(moving.status(), "");
}

#[tokio::test]
async fn unrelated_work_stays_exactly_as_it_is() {
    let moving = Moving::new().await;
    let root = moving.root();
    put(root, "kept.txt", "staged\n");
    moving.scratch.git(&["add", "kept.txt"]);
    put(root, "kept.txt", "and dirty\n");
    put(root, "untracked", "u\n");
    put(root, "staged-new", "s\n");
    moving.scratch.git(&["add", "staged-new"]);
    let before = moving.status();
    assert_eq!(moving.blockers().await, [""; 0]);
    moving.advance();
    assert_eq!(moving.follow().await, [""; 0]);
    assert_eq!(moving.status(), before);
    assert_eq!(git(root, &["show", ":kept.txt"]), "staged");
    assert_eq!(read(root, "kept.txt"), "and dirty\n");
}

#[tokio::test]
async fn overlapping_work_is_named_and_left_alone() {
    let moving = Moving::new().await;
    let root = moving.root();
    put(root, "a.txt", "mine\n");
    put(root, "new dir/\"new\".txt", "mine too\n");
    put(root, "was-dir/untracked", "here first\n");
    fs::remove_file(root.join("exec.sh")).unwrap();
    put(root, "gone/only", "staged\n");
    moving.scratch.git(&["add", "gone/only"]);
    put(root, "gone/only", "o\n");
    let blockers = moving.blockers().await;
    let expected = [
        "a.txt",
        "exec.sh",
        "gone/only",
        "new dir/\"new\".txt",
        "was-dir",
    ];
    assert_eq!(blockers, expected);
    moving.advance();
    assert_eq!(moving.follow().await, expected);
    assert_eq!(read(root, "a.txt"), "mine\n");
    assert_eq!(read(root, "new dir/\"new\".txt"), "mine too\n");
    assert_eq!(read(root, "was-dir/untracked"), "here first\n");
    assert!(!root.join("exec.sh").exists());
    assert_eq!(git(root, &["show", ":gone/only"]), "staged");
    assert_eq!(read(root, "was-file/inside"), "i\n");
}

#[tokio::test]
async fn ignored_files_are_not_overwritten_either() {
    let scratch = Scratch::new().await;
    let old = scratch.head();
    scratch.git(&["checkout", "-q", "-b", "next"]);
    put(&scratch.root, ".env", "from a commit");
    scratch.git(&["add", "-f", ".env"]);
    scratch.git(&["commit", "-q", "-m", "env"]);
    let new = scratch.head();
    scratch.git(&["checkout", "-q", "main"]);
    put(&scratch.root, ".env", "precious");
    let blockers = scratch
        .repo
        .blockers(&scratch.root, &old, &new)
        .await
        .unwrap();
    assert_eq!(blockers, [".env"]);
    scratch
        .repo
        .follow(&scratch.root, &old, &new)
        .await
        .unwrap();
    assert_eq!(read(&scratch.root, ".env"), "precious");
}

#[tokio::test]
async fn a_follow_that_was_cut_off_is_finished_by_calling_again() {
    // Any number of files may have been written, and the index may be old or new.
    let probe = Moving::new().await;
    let diff = [
        "diff",
        "--name-only",
        "-z",
        "--no-renames",
        probe.old.as_str(),
        probe.new.as_str(),
    ];
    let changed = probe.scratch.git(&diff);
    let paths: Vec<&str> = changed.split_terminator('\0').collect();
    assert!(paths.len() >= 9);
    for done in 0..=paths.len() {
        for index_too in [false, true] {
            let moving = Moving::new().await;
            moving.advance();
            let root = moving.root();
            // What goes away goes first, then files are written.
            let exists =
                |path: &str| !git(root, &["ls-tree", moving.new.as_str(), "--", path]).is_empty();
            let is_blob = |path: &str| {
                git(
                    root,
                    &[
                        "ls-tree",
                        "-r",
                        "--name-only",
                        "-z",
                        moving.new.as_str(),
                        "--",
                        path,
                    ],
                )
                .trim_end_matches('\0')
                    == path
            };
            let (write, remove): (Vec<&&str>, Vec<&&str>) =
                paths.iter().partition(|path| exists(path) && is_blob(path));
            for path in remove.into_iter().chain(write).take(done) {
                let file = root.join(path);
                if exists(path) && is_blob(path) {
                    if file.is_dir() {
                        let _ = fs::remove_dir_all(&file);
                    }
                    git(
                        root,
                        &[
                            "--work-tree=.",
                            "restore",
                            "--worktree",
                            "--source",
                            moving.new.as_str(),
                            "--",
                            path,
                        ],
                    );
                } else {
                    fs::remove_file(&file).unwrap();
                }
            }
            if index_too && done == paths.len() {
                git(root, &["read-tree", moving.new.as_str()]);
            }
            assert_eq!(moving.follow().await, [""; 0], "after {done}");
            assert_eq!(moving.status(), "", "after {done}");
        }
    }
}

#[tokio::test]
async fn content_goes_through_the_checkouts_filters() {
    let scratch = Scratch::new().await;
    scratch.git(&["config", "core.autocrlf", "true"]);
    put(&scratch.root, "crlf.txt", "1\r\n2\r\n");
    put(&scratch.root, "touched.txt", "1\r\n");
    let old = scratch.commit(&[]);
    let new = scratch.branch(
        "next",
        "main",
        &[("crlf.txt", "1\r\n3\r\n"), ("touched.txt", "2\r\n")],
    );
    // Same content, new times: git has to read it again.
    put(&scratch.root, "touched.txt", "1\r\n");
    scratch.git(&["update-ref", "refs/heads/main", new.as_str(), old.as_str()]);
    let followed = scratch
        .repo
        .follow(&scratch.root, &old, &new)
        .await
        .unwrap();
    assert_eq!(followed.left, [""; 0]);
    assert_eq!(read(&scratch.root, "crlf.txt"), "1\r\n3\r\n");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
}

#[tokio::test]
async fn nothing_is_written_through_a_symlink() {
    let scratch = Scratch::new().await;
    let old = scratch.head();
    let new = scratch.branch(
        "next",
        "main",
        &[("dir/b.txt", "new\n"), ("dir/c.txt", "c\n")],
    );
    let outside = scratch.top.join("outside");
    put(&outside, "b.txt", "two\n");
    fs::remove_dir_all(scratch.root.join("dir")).unwrap();
    symlink(&outside, scratch.root.join("dir")).unwrap();
    let expected = ["dir/b.txt", "dir/c.txt"];
    let blockers = scratch
        .repo
        .blockers(&scratch.root, &old, &new)
        .await
        .unwrap();
    assert_eq!(blockers, expected);
    let left = scratch
        .repo
        .follow(&scratch.root, &old, &new)
        .await
        .unwrap()
        .left;
    assert_eq!(left, expected);
    assert_eq!(read(&outside, "b.txt"), "two\n");
    assert!(!outside.join("c.txt").exists());
}

#[tokio::test]
async fn a_linked_checkout_follows_too() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    let old = scratch.head();
    let new = scratch.branch("next", "main", &[("a.txt", "new\n")]);
    scratch.git(&["update-ref", "refs/heads/woodward/t/1", new.as_str()]);
    let left = scratch
        .repo
        .follow(&worktree.path, &old, &new)
        .await
        .unwrap()
        .left;
    assert_eq!(left, [""; 0]);
    assert_eq!(git(&worktree.path, &["status", "--porcelain"]), "");
    assert_eq!(rev(&worktree.path, "HEAD"), new);
}
