//! Landing, as a person sees it.

use crate::scene::Scene;

#[test]
fn a_landed_task_looks_as_the_style_says() {
    for (style, commits, parents) in [("squash", "1", 1), ("merge", "3", 2), ("rebase", "2", 1)] {
        let scene = Scene::new(&format!("merge: {{ style: {style} }}\n"));
        scene.create(
            "two",
            "echo 1 > x; git add x; git commit -qm one; echo 2 > x; git commit -qam two\nexit 0",
        );
        scene.wait("two", "review");
        scene.repo.commit("meanwhile", &[("other.txt", "other\n")]);
        let before = scene.repo.head("main");
        scene.land("two");
        let range = format!("{before}..main");
        assert_eq!(
            scene.repo.git(&["rev-list", "--count", &range]),
            commits,
            "{style}"
        );
        // The branch only ever pointed to what was tested.
        let moves = scene.repo.git(&["reflog", "show", "--format=%H", "main"]);
        assert_eq!(moves.lines().nth(1), Some(before.as_str()), "{style}");
        let line = scene.repo.git(&["rev-list", "--parents", "-1", "main"]);
        assert_eq!(line.split(' ').count(), 1 + parents, "{style}: {line}");
        assert_eq!(
            scene.repo.read("x"),
            "2\n",
            "{style}: the clean checkout followed"
        );
        assert_eq!(scene.repo.git(&["status", "--porcelain"]), "", "{style}");
        let body = scene.repo.git(&["log", "-1", "--format=%B", "main"]);
        assert!(body.contains("Woodward-Task: two"), "{style}: {body}");
        scene.repo.fsck();
    }
}

#[test]
fn changes_in_the_way_hold_a_landing_until_they_are_gone() {
    let scene = Scene::new("");
    scene.repo.commit("two more", &[("b.txt", "b\n")]);
    scene.create("one", "echo agent > a.txt\nexit 0");
    scene.create("two", "echo agent > new.txt\nexit 0");
    scene.create("three", "echo agent > c.txt\nexit 0");
    for name in ["one", "two", "three"] {
        scene.wait(name, "review");
    }
    scene.repo.write("a.txt", "person\n");
    scene.repo.write("new.txt", "person, untracked\n");
    scene.repo.write("b.txt", "unrelated\n");
    let before = scene.repo.head("main");
    scene.ok(&["merge", "one"]);
    scene.ok(&["merge", "two"]);
    scene.until("both are held", || {
        ["one", "two"]
            .iter()
            .all(|name| scene.task(name).held.is_some())
    });
    for (name, file) in [("one", "a.txt"), ("two", "new.txt")] {
        let held = scene.task(name).held.unwrap();
        assert!(
            held.contains(file) && held.contains("commit or stash"),
            "{held}"
        );
    }
    assert_eq!(scene.repo.head("main"), before);
    let status = scene.ok(&["status"]);
    assert!(
        status.stdout.contains("commit or stash"),
        "{}",
        status.stdout
    );

    // Those behind that are not in anyone's way go on.
    scene.land("three");
    assert_eq!(scene.repo.read("c.txt"), "agent\n");
    assert_eq!(scene.repo.read("a.txt"), "person\n");

    scene.repo.git(&["stash", "push", "--quiet", "--", "a.txt"]);
    scene.lands_by_itself("one");
    assert_eq!(scene.repo.read("a.txt"), "agent\n");
    std::fs::remove_file(scene.root().join("new.txt")).unwrap();
    scene.lands_by_itself("two");
    assert_eq!(scene.repo.read("new.txt"), "agent\n");
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), " M b.txt");
    assert_eq!(scene.repo.read("b.txt"), "unrelated\n");
}

