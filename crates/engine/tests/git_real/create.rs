//! Making worktrees, also when git is killed in the middle.

use std::fs;
use std::path::Path;

use woodward_engine::git::{Door, GitError, Repo};
use woodward_testkit::write_program;

use crate::support::{Scratch, fsck, git, put, read};

#[tokio::test]
async fn a_worktree_is_a_full_clean_checkout_of_its_branch() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    assert_eq!(read(&worktree.path, "dir/b.txt"), "two\n");
    assert_eq!(
        git(&worktree.path, &["status", "--short", "--branch"]),
        "## woodward/t/1"
    );
    let list = scratch.git(&["worktree", "list", "--porcelain"]);
    assert!(
        list.contains("branch refs/heads/woodward/t/1\nlocked woodward: task t"),
        "{list}"
    );
    assert_eq!(git(&worktree.path, &["config", "gc.auto"]), "0");
    // The person's own checkout has none of it.
    assert!(
        !crate::support::try_git(&scratch.root, &["config", "core.hooksPath"])
            .status
            .success()
    );
    scratch.git(&["worktree", "prune"]);
    scratch.git(&["worktree", "repair"]);
    assert_eq!(scratch.worktree("t").await, worktree);
    fsck(&scratch.root);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn thirty_two_at_once_all_succeed() {
    let scratch = Scratch::new().await;
    let mut making = Vec::new();
    for n in 0..32 {
        // Two daemons at once: the turn holds between handles, too.
        let repo = Repo::discover(&Door::new("tests"), &scratch.root)
            .await
            .unwrap();
        let spec = scratch.spec(&format!("t{n}"));
        making.push(tokio::spawn(
            async move { repo.create_worktree(&spec).await },
        ));
    }
    for made in making {
        let worktree = made.await.unwrap().unwrap();
        assert_eq!(git(&worktree.path, &["status", "--short"]), "");
    }
    let branches = scratch.git(&["for-each-ref", "refs/heads/woodward"]);
    assert_eq!(branches.lines().count(), 32);
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 33);
    assert_eq!(scratch.repo.locks(), Vec::<std::path::PathBuf>::new());
    assert_eq!(
        fs::read_dir(scratch.root.join(".git/woodward/new"))
            .unwrap()
            .count(),
        0
    );
    fsck(&scratch.root);
}

#[tokio::test]
async fn foreign_directories_and_branches_are_left_alone() {
    let scratch = Scratch::new().await;
    let spec = scratch.spec("t");
    put(&spec.path, "mine", "precious");
    let refused = scratch.repo.create_worktree(&spec).await.unwrap_err();
    assert!(
        matches!(refused, GitError::PathTaken(_)) && refused.hint().is_some(),
        "{refused}"
    );
    assert_eq!(read(&spec.path, "mine"), "precious");
    assert!(scratch.repo.tip(&spec.branch).await.unwrap().is_none());

    let mut spec = scratch.spec("u");
    scratch.git(&["branch", &spec.branch]);
    for _ in 0..2 {
        let refused = scratch.repo.create_worktree(&spec).await.unwrap_err();
        assert!(
            matches!(refused, GitError::BranchTaken { .. }) && refused.hint().is_some(),
            "{refused}"
        );
    }
    scratch.git(&["pack-refs", "--all"]);
    assert!(scratch.repo.create_worktree(&spec).await.is_err());
    assert!(!spec.path.exists());

    // A branch where a directory of branches is needed.
    spec.branch = "main/x".into();
    assert!(scratch.repo.create_worktree(&spec).await.is_err());
    assert!(!spec.path.exists());
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1);

    for bad in [
        "-x", "a b", "a..b", "$(id)", "x.lock", "a//b", "", "a;b", "@{u}", "grüße",
    ] {
        spec.branch = bad.into();
        let refused = scratch.repo.create_worktree(&spec).await.unwrap_err();
        assert!(
            matches!(refused, GitError::BadName { .. }),
            "{bad}: {refused}"
        );
    }
    let other = scratch.worktree("v").await;
    let mut second = scratch.spec("w");
    second.path = other.path;
    assert!(matches!(
        scratch.repo.create_worktree(&second).await.unwrap_err(),
        GitError::PathTaken(_)
    ));
}

/// A git that dies by SIGKILL at the n-th of its own system calls that matter: the wrapper counts
/// processes and kills the real git after a random while.
fn killing_git(dir: &Path, delay_ms: u64) -> std::path::PathBuf {
    let script = dir.join(format!("git-{delay_ms}"));
    let body = format!(
        "#!/bin/sh\ncase \"$*\" in *' reset '*|*' update-ref '*) ;; *) exec git \"$@\" ;; esac\n\
         git \"$@\" & child=$!\nsleep {}\nkill -9 $child 2>/dev/null\nwait $child\n",
        delay_ms as f64 / 10_000.0
    );
    write_program(&script, &body);
    script
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn git_killed_at_any_moment_is_made_good_by_calling_again() {
    let scratch = Scratch::new().await;
    for n in 0..150 {
        put(
            &scratch.root,
            &format!("many/{n}"),
            &format!("{n}\n").repeat(200),
        );
    }
    scratch.commit(&[]);
    let mut cut_off = 0;
    for delay in (0..40).map(|n| n * 9) {
        let program = killing_git(&scratch.top, delay);
        let door = Door::with_program(program, "tests");
        let spec = scratch.spec(&format!("k{delay}"));
        let hostile = Repo::discover(&door, &scratch.root).await.unwrap();
        if hostile.create_worktree(&spec).await.is_err() {
            cut_off += 1;
        }
        let worktree = scratch.repo.create_worktree(&spec).await.unwrap();
        assert_eq!(git(&worktree.path, &["status", "--short"]), "", "{delay}");
        assert_eq!(
            scratch.repo.tip(&spec.branch).await.unwrap(),
            Some(spec.start.clone())
        );
        assert!(!worktree.admin.join("index.lock").exists());
    }
    assert!(cut_off > 2, "the killing worked only {cut_off} times");
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 41);
    scratch.repo.sweep_locks().await.unwrap();
    assert_eq!(scratch.repo.locks(), Vec::<std::path::PathBuf>::new());
    fsck(&scratch.root);
}

