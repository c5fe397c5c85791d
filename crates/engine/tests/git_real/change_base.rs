//! Where a change begins, and rebuilding it on a target that was rewritten.

use std::fs;

use woodward_core::CommitId;
use woodward_engine::git::{Rebuild, Rebuilt};

use crate::support::{NOW, Scratch, fsck, git, put, read, rev};

fn rebuild<'a>(base: &'a CommitId, head: &'a CommitId, onto: &'a CommitId) -> Rebuild<'a> {
    Rebuild {
        base,
        head,
        onto,
        task: "t",
        now: NOW,
    }
}

#[tokio::test]
async fn the_newest_commit_that_was_part_of_the_target_is_found() {
    let scratch = Scratch::new().await;
    let first = scratch.head();
    let dropped = scratch.commit(&[("secret.txt", "s\n")]);
    let head = scratch.branch("task", "main", &[("mine.txt", "m\n")]);
    scratch.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let now = scratch.commit(&[("other.txt", "o\n")]);
    let repo = &scratch.repo;
    let now_only = std::slice::from_ref(&now);
    let found = repo.newest_in_common(&head, now_only).await.unwrap();
    assert_eq!(found, [first]);
    let tips = [now.clone(), dropped.clone()];
    let found = repo.newest_in_common(&head, &tips).await.unwrap();
    assert_eq!(found, std::slice::from_ref(&dropped));
    let gone: CommitId = "1".repeat(40).parse().unwrap();
    let found = repo.newest_in_common(&head, &[dropped.clone(), gone]).await;
    assert_eq!(
        found.unwrap(),
        std::slice::from_ref(&dropped),
        "what is gone counts for nothing"
    );

    // Somebody merges the rewritten branch into the task's.
    scratch.git(&["checkout", "-q", "task"]);
    scratch.git(&["merge", "-q", "-m", "merged", "main"]);
    let head = scratch.head();
    scratch.git(&["checkout", "-q", "main"]);
    let found = repo.newest_in_common(&head, &tips).await.unwrap();
    assert_eq!(found.len(), 2);
    let base = repo.joint_base(&found).await.unwrap().unwrap();
    assert_eq!(repo.joint_base(&found).await.unwrap().unwrap(), base);
    let changed = scratch.git(&["diff", "--name-only", base.as_str(), head.as_str()]);
    assert_eq!(changed, "mine.txt");
    let Rebuilt::Commit(commit) = repo.rebuild(&rebuild(&base, &head, &now)).await.unwrap() else {
        panic!("it fits");
    };
    let files = scratch.git(&["ls-tree", "--name-only", commit.as_str()]);
    assert!(
        files.contains("mine.txt") && !files.contains("secret.txt"),
        "{files}"
    );
    fsck(&scratch.root);
}

#[tokio::test]
async fn a_change_is_rebuilt_in_its_worktree_commit_by_commit() {
    let scratch = Scratch::new().await;
    let base = scratch.commit(&[("secret.txt", "s\n")]);
    let worktree = scratch.worktree("t").await;
    for name in ["one", "two"] {
        put(&worktree.path, name, "new\n");
        git(&worktree.path, &["add", "."]);
        git(&worktree.path, &["commit", "-q", "-m", name]);
    }
    let head = rev(&worktree.path, "HEAD");
    put(&worktree.path, "loose", "not committed\n");
    scratch.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let onto = scratch.commit(&[("other.txt", "o\n")]);
    let spec = rebuild(&base, &head, &onto);
    let done = scratch
        .repo
        .rebuild_in(&worktree, &spec, false)
        .await
        .unwrap();
    assert_eq!(done, Rebuilt::Commit(rev(&worktree.path, "HEAD")));
    let range = format!("{onto}..HEAD");
    let subjects = git(&worktree.path, &["log", "--format=%s", &range]);
    assert_eq!(subjects, "two\none");
    assert_eq!(git(&worktree.path, &["status", "--porcelain"]), "");
    assert!(!worktree.path.join("secret.txt").exists());
    let saved = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/woodward"]);
    assert!(saved.contains("refs/woodward/rescue/t/"), "{saved}");
    assert!(saved.contains("refs/woodward/rebuild/t"), "{saved}");
}

#[tokio::test]
async fn a_conflict_stays_in_the_worktree_and_a_rebuild_that_was_cut_off_is_done_again() {
    let scratch = Scratch::new().await;
    let base = scratch.commit(&[("a.txt", "dropped\n"), ("secret.txt", "s\n")]);
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "a.txt", "mine\n");
    git(&worktree.path, &["commit", "-q", "-a", "-m", "mine"]);
    let head = rev(&worktree.path, "HEAD");
    scratch.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let onto = scratch.head();
    let spec = rebuild(&base, &head, &onto);
    let repo = &scratch.repo;
    let files = Rebuilt::Conflict(vec!["a.txt".into()]);
    assert_eq!(
        repo.rebuild_in(&worktree, &spec, false).await.unwrap(),
        files
    );
    assert_eq!(rev(&worktree.path, "HEAD"), head, "nothing has happened");
    assert_eq!(
        repo.rebuild_in(&worktree, &spec, true).await.unwrap(),
        files
    );
    assert_eq!(rev(&worktree.path, "HEAD"), onto);
    assert!(read(&worktree.path, "a.txt").contains("<<<<<<<"));
    assert!(!worktree.path.join("secret.txt").exists());

    // As if it had been killed on its way: the branch is where it was, and it is done again.
    let mark = worktree.admin.join("woodward-bringing-in");
    fs::write(&mark, format!("{{\"head\":\"{head}\"}}")).unwrap();
    repo.bring_in(&worktree, &base, "t", NOW).await.unwrap();
    assert_eq!(rev(&worktree.path, "HEAD"), head);
    assert!(!mark.exists());
    assert_eq!(
        repo.rebuild_in(&worktree, &spec, true).await.unwrap(),
        files
    );
    let with = scratch.commit_with("t");
    put(&worktree.path, "a.txt", "resolved\n");
    let made = repo.commit_all(&worktree, &with).await.unwrap();
    let parent = rev(&worktree.path, &format!("{}^", made.head));
    assert_eq!(parent, onto);
    fsck(&scratch.root);
}
