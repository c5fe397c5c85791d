//! Landing on a branch of a remote: whose push decides, who is in the way, and what a refusal costs.

use std::path::PathBuf;
use std::process::Command;

use woodward_core::TaskName;
use woodward_core::hint::NextCommand;
use woodward_testkit::write_program;

use crate::scene::Scene;

const GATED: &str = "queue: { remote: origin }\ngates: [{ name: ok, command: \"true\" }]\n";

/// A bare repository that the scene's lands on.
struct Origin<'a> {
    scene: &'a Scene,
}

impl<'a> Origin<'a> {
    fn of(scene: &'a Scene) -> Self {
        let origin = Self { scene };
        origin.git(&["clone", "-q", "--bare", "shop", "origin.git"]);
        let path = origin.path().display().to_string();
        scene.repo.git(&["remote", "add", "origin", &path]);
        origin
    }

    fn path(&self) -> PathBuf {
        self.scene.repo.around().join("origin.git")
    }

    fn git(&self, args: &[&str]) -> String {
        let who = ["-c", "user.name=o", "-c", "user.email=o@example.com"];
        let done = Command::new("git")
            .args(who)
            .args(args)
            .current_dir(self.scene.repo.around())
            .output()
            .expect("git runs");
        assert!(done.status.success(), "git {args:?}: {done:?}");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Somebody else pushes a change.
    fn push(&self, file: &str, text: &str) {
        self.git(&["clone", "-q", "origin.git", "colleague"]);
        let colleague = self.scene.repo.around().join("colleague");
        std::fs::write(colleague.join(file), text).expect("written");
        self.git(&["-C", "colleague", "add", "."]);
        self.git(&["-C", "colleague", "commit", "-qm", "theirs"]);
        self.git(&["-C", "colleague", "push", "-q"]);
    }

    fn show(&self, what: &str) -> String {
        self.git(&["-C", "origin.git", "show", what])
    }

    fn head(&self) -> String {
        self.git(&["-C", "origin.git", "rev-parse", "main"])
    }

    /// What decides about pushes; `None` lets all through.
    fn guard(&self, script: Option<&str>) {
        let hook = self
            .scene
            .repo
            .around()
            .join("origin.git/hooks/pre-receive");
        let Some(script) = script else {
            std::fs::remove_file(hook).expect("removed");
            return;
        };
        write_program(&hook, &format!("#!/bin/sh\n{script}\n"));
    }
}

#[test]
fn with_a_remote_the_push_decides_and_the_local_branch_follows() {
    let scene = Scene::new(GATED);
    let origin = Origin::of(&scene);
    let theirs = || origin.head();

    scene.create("one", "echo 1 > one.txt; exit 0");
    scene.land("one");
    assert_eq!(theirs(), scene.repo.head("main"));
    assert_eq!(scene.repo.read("one.txt"), "1\n");

    // Somebody else pushes: what lands goes on top, and the local branch gets both.
    origin.push("two.txt", "2\n");
    let pushed = theirs();
    scene.create("three", "echo 3 > three.txt; exit 0");
    scene.land("three");
    assert_eq!(theirs(), scene.repo.head("main"));
    assert_eq!(scene.repo.head("main~1"), pushed);
    assert_eq!(scene.repo.read("two.txt"), "2\n");
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");

    // What only the person has is not pushed by us.
    scene.repo.commit("mine", &[("mine.txt", "mine\n")]);
    scene.create("four", "echo 4 > four.txt; exit 0");
    scene.wait("four", "review");
    scene.ok(&["merge", "four"]);
    scene.until("it is held", || scene.task("four").held.is_some());
    let held = scene.task("four").held.unwrap();
    assert!(held.contains("origin does not have"), "{held}");
    scene.repo.git(&["push", "-q", "origin", "main"]);
    scene.lands_by_itself("four");
    assert_eq!(theirs(), scene.repo.head("main"));

    // A remote that can't be reached loses nothing.
    let before = theirs();
    let away = scene.repo.around().join("away.git");
    std::fs::rename(origin.path(), &away).expect("moved");
    scene.create("five", "echo 5 > five.txt; exit 0");
    scene.wait("five", "review");
    scene.ok(&["merge", "five"]);
    scene.until("it is held", || scene.task("five").held.is_some());
    assert_eq!(scene.repo.head("main"), before);
    std::fs::rename(&away, origin.path()).expect("moved back");
    assert_eq!(theirs(), before);
    scene.lands_by_itself("five");
    assert_eq!(theirs(), scene.repo.head("main"));
}

#[test]
fn a_conflict_with_what_a_colleague_pushed_can_be_resolved() {
    let scene = Scene::new(GATED);
    let origin = Origin::of(&scene);
    let script = "case $WOODWARD_PURPOSE in first) sed -i 's/^4$/agent/' a.txt;; conflict) grep -q '<<<<<<<' a.txt || exit 9; sed -i '/^[<=>][<=>]*/d' a.txt;; esac\nexit 0";
    scene.create("ours", script);
    scene.wait("ours", "review");
    origin.push("a.txt", "1\n2\n3\ncolleague\n5\n6\n7\n8\n");
    scene.ok(&["merge", "ours"]);
    scene.until("it was resolved", || scene.show("ours").runs.len() == 2);
    scene.land("ours");
    let text = origin.show("main:a.txt");
    assert!(
        text.contains("agent") && text.contains("colleague") && !text.contains("<<<"),
        "{text}"
    );
    assert_eq!(scene.repo.git(&["show", "main:a.txt"]), text);
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_a_remote_refuses_waits_alone() {
    let scene = Scene::new("queue: { remote: origin }\ngates: [{ name: ok, command: \"true\" }]\n");
    let origin = Origin::of(&scene);
    origin.guard(Some(
        "while read old new ref; do git ls-tree --name-only $new | grep -q secret && { echo 'no secrets, please' >&2; exit 1; }; done; exit 0",
    ));
    scene.create("leak", "echo 1 > secret.txt\nexit 0");
    scene.create("hide", "echo 1 > secret-2.txt\nexit 0");
    scene.create("one", "echo 1 > one.txt\nexit 0");
    scene.create("two", "echo 2 > two.txt\nexit 0");
    for name in ["leak", "hide", "one", "two"] {
        scene.wait(name, "review");
    }
    scene.ok(&["queue", "freeze", "-m", "all at once"]);
    scene.ok(&["merge", "leak", "hide", "one", "two"]);
    scene.ok(&["queue", "thaw"]);
    scene.lands_by_itself("one");
    scene.lands_by_itself("two");
    let held = |name: &str| scene.task(name).held.unwrap_or_default();
    for name in ["leak", "hide"] {
        scene.until("the person is told", || {
            held(name).contains("no secrets, please")
        });
    }
    // Both commands that it names work there.
    let task: TaskName = "hide".parse().expect("a name");
    let reject = NextCommand::Reject { task }.to_string();
    assert!(held("hide").contains(&reject), "{}", held("hide"));
    scene.type_in(&reject);
    let task: TaskName = "leak".parse().expect("a name");
    let release = NextCommand::QueueRelease { task }.to_string();
    assert!(held("leak").contains(&release), "{}", held("leak"));
    let files = origin.git(&["-C", "origin.git", "ls-tree", "--name-only", "main"]);
    assert!(
        files.contains("two.txt") && !files.contains("secret"),
        "{files}"
    );
    assert_eq!(origin.show("main"), scene.repo.git(&["show", "main"]));
    origin.guard(None);
    scene.type_in(&release);
    scene.lands_by_itself("leak");
    assert_eq!(scene.repo.read("secret.txt"), "1\n");
}
