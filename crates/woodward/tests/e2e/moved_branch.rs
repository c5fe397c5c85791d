//! An agent that commits on a branch of the person's is noticed, and the person decides about the
//! commits. The person's own commits are never taken for an agent's.

use woodward_core::State;
use woodward_core::moved_branch::MovedBranch;
use woodward_core::state::PauseReason;

use crate::scene::Scene;

/// A script that commits a file in the person's checkout.
pub(crate) fn commit_in_checkout(file: &str) -> String {
    format!(
        "cd \"$WOODWARD_ROOT\" && echo agent > {file} && git add {file} && \
         git -c user.name=a -c user.email=a@b.c commit -qm 'by the agent: {file}'"
    )
}

/// Waits until a task is held because its agent moved a branch.
pub(crate) fn held(scene: &Scene, task: &str) -> MovedBranch {
    scene.until_some("the task is held", || match scene.show(task).state {
        State::Paused {
            reason: PauseReason::MovedBranch(moved),
            ..
        } => Some(moved),
        _ => None,
    })
}

#[test]
fn commits_of_an_agent_on_main_are_noticed_and_can_be_moved_to_the_task() {
    let scene = Scene::new("");
    scene.repo.commit("before", &[("b.txt", "1\n")]);
    let main = scene.repo.head("main");
    scene.create("one", &format!("{}; exit 0", commit_in_checkout("x.txt")));
    let moved = held(&scene, "one");
    assert_eq!((&*moved.branch, moved.old.as_str()), ("main", &*main));
    assert_eq!(moved.new.as_str(), scene.repo.head("main"));
    assert_eq!(moved.commits, std::slice::from_ref(&moved.new));
    let shown = scene.ok(&["show", "one"]).stdout;
    assert!(shown.contains(&moved.new.as_str()[..10]), "{shown}");
    assert!(shown.contains("woodward resume one"), "{shown}");
    assert!(shown.contains("--move-commits"), "{shown}");

    let dry = scene.run(&["resume", "one", "--move-commits", "--dry-run"]);
    assert!(
        format!("{dry:?}").contains("would set your branch back"),
        "{dry:#?}"
    );
    assert_eq!(scene.repo.head("main"), moved.new.as_str());

    // A file of the person's that is in the way keeps everything where it is.
    std::fs::write(scene.root().join("x.txt"), "mine\n").expect("a file");
    scene.refused(
        &["resume", "one", "--move-commits"],
        1,
        &["x.txt", "woodward resume one"],
    );
    assert_eq!(scene.repo.head("main"), moved.new.as_str());
    scene.repo.git(&["checkout", "-q", "x.txt"]);

    scene.ok(&["resume", "one", "--move-commits"]);
    assert_eq!(scene.repo.head("main"), main);
    assert!(!scene.root().join("x.txt").exists());
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
    scene.wait("one", "review");
    let rescued = scene.show("one").rescued;
    assert!(
        rescued.iter().any(|it| it.commit == moved.new),
        "{rescued:?}"
    );
    scene.ok(&["merge", "one"]);
    scene.wait("one", "landed");
    assert_eq!(scene.repo.git(&["show", "main:x.txt"]), "agent");
    scene.repo.fsck();
}

#[test]
fn commits_that_the_person_took_off_main_can_still_be_moved_to_the_task() {
    let scene = Scene::new("");
    let main = scene.repo.head("main");
    scene.create("one", &commit_in_checkout("x.txt"));
    held(&scene, "one");
    scene.repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    scene.ok(&["resume", "one", "--move-commits"]);
    assert_eq!(scene.repo.head("main"), main);
    scene.wait("one", "review");
    let diff = scene.ok(&["diff", "one", "--stat"]).stdout;
    assert!(diff.contains("x.txt"), "{diff}");
}

#[test]
fn a_branch_that_an_agent_reset_is_set_back() {
    let scene = Scene::new("");
    scene.repo.commit("mine", &[("b.txt", "1\n")]);
    let main = scene.repo.head("main");
    let script = "git -C \"$WOODWARD_ROOT\" reset -q --hard HEAD~1; echo own > own.txt";
    scene.create("one", script);
    let moved = held(&scene, "one");
    assert_eq!((moved.old.as_str(), moved.commits.len()), (&*main, 0));
    scene.ok(&["resume", "one", "--move-commits"]);
    assert_eq!(scene.repo.head("main"), main);
    assert_eq!(scene.repo.git(&["status", "--porcelain"]), "");
    scene.wait("one", "review");
}

#[test]
fn commits_of_an_agent_on_main_can_be_kept() {
    let scene = Scene::new("");
    let script = format!(
        "[ -e \"$WOODWARD_ROOT/x.txt\" ] || ({}); echo own > own.txt; exit 0",
        commit_in_checkout("x.txt")
    );
    scene.create("one", &script);
    let moved = held(&scene, "one");
    scene.ok(&["resume", "one"]);
    scene.wait("one", "review");
    assert_eq!(scene.repo.head("main"), moved.new.as_str());
    scene.ok(&["merge", "one"]);
    scene.wait("one", "landed");
    assert_eq!(scene.repo.git(&["show", "main:x.txt"]), "agent");
    assert_eq!(scene.repo.git(&["show", "main:own.txt"]), "own");
}

#[test]
fn commits_of_the_person_during_a_run_are_not_the_agents() {
    let scene = Scene::new("");
    let script = format!(
        "git -C \"$WOODWARD_ROOT\" status --porcelain; {}; {}; echo own > own.txt; git add own.txt; \
         git -c user.name=a -c user.email=a@b.c commit -qm own; exit 0",
        scene.leave("started"),
        scene.await_mark("go"),
    );
    scene.create("one", &script);
    scene.seen("started");
    scene.repo.commit("by the person", &[("p.txt", "1\n")]);
    scene.give("go");
    scene.wait("one", "review");
}
