//! Lock files: removed only when nobody can hold them.

use std::fs::File;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use woodward_engine::git::{Door, MARKER, Repo, end_orphans};
use woodward_testkit::write_program;

use crate::support::{Scratch, put, until};

#[tokio::test]
async fn stale_locks_are_removed_and_open_ones_are_not() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    put(&scratch.root, ".git/refs/heads/main.lock", "");
    put(&scratch.root, ".git/packed-refs.lock", "");
    put(&worktree.admin, "HEAD.lock", "");
    let held = scratch.root.join(".git/index.lock");
    let mut open = File::create(&held).unwrap();
    open.write_all(b"x").unwrap();
    assert_eq!(scratch.repo.locks().len(), 4);
    let swept = scratch.repo.sweep_locks().await.unwrap();
    assert_eq!(swept.removed.len(), 3, "{swept:?}");
    assert_eq!(swept.held.len(), 1);
    assert_eq!(swept.held[0].0, held);
    assert!(held.exists());
    drop(open);
    // A process that another test is just starting has it open, too, until it is another program.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let swept = scratch.repo.sweep_locks().await.unwrap();
        if swept.removed == [held.as_path()] {
            break;
        }
        assert!(Instant::now() < deadline, "{swept:?}");
    }
}

struct Reaped(Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_lock_stays_while_a_git_that_was_there_before_it_works_in_the_repository() {
    let scratch = Scratch::new().await;
    // It waits for its input and holds no file open.
    let mut git = Command::new("git");
    git.args(["cat-file", "--batch"]).current_dir(&scratch.root);
    let child = git
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let reader = Reaped(child);
    let comm = format!("/proc/{}/comm", reader.0.id());
    until("git runs", || {
        std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() == "git")
    });
    put(&scratch.root, ".git/refs/heads/main.lock", "");
    let swept = scratch.repo.sweep_locks().await.unwrap();
    assert_eq!((swept.removed.len(), swept.held.len()), (0, 1), "{swept:?}");
    drop(reader);
    assert_eq!(scratch.repo.sweep_locks().await.unwrap().removed.len(), 1);
}

#[tokio::test]
async fn orphans_are_found_by_their_marker_and_ended_and_others_are_not() {
    // Not below this process: the shell that started it is gone.
    let orphan = |marker: &str| {
        let out = Command::new("sh")
            .args(["-c", "sleep 1000 >/dev/null 2>&1 & echo $!"])
            .env(MARKER, marker)
            .output()
            .unwrap();
        String::from_utf8(out.stdout)
            .unwrap()
            .trim()
            .parse::<i32>()
            .unwrap()
    };
    let alive = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    let mine = orphan("orphan-test-a");
    let other = orphan("orphan-test-b");
    assert!(alive(mine) && alive(other));
    assert_eq!(end_orphans("orphan-test-a", Duration::ZERO).await, 1);
    until("the orphan has ended", || !alive(mine));
    assert!(alive(other));
    assert_eq!(end_orphans("orphan-test-b", Duration::ZERO).await, 1);
    until("the other has ended", || !alive(other));
    assert_eq!(end_orphans("orphan-test-a", Duration::ZERO).await, 0);
}

#[tokio::test]
async fn every_git_process_carries_the_marker_and_no_foreign_git_settings() {
    let scratch = Scratch::new().await;
    let spy = scratch.top.join("spy");
    let seen = scratch.top.join("seen");
    let body = format!("#!/bin/sh\nenv >> {}\nexec git \"$@\"\n", seen.display());
    write_program(&spy, &body);
    let door = Door::with_program(&spy, "digest-1");
    let repo = Repo::discover(&door, &scratch.root).await.unwrap();
    repo.tip("main").await.unwrap();
    let env = std::fs::read_to_string(seen).unwrap();
    assert!(env.lines().any(|line| line == "WOODWARD_GIT=digest-1"));
    assert!(env.lines().any(|line| line == "GIT_TERMINAL_PROMPT=0"));
    assert!(!env.lines().any(|line| line.starts_with("CARGO")), "{env}");
}
