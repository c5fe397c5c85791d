//! Committing what agents leave, on hostile ground; rescue; the guard.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use woodward_engine::git::{Committed, GitError, Oddity};
use woodward_testkit::write_program;

use crate::support::{NOW, Scratch, fsck, git, put, read, rev, try_git};

async fn commit(scratch: &Scratch) -> Committed {
    let worktree = scratch
        .repo
        .worktree(&scratch.spec("t").path, "woodward/t/1")
        .unwrap();
    let done = scratch
        .repo
        .commit_all(&worktree, &scratch.commit_with("t"))
        .await
        .unwrap();
    // Whatever it was like before: on its branch, clean, nothing half-done.
    let status = git(&worktree.path, &["status", "--short", "--branch"]);
    assert_eq!(status, "## woodward/t/1", "{done:?}");
    assert_eq!(rev(&scratch.root, "woodward/t/1"), done.head);
    fsck(&scratch.root);
    done
}

#[tokio::test]
async fn uncommitted_and_untracked_work_is_committed_and_ignored_files_are_not() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    let before = scratch.head();
    assert_eq!(
        commit(&scratch).await,
        Committed {
            head: before.clone(),
            made: None,
            notes: vec![]
        }
    );
    put(&worktree.path, "a.txt", "changed\n");
    put(&worktree.path, "-new file\n", "new\n");
    put(&worktree.path, ".env", "secret\n");
    fs::remove_file(worktree.path.join("dir/b.txt")).unwrap();
    let done = commit(&scratch).await;
    assert_eq!(done.made.as_ref(), Some(&done.head));
    assert_eq!(done.notes, []);
    let files = git(
        &worktree.path,
        &["ls-tree", "-r", "-z", "--name-only", "HEAD"],
    );
    assert_eq!(files, "-new file\n\0.gitignore\0a.txt\0");
    assert_eq!(rev(&worktree.path, "HEAD^"), before);
    let by = git(
        &worktree.path,
        &["log", "-1", "--format=%an %ae %cn %at %s"],
    );
    assert_eq!(by, "Agent agent@example.org Agent 1700000000 work");
}

#[tokio::test]
async fn a_removed_git_file_a_foreign_repository_and_a_lost_registration_are_repaired() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "one", "1");
    fs::remove_file(worktree.path.join(".git")).unwrap();
    let done = commit(&scratch).await;
    assert_eq!(done.notes, [Oddity::DotGitRepaired]);
    assert!(done.made.is_some());

    put(&worktree.path, "two", "2");
    fs::remove_file(worktree.path.join(".git")).unwrap();
    git(&worktree.path, &["init", "-q"]);
    let done = commit(&scratch).await;
    assert_eq!(done.notes, [Oddity::DotGitRepaired]);
    assert_eq!(git(&worktree.path, &["show", "HEAD:two"]), "2");

    put(&worktree.path, "three", "3");
    fs::remove_dir_all(&worktree.admin).unwrap();
    let done = scratch
        .repo
        .commit_all(&worktree, &scratch.commit_with("t"))
        .await
        .unwrap();
    assert_eq!(done.notes, [Oddity::RegistrationRepaired]);
    assert_eq!(git(&worktree.path, &["show", "HEAD:three"]), "3");
    assert_eq!(git(&worktree.path, &["show", "HEAD:one"]), "1");
}

#[tokio::test]
async fn a_deleted_directory_is_gone_and_its_commits_are_not() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    fs::remove_dir_all(&worktree.path).unwrap();
    let refused = scratch
        .repo
        .commit_all(&worktree, &scratch.commit_with("t"))
        .await;
    assert!(matches!(refused.unwrap_err(), GitError::Gone(_)));
    assert!(scratch.repo.tip("woodward/t/1").await.unwrap().is_some());
}

#[tokio::test]
async fn commits_on_a_detached_head_are_taken_over() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    git(&worktree.path, &["checkout", "-q", "--detach"]);
    put(&worktree.path, "one", "1");
    git(&worktree.path, &["add", "-A"]);
    git(&worktree.path, &["commit", "-q", "-m", "detached"]);
    put(&worktree.path, "two", "2");
    let done = commit(&scratch).await;
    assert!(
        matches!(&done.notes[..], [Oddity::HeadTakenOver(_)]),
        "{done:?}"
    );
    assert_eq!(
        git(&worktree.path, &["log", "--format=%s"]),
        "work\ndetached\nfirst"
    );
}

