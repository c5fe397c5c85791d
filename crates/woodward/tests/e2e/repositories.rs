//! Repositories as people have them, and directories that are none.

use woodward_testkit::TestRepo;
use woodward_testkit::repo::git;

use crate::scene::{SHELL_AGENT, Scene};

fn ready(repo: TestRepo) -> Scene {
    let config = format!("{SHELL_AGENT}limits: {{ backoff: 20ms }}\n");
    repo.commit("rules", &[("woodward.yaml", &config)]);
    let scene = Scene::of(repo);
    scene.ok(&["init", "-q"]);
    scene
}

#[test]
fn where_there_is_no_repository_nothing_is_made() {
    let scene = Scene::of(TestRepo::with(&[("a", "a")]));
    let plain = scene.repo.around().join("plain");
    std::fs::create_dir(&plain).unwrap();
    for command in [
        &["init"][..],
        &["create", "x", "-p", "y"],
        &["status"],
        &["doctor"],
    ] {
        let ran = scene.daemon.run(&plain, command);
        assert!(
            ran.code != 0 || command == ["doctor"],
            "{command:?}: {ran:?}"
        );
        assert!(
            !ran.hints().is_empty() || command == ["doctor"],
            "{command:?}: {ran:?}"
        );
    }
    assert_eq!(std::fs::read_dir(&plain).unwrap().count(), 0);
}

#[test]
fn a_bare_repository_is_refused() {
    let scene = Scene::of(TestRepo::with(&[("a", "a")]));
    let bare = scene.repo.around().join("bare.git");
    scene
        .repo
        .git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let ran = scene.daemon.run(&bare, &["init"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr.contains("bare") && !ran.hints().is_empty(),
        "{ran:?}"
    );
    assert!(!bare.join("woodward.yaml").exists());
}

#[test]
fn an_empty_repository_says_what_it_needs() {
    let scene = Scene::of(TestRepo::empty());
    let ran = scene.run(&["init"]);
    let created = scene.run(&["create", "one", "-p", "echo x > x"]);
    let said = format!("{ran:?} {created:?}");
    assert!(ran.code != 0 || created.code != 0, "{said}");
    assert!(said.contains("commit"), "{said}");
    assert!(ran.code != 70 && created.code != 70, "{said}");

    scene
        .repo
        .commit("first", &[("woodward.yaml", SHELL_AGENT)]);
    scene.ok(&["init", "-q"]);
    scene.create("two", "echo x > x\nexit 0");
    scene.land("two");
}

#[test]
fn on_a_detached_head_tasks_land_on_main_and_the_checkout_stays() {
    let repo = TestRepo::with(&[("woodward.yaml", SHELL_AGENT)]);
    repo.git(&["checkout", "--quiet", "--detach"]);
    let scene = Scene::of(repo);
    scene.ok(&["init", "-q"]);
    let head = scene.repo.head("HEAD");
    scene.create("one", "echo x > x\nexit 0");
    scene.land("one");
    assert_eq!(scene.repo.head("HEAD"), head);
    assert_eq!(scene.repo.git(&["show", "main:x"]), "x");
    assert!(!scene.root().join("x").exists());
}

#[test]
fn on_another_branch_the_checkout_stays() {
    let scene = ready(TestRepo::with(&[("a", "a")]));
    scene.repo.git(&["checkout", "--quiet", "-b", "mine"]);
    scene.repo.write("a", "dirty");
    scene.create("one", "echo theirs > a\nexit 0");
    scene.land("one");
    assert_eq!(scene.repo.read("a"), "dirty");
    assert_eq!(scene.repo.git(&["show", "main:a"]), "theirs");
}

#[test]
fn a_shallow_clone_works() {
    let origin = TestRepo::with(&[("a", "1\n")]);
    origin.commit("rules", &[("woodward.yaml", SHELL_AGENT)]);
    origin.commit("more", &[("a", "2\n")]);
    let repo = TestRepo::empty();
    let url = format!("file://{}", origin.root().display());
    repo.git(&["fetch", "--quiet", "--depth=1", &url, "main"]);
    repo.git(&["reset", "--quiet", "--hard", "FETCH_HEAD"]);
    assert_eq!(repo.git(&["rev-list", "--count", "HEAD"]), "1");
    let scene = Scene::of(repo);
    scene.ok(&["init", "-q"]);
    scene.create("one", "echo x > x\nexit 0");
    scene.land("one");
    assert_eq!(
        scene.repo.git(&["rev-parse", "--is-shallow-repository"]),
        "true"
    );
}

#[test]
fn a_repository_with_submodules_works() {
    let library = TestRepo::with(&[("lib.txt", "lib\n")]);
    let repo = TestRepo::with(&[("a", "a\n")]);
    let path = library.root().display().to_string();
    let added = git(repo.root())
        .args([
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            &path,
            "lib",
        ])
        .output()
        .unwrap();
    assert!(added.status.success(), "{added:?}");
    let scene = ready(repo);
    let kept = scene.repo.git(&["rev-parse", "HEAD:lib"]);
    scene.create("one", "echo x > x\nexit 0");
    scene.land("one");
    assert_eq!(scene.repo.git(&["rev-parse", "main:lib"]), kept);
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
    scene.create("two", "echo y > y\nexit 0");
    scene.wait("two", "review");
    let removed = scene.ok(&["rm", "two"]);
    scene.type_in(&removed.hinted("undo"));
    assert_eq!(
        std::fs::read_to_string(scene.worktree("two").join("y")).unwrap(),
        "y\n"
    );
}

#[test]
fn somebody_elses_directory_or_branch_of_that_name_is_left_alone() {
    let scene = ready(TestRepo::with(&[("a", "a\n")]));
    let taken = scene.worktree("taken");
    std::fs::create_dir_all(&taken).unwrap();
    std::fs::write(taken.join("mine.txt"), "mine").unwrap();
    scene.repo.git(&["branch", "woodward/named/1"]);
    scene.repo.git(&["branch", "woodward/fenced"]);
    for name in ["taken", "named", "fenced"] {
        scene.create(name, "echo x > x\nexit 0");
    }
    let why = scene.failed("taken");
    assert!(why.contains("exists") && why.contains("mv "), "{why}");
    assert_eq!(
        std::fs::read_to_string(taken.join("mine.txt")).unwrap(),
        "mine"
    );
    let why = scene.failed("named");
    assert!(why.contains("woodward/named/1"), "{why}");
    let why = scene.failed("fenced");
    assert!(why.contains("woodward/fenced"), "{why}");
    // The person does what was said, and it goes on.
    std::fs::rename(&taken, taken.with_extension("old")).unwrap();
    scene.ok(&["retry", "taken"]);
    scene.land("taken");
}

#[test]
fn a_repository_that_moved_away_stops_only_its_own_tasks() {
    let scene = ready(TestRepo::with(&[("a", "a\n")]));
    let second = TestRepo::with(&[("woodward.yaml", SHELL_AGENT)]);
    scene.daemon.run(second.root(), &["init", "-q"]);
    std::fs::rename(second.root(), second.root().with_extension("gone")).unwrap();
    scene.ok(&["down"]);
    scene.create("one", "echo x > x\nexit 0");
    scene.land("one");
}

/// A stand-in for git-lfs: what is large lies in a directory, and git has only where.
fn with_large_files() -> Scene {
    let repo = TestRepo::empty();
    let store = repo.around().join("large");
    std::fs::create_dir(&store).expect("a directory");
    let store = store.display();
    let filter = repo.around().join("lfs");
    let text = format!(
        "#!/bin/sh\nset -e\ncase $1 in\nclean)\n  t=$(mktemp '{store}/new.XXXXXX'); cat > \"$t\"\n  \
         s=$(sha256sum < \"$t\" | cut -c1-64); mv \"$t\" '{store}'/$s\n  \
         printf 'large file\\noid %s\\n' $s;;\n\
         smudge) s=$(sed -n 's/^oid //p'); cat '{store}'/$s;;\nesac\n"
    );
    std::fs::write(&filter, text).expect("a file");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&filter, executable).expect("a file of ours");
    filter_is(&repo, &filter.display().to_string());
    let attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
    repo.commit("large", &[(".gitattributes", attributes), ("a.bin", "one")]);
    assert!(repo.git(&["show", "HEAD:a.bin"]).starts_with("large file"));
    ready(repo)
}

