//! What needs a git process, and what is seen without one, with the same answer.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use uuid::Uuid;
use woodward_core::{CommitId, IntentId};
use woodward_engine::git::{Advance, CommitWith, Door, Removal, Repo};
use woodward_testkit::write_program;

use crate::support::{NOW, Scratch, fsck, git, put, read, rev, try_git};

/// A repository whose git processes are counted.
struct Counted {
    scratch: Scratch,
    repo: Repo,
    log: PathBuf,
}

impl Counted {
    async fn new(init: &[&str]) -> Self {
        let scratch = Scratch::with(init).await;
        let program = scratch.top.join("git");
        let log = scratch.top.join("log");
        let script = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{}'\nexec git \"$@\"\n",
            log.display()
        );
        write_program(&program, &script);
        let door = Door::with_program(program, "tests");
        let repo = Repo::discover(&door, &scratch.root).await.unwrap();
        let counted = Self { scratch, repo, log };
        counted.verbs();
        counted
    }

    /// The subcommands since the last look.
    fn verbs(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        fs::write(&self.log, "").unwrap();
        let verb = |line: &str| {
            let mut words = line.split(' ');
            while let Some(word) = words.next() {
                match word {
                    "-c" => drop(words.next()),
                    verb => return verb.to_owned(),
                }
            }
            String::new()
        };
        text.lines().map(verb).collect()
    }

    fn advance(&self, new: &CommitId, old: &CommitId) {
        let args = ["update-ref", "refs/heads/main", new.as_str(), old.as_str()];
        self.scratch.git(&args);
    }
}

/// The kinds of indexes there are, and whether they are read without a process.
const INDEXES: [(&[&str], bool); 5] = [
    (&["status"], true),
    (&["update-index", "--index-version", "4"], true),
    (&["update-index", "--untracked-cache"], true),
    (&["update-index", "--split-index"], false),
    (&["update-index", "--assume-unchanged", "a.txt"], false),
];

#[tokio::test]
async fn every_kind_of_index_gives_the_same_answer() {
    for object_format in ["--object-format=sha1", "--object-format=sha256"] {
        for (kind, plain) in INDEXES {
            let it = Counted::new(&[object_format]).await;
            let root = &it.scratch.root;
            let long = format!("dir/{}", "long ".repeat(40));
            put(root, "-odd,name", "1\n");
            put(root, &long, "1\n");
            put(root, "goes", "1\n");
            let old = it.scratch.commit(&[]);
            it.scratch.git(&["checkout", "-q", "-b", "next"]);
            fs::remove_file(root.join("goes")).unwrap();
            let new = it.scratch.commit(&[
                ("-odd,name", "2\n"),
                (&long, "2\n"),
                ("a.txt", "new\n"),
                ("comes/here", "new\n"),
            ]);
            it.scratch.git(&["checkout", "-q", "main"]);
            it.scratch.git(kind);
            let shown = format!("{object_format} {kind:?}");

            let found = it.repo.blockers(root, &old, &new).await.unwrap();
            assert_eq!(found, [""; 0], "{shown}");
            let verbs = it.verbs();
            assert_eq!(
                verbs.contains(&"diff-index".into()),
                !plain,
                "{shown}: {verbs:?}"
            );
            put(root, &long, "3\n");
            put(root, "comes/here", "mine\n");
            let found = it.repo.blockers(root, &old, &new).await.unwrap();
            assert_eq!(found, ["comes/here", &long], "{shown}");
            it.scratch.git(&["checkout", "-q", "--", &long]);
            fs::remove_file(root.join("comes/here")).unwrap();
            it.scratch
                .git(&["update-index", "--force-remove", "--", &long]);
            let found = it.repo.blockers(root, &old, &new).await.unwrap();
            assert_eq!(found, [long.as_str()], "{shown}");
            it.scratch.git(&["add", &long]);

            it.advance(&new, &old);
            let followed = it.repo.follow(root, &old, &new).await.unwrap();
            assert_eq!((followed.changed, followed.left.len()), (5, 0), "{shown}");
            it.scratch
                .git(&["update-index", "--no-assume-unchanged", "a.txt"]);
            assert_eq!(it.scratch.git(&["status", "--porcelain"]), "", "{shown}");
            assert_eq!(read(root, &long), "2\n");
            fsck(root);
        }
    }
}

