//! Removing worktrees, and undoing that.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use woodward_core::Timestamp;
use woodward_engine::git::{Removal, Removed, Worktree};

use crate::support::{NOW, Scratch, fsck, git, put, read, rev};

async fn remove(scratch: &Scratch, worktree: &Worktree, id: &str) -> Removed {
    remove_landed(scratch, worktree, id, false).await
}

async fn remove_landed(
    scratch: &Scratch,
    worktree: &Worktree,
    id: &str,
    is_landed: bool,
) -> Removed {
    let removal = Removal {
        worktree,
        task: "t",
        id,
        why: "removed by a test",
        is_landed,
        now: NOW,
    };
    scratch.repo.remove_worktree(&removal).await.unwrap()
}

/// Every file with its content and mode.
fn files(dir: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            let path = entry.path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            if meta.is_dir() {
                todo.push(path);
            } else if meta.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                found.insert(name, (meta.mode(), target.to_str().unwrap().into()));
            } else {
                found.insert(name, (meta.mode(), fs::read(&path).unwrap()));
            }
        }
    }
    found
}

fn make_a_mess(worktree: &Worktree) {
    put(&worktree.path, "committed", "c\n");
    git(&worktree.path, &["add", "-A"]);
    git(&worktree.path, &["commit", "-q", "-m", "own"]);
    put(&worktree.path, "a.txt", "staged\n");
    git(&worktree.path, &["add", "a.txt"]);
    put(&worktree.path, "a.txt", "unstaged\n");
    put(&worktree.path, "untracked/x", "u\n");
    put(&worktree.path, ".env", "secret\n");
    put(&worktree.path, "ignored/deep/y", "i\n");
    fs::remove_file(worktree.path.join("dir/b.txt")).unwrap();
    std::os::unix::fs::symlink("nowhere", worktree.path.join("link")).unwrap();
}

#[tokio::test]
async fn a_removal_is_undone_completely() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    make_a_mess(&worktree);
    let before = files(&worktree.path);
    let status = git(
        &worktree.path,
        &["status", "--porcelain=v2", "--branch", "--ignored"],
    );
    let tip = rev(&worktree.path, "HEAD");

    let removed = remove(&scratch, &worktree, "r1").await;
    assert!(!removed.branch_kept && removed.entry.saved);
    assert!(!worktree.path.exists() && !worktree.admin.exists());
    assert_eq!(scratch.repo.tip("woodward/t/1").await.unwrap(), None);
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1);
    let worktrees = scratch.repo.worktrees_dir();
    assert_eq!(
        scratch.repo.trash(&worktrees),
        std::slice::from_ref(&removed.entry)
    );

    // Not even an immediate gc loses anything.
    scratch.git(&["gc", "-q", "--prune=now"]);
    let restored = scratch.repo.restore_worktree(&removed.entry).await.unwrap();
    assert_eq!(restored, worktree);
    assert_eq!(files(&worktree.path), before);
    assert_eq!(
        git(
            &worktree.path,
            &["status", "--porcelain=v2", "--branch", "--ignored"]
        ),
        status
    );
    assert_eq!(rev(&worktree.path, "HEAD"), tip);
    assert_eq!(git(&worktree.path, &["show", ":a.txt"]), "staged");
    assert_eq!(scratch.repo.trash(&worktrees), []);
    fsck(&scratch.root);
}

#[tokio::test]
async fn what_was_removed_is_also_in_rescue_refs() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    make_a_mess(&worktree);
    let removed = remove(&scratch, &worktree, "r1").await;
    let rescues = scratch.repo.rescues("t").await.unwrap();
    assert_eq!(rescues.len(), removed.entry.rescues.len());
    let saved = rescues
        .iter()
        .find(|rescue| rescue.why == "removed by a test")
        .unwrap();
    assert_eq!(
        scratch.git(&["show", &format!("{}:untracked/x", saved.name)]),
        "u"
    );
    let worktrees = scratch.repo.worktrees_dir();

    // Too young, then a missing ref, then gone; refs stay.
    let empty = async |before, landed_before| {
        let emptied = scratch.repo.empty_trash(&worktrees, before, landed_before);
        emptied.await.unwrap()
    };
    assert_eq!(
        empty(NOW, Timestamp(NOW.0 + 1)).await,
        0,
        "it has not landed"
    );
    assert_eq!(empty(NOW, NOW).await, 0);
    let later = Timestamp(NOW.0 + 1);
    let tip = rev(&scratch.root, &removed.entry.rescues[0]);
    scratch.git(&["update-ref", "-d", &removed.entry.rescues[0]]);
    assert_eq!(empty(later, NOW).await, 0);
    scratch.git(&["update-ref", &removed.entry.rescues[0], tip.as_str()]);
    assert_eq!(empty(later, NOW).await, 1);
    assert!(!removed.entry.dir.exists());
    assert_eq!(scratch.repo.rescues("t").await.unwrap(), rescues);
}