#[tokio::test]
async fn work_on_another_history_is_rescued_and_the_other_branch_stays() {
    let scratch = Scratch::new().await;
    let other = scratch.branch("other", "main", &[("o.txt", "o\n")]);
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "own", "own");
    let own = commit(&scratch).await.head;
    git(&worktree.path, &["checkout", "-q", "other"]);
    put(&worktree.path, "loose", "loose");
    let done = commit(&scratch).await;
    let [Oddity::HeadRescued { was, rescue }] = &done.notes[..] else {
        panic!("{done:?}");
    };
    assert_eq!(
        (was.as_str(), &done.head, &done.made),
        ("other", &own, &None)
    );
    assert_eq!(
        git(&scratch.root, &["show", &format!("{}:loose", rescue.name)]),
        "loose"
    );
    assert_eq!(rev(&scratch.root, "other"), other);
    assert_eq!(read(&worktree.path, "own"), "own");
    // Nothing of its own: HEAD is merely put back.
    git(&worktree.path, &["checkout", "-q", "--detach", "main"]);
    let done = commit(&scratch).await;
    assert!(
        matches!(&done.notes[..], [Oddity::HeadPutBack(_)]),
        "{done:?}"
    );
    assert_eq!(done.head, own);
}

#[tokio::test]
async fn a_deleted_branch_is_restored_where_it_was() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "own", "own");
    let own = commit(&scratch).await.head;
    git(
        &worktree.path,
        &["commit", "-q", "--allow-empty", "-m", "more"],
    );
    let more = rev(&worktree.path, "HEAD");
    git(
        &scratch.root,
        &["update-ref", "-d", "refs/heads/woodward/t/1"],
    );
    put(&worktree.path, "loose", "loose");
    let done = commit(&scratch).await;
    assert!(done.notes.contains(&Oddity::BranchRestored), "{done:?}");
    assert_eq!(rev(&worktree.path, "HEAD^"), more);
    assert_eq!(rev(&worktree.path, "HEAD~2"), own);
}

#[tokio::test]
async fn an_unfinished_merge_becomes_a_merge_and_an_unfinished_rebase_loses_nothing() {
    let scratch = Scratch::new().await;
    let theirs = scratch.branch("theirs", "main", &[("a.txt", "theirs\n")]);
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "a.txt", "ours\n");
    let ours = commit(&scratch).await.head;
    assert!(
        !try_git(&worktree.path, &["merge", "-q", "theirs"])
            .status
            .success()
    );
    let done = commit(&scratch).await;
    assert!(done.notes.contains(&Oddity::MergeFinished), "{done:?}");
    assert_eq!(
        git(&worktree.path, &["log", "-1", "--format=%P"]),
        format!("{ours} {theirs}")
    );

    git(&worktree.path, &["reset", "-q", "--hard", ours.as_str()]);
    assert!(
        !try_git(&worktree.path, &["rebase", "-q", "theirs"])
            .status
            .success()
    );
    put(&worktree.path, "half", "half");
    let done = commit(&scratch).await;
    let rescue = done.notes.iter().find_map(|note| match note {
        Oddity::HeadRescued { rescue, .. } => Some(rescue),
        _ => None,
    });
    assert!(done.notes.contains(&Oddity::SequenceEnded), "{done:?}");
    assert_eq!(done.head, ours);
    let kept = format!("{}:half", rescue.unwrap().name);
    assert_eq!(git(&scratch.root, &["show", &kept]), "half");
}

#[tokio::test]
async fn locks_of_dead_processes_are_removed_and_a_broken_index_is_replaced() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "own", "own");
    for lock in ["index.lock", "HEAD.lock"] {
        fs::write(worktree.admin.join(lock), "").unwrap();
    }
    put(&scratch.root, ".git/refs/heads/woodward/t/1.lock", "");
    assert!(commit(&scratch).await.made.is_some());
    put(&worktree.path, "more", "more");
    fs::write(worktree.admin.join("index"), "rubbish").unwrap();
    let done = commit(&scratch).await;
    assert_eq!(
        git(
            &worktree.path,
            &["show", "--format=", "--name-only", done.head.as_str()]
        ),
        "more"
    );
}

#[tokio::test]
async fn nested_repositories_do_not_keep_the_rest_out() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    put(&worktree.path, "own", "own");
    put(&worktree.path, "dir/b.txt", "changed\n");
    fs::remove_file(worktree.path.join("a.txt")).unwrap();
    put(&worktree.path, "nested/file", "x");
    git(&worktree.path.join("nested"), &["init", "-q"]);
    let done = scratch
        .repo
        .commit_all(&worktree, &scratch.commit_with("t"))
        .await
        .unwrap();
    assert_eq!(done.notes, [Oddity::NotAllAdded]);
    let names = git(
        &worktree.path,
        &["show", "--format=", "--name-only", "HEAD"],
    );
    assert_eq!(names, "a.txt\ndir/b.txt\nown");
}

