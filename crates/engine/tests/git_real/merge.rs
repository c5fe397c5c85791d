//! Building what lands, and moving branches.

use uuid::Uuid;
use woodward_core::{CommitId, IntentId};
use woodward_engine::git::{Advance, Build, BuildSpec, Signature, Style, Trailers};

use std::fs;

use crate::support::{NOW, Scratch, fsck, git, put, read};

fn spec(style: Style, onto: &CommitId, head: &CommitId) -> BuildSpec {
    BuildSpec {
        style,
        onto: onto.clone(),
        head: head.clone(),
        message: "Land it".into(),
        trailers: Trailers {
            task: Some("t".into()),
            ..Trailers::default()
        },
        author: Signature::new("Agent", "agent@example.org"),
        committer: Signature::new("Woodward", "woodward@example.org"),
        date: NOW,
    }
}

const STYLES: [Style; 3] = [Style::Squash, Style::Merge, Style::Rebase];

#[tokio::test]
async fn all_styles_give_the_same_tree_and_always_the_same_commit() {
    let scratch = Scratch::new().await;
    scratch.git(&["checkout", "-q", "-b", "task"]);
    scratch.commit(&[("a.txt", "one\ntask\n")]);
    let head = scratch.commit(&[("new.txt", "new\n")]);
    scratch.git(&["checkout", "-q", "main"]);
    let onto = scratch.commit(&[("dir/b.txt", "main\n")]);
    let refs = scratch.git(&["for-each-ref"]);
    let mut trees = Vec::new();
    for style in STYLES {
        let built = scratch
            .repo
            .build(&spec(style, &onto, &head))
            .await
            .unwrap();
        assert_eq!(
            scratch
                .repo
                .build(&spec(style, &onto, &head))
                .await
                .unwrap(),
            built
        );
        let Build::Built { commit, tree } = built else {
            panic!("{style:?}: {built:?}");
        };
        assert_eq!(scratch.repo.tree_of(&commit).await.unwrap(), tree);
        trees.push(tree);
        let log = git(
            &scratch.root,
            &[
                "log",
                "--format=%an|%cn|%s|%(trailers:separator=%x2C)",
                &format!("{onto}..{commit}"),
                "--first-parent",
            ],
        );
        let expected = match style {
            Style::Squash | Style::Merge => "Agent|Woodward|Land it|Woodward-Task: t",
            Style::Rebase => {
                "Ada|Woodward|change|Woodward-Task: t\nAda|Woodward|change|Woodward-Task: t"
            }
        };
        assert_eq!(log, expected);
        let parents = git(
            &scratch.root,
            &["log", "-1", "--format=%P", commit.as_str()],
        );
        assert_eq!(
            parents.split(' ').count(),
            if style == Style::Merge { 2 } else { 1 }
        );
    }
    trees.dedup();
    assert_eq!(trees.len(), 1);
    assert_eq!(scratch.git(&["for-each-ref"]), refs);
    assert_eq!(scratch.git(&["status", "--short"]), "");
    fsck(&scratch.root);
}

#[tokio::test]
async fn a_conflict_names_its_files() {
    let scratch = Scratch::new().await;
    let head = scratch.branch(
        "task",
        "main",
        &[("a.txt", "task\n"), ("dir/b.txt", "task\n"), ("c", "c")],
    );
    let onto = scratch.commit(&[("a.txt", "main\n"), ("dir/b.txt", "main\n")]);
    let files = vec!["a.txt".to_owned(), "dir/b.txt".into()];
    for style in STYLES {
        let built = scratch
            .repo
            .build(&spec(style, &onto, &head))
            .await
            .unwrap();
        assert_eq!(
            built,
            Build::Conflict {
                files: files.clone()
            },
            "{style:?}"
        );
    }
    assert_eq!(scratch.repo.conflicts(&onto, &head).await.unwrap(), files);
}

#[tokio::test]
async fn what_is_there_already_builds_nothing() {
    let scratch = Scratch::new().await;
    let base = scratch.head();
    let head = scratch.branch("task", "main", &[("a.txt", "same\n")]);
    let onto = scratch.commit(&[("a.txt", "same\n")]);
    for style in STYLES {
        for (onto, head) in [(&onto, &head), (&onto, &base), (&onto, &onto)] {
            let built = scratch.repo.build(&spec(style, onto, head)).await.unwrap();
            assert_eq!(built, Build::Nothing, "{style:?}");
        }
    }
}

#[tokio::test]
async fn a_branch_that_has_merged_main_can_be_rebased() {
    let scratch = Scratch::new().await;
    scratch.branch("task", "main", &[("t1", "1")]);
    let onto = scratch.commit(&[("m1", "1")]);
    scratch.git(&["checkout", "-q", "task"]);
    scratch.git(&["merge", "-q", "-m", "sync", "main"]);
    let head = scratch.commit(&[("t2", "2")]);
    scratch.git(&["checkout", "-q", "main"]);
    let built = scratch
        .repo
        .build(&spec(Style::Rebase, &onto, &head))
        .await
        .unwrap();
    let Build::Built { commit, .. } = built else {
        panic!("{built:?}")
    };
    let range = format!("{onto}..{commit}");
    assert_eq!(
        scratch.git(&["log", "--format=%P", &range]).lines().count(),
        2
    );
    assert_eq!(
        scratch.git(&["diff", "--name-only", head.as_str(), commit.as_str()]),
        ""
    );
}

