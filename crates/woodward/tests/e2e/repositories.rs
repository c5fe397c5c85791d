//! Repositories as people have them, and directories that are none.

use woodward_testkit::TestRepo;
use woodward_testkit::repo::git;

use crate::scene::{SHELL_AGENT, Scene};

fn ready(repo: TestRepo) -> Scene {
    repo.commit("rules", &[("woodward.yaml", SHELL_AGENT)]);
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