fn filter_is(repo: &TestRepo, program: &str) {
    for deed in ["clean", "smudge"] {
        let key = format!("filter.lfs.{deed}");
        repo.git(&["config", &key, &format!("'{program}' {deed}")]);
    }
    repo.git(&["config", "filter.lfs.required", "true"]);
}

/// Large files are whole wherever people and agents look, and small wherever git looks.
#[test]
fn large_files_are_whole_for_agents_and_after_landing() {
    let scene = with_large_files();
    let work = "[ \"$(cat a.bin)\" = one ] || exit 9\nprintf two > a.bin\ngit add a.bin\n\
                git commit -qm two\nprintf more > b.bin\nexit 0";
    scene.create("one", work);
    scene.land("one");
    assert_eq!(scene.repo.read("a.bin"), "two");
    assert_eq!(scene.repo.read("b.bin"), "more");
    for file in ["main:a.bin", "main:b.bin"] {
        let kept = scene.repo.git(&["show", file]);
        assert!(kept.starts_with("large file\noid "), "{file}: {kept}");
    }
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
    // The next one begins with what has landed.
    scene.create(
        "two",
        "[ \"$(cat a.bin b.bin)\" = twomore ] && printf 3 > a.bin",
    );
    scene.land("two");
    assert_eq!(scene.repo.read("a.bin"), "3");
    scene.repo.fsck();
}

/// Without its filter nobody works on half a tree, and nothing is written over with what git keeps.
#[test]
fn a_missing_filter_stops_with_its_name_and_loses_nothing() {
    let scene = with_large_files();
    let filter = scene.repo.around().join("lfs").display().to_string();
    scene.create("ready", "printf two > a.bin\nexit 0");
    scene.wait("ready", "review");
    filter_is(&scene.repo, "/nonexistent/lfs");
    scene.create("late", "cat a.bin > seen.txt\nexit 0");
    let why = scene.failed("late");
    assert!(why.contains("lfs"), "{why}");
    assert!(
        scene.show("late").runs.is_empty(),
        "no agent saw half a tree"
    );
    scene.ok(&["merge", "ready"]);
    scene.run(&["wait", "ready", "--until", "landed", "--timeout", "60s"]);
    let here = scene.repo.read("a.bin");
    assert!(["one", "two"].contains(&here.as_str()), "{here}");
    // With its filter everything goes on.
    filter_is(&scene.repo, &filter);
    scene.ok(&["retry", "late"]);
    scene.lands_by_itself("ready");
    scene.land("late");
    let seen = scene.repo.read("seen.txt");
    assert!(["one", "two"].contains(&seen.as_str()), "{seen}");
    assert!(
        scene
            .repo
            .git(&["show", "main:a.bin"])
            .starts_with("large file")
    );
    scene.repo.fsck();
}
