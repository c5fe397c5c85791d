//! Worktrees that go and come.

use super::place::Place;

/// Waits in its first run of a kind until a file is there.
const PATIENT: &str = "echo \"$WOODWARD_PURPOSE\" >> OUT/began
echo work >> work.txt
while [ ! -e OUT/go ]; do sleep 0.05; done
echo \"$WOODWARD_PURPOSE\" >> OUT/ended
";

#[test]
fn a_new_worktree_in_place_of_a_lost_one_keeps_its_driver() {
    let place = Place::new("", PATIENT);
    place.write("go", "");
    place.ok(&["create", "a", "-p", "do it"]);
    place.until_state("a", "review");
    std::fs::remove_file(place.out("go")).unwrap();
    std::fs::remove_dir_all(place.worktree("a")).unwrap();
    place.ok(&["prompt", "a", "more"]);
    place.until("the second run has begun", || place.lines("began") == 2);
    place.write("go", "");
    place.until_state("a", "review");
    assert_eq!(
        place.lines("began"),
        2,
        "{}",
        place.ok(&["timeline", "a"]).stdout
    );
}

#[test]
fn a_new_task_of_an_old_name_never_gets_the_old_worktree() {
    let rules = "worktree:\n  teardown: [\"touch OUT/tearing; while [ ! -e OUT/torn ]; do sleep 0.05; done\"]\n";
    let place = Place::new(rules, PATIENT);
    place.ok(&["create", "a", "-p", "do it"]);
    place.until("the first run has begun", || place.lines("began") == 1);
    place.ok(&["cancel", "a"]);
    place.until("the teardown runs", || place.out("tearing").exists());
    place.ok(&["create", "a", "-p", "do it again"]);
    place.until("the new task is claimed", || {
        place.state("a") == "preparing"
    });
    place.write("torn", "");
    place.until("the second run has begun", || place.lines("began") == 2);
    place.write("go", "");
    place.until_state("a", "review");
    assert_eq!(
        place.lines("began"),
        2,
        "{}",
        place.ok(&["timeline", "a"]).stdout
    );
    let work = std::fs::read_to_string(place.worktree("a").join("work.txt")).unwrap();
    assert_eq!(
        work, "work\n",
        "the cancelled task's work is in the new task's"
    );
}
