//! What starts when: limits, priorities, and tasks that come after others.

use woodward_api::StatusView;
use woodward_core::attention::Level;

use crate::scene::Scene;

#[test]
fn a_task_starts_only_after_those_before_it_have_landed() {
    let scene = Scene::new("");
    scene.create("first", "echo 1 > x\nexit 0");
    scene.ok(&[
        "create",
        "second",
        "-p",
        "cat x > y\nexit 0",
        "--after",
        "first",
    ]);
    scene.wait("first", "review");
    assert_eq!(scene.task("second").state.as_str(), "queued");
    assert!(!scene.worktree("second").exists());
    scene.land("first");
    scene.land("second");
    assert_eq!(scene.repo.read("y"), "1\n", "it saw what landed before it");
}

#[test]
fn the_important_starts_first() {
    let scene = Scene::new("");
    let rules = scene
        .repo
        .read("woodward.yaml")
        .replace("maxConcurrent: 8", "maxConcurrent: 1");
    scene
        .repo
        .commit("one at a time", &[("woodward.yaml", &rules)]);
    let log = scene.mark("order").display().to_string();
    scene.create(
        "holder",
        &format!("{}\n{}\nexit 0", scene.leave("up"), scene.await_mark("go")),
    );
    scene.seen("up");
    let script = format!("echo $WOODWARD_TASK >> '{log}'; echo x > $WOODWARD_TASK.txt\nexit 0");
    for (name, priority) in [("low", "-5"), ("plain", "0"), ("high", "9")] {
        scene.ok(&["create", name, "-p", &script, "--priority", priority]);
    }
    assert_eq!(scene.task("high").state.as_str(), "queued");
    scene.give("go");
    for name in ["low", "plain", "high"] {
        scene.wait(name, "review");
    }
    let order = std::fs::read_to_string(scene.mark("order")).unwrap();
    assert_eq!(order, "high\nplain\nlow\n");
}

#[test]
fn tasks_created_together_start_and_are_listed_in_their_order() {
    let scene = Scene::new("");
    let rules = scene
        .repo
        .read("woodward.yaml")
        .replace("maxConcurrent: 8", "maxConcurrent: 1");
    scene
        .repo
        .commit("one at a time", &[("woodward.yaml", &rules)]);
    let log = scene.mark("order").display().to_string();
    scene.create(
        "holder",
        &format!("{}\n{}\nexit 0", scene.leave("up"), scene.await_mark("go")),
    );
    scene.seen("up");
    let names = ["t7", "t2", "t9", "t4", "t1", "t8", "t3", "t6"];
    let script = format!("echo $WOODWARD_TASK >> '{log}'; echo x > $WOODWARD_TASK.txt\nexit 0");
    let mut create = vec!["create"];
    create.extend(names);
    create.extend(["-p", &script]);
    scene.ok(&create);
    let listed = scene.status();
    let listed: Vec<&str> = listed
        .iter()
        .filter(|task| task.state.as_str() == "queued")
        .map(|task| task.name.as_str())
        .collect();
    assert_eq!(listed, names);
    scene.give("go");
    for name in names {
        scene.wait(name, "review");
    }
    let order = std::fs::read_to_string(scene.mark("order")).unwrap();
    assert_eq!(order.lines().collect::<Vec<_>>(), names);
}

#[test]
fn of_many_tasks_the_most_urgent_are_listed_and_the_rest_is_counted() {
    let scene = Scene::new("");
    scene.create("urgent", "echo 1 > x\nexit 0");
    scene.ok(&["create", "t1", "t2", "t3"]);
    scene.wait("urgent", "review");
    let ran = scene.ok(&["status", "--limit", "2"]);
    let names: Vec<&str> = ran
        .stdout
        .lines()
        .filter_map(|line| line.split('\t').nth(1))
        .collect();
    assert_eq!(names, ["urgent", "t1"], "{ran:#?}");
    let note = "2 less urgent tasks not listed: woodward status --all";
    assert!(ran.stderr.contains(note), "{ran:#?}");
    let view: StatusView = scene.json(&["status", "-n", "2"]);
    assert_eq!(view.unlisted, [(Level::Waiting, 2)].into());
    let all = scene.ok(&["status", "--all"]);
    assert_eq!(all.stdout.lines().count(), 4, "{all:#?}");
    assert!(!all.stderr.contains("not listed"), "{all:#?}");
    scene.refused(&["status", "--limit", "0"], 2, &["0", "--limit"]);
}

#[test]
fn a_dependency_that_was_cancelled_can_be_dropped() {
    let scene = Scene::new("");
    scene.ok(&["create", "base1", "base2"]);
    scene.create("other", "echo x > x.txt\nexit 0");
    let after = ["--after", "base1", "--after", "base2"];
    let next = ["create", "next", "-p", "echo y > y.txt\nexit 0"];
    scene.ok(&[&next[..], &after[..]].concat());
    scene.refused(
        &["resume", "next", "--without", "other"],
        5,
        &["next does not depend on `other`", "base1, base2"],
    );
    scene.refused(
        &["resume", "other", "--without", "base1"],
        5,
        &["other does not depend on `base1`", "woodward show other"],
    );
    scene.ok(&["cancel", "base1"]);
    let attention = || scene.task("next").attention;
    scene.until("it is blocked", || {
        attention()
            .reason
            .starts_with("blocked: base1 was cancelled")
    });
    let listed = scene.ok(&["status"]).stdout;
    assert!(listed.contains("blocked: base1 was cancelled"), "{listed}");
    let command = attention().command.expect("a way out");
    assert_eq!(command, "woodward resume next --without base1");
    // A name that is in use again means the task that it depends on.
    scene.ok(&["create", "base1"]);
    let said = scene.type_in(&command);
    assert!(format!("{said:?}").contains("next no longer waits for base1"));
    let shown = scene.show("next");
    assert_eq!(shown.after.len(), 1, "{shown:#?}");
    assert_eq!(shown.task.state.as_str(), "queued");
    let dropped = scene.timeline("next").entries;
    assert!(
        dropped
            .iter()
            .any(|entry| entry.fact == "dependency_dropped")
    );
    scene.ok(&["resume", "next", "--without", "base2"]);
    scene.land("next");
}

#[test]
fn an_order_that_goes_round_is_refused() {
    let scene = Scene::new("");
    let plan = "- { name: a, prompt: x, after: [b] }\n- { name: b, prompt: x, after: [a] }\n";
    std::fs::write(scene.mark("plan.yaml"), plan).unwrap();
    let file = scene.mark("plan.yaml").display().to_string();
    let refused = scene.run(&["create", "-f", &file]);
    assert_ne!(refused.code, 0);
    assert!(
        refused.stderr.contains('a') && refused.stderr.contains('b'),
        "{refused:?}"
    );
    assert_eq!(scene.status().len(), 0, "all or none");
}