#[tokio::test]
async fn a_conflict_in_the_index_is_somebodys_work() {
    let it = Counted::new(&[]).await;
    let old = it.scratch.head();
    let new = it.scratch.branch("next", "main", &[("a.txt", "new\n")]);
    it.scratch
        .branch("theirs", "main", &[("a.txt", "theirs\n")]);
    let base = it.scratch.branch("ours", "main", &[("a.txt", "ours\n")]);
    it.scratch.git(&["checkout", "-q", "ours"]);
    assert!(
        !try_git(&it.scratch.root, &["merge", "theirs"])
            .status
            .success()
    );
    for from in [&old, &base] {
        let found = it
            .repo
            .blockers(&it.scratch.root, from, &new)
            .await
            .unwrap();
        assert_eq!(found, ["a.txt"]);
    }
}

#[tokio::test]
async fn a_file_whose_time_was_set_back_is_still_somebodys_work() {
    let it = Counted::new(&[]).await;
    let root = &it.scratch.root;
    let touch = |file: &str| {
        let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
        let file = fs::File::options()
            .write(true)
            .open(root.join(file))
            .unwrap();
        file.set_modified(long_ago).unwrap();
    };
    touch("a.txt");
    it.scratch.git(&["update-index", "--refresh"]);
    let old = it.scratch.head();
    let new = it.scratch.branch("next", "main", &[("a.txt", "new\n")]);
    touch("a.txt");
    it.scratch.git(&["update-index", "--refresh"]);
    // Nothing has happened to it since, and that is seen without reading it.
    it.repo.blockers(root, &old, &new).await.unwrap();
    assert_eq!(it.verbs(), ["diff-tree"]);
    // As long as before, and as old.
    put(root, "a.txt", "eno\n");
    touch("a.txt");
    let found = it.repo.blockers(root, &old, &new).await.unwrap();
    assert_eq!(found, ["a.txt"]);
    put(root, "a.txt", "one\n");
    touch("a.txt");
    assert_eq!(it.repo.blockers(root, &old, &new).await.unwrap(), [""; 0]);
    // Nothing about the file has changed, but the index says something else of its mode.
    for (mode, says) in [(0o644, "--chmod=+x"), (0o755, "--chmod=-x")] {
        let file = root.join("a.txt");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        // Within a second git would not notice, and keep what it knows.
        it.scratch.git(&["update-index", "--force-remove", "a.txt"]);
        it.scratch.git(&["update-index", "--add", "a.txt"]);
        it.scratch.git(&["update-index", says, "a.txt"]);
        it.scratch.git(&["commit", "-q", "-m", "mode"]);
        let old = it.scratch.head();
        let nothing = it
            .scratch
            .git(&["hash-object", "-w", "-t", "tree", "/dev/null"]);
        let new = it.scratch.git(&["commit-tree", &nothing, "-m", "empty"]);
        let new = new.parse().unwrap();
        let found = it.repo.blockers(root, &old, &new).await.unwrap();
        assert_eq!(found, ["a.txt"], "{says}");
    }
}

#[tokio::test]
async fn a_landing_compares_once_and_its_checkout_follows_with_two_processes() {
    let it = Counted::new(&[]).await;
    let root = &it.scratch.root;
    let old = it.scratch.head();
    let new = it.scratch.branch("next", "main", &[("new.txt", "new\n")]);
    it.repo.blockers(root, &old, &new).await.unwrap();
    it.repo.blockers(root, &old, &new).await.unwrap();
    assert_eq!(it.verbs(), ["diff-tree"]);
    let intent = IntentId::new(Uuid::from_u128(7));
    it.repo.pin_landing(intent, &new).await.unwrap();
    assert_eq!(it.verbs(), [""; 0]);
    let pinned = it
        .scratch
        .git(&["for-each-ref", "--format=%(objectname)", "refs/woodward"]);
    assert_eq!(pinned, new.as_str());
    assert_eq!(it.repo.pinned_landings().await.unwrap(), [intent]);
    assert_eq!(it.verbs(), [""; 0]);
    let moved = it.repo.advance("main", &new, &old).await.unwrap();
    assert_eq!(moved, Advance::Advanced);
    it.repo.follow(root, &old, &new).await.unwrap();
    it.repo.unpin_landing(intent).await.unwrap();
    assert_eq!(it.verbs(), ["update-ref", "checkout-index", "update-index"]);
    assert_eq!(it.scratch.git(&["for-each-ref", "refs/woodward"]), "");
    // The index knows the new files' times: nobody has to read them again.
    assert_eq!(it.scratch.git(&["diff-files", "--name-only"]), "");
    assert_eq!(it.scratch.git(&["status", "--porcelain"]), "");
    assert!(it.repo.locks().is_empty());
}