#[tokio::test]
async fn a_branch_moves_by_compare_and_swap_only() {
    let scratch = Scratch::new().await;
    let old = scratch.head();
    let new = scratch.branch("task", "main", &[("t", "1")]);
    let other = scratch.branch("other", "main", &[("o", "1")]);
    scratch.git(&["checkout", "-q", "--detach"]);
    let repo = &scratch.repo;
    assert_eq!(
        repo.advance("main", &new, &old).await.unwrap(),
        Advance::Advanced
    );
    // Once more is as good as once.
    assert_eq!(
        repo.advance("main", &new, &old).await.unwrap(),
        Advance::Advanced
    );
    let moved = repo.advance("main", &other, &old).await.unwrap();
    assert_eq!(
        moved,
        Advance::Moved {
            current: Some(new.clone())
        }
    );
    assert_eq!(repo.tip("main").await.unwrap(), Some(new));
    let gone = repo.advance("nope", &other, &old).await.unwrap();
    assert_eq!(gone, Advance::Moved { current: None });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_move_a_branch_at_once_one_wins() {
    let scratch = Scratch::new().await;
    let old = scratch.head();
    let mut racing = Vec::new();
    for n in 0..12 {
        let new = scratch.branch(&format!("b{n}"), "main", &[("x", &n.to_string())]);
        racing.push(new);
    }
    scratch.git(&["checkout", "-q", "--detach"]);
    let racing: Vec<_> = racing
        .into_iter()
        .map(|new| {
            let (repo, old) = (scratch.repo.clone(), old.clone());
            tokio::spawn(async move { repo.advance("main", &new, &old).await.unwrap() })
        })
        .collect();
    let mut won = 0;
    for one in racing {
        won += usize::from(one.await.unwrap() == Advance::Advanced);
    }
    assert_eq!(won, 1);
}

#[tokio::test]
async fn a_pinned_landing_survives_gc_and_is_forgotten_on_demand() {
    let scratch = Scratch::new().await;
    let onto = scratch.head();
    let head = scratch.branch("task", "main", &[("t", "1")]);
    let built = scratch
        .repo
        .build(&spec(Style::Squash, &onto, &head))
        .await
        .unwrap();
    let Build::Built { commit, .. } = built else {
        panic!("{built:?}")
    };
    let intent = IntentId::new(Uuid::from_u128(7));
    scratch.repo.pin_landing(intent, &commit).await.unwrap();
    scratch.repo.pin_landing(intent, &commit).await.unwrap();
    scratch.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(
        scratch.repo.pinned_landing(intent).await.unwrap(),
        Some(commit)
    );
    scratch.repo.unpin_landing(intent).await.unwrap();
    scratch.repo.unpin_landing(intent).await.unwrap();
    assert_eq!(scratch.repo.pinned_landing(intent).await.unwrap(), None);
}

#[tokio::test]
async fn the_checkout_of_a_branch_is_found() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    let repo = &scratch.repo;
    assert_eq!(
        repo.checkout_of("main").await.unwrap(),
        Some(scratch.root.clone())
    );
    assert_eq!(
        repo.checkout_of("woodward/t/1").await.unwrap(),
        Some(worktree.path)
    );
    scratch.git(&["checkout", "-q", "--detach"]);
    assert_eq!(repo.checkout_of("main").await.unwrap(), None);
}

#[tokio::test]
async fn bringing_in_that_was_cut_off_is_done_again_from_the_start() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    let base = scratch.head();
    put(&worktree.path, "mine.txt", "mine\n");
    let with = scratch.commit_with("t");
    scratch.repo.commit_all(&worktree, &with).await.unwrap();
    let onto = scratch.commit(&[("new.txt", "theirs\n"), ("a.txt", "changed\n")]);
    assert_ne!(base, onto);
    // As a killed `git merge` leaves it: files are there, the index and MERGE_HEAD know nothing.
    put(&worktree.path, "new.txt", "thei");
    put(&worktree.path, "a.txt", "changed\n");
    let refused = scratch.repo.bring_in(&worktree, &onto, "t", NOW).await;
    assert!(refused.is_err(), "this might be an agent's work");
    let admin = scratch.root.join(".git/worktrees/t");
    fs::write(admin.join("woodward-bringing-in"), "").unwrap();
    scratch
        .repo
        .bring_in(&worktree, &onto, "t", NOW)
        .await
        .unwrap();
    assert_eq!(read(&worktree.path, "new.txt"), "theirs\n");
    assert_eq!(read(&worktree.path, "mine.txt"), "mine\n");
    assert!(admin.join("MERGE_HEAD").exists());
    assert!(!admin.join("woodward-bringing-in").exists());
    assert_eq!(
        scratch.repo.rescues("t").await.unwrap().len(),
        1,
        "saved first"
    );
    let done = scratch.repo.commit_all(&worktree, &with).await.unwrap();
    assert_eq!(
        scratch
            .git(&["rev-list", "--parents", "-1", done.head.as_str()])
            .split(' ')
            .count(),
        3
    );
}
