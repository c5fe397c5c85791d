//! The judge must be able to find what it looks for.

use super::*;
use crate::script;

fn uuid(n: u8) -> String {
    format!("00000000-0000-0000-0000-0000000000{n:02}")
}

fn ended(name: &str, ending: Ending, state: Option<State>) -> Ended {
    let script = Script {
        name: name.into(),
        words: String::new(),
        ending,
        branch: "main",
    };
    Ended { script, state }
}

fn landed(commit: char, intent: u8) -> Option<State> {
    Some(State::Landed {
        commit: commit.to_string().repeat(40).parse().unwrap(),
        intent: uuid(intent).parse().unwrap(),
    })
}

fn landing(commit: char, task: &str, intent: u8) -> Landing {
    Landing {
        tasks: vec![(task.into(), commit.to_string().repeat(40))],
        intent: uuid(intent),
    }
}

#[test]
fn a_task_that_did_not_end_as_intended_is_lost() {
    let empty = Some(State::Failed {
        failure: Failure::Empty,
    });
    let good = [
        ended("a", Ending::Landed, landed('a', 1)),
        ended("b", Ending::Empty, empty.clone()),
    ];
    assert!(lost(&good).is_empty());
    let bad = [
        ended("c", Ending::Landed, empty),
        ended("d", Ending::Landed, None),
        ended("e", Ending::Landed, Some(State::Draft)),
        ended("f", Ending::Empty, landed('a', 1)),
    ];
    assert_eq!(lost(&bad).len(), bad.len());
}

#[test]
fn what_is_on_main_and_what_is_on_record_must_be_the_same() {
    let tasks = [
        ended("a", Ending::Landed, landed('a', 1)),
        ended("b", Ending::Landed, landed('b', 2)),
    ];
    let right = vec![landing('a', "a", 1), landing('b', "b", 2)];
    let none = BTreeSet::new();
    assert_eq!(landed_wrongly(&tasks, &right, &none), (vec![], vec![]));
    let rebased = vec![landing('c', "a", 1), landing('b', "b", 2)];
    assert_eq!(landed_wrongly(&tasks, &rebased, &none).1.len(), 1);
    let by_person = BTreeSet::from(["a"]);
    assert_eq!(landed_wrongly(&tasks, &rebased, &by_person).1.len(), 0);
    let wrong = |landings: &[Landing]| {
        let (twice, unlike) = landed_wrongly(&tasks, landings, &none);
        (twice.len(), unlike.len())
    };
    let again = [right.clone(), vec![landing('c', "a", 3)]].concat();
    assert_eq!(wrong(&again), (1, 1), "a task landed twice");
    let same_intent = vec![landing('a', "a", 1), landing('b', "b", 1)];
    assert_eq!(wrong(&same_intent), (1, 1), "an intent was used twice");
    assert_eq!(wrong(&right[..1]), (0, 1), "a landing was lost");
    let unknown = [right, vec![landing('c', "c", 3)]].concat();
    assert_eq!(wrong(&unknown), (0, 1), "a landing without a record");
}

/// A scratch project without a daemon.
fn project() -> Stage {
    let stage = Stage::without_woodward().unwrap();
    script::build(&stage, 1, "never").unwrap();
    stage
}

#[test]
fn a_planted_red_commit_is_found() {
    let stage = project();
    stage.write("tests/0-a.t", "a\nplain\n").unwrap();
    stage.write("count/0", "1\n").unwrap();
    stage.commit("good").unwrap();
    assert_eq!(red_commits(&stage, "main").unwrap(), Vec::<String>::new());
    std::fs::remove_dir_all(stage.scratch("judge-main")).unwrap();
    stage.write("tests/0-b.t", "b\nplain\n").unwrap();
    stage
        .commit("two that fit by lines and not in sense")
        .unwrap();
    stage.write("count/0", "2\n").unwrap();
    stage
        .commit("repaired: the commit before stays red")
        .unwrap();
    let red = red_commits(&stage, "main").unwrap();
    assert_eq!(red.len(), 1, "{red:?}");
    assert!(
        red[0].contains("count/0 says 1, but there are 2"),
        "{red:?}"
    );
}

