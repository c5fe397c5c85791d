//! What is seen in a real worktree before an agent stops.

use woodward_testkit::TestRepo;

use super::*;

fn check(repo: &TestRepo, gates: Vec<QuickGate>) -> StopCheck {
    StopCheck {
        worktree: repo.root().to_owned(),
        base: repo.git(&["rev-parse", "HEAD"]),
        gates,
        env: vec!["PATH".into()],
    }
}

fn gate(name: &str, command: &str) -> QuickGate {
    QuickGate {
        name: name.into(),
        command: ["sh", "-c", command].map(str::to_owned).into(),
        shown: command.into(),
        paths: Vec::new(),
        needs: Vec::new(),
        env: vec![("SET".into(), "yes".into())],
        timeout_ms: 60_000,
    }
}

fn repo() -> TestRepo {
    TestRepo::with(&[("a.txt", "a\n"), (".gitignore", "ignored\n")])
}

#[test]
fn what_is_in_no_commit_is_seen_and_ignored_files_are_not() {
    let repo = repo();
    assert_eq!(look(&check(&repo, Vec::new())), Seen::default());
    repo.write("ignored", "x");
    repo.write("dir/new file", "x");
    repo.write("a.txt", "b");
    repo.git(&["mv", "a.txt", "b.txt"]);
    let seen = look(&check(&repo, Vec::new()));
    assert_eq!(seen.uncommitted, ["b.txt", "dir/new file"], "{seen:?}");
    assert_eq!(seen.odd, [""; 0]);
}

#[test]
fn a_failing_gate_is_seen_with_the_end_of_what_it_printed() {
    let repo = repo();
    let noisy = "seq 1 100000; echo \"SET=$SET\"; echo complaint >&2; exit 3";
    let mut fails = gate("noisy", noisy);
    let mut after = gate("after", "exit 1");
    after.needs = vec!["noisy".into()];
    let mut elsewhere = gate("elsewhere", "exit 1");
    elsewhere.paths = vec!["src/**".into()];
    fails.paths = vec!["*.txt".into()];
    let all = check(&repo, vec![gate("passes", "true"), fails, after, elsewhere]);
    assert!(look(&all).failed.is_empty(), "nothing has changed");
    repo.write("new.txt", "x");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "new"]);
    let seen = look(&all);
    assert!(
        seen.uncommitted.is_empty() && seen.odd.is_empty(),
        "{seen:?}"
    );
    let [failed] = &seen.failed[..] else {
        panic!("{seen:?}")
    };
    assert_eq!(failed.name, "noisy");
    assert!(failed.output.len() <= OUTPUT_MAX);
    let end = "\n100000\nSET=yes\ncomplaint\n";
    assert!(failed.output.ends_with(end), "{}", failed.output);
}

#[test]
fn what_is_odd_is_no_failure() {
    let repo = repo();
    repo.write("new.txt", "x");
    let mut slow = gate("slow", "echo begun; while :; do sleep 60; done");
    slow.timeout_ms = 200;
    let mut empty = gate("empty", "");
    empty.command.clear();
    let odd = vec![
        slow,
        empty,
        gate("missing", "no-such-program-anywhere"),
        gate("killed", "kill -9 $$"),
    ];
    let seen = look(&check(&repo, odd));
    assert_eq!(seen.failed, [], "{seen:?}");
    assert_eq!(seen.odd.len(), 4, "{seen:?}");
    assert_eq!(seen.uncommitted, ["new.txt"]);
}

#[test]
fn a_gate_whose_children_hold_its_pipe_is_not_waited_for() {
    let repo = repo();
    repo.write("new.txt", "x");
    // It ends by itself once the test is over.
    let holds = gate(
        "holds",
        "sh -c 'while [ -e new.txt ]; do sleep 0.1; done' & exit 1",
    );
    let began = Instant::now();
    let seen = look(&check(&repo, vec![holds]));
    assert_eq!(seen.failed.len(), 1, "{seen:?}");
    assert!(began.elapsed() < GATES_MAX, "it was waited for");
}

#[test]
fn a_worktree_that_git_does_not_know_says_nothing() {
    let repo = repo();
    repo.write("new.txt", "x");
    let mut check = check(&repo, vec![gate("fails", "exit 1")]);
    std::fs::rename(repo.root().join(".git"), repo.around().join("away")).unwrap();
    let seen = look(&check);
    assert!(seen.uncommitted.is_empty() && seen.failed.is_empty());
    assert_eq!(seen.odd.len(), 1);
    check.worktree = repo.around().join("nowhere");
    assert_eq!(look(&check).odd.len(), 1);
}

#[test]
fn nothing_that_an_agent_has_configured_is_run_and_nothing_is_locked() {
    let repo = repo();
    let trap = repo.around().join("trap");
    let command = format!("touch {}", trap.display());
    repo.git(&["config", "core.fsmonitor", &command]);
    repo.write(".git/index.lock", "");
    repo.write("new.txt", "x");
    let seen = look(&check(&repo, Vec::new()));
    assert_eq!(seen.uncommitted, ["new.txt"], "{seen:?}");
    assert!(!trap.exists());
}
