//! Finding and reading repositories.

use std::fs;

use woodward_engine::git::{Door, GitError, OpenError, Repo, Side};

use crate::support::{Scratch, git, put};

async fn open(dir: &std::path::Path) -> Result<Repo, OpenError> {
    Repo::discover(&Door::new("tests"), dir).await
}

#[tokio::test]
async fn what_can_not_be_worked_on_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    let refused = open(top).await.unwrap_err();
    assert!(matches!(refused, OpenError::NotARepository(_)), "{refused}");
    assert!(refused.hint().is_some());

    git(top, &["init", "-q", "--bare", "bare.git"]);
    let refused = open(&top.join("bare.git")).await.unwrap_err();
    assert!(matches!(refused, OpenError::Bare(_)), "{refused}");

    git(top, &["init", "-q", "empty"]);
    let refused = open(&top.join("empty")).await.unwrap_err();
    assert!(matches!(refused, OpenError::Empty(_)), "{refused}");
    assert!(refused.hint().unwrap().to_string().contains("git commit"));

    git(top, &["init", "-q", "broken"]);
    fs::write(top.join("broken/.git/config"), "[core\nbroken").unwrap();
    let refused = open(&top.join("broken")).await.unwrap_err();
    assert!(
        matches!(
            refused,
            OpenError::NotARepository(_) | OpenError::Unreadable { .. }
        ),
        "{refused}"
    );

    let missing = Door::with_program("/nonexistent/git", "tests");
    let refused = Repo::discover(&missing, top).await.unwrap_err();
    assert!(
        matches!(refused, OpenError::Git(GitError::Missing(_))),
        "{refused}"
    );
}

#[tokio::test]
async fn from_a_subdirectory_or_a_linked_worktree_the_main_checkout_is_found() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    for from in [
        scratch.root.join("dir"),
        worktree.path.join("dir"),
        scratch.root.join(".git"),
    ] {
        let found = open(&from).await.unwrap();
        assert_eq!(found.root(), scratch.root, "{}", from.display());
        assert_eq!(found.common_dir(), scratch.root.join(".git"));
    }
}

#[tokio::test]
async fn the_default_base_is_the_branch_checked_out_else_a_usual_one() {
    let scratch = Scratch::new().await;
    assert_eq!(scratch.repo.default_base().await.unwrap(), "main");
    scratch.git(&["checkout", "-q", "-b", "develop"]);
    assert_eq!(scratch.repo.default_base().await.unwrap(), "develop");
    scratch.git(&["checkout", "-q", "--detach"]);
    assert_eq!(scratch.repo.default_base().await.unwrap(), "main");
    assert!(scratch.repo.facts().detached);
    scratch.git(&["branch", "-D", "-q", "main"]);
    let refused = scratch.repo.default_base().await.unwrap_err();
    assert!(
        refused.hint().unwrap().to_string().contains("--base"),
        "{refused}"
    );
}

#[tokio::test]
async fn names_are_resolved_and_rubbish_is_not() {
    let scratch = Scratch::new().await;
    let head = scratch.head();
    assert_eq!(scratch.repo.resolve("main").await.unwrap(), head);
    assert_eq!(
        scratch.repo.resolve(&head.as_str()[..8]).await.unwrap(),
        head
    );
    assert_eq!(scratch.repo.tip("main").await.unwrap(), Some(head.clone()));
    assert_eq!(scratch.repo.tip("nope").await.unwrap(), None);
    for rubbish in [
        "nope",
        "--all",
        "-h",
        "a b",
        "main\nmain",
        "main:a.txt",
        "",
        "\u{1b}[31m",
    ] {
        assert!(scratch.repo.resolve(rubbish).await.is_err(), "{rubbish:?}");
    }
}

#[tokio::test]
async fn files_commits_and_differences_are_read() {
    let scratch = Scratch::new().await;
    let first = scratch.head();
    scratch.git(&["mv", "a.txt", "c.txt"]);
    let second = scratch.commit(&[
        ("bin", "\0\0"),
        ("dir/b.txt", "two\nthree\n"),
        ("näme \t x", "x\n"),
    ]);
    let repo = &scratch.repo;
    assert_eq!(
        repo.file_at(&first, "a.txt").await.unwrap().unwrap(),
        b"one\n"
    );
    assert_eq!(repo.file_at(&second, "a.txt").await.unwrap(), None);
    assert_eq!(repo.file_at(&second, "dir").await.unwrap(), None);
    assert!(repo.is_ancestor(&first, &second).await.unwrap());
    assert!(!repo.is_ancestor(&second, &first).await.unwrap());
    let commits = repo.commits_between(&first, &second).await.unwrap();
    assert_eq!(commits.len(), 1);
    assert_eq!(
        (&commits[0].id, commits[0].subject.as_str()),
        (&second, "change")
    );
    assert_eq!(repo.commits_between(&second, &first).await.unwrap(), []);

    let stats = repo.numstat(&first, Side::Commit(&second)).await.unwrap();
    let stat = |path: &str| stats.iter().find(|stat| stat.path == path).unwrap();
    assert_eq!(stat("bin").lines, None);
    assert_eq!(stat("dir/b.txt").lines, Some((1, 0)));
    assert_eq!(stat("c.txt").was.as_deref(), Some("a.txt"));
    assert_eq!(stat("näme \t x").lines, Some((1, 0)));
    let patch = repo
        .diff(&first, Side::Commit(&second), 1 << 20)
        .await
        .unwrap();
    assert!(!patch.cut && String::from_utf8_lossy(&patch.text).contains("+three"));
    let patch = repo.diff(&first, Side::Commit(&second), 10).await.unwrap();
    assert!(patch.cut && patch.text.len() == 10);
}

#[tokio::test]
async fn a_worktrees_difference_has_its_uncommitted_and_untracked_files() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "new.txt", "1\n2\n");
    put(&worktree.path, "a.txt", "changed\n");
    put(&worktree.path, ".env", "secret\n");
    let base = scratch.head();
    let stats = scratch
        .repo
        .numstat(&base, Side::Worktree(&worktree))
        .await
        .unwrap();
    let paths: Vec<_> = stats.iter().map(|stat| stat.path.as_str()).collect();
    assert_eq!(paths, ["a.txt", "new.txt"]);
    assert_eq!(
        git(&worktree.path, &["status", "--short"]),
        " M a.txt\n?? new.txt"
    );
}