#[tokio::test]
async fn what_an_agent_configures_is_not_run() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    let trap = scratch.top.join("trap");
    fs::write(
        &trap,
        format!("#!/bin/sh\ntouch {}/sprung\n", scratch.top.display()),
    )
    .unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "diff.external",
        "core.pager",
        "core.editor",
        "gpg.program",
    ] {
        git(&worktree.path, &["config", key, trap]);
    }
    git(&worktree.path, &["config", "commit.gpgSign", "true"]);
    for name in [
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-index-change",
        "post-checkout",
    ] {
        fs::copy(trap, scratch.root.join(".git/hooks").join(name)).unwrap();
    }
    put(&worktree.path, "own", "own");
    let with = scratch.commit_with("t");
    scratch
        .repo
        .snapshot(&worktree, "t", "before", NOW)
        .await
        .unwrap()
        .unwrap();
    let done = scratch.repo.commit_all(&worktree, &with).await.unwrap();
    assert!(done.made.is_some());
    let base = scratch.repo.resolve("main").await.unwrap();
    let side = woodward_engine::git::Side::Worktree(&worktree);
    scratch.repo.diff(&base, side, 1_000).await.unwrap();
    assert!(!scratch.top.join("sprung").exists());
}

#[tokio::test]
async fn a_snapshot_saves_everything_and_touches_nothing() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    assert_eq!(
        scratch
            .repo
            .snapshot(&worktree, "t", "clean", NOW)
            .await
            .unwrap(),
        None
    );
    put(&worktree.path, "a.txt", "staged\n");
    git(&worktree.path, &["add", "a.txt"]);
    put(&worktree.path, "a.txt", "unstaged\n");
    put(&worktree.path, "new.txt", "new\n");
    let before = git(&worktree.path, &["status", "--porcelain=v2"]);
    let index = fs::read(worktree.admin.join("index")).unwrap();
    let rescue = scratch
        .repo
        .snapshot(&worktree, "t", "why\nnot", NOW)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(git(&worktree.path, &["status", "--porcelain=v2"]), before);
    assert_eq!(
        fs::read(worktree.admin.join("index")).unwrap().len(),
        index.len()
    );
    assert!(
        fs::read_dir(&worktree.admin)
            .unwrap()
            .flatten()
            .all(|entry| {
                !entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with("woodward-index")
            })
    );
    let listed = scratch.repo.rescues("t").await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0].name, &listed[0].commit),
        (&rescue.name, &rescue.commit)
    );
    assert_eq!(
        (listed[0].time, listed[0].why.as_str()),
        (1_700_000_000, "why")
    );
    assert_eq!(scratch.repo.rescues("other").await.unwrap(), []);
    // The printed command brings it back.
    let hint = rescue.restore_hint();
    let args: Vec<&str> = hint.split(' ').skip(1).collect();
    git(&scratch.root, &args);
    assert_eq!(read(&scratch.root, "a.txt"), "unstaged\n");
    assert_eq!(read(&scratch.root, "new.txt"), "new\n");
    assert_eq!(
        git(
            &scratch.root,
            &["show", &format!("{}^2:a.txt", rescue.name)]
        ),
        "staged"
    );
}

#[tokio::test]
async fn the_guard_lets_own_work_through_and_refuses_everything_else_with_a_message() {
    let scratch = Scratch::new().await;
    scratch.worktree("other").await;
    let worktree = scratch.worktree("t").await;
    let dir = &worktree.path;
    for args in [
        "commit -q --allow-empty -m one",
        "commit -q --amend --allow-empty -m uno",
        "commit -q --allow-empty -m two",
        "reset -q --hard HEAD^",
        "checkout -q -b woodward/t/side",
        "commit -q --allow-empty -m three",
        "checkout -q woodward/t/1",
        "rebase -q woodward/t/side",
        "merge -q --no-ff -m merged woodward/t/side",
        "branch -q -D woodward/t/side",
        "checkout -q --detach",
        "checkout -q woodward/t/1",
        "bisect start HEAD HEAD~1",
        "bisect reset",
        "update-ref refs/worktree/mine HEAD",
    ] {
        git(dir, &args.split(' ').collect::<Vec<_>>());
    }
    put(dir, "a.txt", "precious\n");
    for args in [
        "update-ref refs/heads/main HEAD",
        "branch -f woodward/other/1 HEAD",
        "branch -D woodward/other/1",
        "branch fresh",
        "tag v1",
        "stash push",
        "push -q . HEAD:refs/heads/main",
        "update-ref refs/woodward/rescue/x HEAD",
        "update-ref main-worktree/refs/bisect/x HEAD",
    ] {
        let out = try_git(dir, &args.split(' ').collect::<Vec<_>>());
        assert!(!out.status.success(), "{args}");
        // Git's own refusals come first for branches that are checked out elsewhere.
        let said = String::from_utf8_lossy(&out.stderr);
        let own = said.contains("used by worktree") || said.contains("denyCurrentBranch");
        assert!(
            own || said.contains("woodward: refused to change"),
            "{args}: {said}"
        );
    }
    assert_eq!(read(dir, "a.txt"), "precious\n");
    assert_eq!(scratch.head(), rev(&scratch.root, "woodward/other/1"));
    // The person's own checkout is not guarded.
    scratch.git(&["branch", "fresh"]);
    scratch.git(&["tag", "v1"]);
}

