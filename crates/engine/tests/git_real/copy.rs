//! Copying what git does not keep.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use woodward_engine::git::{GitError, Skip, copy_ignored};

use crate::support::{Scratch, put, read};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn named_files_and_directories_are_copied_with_modes_times_and_symlinks() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    put(&scratch.root, ".env", "secret");
    put(&scratch.root, "ignored/bin/tool", "#!/bin/sh\n");
    put(&scratch.root, "ignored/empty", "");
    symlink("bin/tool", scratch.root.join("ignored/link")).unwrap();
    let tool = scratch.root.join("ignored/bin/tool");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o751)).unwrap();
    let then = UNIX_EPOCH + Duration::from_secs(1_000_000);
    let times = FileTimes::new().set_modified(then);
    File::options()
        .write(true)
        .open(&tool)
        .unwrap()
        .set_times(times)
        .unwrap();
    File::open(scratch.root.join("ignored"))
        .unwrap()
        .set_times(times)
        .unwrap();

    let wanted = names(&[".env*", "ignored", "nothing", "a.txt"]);
    let done = copy_ignored(&scratch.root, &worktree.path, &wanted)
        .await
        .unwrap();
    assert_eq!(done.copied, [PathBuf::from(".env"), "ignored".into()]);
    assert_eq!(
        done.skipped,
        [
            ("nothing".into(), Skip::Missing),
            ("a.txt".into(), Skip::Exists)
        ]
    );
    assert_eq!(done.files, 4);
    let copy = fs::metadata(worktree.path.join("ignored/bin/tool")).unwrap();
    assert_eq!(copy.permissions().mode() & 0o777, 0o751);
    assert_eq!(copy.modified().unwrap(), then);
    let dir = fs::metadata(worktree.path.join("ignored")).unwrap();
    assert_eq!(dir.modified().unwrap(), then);
    let link = fs::read_link(worktree.path.join("ignored/link")).unwrap();
    assert_eq!(link, PathBuf::from("bin/tool"));
    // Never over what is there, and a copy is a copy.
    put(&worktree.path, ".env", "own");
    copy_ignored(&scratch.root, &worktree.path, &wanted)
        .await
        .unwrap();
    assert_eq!(read(&worktree.path, ".env"), "own");
    assert_eq!(read(&scratch.root, ".env"), "secret");
}

#[tokio::test]
async fn nothing_is_read_or_written_outside() {
    let scratch = Scratch::new().await;
    let worktree = scratch.worktree("t").await;
    put(&scratch.top, "outside/x", "secret");
    symlink(scratch.top.join("outside"), scratch.root.join("way-out")).unwrap();
    for bad in [
        "../outside/x",
        "/etc/hostname",
        "dir/../../outside",
        ".git/config",
    ] {
        let refused = copy_ignored(&scratch.root, &worktree.path, &names(&[bad])).await;
        assert!(matches!(refused, Err(GitError::Refused { .. })), "{bad}");
    }
    let done = copy_ignored(&scratch.root, &worktree.path, &names(&["way-out/x"]))
        .await
        .unwrap();
    assert_eq!(done.skipped, [("way-out/x".into(), Skip::Missing)]);
    // A symlink in the worktree where a directory is needed.
    put(&scratch.root, "ignored/y", "y");
    symlink(scratch.top.join("outside"), worktree.path.join("ignored")).unwrap();
    let refused = copy_ignored(&scratch.root, &worktree.path, &names(&["ignored/y"])).await;
    assert!(matches!(refused, Err(GitError::Refused { .. })));
    assert!(!scratch.top.join("outside/y").exists());
}