#[test]
fn commits_that_landed_together_count_as_one_move() {
    let stage = project();
    let commit = |name: &str, number: u32| {
        stage.write(&format!("tests/0-{name}.t"), &format!("{name}\nplain\n"))?;
        let trailers = format!(
            "Woodward-Task: {name}\nWoodward-Intent: {}\nWoodward-Batch: {number}/2",
            uuid(1)
        );
        stage.commit(&format!("{name}\n\n{trailers}"))
    };
    stage.git(&["checkout", "--quiet", "--detach"]).unwrap();
    commit("a", 1).unwrap();
    stage.write("count/0", "2\n").unwrap();
    commit("b", 2).unwrap();
    let head = stage.git(&["rev-parse", "HEAD"]).unwrap();
    stage
        .git(&["update-ref", "refs/heads/main", &head])
        .unwrap();
    stage.git(&["checkout", "--quiet", "main"]).unwrap();
    let (landed, foreign) = landings(&stage, "main", &BTreeSet::new()).unwrap();
    assert_eq!(foreign, Vec::<String>::new());
    assert_eq!(landed.len(), 1);
    let first = stage.git(&["rev-parse", "HEAD~1"]).unwrap();
    let own = [("a".to_owned(), first), ("b".to_owned(), head)];
    assert_eq!(landed[0].tasks, own, "each with its own commit");
    let red = red_commits(&stage, "main").unwrap();
    assert_eq!(
        red,
        Vec::<String>::new(),
        "the first of them fails, main never was there"
    );
}

#[test]
fn the_check_sees_a_wrong_name_a_missing_note_and_markers() {
    for (file, text) in [
        ("tests/1-a.t", "b\nplain\n"),
        ("tests/1-a.t", "a\nnote\n"),
        ("tests/1-a.t", ""),
        ("notes/2", "start\n<<<<<<< HEAD\n"),
    ] {
        let stage = project();
        stage.write(file, text).unwrap();
        if file.starts_with("tests") {
            stage.write("count/1", "1\n").unwrap();
        }
        let said = check(stage.command("sh"), &stage.repo()).unwrap();
        assert!(said.is_some(), "{file}: {text:?}");
    }
}

#[test]
fn locks_branches_pins_and_dirt_are_found() {
    let stage = project();
    let git_dir = stage.repo().join(".git");
    assert!(stale_locks(&git_dir).is_empty());
    std::fs::write(git_dir.join("woodward.lock"), "").unwrap();
    assert!(stale_locks(&git_dir).is_empty(), "that one is no lock file");
    std::fs::write(git_dir.join("refs/heads/main.lock"), "").unwrap();
    assert_eq!(stale_locks(&git_dir).len(), 1);
    std::fs::remove_file(git_dir.join("refs/heads/main.lock")).unwrap();

    let tasks = [
        ended("a", Ending::Landed, landed('a', 1)),
        ended("b", Ending::Empty, None),
    ];
    stage.git(&["branch", "woodward/b/1"]).unwrap();
    assert!(leftovers(&stage, &tasks).unwrap().is_empty());
    stage.git(&["branch", "woodward/a/1"]).unwrap();
    let pin = format!("refs/woodward/land/{}", uuid(1));
    stage.git(&["update-ref", &pin, "main"]).unwrap();
    std::fs::create_dir_all(stage.worktrees().join("a")).unwrap();
    assert_eq!(leftovers(&stage, &tasks).unwrap().len(), 3);

    assert!(dirt(&stage).unwrap().is_empty());
    stage.write("count/0", "9\n").unwrap();
    assert_eq!(dirt(&stage).unwrap().len(), 1);
    assert!(fsck(&stage).is_empty());
    let head = stage.git(&["rev-parse", "HEAD"]).unwrap();
    let object = git_dir.join("objects").join(&head[..2]).join(&head[2..]);
    std::fs::remove_file(object).unwrap();
    assert_eq!(fsck(&stage).len(), 1);
}

#[test]
fn what_a_person_dropped_must_not_come_back() {
    let stage = project();
    let dropped = stage.git(&["rev-parse", "HEAD"]).unwrap();
    stage.write("person/main-1", "1").unwrap();
    stage.commit("person: person/main-1").unwrap();
    let history = |kept: &[&str], dropped: &[(&str, &str)]| History {
        branch: "main",
        kept: kept.iter().map(|file| (*file).to_owned()).collect(),
        dropped: dropped
            .iter()
            .map(|(commit, file)| ((*commit).to_owned(), (*file).to_owned()))
            .collect(),
        ..History::default()
    };
    let wrong = |history: &History| returned(&stage, history).unwrap().len();
    assert_eq!(wrong(&history(&["person/main-1"], &[])), 0);
    assert_eq!(wrong(&history(&["person/main-2"], &[])), 1, "it is lost");
    let back = history(&[], &[(&dropped, "person/main-1")]);
    assert_eq!(wrong(&back), 2, "commit and file are back");
    let kept = history(&["person/main-1"], &[]).kept;
    assert_eq!(landings(&stage, "main", &kept).unwrap(), (vec![], vec![]));
    let (_, foreign) = landings(&stage, "main", &BTreeSet::new()).unwrap();
    assert_eq!(foreign.len(), 1);
}
