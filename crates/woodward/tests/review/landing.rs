//! What lands, and what must not.

use super::place::Place;

#[test]
fn gates_do_not_run_again_and_again_while_a_checkout_is_in_the_way() {
    let rules = "gates:\n  - { name: test, command: \"echo x >> OUT/gates\" }\n";
    let place = Place::new(rules, "echo two > base.txt\n");
    place.ok(&["create", "a", "-p", "do it"]);
    place.until_state("a", "review");
    assert_eq!(place.lines("gates"), 1);
    // Main moves, so that the merged tree is another one; and the person works on the same file.
    place.repo.write("other.txt", "other\n");
    place.repo.commit_all("other");
    place.repo.write("base.txt", "the person's own\n");
    place.ok(&["approve", "a"]);
    place.until("it is held", || place.task("a").held.is_some());
    assert_eq!(place.lines("gates"), 1, "gates ran for what could not land");
    place.repo.git(&["checkout", "--quiet", "--", "base.txt"]);
    place.until_state("a", "landed");
    assert_eq!(
        place.lines("gates"),
        2,
        "the merged tree was looked at once"
    );
}

#[test]
fn a_landing_that_can_not_be_finished_is_said_and_finished_later() {
    let place = Place::new("", "echo two > base.txt\n");
    place.ok(&["create", "a", "-p", "do it"]);
    place.until_state("a", "review");
    // As a git that crashed leaves it.
    let lock = place.root().join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    place.ok(&["approve", "a"]);
    place.until("the person is told", || {
        let held = place.task("a").held;
        held.is_some_and(|held| held.contains("index.lock"))
    });
    // A daemon may have swept it meanwhile.
    let _ = std::fs::remove_file(&lock);
    place.until_state("a", "landed");
    assert_eq!(place.repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_passes_only_thanks_to_an_ignored_file_does_not_land() {
    let rules = "gates:\n  - { name: test, command: \"test ! -f result.txt || test -f crutch\" }\n\
                 limits: { fixCycles: 1 }\n";
    let place = Place::new(rules, "touch crutch; echo \"$WOODWARD_RUN\" > result.txt\n");
    place.repo.write(".gitignore", "crutch\n");
    place.repo.commit_all("ignore the crutch");
    let main = place.repo.git(&["rev-parse", "main"]);
    place.ok(&["create", "a", "-p", "do it"]);
    // It is never even ready: what is looked at is the commit.
    place.until_state("a", "failed");
    let shown = place.show("a");
    assert_eq!(shown.gates[0].verdict, "fail", "{shown:#?}");
    assert_eq!(shown.runs.len(), 2, "{shown:#?}");
    assert_eq!(place.repo.git(&["rev-parse", "main"]), main);
}