#[tokio::test]
async fn a_removal_that_was_cut_off_is_finished_by_calling_again() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    make_a_mess(&worktree);
    let before = files(&worktree.path);
    let removed = remove(&scratch, &worktree, "r1").await;
    let kept = scratch.root.join(".git/woodward/trash/t-r1");
    let tip = removed.entry.tip.clone().unwrap();
    // After the directory was moved; after the record was written.
    for moved_back in [false, true] {
        scratch.git(&["update-ref", "refs/heads/woodward/t/1", tip.as_str()]);
        fs::rename(&kept, &worktree.admin).unwrap();
        if moved_back {
            fs::rename(removed.entry.dir.join("tree"), &worktree.path).unwrap();
        }
        assert_eq!(remove(&scratch, &worktree, "r1").await, removed);
        assert!(!worktree.path.exists() && !worktree.admin.exists());
    }
    // And so is an undo: branch and registration are back, the files not yet.
    scratch.git(&["update-ref", "refs/heads/woodward/t/1", tip.as_str()]);
    fs::rename(&kept, &worktree.admin).unwrap();
    scratch.repo.restore_worktree(&removed.entry).await.unwrap();
    assert_eq!(files(&worktree.path), before);
}

#[tokio::test]
async fn a_branch_that_others_use_or_moved_is_kept() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    scratch.git(&["checkout", "-q", "--ignore-other-worktrees", "woodward/t/1"]);
    assert!(remove(&scratch, &worktree, "r1").await.branch_kept);
    assert!(scratch.repo.tip("woodward/t/1").await.unwrap().is_some());
}

#[tokio::test]
async fn a_restore_takes_nobodys_place() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "mine", "1");
    let removed = remove(&scratch, &worktree, "r1").await;
    put(&worktree.path, "other", "precious");
    assert!(scratch.repo.restore_worktree(&removed.entry).await.is_err());
    assert_eq!(read(&worktree.path, "other"), "precious");
    fs::remove_dir_all(&worktree.path).unwrap();
    // A new worktree of that name took the branch.
    let mut spec = scratch.spec("t");
    spec.branch = "woodward/t/2".into();
    spec.path = scratch.repo.worktrees_dir().join("sub/t");
    let second = scratch.repo.create_worktree(&spec).await.unwrap();
    assert_eq!(second.admin, worktree.admin);
    let restored = scratch.repo.restore_worktree(&removed.entry).await.unwrap();
    assert_ne!(restored.admin, second.admin);
    assert_eq!(
        git(&restored.path, &["status", "--short", "--branch"]),
        "## woodward/t/1\n?? mine"
    );
    assert_eq!(
        git(&second.path, &["status", "--short", "--branch"]),
        "## woodward/t/2"
    );
    git(
        &restored.path,
        &["commit", "-q", "--allow-empty", "-m", "works"],
    );
}

#[tokio::test]
async fn a_worktree_whose_directory_is_gone_is_removed_and_restored_from_its_commits() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    fs::remove_dir_all(&worktree.path).unwrap();
    let removed = remove(&scratch, &worktree, "r1").await;
    assert_eq!(scratch.git(&["worktree", "list"]).lines().count(), 1);
    let restored = scratch.repo.restore_worktree(&removed.entry).await.unwrap();
    assert_eq!(
        git(&restored.path, &["status", "--short", "--branch"]),
        "## woodward/t/1"
    );
}

#[tokio::test]
async fn a_removal_that_was_cut_off_takes_the_branch_too_when_it_is_finished() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    let branch = worktree.branch.clone();
    let tip = scratch.git(&["rev-parse", &branch]);
    let path = worktree.path.clone();
    assert_eq!(scratch.repo.finish_removals(&path).await.unwrap(), 0);
    remove(&scratch, &worktree, "1").await;
    // As a kill right before the last step leaves it.
    scratch.git(&["update-ref", &format!("refs/heads/{branch}"), &tip]);
    assert_eq!(scratch.repo.finish_removals(&path).await.unwrap(), 1);
    assert_eq!(scratch.git(&["for-each-ref", "refs/heads/woodward"]), "");
    assert_eq!(scratch.repo.finish_removals(&path).await.unwrap(), 0);
}

#[tokio::test]
async fn what_has_landed_gives_its_space_back_sooner_and_its_commits_stay() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    make_a_mess(&worktree);
    let removed = remove_landed(&scratch, &worktree, "r1", true).await;
    let worktrees = scratch.repo.worktrees_dir();
    let later = Timestamp(NOW.0 + 1);
    let emptied = scratch.repo.empty_trash(&worktrees, NOW, NOW).await;
    assert_eq!(emptied.unwrap(), 0, "too young");
    let emptied = scratch.repo.empty_trash(&worktrees, NOW, later).await;
    assert_eq!(emptied.unwrap(), 1);
    assert!(!removed.entry.dir.exists());
    for name in &removed.entry.rescues {
        rev(&scratch.root, name);
    }
}
