//! Git repositories that an agent makes inside its worktree.

use std::fs;
use std::path::Path;

use woodward_core::CommitId;
use woodward_core::risk::EmbeddedChoice;
use woodward_engine::git::{Side, Worktree};

use crate::support::{Scratch, git, put, rev};

/// A repository with one commit, made by an agent.
fn repository(dir: &Path) {
    put(dir, "a", "x\n");
    git(dir, &["init", "-q"]);
    git(dir, &["config", "user.name", "Agent"]);
    git(dir, &["config", "user.email", "agent@example.org"]);
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", "x"]);
}

async fn committed(scratch: &Scratch, worktree: &Worktree) -> CommitId {
    let with = scratch.commit_with("t");
    let done = scratch.repo.commit_all(worktree, &with).await.unwrap();
    done.head
}

/// The undeclared submodules that the change from `base` to `head` brings.
async fn undeclared(scratch: &Scratch, base: &CommitId, head: &CommitId) -> Vec<String> {
    let repo = &scratch.repo;
    let files = repo.numstat(base, Side::Commit(head)).await.unwrap();
    let found = repo.undeclared_submodules(base, head, &files).await;
    found.unwrap()
}

#[tokio::test]
async fn only_undeclared_repositories_are_found() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    let base = scratch.head();
    put(&worktree.path, "plain.txt", "1\n");
    let head = committed(&scratch, &worktree).await;
    assert_eq!(undeclared(&scratch, &base, &head).await, [""; 0]);

    for name in ["declared", "lib", "sub/inner", "no-url"] {
        repository(&worktree.path.join(name));
    }
    let modules =
        "[submodule \"d\"]\n\tpath = declared\n\turl = ../d\n[submodule \"n\"]\n\tpath = no-url\n";
    put(&worktree.path, ".gitmodules", modules);
    let head = committed(&scratch, &worktree).await;
    let all = ["lib", "no-url", "sub/inner"];
    assert_eq!(undeclared(&scratch, &base, &head).await, all);

    // What was there before the change is no news, but a declaration that it removes is.
    put(&worktree.path, "plain.txt", "2\n");
    let later = committed(&scratch, &worktree).await;
    assert_eq!(undeclared(&scratch, &head, &later).await, [""; 0]);
    fs::remove_file(worktree.path.join(".gitmodules")).unwrap();
    let without = committed(&scratch, &worktree).await;
    assert_eq!(undeclared(&scratch, &later, &without).await, ["declared"]);
}

#[tokio::test]
async fn a_repository_without_a_commit_is_listed_until_it_is_gone() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "before.txt", "1\n");
    put(&worktree.path, "empty/file", "x\n");
    put(&worktree.path, "zz.txt", "1\n");
    git(&worktree.path.join("empty"), &["init", "-q"]);
    committed(&scratch, &worktree).await;
    let names = git(&worktree.path, &["ls-tree", "-r", "--name-only", "HEAD"]);
    assert_eq!(names, ".gitignore\na.txt\nbefore.txt\ndir/b.txt\nzz.txt");
    let listed = || scratch.repo.repositories_without_commit(&worktree);
    assert_eq!(listed(), ["empty"]);
    fs::remove_dir_all(worktree.path.join("empty/.git")).unwrap();
    assert_eq!(listed(), [""; 0]);
    committed(&scratch, &worktree).await;
    assert_eq!(listed(), [""; 0]);
    let names = git(&worktree.path, &["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(names.contains("empty/file"), "{names}");
}

#[tokio::test]
async fn git_is_never_started_inside_an_embedded_repository() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    let lib = worktree.path.join("lib");
    repository(&lib);
    let first = committed(&scratch, &worktree).await;
    let trap = format!("touch {}/sprung; cat", scratch.top.display());
    for key in [
        "filter.f.clean",
        "filter.f.process",
        "core.fsmonitor",
        "core.sshCommand",
        "diff.external",
    ] {
        git(&lib, &["config", key, &trap]);
    }
    put(&lib, ".gitattributes", "* filter=f\n");
    // Another content of the same size: git must read it, through the filter, to see that.
    put(&lib, "a", "y\n");
    put(&worktree.path, "new.txt", "1\n");
    let repo = &scratch.repo;
    repo.numstat(&first, Side::Worktree(&worktree))
        .await
        .unwrap();
    let snapshot = repo.snapshot(&worktree, "t", "for the test", crate::support::NOW);
    snapshot.await.unwrap();
    let head = committed(&scratch, &worktree).await;
    assert_ne!(head, first);
    let same = git(&worktree.path, &["rev-parse", "HEAD:lib", "HEAD^:lib"]);
    assert_eq!(same.lines().next(), same.lines().last());
    let sprung = scratch.top.join("sprung");
    assert!(!sprung.exists());
    // A new commit in it is recorded without any of that.
    let config = ["-c", "filter.f.clean=cat", "-c", "filter.f.process="];
    let config = [&config[..], &["-c", "core.fsmonitor=false"]].concat();
    git(&lib, &[&config[..], &["add", "-A"]].concat());
    git(&lib, &[&config[..], &["commit", "-q", "-m", "y"]].concat());
    let _ = fs::remove_file(&sprung);
    committed(&scratch, &worktree).await;
    assert_eq!(rev(&worktree.path, "HEAD:lib"), rev(&lib, "HEAD"));
    assert!(!sprung.exists());
}

#[tokio::test]
async fn a_choice_that_was_interrupted_is_completed_by_the_same_choice() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    repository(&worktree.path.join("lib"));
    repository(&worktree.path.join("lib/inner"));
    let base = scratch.head();
    let reviewed = committed(&scratch, &worktree).await;
    // As if the daemon had been killed after the first step.
    let history = worktree.path.join("lib/.git");
    fs::rename(&history, scratch.top.join("moved")).unwrap();
    let repo = &scratch.repo;
    let with = scratch.commit_with("t");
    for _ in 0..2 {
        let done = repo
            .decide_embedded(
                &worktree,
                "lib",
                &EmbeddedChoice::AddFiles,
                &reviewed,
                &with,
            )
            .await
            .unwrap();
        assert_ne!(done.head, reviewed);
        assert_eq!(done.kept, None);
        let names = git(
            &worktree.path,
            &["ls-tree", "-r", "--name-only", "HEAD", "lib"],
        );
        assert_eq!(names, "lib/a\nlib/inner");
        // The one inside it is found then.
        assert_eq!(undeclared(&scratch, &base, &done.head).await, ["lib/inner"]);
    }
}
