//! The radar's decisions: what is foreseen, who waits for whom, and that order does not matter.

#[expect(
    dead_code,
    reason = "each test file uses its part of the common module"
)]
mod common;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use woodward_core::budget::Limit;
use woodward_core::radar::foresee::{Reach, common as in_common, companions, held_back, intersect};
use woodward_core::radar::text::{Edited, Hunk, Meets, regions};
use woodward_core::radar::{Change, Entry, Side, meet};
use woodward_core::reaction::pattern::matches;
use woodward_core::state::{Failure, PauseReason, Purpose, ResumePoint};
use woodward_core::time::Timestamp;
use woodward_core::{Note, Policy, State, Task, TaskId};

use common::{World, new_task, run, task_id, worktree};

fn task(id: u128, state: State) -> Task {
    let mut task = World::create(new_task(true, &[]), Policy::default()).task;
    task.id = task_id(id);
    task.state = state;
    task
}

fn fresh(id: u128) -> Task {
    let state = State::Queued {
        purpose: Purpose::First,
        run_at: Timestamp(i64::try_from(id).expect("it fits")),
        delay: None,
    };
    task(id, state)
}

fn working(id: u128) -> Task {
    let state = State::Working {
        run: run(id),
        purpose: Purpose::First,
    };
    task(id, state)
}

fn declares(patterns: &[&str]) -> Reach {
    Reach {
        patterns: patterns.iter().map(ToString::to_string).collect(),
        ..Reach::default()
    }
}

fn held(tasks: &[Task], reaches: &BTreeMap<TaskId, Reach>) -> Vec<(TaskId, TaskId)> {
    let held = held_back(tasks, reaches, &[], &BTreeSet::new());
    held.into_iter().map(|one| (one.task, one.behind)).collect()
}

#[test]
fn patterns_meet_where_a_path_matches_both() {
    for (p, q, expected) in [
        ("src/login.rs", "src/login.rs", true),
        ("src/**", "src/login.rs", true),
        ("src/**", "*.rs", true),
        ("src/*.rs", "src/deep/a.rs", false),
        ("src/**/a.rs", "**/deep/*.rs", true),
        ("src/", "src/x/y", true),
        ("docs/**", "src/**", false),
        ("*.md", "*.rs", false),
        ("a*c", "*b*", true),
        ("a?c", "abd", false),
        ("src/a*/**", "src/*b/x", true),
        ("**", "anything", true),
    ] {
        assert_eq!(intersect(p, q), expected, "{p} {q}");
        assert_eq!(intersect(q, p), expected, "{q} {p}");
    }
}

#[test]
fn the_second_of_two_that_touch_the_same_waits_for_the_first() {
    let reaches = BTreeMap::from([
        (task_id(1), declares(&["src/login.rs"])),
        (task_id(2), declares(&["src/**"])),
        (task_id(3), declares(&["docs/**"])),
        (task_id(4), declares(&["src/login.rs"])),
    ]);
    let one = (task_id(2), task_id(1));
    assert_eq!(held(&[fresh(1), fresh(2), fresh(3)], &reaches), [one]);
    assert_eq!(held(&[working(1), fresh(2), fresh(3)], &reaches), [one]);
    // Whoever is under way comes first, whatever its place in line was.
    assert_eq!(
        held(&[fresh(1), working(2)], &reaches),
        [(task_id(1), task_id(2))]
    );
    // Those in line before it count although they wait themselves.
    assert_eq!(
        held(&[working(1), fresh(2), fresh(4)], &reaches),
        [one, (task_id(4), task_id(1))]
    );
    // What has begun goes on.
    let mut begun = fresh(2);
    begun.worktree = Some(worktree(&begun));
    assert_eq!(held(&[working(1), begun], &reaches), []);
}

#[test]
fn nobody_waits_for_what_failed_for_another_branch_or_against_a_persons_word() {
    let both = declares(&["src/**"]);
    let reaches = BTreeMap::from([(task_id(1), both.clone()), (task_id(2), both)]);
    let failure = Failure::NeedsPerson {
        note: Note::from("stuck"),
    };
    let failed = task(1, State::Failed { failure });
    assert_eq!(held(&[failed, fresh(2)], &reaches), []);
    let mut elsewhere = working(1);
    elsewhere.spec.base = "release".into();
    assert_eq!(held(&[elsewhere, fresh(2)], &reaches), []);
    let mut anyway = fresh(2);
    anyway.spec.anyway = true;
    assert_eq!(held(&[working(1), anyway], &reaches), []);
    let freed = BTreeSet::from([task_id(2)]);
    assert_eq!(
        held_back(&[working(1), fresh(2)], &reaches, &[], &freed),
        []
    );
    // A file that the project wants ignored is no reason.
    let lock = BTreeMap::from([
        (task_id(1), declares(&["Cargo.lock"])),
        (task_id(2), declares(&["Cargo.lock"])),
    ]);
    let ignored = ["Cargo.lock".to_string()];
    assert_eq!(
        held_back(&[working(1), fresh(2)], &lock, &ignored, &BTreeSet::new()),
        []
    );
}

#[test]
fn nobody_waits_for_what_a_person_or_a_budget_stopped() {
    let both = declares(&["src/**"]);
    let reaches = BTreeMap::from([(task_id(1), both.clone()), (task_id(2), both)]);
    let paused = |reason| {
        let back = ResumePoint::Queue {
            purpose: Purpose::First,
            run_at: Timestamp(0),
        };
        let mut task = task(1, State::Paused { reason, back });
        task.worktree = Some(worktree(&task));
        task
    };
    for reason in [
        PauseReason::Person(Note::from("later")),
        PauseReason::Budget(Limit::Tokens { used: 2, max: 1 }),
    ] {
        assert_eq!(held(&[paused(reason), fresh(2)], &reaches), []);
    }
    // What a rule holds goes on by itself.
    let held_by_rule = paused(PauseReason::Rule(Note::from("behind another")));
    assert_eq!(
        held(&[held_by_rule, fresh(2)], &reaches),
        [(task_id(2), task_id(1))]
    );
}

