//! What goes wrong on the way to a branch, and that it costs nobody else anything.

use std::process::Command;

use woodward_testkit::patience::until;
use woodward_testkit::write_program;

use crate::scene::{SHELL_AGENT, Scene};

/// A project whose gate, once `slow` is on the branch, says that it began and waits for a mark.
fn slow(rules: &str) -> Scene {
    let scene = Scene::new("");
    let check = format!(
        "[ -e slow ] || exit 0\necho . >> '{}'\n{}\n",
        scene.mark("began").display(),
        scene.await_mark("go")
    );
    let config = format!(
        "{SHELL_AGENT}gates: [{{ name: check, command: sh check.sh, rerun: false }}]\n{rules}"
    );
    let files = [("check.sh", check.as_str()), ("woodward.yaml", &config)];
    scene.repo.commit("rules", &files);
    scene
}

fn began(scene: &Scene) -> usize {
    let text = std::fs::read_to_string(scene.mark("began"));
    text.unwrap_or_default().lines().count()
}

/// A bare repository that the scene's lands on.
struct Origin<'a> {
    scene: &'a Scene,
}

impl<'a> Origin<'a> {
    fn of(scene: &'a Scene) -> Self {
        let origin = Self { scene };
        origin.git(&["clone", "-q", "--bare", "shop", "origin.git"]);
        let path = scene.repo.around().join("origin.git");
        let path = path.display().to_string();
        scene.repo.git(&["remote", "add", "origin", &path]);
        origin
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
fn who_waits_for_the_person_ends_nobody_elses_look() {
    let scene = slow("");
    scene.repo.commit("more", &[("b.txt", "b\n")]);
    scene.create("held", "echo agent > a.txt; echo agent > b.txt\nexit 0");
    scene.create("free", "echo agent > c.txt\nexit 0");
    scene.wait("held", "review");
    scene.wait("free", "review");
    scene.repo.commit("slow", &[("slow", "")]);
    let held = |file: &str| {
        let held = scene.show("held").task.held;
        held.is_some_and(|reason| reason.contains(file))
    };
    scene.repo.write("a.txt", "person\n");
    scene.ok(&["merge", "held"]);
    until("it is held", || held("a.txt"));
    scene.ok(&["merge", "free"]);
    until("the other is looked at", || began(&scene) == 1);
    // It is tried again while the other's gate runs.
    scene.repo.write("b.txt", "person\n");
    until("it was tried again", || held("b.txt"));
    scene.repo.write("b.txt", "b\n");
    until("and again", || !held("b.txt"));
    scene.give("go");
    scene.lands_by_itself("free");
    assert_eq!(began(&scene), 1, "the other's look went on all the time");
    scene.repo.git(&["checkout", "-q", "a.txt"]);
    scene.lands_by_itself("held");
}

#[test]
fn files_are_written_anew_again_after_a_crash() {
    let scene = slow(
        "review: never\nregenerate:\n- { paths: [all.lock], command: \"cat parts/* > all.lock\" }\n",
    );
    scene
        .repo
        .commit("parts", &[("parts/a", "a\n"), ("all.lock", "a\n")]);
    let (ready, wait) = (scene.leave("ready"), scene.await_mark("finish"));
    let add = |part: &str| format!("echo {part} > parts/{part}; cat parts/* > all.lock");
    scene.create("c", &format!("{}\n{ready}\n{wait}\nexit 0", add("c")));
    scene.seen("ready");
    scene.create("b", &format!("{}\nexit 0", add("b")));
    scene.lands_by_itself("b");
    scene.repo.commit("slow", &[("slow", "")]);
    scene.give("finish");
    until("its gate runs on what was written anew", || {
        began(&scene) == 1
    });
    scene.kill_daemon();
    scene.give("go");
    scene.ok(&["up"]);
    scene.lands_by_itself("c");
    assert_eq!(scene.repo.read("all.lock"), "a\nb\nc\n");
}

#[test]
fn a_conflict_with_what_a_colleague_pushed_can_be_resolved() {
    let scene = Scene::new("queue: { remote: origin }\n");
    let origin = Origin::of(&scene);
    let script = "case $WOODWARD_PURPOSE in first) sed -i 's/^4$/agent/' a.txt;; conflict) grep -q '<<<<<<<' a.txt || exit 9; sed -i '/^[<=>][<=>]*/d' a.txt;; esac\nexit 0";
    scene.create("ours", script);
    scene.wait("ours", "review");
    origin.push("a.txt", "1\n2\n3\ncolleague\n5\n6\n7\n8\n");
    scene.ok(&["merge", "ours"]);
    until("it was resolved", || scene.show("ours").runs.len() == 2);
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
    scene.create("one", "echo 1 > one.txt\nexit 0");
    scene.create("two", "echo 2 > two.txt\nexit 0");
    for name in ["leak", "one", "two"] {
        scene.wait(name, "review");
    }
    scene.ok(&["queue", "freeze", "-m", "all at once"]);
    scene.ok(&["merge", "leak", "one", "two"]);
    scene.ok(&["queue", "thaw"]);
    scene.lands_by_itself("one");
    scene.lands_by_itself("two");
    until("the person is told", || {
        let held = scene.show("leak").task.held;
        held.is_some_and(|reason| reason.contains("no secrets, please"))
    });
    let files = origin.git(&["-C", "origin.git", "ls-tree", "--name-only", "main"]);
    assert!(
        files.contains("two.txt") && !files.contains("secret"),
        "{files}"
    );
    assert_eq!(origin.show("main"), scene.repo.git(&["show", "main"]));
    origin.guard(None);
    scene.ok(&["queue", "release", "leak"]);
    scene.lands_by_itself("leak");
    assert_eq!(scene.repo.read("secret.txt"), "1\n");
}