#[tokio::test]
async fn every_half_made_state_is_finished() {
    let scratch = Scratch::new().await;
    let spec = scratch.spec("t");
    let worktree = scratch.worktree("t").await;
    let unfinish = || {
        let mark = worktree.admin.join("woodward.json");
        let text = fs::read_to_string(&mark)
            .unwrap()
            .replace("\"done\":true", "\"done\":false");
        assert!(text.contains("false"));
        fs::write(&mark, text).unwrap();
    };
    // Registered, but neither branch nor directory.
    unfinish();
    scratch.git(&["update-ref", "-d", "refs/heads/woodward/t/1"]);
    fs::remove_dir_all(&worktree.path).unwrap();
    assert_eq!(scratch.repo.create_worktree(&spec).await.unwrap(), worktree);
    // Partly checked out, with the lock of a git that was killed.
    unfinish();
    fs::remove_file(worktree.path.join("a.txt")).unwrap();
    fs::write(worktree.path.join("dir/b.txt"), "tw").unwrap();
    fs::remove_file(worktree.admin.join("index")).unwrap();
    fs::write(worktree.admin.join("index.lock"), "").unwrap();
    assert_eq!(scratch.repo.create_worktree(&spec).await.unwrap(), worktree);
    assert_eq!(git(&worktree.path, &["status", "--short"]), "");
    // An empty directory.
    unfinish();
    fs::remove_dir_all(&worktree.path).unwrap();
    fs::create_dir(&worktree.path).unwrap();
    assert_eq!(scratch.repo.create_worktree(&spec).await.unwrap(), worktree);
    // Finished: work in it is not touched by a second call.
    put(&worktree.path, "a.txt", "work");
    assert_eq!(scratch.repo.create_worktree(&spec).await.unwrap(), worktree);
    assert_eq!(read(&worktree.path, "a.txt"), "work");
    // Unfinished, but somebody else has put a directory there.
    unfinish();
    fs::remove_dir_all(&worktree.path).unwrap();
    put(&worktree.path, "a.txt", "precious");
    assert!(scratch.repo.create_worktree(&spec).await.is_err());
    assert_eq!(read(&worktree.path, "a.txt"), "precious");
}

#[tokio::test]
async fn a_repository_with_reftable_works_too() {
    let scratch = Scratch::with(&["--ref-format=reftable"]).await;
    assert!(scratch.repo.facts().reftable);
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "new", "x");
    git(&worktree.path, &["add", "-A"]);
    git(&worktree.path, &["commit", "-q", "-m", "x"]);
    assert_eq!(
        git(&worktree.path, &["status", "--short", "--branch"]),
        "## woodward/t/1"
    );
    assert_eq!(scratch.worktree("t").await, worktree);
    let spec = scratch.spec("u");
    scratch.git(&["branch", &spec.branch]);
    assert!(matches!(
        scratch.repo.create_worktree(&spec).await.unwrap_err(),
        GitError::BranchTaken { .. }
    ));
}

#[tokio::test]
async fn a_git_directory_elsewhere_keeps_working() {
    let dir = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(dir.path()).unwrap();
    git(
        &top,
        &[
            "init",
            "-q",
            "-b",
            "main",
            "--separate-git-dir",
            "elsewhere",
            "repo",
        ],
    );
    let root = top.join("repo");
    git(&root, &["config", "core.worktree", root.to_str().unwrap()]);
    git(
        &root,
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
    );
    let repo = Repo::discover(&Door::new("tests"), &root).await.unwrap();
    assert_eq!(repo.root(), root);
    let spec = woodward_engine::git::WorktreeSpec {
        path: top.join("repo.worktrees/t"),
        branch: "woodward/t/1".into(),
        start: crate::support::rev(&root, "HEAD"),
        own: None,
        lock_reason: "test".into(),
    };
    let worktree = repo.create_worktree(&spec).await.unwrap();
    assert_eq!(
        git(&worktree.path, &["rev-parse", "--show-toplevel"]),
        worktree.path.to_str().unwrap()
    );
    assert_eq!(
        git(&root, &["rev-parse", "--show-toplevel"]),
        root.to_str().unwrap()
    );
    let found = Repo::discover(&Door::new("tests"), &worktree.path)
        .await
        .unwrap();
    assert_eq!(found.common_dir(), repo.common_dir());
}