#[test]
fn two_green_changes_that_are_red_together_go_back_to_the_agent() {
    let gate = "gates:\n  - { name: sum, command: \"test $(cat n-* | wc -l) -le 1\" }\n";
    let scene = Scene::new(gate);
    scene.create("left", "echo x > n-left\nexit 0");
    scene.create(
        "right",
        "case $WOODWARD_PURPOSE in first) echo x > n-right;; fix) git rm -qf n-left; cat > prompt.txt;; esac\nexit 0",
    );
    scene.wait("left", "review");
    scene.wait("right", "review");
    scene.land("left");
    scene.ok(&["merge", "right"]);
    scene.until("it was repaired", || scene.show("right").runs.len() == 2);
    scene.wait("right", "review");
    let shown = scene.show("right");
    assert_eq!(shown.runs[1].purpose, "fix sum", "{shown:#?}");
    scene.land("right");
    assert_eq!(
        scene
            .repo
            .git(&["ls-tree", "--name-only", "main", "n-left", "n-right"]),
        "n-right"
    );
}

#[test]
fn a_conflict_goes_to_its_agent_and_then_lands() {
    let scene = Scene::new("");
    let script = |word: &str| {
        format!(
            "case $WOODWARD_PURPOSE in first) sed -i 's/^4$/{word}/' a.txt;; conflict) grep -q '<<<<<<<' a.txt || exit 9; sed -i '/^[<=>][<=>]*/d' a.txt;; esac\nexit 0"
        )
    };
    scene.create("left", &script("left"));
    scene.create("right", &script("right"));
    scene.wait("left", "review");
    scene.wait("right", "review");
    scene.land("left");
    scene.ok(&["merge", "right"]);
    scene.until("it was resolved", || scene.show("right").runs.len() == 2);
    scene.wait("right", "review");
    assert_eq!(scene.show("right").runs[1].purpose, "conflict");
    scene.land("right");
    let text = scene.repo.git(&["show", "main:a.txt"]);
    assert!(
        text.contains("left") && text.contains("right") && !text.contains("<<<"),
        "{text}"
    );
}

#[test]
fn a_rejected_result_comes_back_changed() {
    let scene = Scene::new("");
    let got = scene.mark("got").display().to_string();
    scene.create(
        "one",
        &format!(
            "case $WOODWARD_PURPOSE in first) echo v1 > x;; follow-up) echo v2 > x; cat \"$WOODWARD_PROMPT_FILE\" > '{got}';; esac\nexit 0"
        ),
    );
    scene.wait("one", "review");
    scene.refused(&["reject", "one", "-m", "  "], 2, &["empty"]);
    let first = scene.task("one").head;
    scene.ok(&["reject", "one", "-m", "make it v2 please"]);
    scene.until("there is another result", || {
        let shown = scene.show("one");
        shown.task.state.as_str() == "review" && shown.task.head != first
    });
    assert_eq!(scene.show("one").runs[1].purpose, "follow-up");
    let told = std::fs::read_to_string(scene.mark("got")).unwrap();
    assert!(told.contains("make it v2 please"), "{told}");
    scene.land("one");
    assert_eq!(scene.repo.read("x"), "v2\n");
}

#[test]
fn approval_holds_for_the_commit_that_was_looked_at() {
    let scene = Scene::new("");
    scene.create("one", "echo v1 > x\nexit 0");
    scene.wait("one", "review");
    let head = scene.task("one").head.unwrap().to_string();
    let wrong = scene.repo.head("main");
    let refused = scene.run(&["approve", "one", "--commit", &wrong]);
    assert_ne!(refused.code, 0, "{refused:?}");
    scene.ok(&["approve", "one", "--commit", &head]);
    scene.wait("one", "landed");
}

#[test]
fn without_review_verified_tasks_queue_themselves() {
    let gate = "review: never\ngates:\n  - { name: test, command: \"test -e x\" }\n";
    let scene = Scene::new(gate);
    scene.create("one", "echo v1 > x\nexit 0");
    scene.wait("one", "landed");
    assert_eq!(scene.repo.read("x"), "v1\n");
}