#[tokio::test]
async fn the_projects_own_hooks_still_run_in_a_worktree() {
    let scratch = Scratch::new().await;
    let hook = |path: &str, body: &str| {
        let hook = scratch.root.join(path);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        write_program(&hook, &format!("#!/bin/sh\n{body}\n"));
    };
    hook(
        ".git/hooks/pre-commit",
        "test ! -e forbidden || { echo no >&2; exit 1; }",
    );
    hook(".git/hooks/commit-msg", "echo trailer >> \"$1\"");
    hook(".git/hooks/reference-transaction", "cat >> ../seen");
    let worktree = scratch.worktree("t").await;
    git(
        &worktree.path,
        &["commit", "-q", "--allow-empty", "-m", "one"],
    );
    assert_eq!(
        git(&worktree.path, &["log", "-1", "--format=%B"]),
        "one\ntrailer"
    );
    let seen = read(&scratch.repo.worktrees_dir(), "seen");
    assert!(seen.contains("refs/heads/woodward/t/1"), "{seen}");
    put(&worktree.path, "forbidden", "");
    assert!(
        !try_git(&worktree.path, &["commit", "--allow-empty", "-m", "two"])
            .status
            .success()
    );
}

#[tokio::test]
async fn a_projects_relative_hooks_path_is_relative_to_the_worktree() {
    let scratch = Scratch::new().await;
    put(
        &scratch.root,
        ".husky/pre-commit",
        "#!/bin/sh\ntouch ran-here\n",
    );
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(scratch.root.join(".husky/pre-commit"), mode).unwrap();
    scratch.commit(&[]);
    scratch.git(&["config", "core.hooksPath", ".husky"]);
    let worktree = scratch.worktree("t").await;
    git(
        &worktree.path,
        &["commit", "-q", "--allow-empty", "-m", "one"],
    );
    assert!(worktree.path.join("ran-here").exists());
    assert!(!scratch.root.join("ran-here").exists());
}

#[tokio::test]
async fn what_agents_leave_behind_is_neither_work_nor_dirt() {
    let scratch = Scratch::new().await;
    let personal = scratch.root.join("../personal-ignore");
    fs::write(&personal, "*.mine").unwrap();
    let named = personal.to_str().unwrap();
    git(&scratch.root, &["config", "core.excludesFile", named]);
    // A tracked file of such a name is a file like any other.
    put(&scratch.root, ".aider.tracked", "one\n");
    git(&scratch.root, &["add", "-f", ".aider.tracked"]);
    git(&scratch.root, &["commit", "-qm", "tracked"]);
    let worktree = scratch.worktree("t").await;
    let before = rev(&worktree.path, "HEAD");
    let leave = |name: &str| put(&worktree.path, name, "left behind\n");
    leave(".aider.chat.history.md");
    leave("dir/.aider.input.history");
    leave(".claude/settings.local.json");
    leave("notes.mine");
    assert_eq!(git(&worktree.path, &["status", "--short"]), "");
    let done = commit(&scratch).await;
    assert_eq!((done.made, done.head), (None, before));

    leave(".aider.conf.yml");
    leave("work.txt");
    put(&worktree.path, ".aider.tracked", "two\n");
    // The person's own excludes may change meanwhile.
    fs::write(&personal, "*.mine\n*.other\n").unwrap();
    leave("notes.other");
    let done = commit(&scratch).await;
    let made = done.made.unwrap();
    let changed = git(
        &worktree.path,
        &["diff", "--name-only", "HEAD^", made.as_str()],
    );
    assert_eq!(changed, ".aider.conf.yml\n.aider.tracked\nwork.txt");
    // Elsewhere nothing has changed.
    put(&scratch.root, ".aider.chat.history.md", "mine\n");
    let seen = git(&scratch.root, &["status", "--short"]);
    assert_eq!(seen, "?? .aider.chat.history.md");
}