#[tokio::test]
async fn dirty_files_elsewhere_and_a_held_index_are_told_apart() {
    let it = Counted::new(&[]).await;
    let root = &it.scratch.root;
    let old = it.scratch.head();
    let new = it.scratch.branch("next", "main", &[("new.txt", "new\n")]);
    it.advance(&new, &old);
    put(root, "a.txt", "a person's own\n");
    let lock = root.join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let error = it.repo.follow(root, &old, &new).await.unwrap_err();
    assert!(error.to_string().contains("index.lock"), "{error}");
    fs::remove_file(&lock).unwrap();
    it.repo.follow(root, &old, &new).await.unwrap();
    assert_eq!(it.scratch.git(&["status", "--porcelain"]), " M a.txt");
    assert_eq!(read(root, "a.txt"), "a person's own\n");
}

#[tokio::test]
async fn refs_of_ours_are_found_where_git_packed_them() {
    let it = Counted::new(&[]).await;
    let head = it.scratch.head();
    let ids = [7, 8].map(|number| IntentId::new(Uuid::from_u128(number)));
    assert_eq!(it.repo.pinned_landings().await.unwrap(), []);
    it.repo.pin_landing(ids[0], &head).await.unwrap();
    it.scratch.git(&["pack-refs", "--all"]);
    it.repo.pin_landing(ids[1], &head).await.unwrap();
    assert_eq!(it.repo.pinned_landings().await.unwrap(), ids);
    for id in ids {
        it.repo.unpin_landing(id).await.unwrap();
    }
    assert_eq!(it.repo.pinned_landings().await.unwrap(), []);
    assert_eq!(it.scratch.git(&["for-each-ref", "refs/woodward"]), "");
}

#[tokio::test]
async fn refs_of_ours_are_git_s_business_where_they_are_not_files() {
    let it = Counted::new(&["--ref-format=reftable"]).await;
    let head = it.scratch.head();
    let intent = IntentId::new(Uuid::from_u128(7));
    it.repo.pin_landing(intent, &head).await.unwrap();
    let found = it.repo.pinned_landings().await.unwrap();
    assert_eq!(found, [intent]);
    it.repo.unpin_landing(intent).await.unwrap();
    assert_eq!(it.repo.pinned_landing(intent).await.unwrap(), None);
}

#[tokio::test]
async fn what_gates_leave_is_gone_before_the_next_ones_look() {
    let it = Counted::new(&[]).await;
    let place = it.scratch.top.join("place");
    let first = it.scratch.head();
    let second = it.scratch.branch("next", "main", &[("dir/c.txt", "c\n")]);
    it.repo.checkout_detached(&place, &first).await.unwrap();
    it.verbs();
    it.repo.checkout_detached(&place, &second).await.unwrap();
    assert_eq!(it.verbs(), ["checkout"]);
    let droppings: [&dyn Fn(); 4] = [
        &|| put(&place, "dropped", "x"),
        &|| put(&place, "dir/dropped", "x"),
        &|| fs::create_dir_all(place.join("empty/deeper")).unwrap(),
        &|| put(&place, "dir/a.txt/inside", "x"),
    ];
    for (number, drop) in droppings.iter().enumerate() {
        put(&place, "a.txt", "changed by a gate\n");
        put(&place, "ignored/cache", "warm");
        drop();
        let commit = [&first, &second][number % 2];
        it.repo.checkout_detached(&place, commit).await.unwrap();
        assert_eq!(it.verbs(), ["checkout", "clean"]);
        assert_eq!(git(&place, &["status", "--porcelain"]), "");
        assert!(!place.join("empty").exists());
        assert_eq!(read(&place, "ignored/cache"), "warm");
        assert_eq!(&rev(&place, "HEAD"), commit);
    }
}