#[test]
fn files_that_are_there_decide_where_both_are_about_such() {
    let reach = |pattern: &str, covers: &[&str]| Reach {
        grounded: BTreeSet::from([pattern.to_string()]),
        covers: covers.iter().map(ToString::to_string).collect(),
        ..declares(&[pattern])
    };
    let one = reach("a.txt", &["a.txt"]);
    let sources = reach("src/**", &["src/a.rs", "src/b.rs"]);
    assert_eq!(in_common(&one, &sources, &[], 9), []);
    let exact = reach("src/a.rs", &["src/a.rs"]);
    let met = in_common(&exact, &sources, &[], 9);
    assert_eq!(met.len(), 1);
    assert_eq!(met[0].what, "src/a.rs");
    // A file that is yet to be is judged by the patterns.
    let new = declares(&["src/new.rs"]);
    assert_eq!(in_common(&new, &sources, &[], 9).len(), 1);
}

#[test]
fn history_says_what_changes_together() {
    let commit = |files: &[&str]| files.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut history = vec![commit(&["a.rs", "a_test.rs"]); 4];
    history.push(commit(&["a.rs", "readme"]));
    history.push((0..100).map(|n| format!("mass{n}")).collect());
    history.last_mut().expect("it fits").push("a.rs".into());
    let found = companions(&history, &BTreeSet::from(["a.rs".to_string()]));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["a_test.rs"]);
    let with = &found["a_test.rs"];
    assert_eq!((with.with.as_str(), with.together, with.of), ("a.rs", 4, 5));

    let a = Reach {
        files: BTreeSet::from(["a.rs".to_string()]),
        likely: found,
        ..Reach::default()
    };
    let b = declares(&["*_test.rs"]);
    let met = in_common(&a, &b, &[], 10);
    assert_eq!(met.len(), 1);
    assert_eq!((met[0].what.as_str(), met[0].likely), ("a_test.rs", true));
}

fn pattern() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("**".to_string()),
        "[ab*?]{1,3}".prop_map(|text: String| text.replace("**", "*")),
    ];
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"))
}

fn side() -> impl Strategy<Value = Side> {
    let entry = |content: u8, mode: u8| {
        (content > 0).then(|| Entry {
            mode: if mode == 0 { 0o100_644 } else { 0o100_755 },
            content: content.to_string(),
        })
    };
    // Both sides begin at the same commit: what was there follows from the path.
    let old = |path: &str| u8::from(path.ends_with('a'));
    prop::collection::btree_map("[ab](/[ab]){0,2}", (0..3u8, 0..2u8), 0..6).prop_map(move |files| {
        Side {
            files: files
                .into_iter()
                .map(|(path, (new, mode))| {
                    let change = Change {
                        old: entry(old(&path), 0),
                        new: entry(new, mode),
                        moved: None,
                    };
                    (path, change)
                })
                .collect(),
            cut: false,
        }
    })
}

/// A text of few different lines, and one side's version of it as hunks.
fn edited(base: &[u64], edits: &[(usize, usize, Vec<u64>)]) -> (Vec<Hunk>, Vec<u64>) {
    let mut hunks = Vec::new();
    let mut lines = Vec::new();
    let mut at = 0;
    for (skip, take, give) in edits {
        let start = at + skip + usize::from(at > 0);
        let end = start + take;
        if end > base.len() || (*take == 0 && give.is_empty()) {
            break;
        }
        lines.extend_from_slice(&base[at..start]);
        let new = u32::try_from(lines.len()).expect("it fits");
        lines.extend_from_slice(give);
        let given = u32::try_from(lines.len()).expect("it fits");
        hunks.push(Hunk {
            base: u32::try_from(start).expect("it fits")..u32::try_from(end).expect("it fits"),
            new: new..given,
        });
        at = end;
    }
    lines.extend_from_slice(&base[at..]);
    (hunks, lines)
}

proptest! {
    #[test]
    fn patterns_that_share_a_path_intersect(p in pattern(), q in pattern(), path in "[ab]{1,3}(/[ab]{1,3}){0,3}") {
        if matches(&p, &path) && matches(&q, &path) {
            prop_assert!(intersect(&p, &q), "{p} {q} {path}");
        }
        prop_assert_eq!(intersect(&p, &q), intersect(&q, &p));
    }

    #[test]
    fn who_is_named_first_does_not_matter(a in side(), b in side()) {
        prop_assert_eq!(meet(&a, &b), meet(&b, &a));
    }

    #[test]
    fn texts_meet_the_same_both_ways(
        base in prop::collection::vec(0..4u64, 1..20),
        ours in prop::collection::vec((0..4usize, 0..3usize, prop::collection::vec(10..13u64, 0..3)), 0..4),
        theirs in prop::collection::vec((0..4usize, 0..3usize, prop::collection::vec(10..13u64, 0..3)), 0..4),
    ) {
        let (our_hunks, our_lines) = edited(&base, &ours);
        let (their_hunks, their_lines) = edited(&base, &theirs);
        let a = Edited { hunks: &our_hunks, lines: &our_lines };
        let b = Edited { hunks: &their_hunks, lines: &their_lines };
        prop_assert_eq!(regions(a, b), regions(b, a));
        let own = regions(a, a);
        prop_assert!(own.iter().all(|region| region.meets != Meets::Differently), "{own:?}");
    }
}
