//! How runs are judged and what they are told.

use super::place::Place;

#[test]
fn a_check_is_run_again_after_a_fix_that_changed_nothing() {
    let rules = "gates:\n  - { name: test, command: \"echo x >> OUT/gates; test $(wc -l < OUT/gates) -ge 2\" }\n";
    let place = Place::new(
        rules,
        "[ $WOODWARD_PURPOSE = fix ] || echo two > base.txt\n",
    );
    place.ok(&["create", "a", "-p", "do it"]);
    place.until_state("a", "review");
    assert_eq!(place.lines("gates"), 2);
}

#[test]
fn conflict_markers_of_a_merge_never_pass_for_a_result() {
    let rules = "limits:\n  attempts: 2\n  backoff: 10ms\n";
    let agent = "case $WOODWARD_PURPOSE in
first) echo task > base.txt ;;
follow-up) echo more > more.txt ;;
esac
";
    let place = Place::new(rules, agent);
    place.ok(&["create", "a", "-p", "do it"]);
    place.until_state("a", "review");
    place.repo.write("base.txt", "the person's own\n");
    place.repo.commit_all("the same line");
    place.ok(&["approve", "a"]);
    place.until("the conflict is too much for the agent", || {
        place.state("a") == "failed"
    });
    place.ok(&["prompt", "a", "more"]);
    place.until("there is a result or none", || {
        let runs = place.show("a").runs.len();
        runs > 3 && ["failed", "review"].contains(&place.state("a").as_str())
    });
    assert_eq!(
        place.state("a"),
        "failed",
        "{}",
        place.ok(&["diff", "a"]).stdout
    );
}

#[test]
fn a_run_that_can_never_be_judged_ends_as_failed() {
    let agent = "echo work > work.txt; d=$(git rev-parse --git-dir); rm $d/HEAD; mkdir $d/HEAD\n";
    let place = Place::new("limits:\n  attempts: 1\n", agent);
    place.ok(&["create", "a", "-p", "do it"]);
    place.reaches("a", &["failed"]);
    assert!(place.worktree("a").join("work.txt").exists());
}

#[test]
fn a_task_that_waits_for_an_answer_says_so_to_a_prompt() {
    let agent = format!("{} ask 'which?'\n", env!("CARGO_BIN_EXE_woodward"));
    let place = Place::new("", &agent);
    place.ok(&["create", "a", "-p", "do it"]);
    place.until_state("a", "waiting");
    let refused = place.run(&["prompt", "a", "more"]);
    assert_ne!(refused.code, 0);
    let said = refused.stderr;
    assert!(said.contains("woodward answer a"), "{said}");
    assert_eq!(place.show("a").messages, []);
}

#[test]
fn what_others_have_landed_is_not_in_a_tasks_diff_after_a_merge() {
    let agent = "case $WOODWARD_PURPOSE in
first) echo task > base.txt ;;
conflict) echo both > base.txt ;;
esac
";
    let place = Place::new("", agent);
    place.ok(&["create", "a", "-p", "do it"]);
    place.until_state("a", "review");
    place.repo.write("base.txt", "the person's own\n");
    place.repo.write("other.txt", "other\n");
    place.repo.commit_all("the same line, and more");
    place.ok(&["approve", "a"]);
    place.until("the conflict is resolved", || {
        let runs = place.show("a").runs.len();
        runs == 2 && place.state("a") == "review"
    });
    let diff = place.ok(&["diff", "a"]).stdout;
    assert!(diff.contains("+both"), "{diff}");
    assert!(diff.contains("-the person's own"), "{diff}");
    assert!(!diff.contains("other.txt"), "{diff}");
    place.ok(&["approve", "a"]);
    place.until_state("a", "landed");
    assert!(place.root().join("other.txt").exists());
}
