//! Results that were sent back and return without any changes.

use woodward_core::attention::Level;

use crate::events::Ci;
use crate::scene::Scene;

/// One gate that passes, and at most two results without changes.
const RULES: &str = "gates:\n  - { name: test, command: \"true\" }\nlimits: { attempts: 2 }\n";

/// Waits until a task's agent has run so often and its result is up for review again.
fn reviewed_again(scene: &Scene, task: &str, runs: usize) {
    scene.until(&format!("{task} is in review after {runs} runs"), || {
        let shown = scene.show(task);
        shown.runs.len() == runs && shown.task.state.as_str() == "review"
    });
}

/// The task says first that nothing changed, and offers `merge` last.
fn says_unchanged(scene: &Scene, task: &str, after: &str) {
    let shown = scene.show(task);
    let attention = &shown.task.attention;
    let said = format!("the agent made no changes after {after}");
    assert!(attention.reason.starts_with(&said), "{attention:?}");
    assert_eq!(attention.level, Level::Review, "{attention:?}");
    let prompt = format!("woodward prompt {task} \"…\"");
    let reject = format!("woodward reject {task} -m \"…\"");
    let merge = format!("woodward merge {task}");
    assert_eq!(attention.command.as_ref(), Some(&prompt), "{attention:?}");
    assert_eq!(attention.alternatives, [reject.clone(), merge.clone()]);
    let text = scene.ok(&["show", task]).stdout;
    let places = [&said, &prompt, &reject, &merge].map(|part| text.find(part).expect(part));
    assert!(places.is_sorted(), "{text}");
    let listed = scene.ok(&["status"]).stdout;
    assert!(listed.contains(&said), "{listed}");
}

#[test]
fn a_rejected_result_without_changes_says_so_and_fails_at_the_limit() {
    let scene = Scene::new(RULES);
    // The agent does the same again: nothing to commit.
    scene.create("login", "echo 1 > login.txt\nexit 0");
    // The agent makes an empty commit.
    let empty = "echo 1 > logout.txt; git add .; git commit -q --allow-empty -m again\nexit 0";
    scene.create("logout", empty);
    for task in ["login", "logout"] {
        scene.wait(task, "review");
        scene.ok(&["reject", task, "-m", "Use 2 instead"]);
        reviewed_again(&scene, task, 2);
        says_unchanged(&scene, task, "your review");
    }
    scene.ok(&["reject", "login", "-m", "Once more: use 2"]);
    let why = scene.failed("login");
    assert_eq!(
        why,
        "the agent made no changes after your review, in 2 attempts"
    );
    // A person may take it all the same.
    scene.ok(&["merge", "logout"]);
    scene.wait("logout", "landed");
}

#[test]
fn a_result_that_ci_rejected_and_that_did_not_change_says_so() {
    let rule = "reactions:\n  - { trigger: ci-failed, action: send-to-agent }\n";
    let scene = Scene::new(&format!("{RULES}{rule}"));
    let ci = Ci::of(&scene);
    scene.create("login", "echo 1 > login.txt\nexit 0");
    scene.wait("login", "review");
    let body = r#"{"event":"ci-failed","task":"login","failures":["e2e::logout"]}"#;
    assert_eq!(ci.post(body).status, 202);
    reviewed_again(&scene, "login", 2);
    says_unchanged(&scene, "login", "CI failed");
}
