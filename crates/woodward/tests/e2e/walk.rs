//! The walk that users of such tools know, word for word.

use woodward_api::TimelineEntry;
use woodward_testkit::TestRepo;

use crate::scene::Scene;

const RULES: &str = "\
orchestrator: { agent: mine, maxConcurrent: 4 }
agents:
  mine: { command: \"sh ./work.sh\" }
gates:
  - { name: test, command: \"test -s \\\"$WOODWARD_TASK.txt\\\"\", timeout: 1m }
";

/// Three agents that all wait until all three are there: they can only finish if they overlap.
const WORK: &str = "\
touch \"$STAGE/$WOODWARD_TASK\"
while [ \"$(ls \"$STAGE\" | wc -l)\" -lt 3 ]; do sleep 0.02; done
cat > \"$WOODWARD_TASK.txt\"
";

fn moment(entries: &[TimelineEntry], state: &str) -> woodward_core::Timestamp {
    let found = entries.iter().find(|entry| entry.state.as_str() == state);
    found
        .unwrap_or_else(|| panic!("never {state}: {entries:#?}"))
        .at
}

#[test]
fn five_commands_and_three_overlapping_agents_end_landed_and_leave_the_checkout_alone() {
    let repo = TestRepo::with(&[("README.md", "shop\n"), ("notes.txt", "old\n")]);
    let scene = Scene::of(repo);
    let stage = scene.mark("").display().to_string();
    let work = WORK.replace("$STAGE", stage.trim_end_matches('/'));
    scene
        .repo
        .commit("rules", &[("woodward.yaml", RULES), ("work.sh", &work)]);
    scene
        .repo
        .write("notes.txt", "my own words, not committed\n");
    scene.repo.write("scratch.txt", "nobody else's business\n");

    let type_in = |line: &str| scene.type_in(line);
    type_in("woodward init");
    type_in("woodward create auth-api dashboard-ui e2e-tests");
    type_in("woodward prompt auth-api \"Implement JWT authentication\"");
    type_in("woodward prompt dashboard-ui \"Show it\"");
    type_in("woodward prompt e2e-tests \"Test it\"");
    let status = type_in("woodward status");
    for name in ["auth-api", "dashboard-ui", "e2e-tests"] {
        assert!(status.stdout.contains(name), "{}", status.stdout);
        scene.wait(name, "review");
    }

    // Each began to work before any of them was done.
    let lines = ["auth-api", "dashboard-ui", "e2e-tests"].map(|name| scene.timeline(name).entries);
    let began = lines.iter().map(|entries| moment(entries, "working")).max();
    let ended = lines
        .iter()
        .map(|entries| moment(entries, "verifying"))
        .min();
    assert!(began <= ended, "{lines:#?}");

    for name in ["auth-api", "dashboard-ui", "e2e-tests"] {
        type_in(&format!("woodward merge {name}"));
        scene.wait(name, "landed");
    }
    let landed = scene.repo.git(&["show", "main:auth-api.txt"]);
    assert_eq!(landed, "Implement JWT authentication");
    assert_eq!(
        scene.repo.read("notes.txt"),
        "my own words, not committed\n"
    );
    assert_eq!(scene.repo.read("scratch.txt"), "nobody else's business\n");
    assert_eq!(
        scene.repo.git(&["status", "--porcelain"]),
        " M notes.txt\n?? scratch.txt"
    );
    assert_eq!(scene.repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(scene.repo.read("e2e-tests.txt"), "Test it\n");
    scene.repo.fsck();

    let again = scene.ok(&["merge", "auth-api"]);
    assert!(again.stdout.contains("landed already"), "{again:?}");
    assert_eq!(scene.repo.git(&["rev-list", "--count", "main"]), "5");
}