#[tokio::test]
async fn only_commits_of_what_runs_left_have_no_messages_of_an_agent() {
    let it = Counted::new(&[]).await;
    let worktree = it.scratch.worktree("t").await;
    let base = it.scratch.head();
    let of_run = CommitWith {
        message: "t: work\n\nWoodward-Run: 1\n".into(),
        is_from_run: true,
        ..it.scratch.commit_with("t")
    };
    let commit = async |text: &str, with: &CommitWith| {
        put(&worktree.path, "new.txt", text);
        it.repo.commit_all(&worktree, with).await.unwrap().head
    };
    let messages = async |head: &CommitId| {
        let cached = it.repo.own_messages(head, &[&base]).await.unwrap();
        let read = it.scratch.repo.own_messages(head, &[&base]).await.unwrap();
        assert_eq!(cached, read);
        cached
    };
    let first = commit("one\n", &of_run).await;
    let second = commit("two\n", &of_run).await;
    it.verbs();
    assert!(messages(&first).await.is_empty());
    assert!(messages(&second).await.is_empty());
    assert!(it.verbs().is_empty(), "nothing was asked");
    let decided = commit("three\n", &it.scratch.commit_with("t")).await;
    assert_eq!(messages(&decided).await, ["work"]);
    let third = commit("four\n", &of_run).await;
    assert_eq!(messages(&third).await, ["work"]);
}

#[tokio::test]
async fn a_clean_worktree_goes_with_two_processes_and_an_odd_one_keeps_its_work() {
    let it = Counted::new(&[]).await;
    let worktree = it
        .repo
        .create_worktree(&it.scratch.spec("t"))
        .await
        .unwrap();
    let with = it.scratch.commit_with("t");
    put(&worktree.path, "new.txt", "new\n");
    it.repo.commit_all(&worktree, &with).await.unwrap();
    it.verbs();
    put(&worktree.path, "new.txt", "newer\n");
    let made = it.repo.commit_all(&worktree, &with).await.unwrap().head;
    assert_eq!(it.verbs(), ["add", "write-tree", "update-ref"]);
    let base = it.scratch.head();
    let ahead = it
        .repo
        .commits_beyond(&base, &worktree.branch)
        .await
        .unwrap();
    let common = it.repo.merge_base(&base, &made).await.unwrap();
    assert_eq!((ahead, common), (1 + 1, Some(base)));

    // What an agent's settings would hide is seen all the same.
    let config = worktree.admin.join("config.worktree");
    let settings = fs::read_to_string(&config).unwrap();
    let hidden = "[status]\n\tshowUntrackedFiles = no\n";
    fs::write(&config, format!("{settings}{hidden}")).unwrap();
    put(&worktree.path, "untracked", "u\n");
    let clean = it.repo.is_clean_at(&worktree.path, &made).await.unwrap();
    assert!(!clean);
    let saved = it.repo.snapshot(&worktree, "t", "why", NOW).await.unwrap();
    let saved = saved.unwrap().commit;
    assert_eq!(
        git(&it.scratch.root, &["show", &format!("{saved}:untracked")]),
        "u"
    );
    fs::remove_file(worktree.path.join("untracked")).unwrap();

    it.verbs();
    let removed = it
        .repo
        .remove_worktree(&Removal {
            worktree: &worktree,
            task: "t",
            id: "r1",
            why: "done",
            is_landed: false,
            now: NOW,
        })
        .await
        .unwrap();
    assert_eq!(it.verbs(), ["status", "update-ref"]);
    assert!(!removed.branch_kept && removed.entry.saved);
    for name in &removed.entry.rescues {
        assert_eq!(rev(&it.scratch.root, name), made);
    }
    assert_eq!(removed.entry.rescues.len(), 2);
    assert!(it.repo.locks().is_empty());
    fsck(&it.scratch.root);
}
