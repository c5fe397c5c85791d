//! What each command asks and prints.

use std::sync::atomic::{AtomicU32, Ordering};

use insta::assert_snapshot;
use woodward_api::{
    Check, CheckState, Diagnosis, DiffStat, DiffText, Envelope, FileStat, Health, LogSource,
    LogText, StatusView, Timeline, TimelineEntry,
};
use woodward_core::{RunId, StateKind};

use crate::place::Place;
use crate::standin::{Asked, Reply, hang_up, ok, unknown};
use crate::{done, sample};

fn piece(offset: u64, text: &str, ended: bool) -> LogText {
    LogText {
        source: LogSource::Run(RunId::new(uuid::Uuid::nil())),
        offset,
        next: offset + text.len() as u64,
        dropped: 0,
        events: false,
        timed_out_ms: None,
        ended,
        text: text.into(),
    }
}

#[test]
fn status_as_json_is_what_the_daemon_said() {
    let place = Place::new();
    let standin = place.daemon(|asked| match asked.route().as_str() {
        "GET /api/v1/status" => ok(sample::status()),
        _ => unknown(asked),
    });
    let ran = place.run(&["status", "--all", "--json"]);
    let said: Envelope<StatusView> = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(said, Envelope::new(sample::status()));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let asked = standin.one("GET /api/v1/status");
    assert!(asked.query.ends_with("&all=true"), "{}", asked.query);
    assert!(asked.query.starts_with("root=%2F"), "{}", asked.query);
}

/// Each word in brackets in `--help` is another word for a command.
#[test]
fn every_alias_in_the_overview_reaches_its_command() {
    let place = Place::new();
    let overview = place.run(&["--help"]).stdout;
    let mut aliases = 0;
    let listed = overview.split_once("Start:").unwrap().1;
    let listed = listed.split_once("Options:").unwrap().0;
    for row in listed.lines().filter(|row| row.ends_with(']')) {
        let Some((names, listed)) = row.split_once('[') else {
            continue;
        };
        let first = |text: &str| text.trim().split([' ', ',']).next().map(str::to_owned);
        let names: Vec<String> = names
            .trim()
            .split("  ")
            .next()
            .unwrap()
            .split(',')
            .filter_map(first)
            .collect();
        for alias in listed.trim_end_matches(']').split(',') {
            let alias = alias.rsplit('=').next().unwrap().trim();
            let ran = place.run(&[alias, "--help"]);
            let usage = |name: &String| ran.stdout.contains(&format!("Usage: woodward {name}"));
            assert!(ran.code == 0 && names.iter().any(usage), "{alias}: {ran:?}");
            aliases += 1;
        }
    }
    assert!(aliases > 12, "{overview}");
}

#[test]
fn aliases_mean_the_same() {
    let place = Place::new();
    let _standin = place.daemon(|asked| match asked.route().as_str() {
        "GET /api/v1/status" => ok(sample::status()),
        "POST /api/v1/tasks/a/merge" => ok(done("a", "done", &[])),
        "POST /api/v1/tasks/a/cancel" => ok(done("a", "done", &[])),
        _ => unknown(asked),
    });
    let status = place.run(&["status"]).stdout;
    for alias in ["st", "ls", "ps"] {
        assert_eq!(place.run(&[alias]).stdout, status, "{alias}");
    }
    for args in [["land", "a"], ["kill", "a"]] {
        assert_eq!(place.run(&args).code, 0, "{args:?}");
    }
}

#[test]
fn colour_comes_only_when_asked_for() {
    let place = Place::new();
    let _standin = place.daemon(|_| ok(sample::status()));
    assert!(!place.run(&["status"]).stdout.contains('\u{1b}'));
    let diff = |_: &Asked| -> Reply { ok(change()) };
    drop(_standin);
    let _standin = place.daemon(diff);
    assert!(
        place
            .run(&["diff", "a", "--color", "always"])
            .stdout
            .contains("\u{1b}[32m+new")
    );
    assert!(!place.run(&["diff", "a"]).stdout.contains('\u{1b}'));
}

fn change() -> DiffText {
    DiffText {
        base: "4f2a9c1e8b7d6054f2a9c1e8b7d6054f2a9c1e8b"
            .parse()
            .expect("a commit"),
        head: None,
        stat: DiffStat {
            files: vec![FileStat {
                path: "src/login.rs".into(),
                added: Some(1),
                removed: Some(1),
            }],
            files_total: 1,
            added: 1,
            removed: 1,
        },
        text: "--- a/src/login.rs\n+++ b/src/login.rs\n@@ -1 +1 @@\n-old\n+new\n".into(),
        truncated: true,
    }
}

#[test]
fn a_diff_is_printed_as_it_is() {
    let place = Place::new();
    let standin = place.daemon(|_| ok(change()));
    assert_snapshot!(place.seen(&["diff", "fix-login", "--working"]), @"
    $ woodward diff fix-login --working
    --- a/src/login.rs
    +++ b/src/login.rs
    @@ -1 +1 @@
    -old
    +new
    ! note: the diff is longer than this; --stat shows all of its size
    ");
    assert_snapshot!(place.seen(&["diff", "fix-login", "--stat"]), @"
    $ woodward diff fix-login --stat
      src/login.rs      +1     -1
    1 file, +1 -1
    ");
    let queries: Vec<String> = standin
        .asked()
        .into_iter()
        .map(|asked| asked.query)
        .collect();
    assert!(
        queries[0].contains("stat=false&working=true"),
        "{queries:?}"
    );
    assert!(
        queries[1].contains("stat=true&working=false"),
        "{queries:?}"
    );
}

#[test]
fn logs_are_followed_to_their_end_without_control_sequences() {
    let place = Place::new();
    let standin = place.daemon(|asked| {
        let at = |offset: &str| asked.query.contains(&format!("offset={offset}&"));
        match () {
            () if at("0") => ok(piece(0, "one\n\u{1b}[3", false)),
            () if at("7") => ok(piece(7, "1mtwo\n", false)),
            () if at("13") => ok(piece(13, "", false)),
            () => unknown(asked),
        }
    });
    let ran = place.run(&["logs", "a"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "one\ntwo\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(standin.asked().len(), 3, "it stops where nothing new is");
    drop(standin);
    let standin = place.daemon(|asked| {
        if asked.query.contains("offset=0&") {
            ok(piece(0, "one\n", false))
        } else {
            ok(piece(4, "two\n", true))
        }
    });
    let ran = place.run(&["logs", "a", "-f", "--gate", "test"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "one\ntwo\n"),
        "{}",
        ran.stderr
    );
    let last = standin.asked().pop().unwrap();
    assert!(
        last.query.contains("wait_ms=20000&gate=test"),
        "{}",
        last.query
    );
}

#[test]
fn whoever_follows_an_agent_outlives_the_daemon() {
    let place = Place::new();
    let calls = AtomicU32::new(0);
    let _standin = place.daemon(move |asked| {
        match (
            calls.fetch_add(1, Ordering::SeqCst),
            asked.query.contains("offset=4&"),
        ) {
            (0, _) => ok(piece(0, "one\n", false)),
            (1, true) => hang_up(),
            (_, true) => ok(piece(4, "two\n", true)),
            _ => unknown(asked),
        }
    });
    let ran = place.run(&["logs", "a", "--follow"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (0, "one\ntwo\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn logs_as_json_are_a_piece_a_line() {
    let place = Place::new();
    let _standin = place.daemon(|_| ok(piece(0, "\u{1b}[31mred", true)));
    assert_snapshot!(place.run(&["logs", "a", "--json"]).stdout, @r#"{"schema":1,"data":{"source":{"run":"00000000-0000-0000-0000-000000000000"},"offset":0,"next":8,"dropped":0,"ended":true,"text":"\u001b[31mred"}}"#);
}

#[test]
fn a_timeline_in_a_pipe() {
    let place = Place::new();
    let _standin = place.daemon(|_| {
        ok(Timeline {
            task: sample::reviewed(),
            entries: vec![TimelineEntry {
                at: sample::NOW,
                actor: "ada".into(),
                fact: "created".into(),
                state: StateKind::Draft,
                text: "created as a draft".into(),
                told: None,
            }],
        })
    });
    assert_snapshot!(place.seen(&["timeline", "auth-api"]).replace('\t', "<tab>"), @"
    $ woodward timeline auth-api
    2026-01-31 09:05:00<tab>draft<tab>ada<tab>created<tab>created as a draft
    ");
}

#[test]
fn destruction_says_how_to_take_it_back() {
    let place = Place::new();
    let _standin = place.daemon(|asked| match asked.route().as_str() {
        "POST /api/v1/tasks/docs/remove" => ok(done(
            "docs",
            "docs is removed; its work is saved as refs/woodward/rescue/docs/1",
            &["woodward undo docs"],
        )),
        "POST /api/v1/tasks/docs/cancel" => {
            assert_eq!(asked.body, r#"{"reason":"not needed"}"#);
            ok(done("docs", "docs is cancelled", &["woodward undo docs"]))
        }
        "POST /api/v1/undo" => {
            assert_eq!(asked.body, r#"{"task":"docs"}"#);
            ok(done("docs", "docs is back", &[]))
        }
        _ => unknown(asked),
    });
    let seen: String = [
        &["rm", "docs"][..],
        &["cancel", "docs", "-m", "not needed"],
        &["undo", "docs"],
    ]
    .iter()
    .map(|args| place.seen(args))
    .collect();
    assert_snapshot!(seen, @"
    $ woodward rm docs
    ✓ docs is removed; its work is saved as refs/woodward/rescue/docs/1
    !   ↳ woodward undo docs
    $ woodward cancel docs -m not needed
    ✓ docs is cancelled
    !   ↳ woodward undo docs
    $ woodward undo docs
    ✓ docs is back
    ");
}

#[test]
fn a_dash_means_the_last_task() {
    let place = Place::new();
    let standin = place.daemon(|asked| match asked.route().as_str() {
        "POST /api/v1/tasks/do/pause" => ok(done("docs", "docs is paused", &[])),
        "POST /api/v1/tasks/docs/resume" => ok(done("docs", "docs goes on", &[])),
        "POST /api/v1/tasks/%2E/retry" => ok(done("prices", "prices starts again", &[])),
        _ => unknown(asked),
    });
    assert_snapshot!(place.seen(&["resume", "-"]), @"
    $ woodward resume -
    ! error: `-` means the last task, and no task was named here yet
    !   ↳ woodward status
    (exit 5)
    ");
    assert_eq!(place.run(&["pause", "do"]).code, 0);
    assert_snapshot!(place.seen(&["resume", "-"]), @"
    $ woodward resume -
    ✓ docs goes on
    ");
    assert_eq!(place.run(&["retry", "."]).code, 0);
    let here = standin.one("POST /api/v1/tasks/%2E/retry");
    assert!(here.query.contains("&cwd=%2F"), "{}", here.query);
}

/// Whatever is done to the tasks before it, `-` is the one that was named before this command.
#[test]
fn a_dash_means_the_same_task_in_the_whole_command() {
    let place = Place::new();
    let standin = place.daemon(|asked| match asked.route().as_str() {
        "POST /api/v1/tasks/docs/pause" | "POST /api/v1/tasks/docs/cancel" => {
            ok(done("docs", "done", &[]))
        }
        "POST /api/v1/tasks/prices/cancel" => ok(done("prices", "done", &[])),
        _ => unknown(asked),
    });
    assert_eq!(place.run(&["pause", "docs"]).code, 0);
    let ran = place.run(&["cancel", "prices", "-", "docs"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    standin.one("POST /api/v1/tasks/prices/cancel");
    standin.one("POST /api/v1/tasks/docs/cancel");
}

#[test]
fn quiet_leaves_only_the_answer() {
    let place = Place::new();
    let _standin = place.daemon(|_| ok(done("a", "a is queued", &["woodward status"])));
    let ran = place.run(&["retry", "a", "-q"]);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("✓ a is queued\n", "")
    );
}

#[test]
fn trouble_is_listed_and_fails() {
    let place = Place::new();
    let standin = place.daemon(|asked| {
        let fixed = asked.query.contains("fix=true");
        ok(Diagnosis {
            checks: vec![Check {
                name: "worktrees".into(),
                state: if fixed {
                    CheckState::Fixed
                } else {
                    CheckState::Bad
                },
                found: "2 stale ones".into(),
                fix: None,
            }],
        })
    });
    assert_snapshot!(place.seen(&["doctor"]), @"
    $ woodward doctor
      bad    worktrees  2 stale ones
    1 thing to look at
    !   ↳ woodward doctor --fix
    (exit 1)
    ");
    assert_snapshot!(place.seen(&["doctor", "--fix"]), @"
    $ woodward doctor --fix
      fixed  worktrees  2 stale ones
    all is well
    ");
    assert_eq!(standin.asked().len(), 2);
}

/// What says itself what to do is no work for `--fix`.
#[test]
fn a_fix_is_offered_only_where_there_is_one() {
    let place = Place::new();
    let _standin = place.daemon(|_| {
        ok(Diagnosis {
            checks: vec![Check {
                name: "prices.json".into(),
                state: CheckState::Bad,
                found: "makes no sense".into(),
                fix: Some("repair it".into()),
            }],
        })
    });
    let ran = place.run(&["doctor"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("repair it"), "{ran:?}");
    assert!(!ran.stderr.contains("--fix"), "{ran:?}");
}

#[test]
fn the_daemon_that_runs_is_told() {
    let place = Place::new();
    let _standin = place.daemon(|_| {
        ok(Health {
            version: "0.0.9".into(),
            pid: 42,
            started_at: sample::NOW,
            database: "sqlite".into(),
            state_dir: "/home/ada/.local/state/woodward".into(),
            ready: true,
            running: 2,
            listen: None,
        })
    });
    assert_snapshot!(place.seen(&["up"]), @"
    $ woodward up
    daemon 0.0.9 runs already (pid 42, sqlite, 2 agents running)
    state: /home/ada/.local/state/woodward
    ");
    assert_snapshot!(place.seen(&["version"]).replace(env!("CARGO_PKG_VERSION"), "<version>"), @"
    $ woodward version
    woodward <version>
    daemon: 0.0.9
    !   ↳ the daemon is of another version: woodward down && woodward up
    ");
}

#[test]
fn stopping_what_does_not_run_is_no_failure() {
    let place = Place::new();
    assert_snapshot!(place.seen(&["down"]), @"
    $ woodward down
    the daemon does not run
    ");
    assert_snapshot!(place.seen(&["down", "--json"]), @r#"
    $ woodward down --json
    {
      "schema": 1,
      "data": {
        "was_running": false,
        "agents_running": 0
      }
    }
    "#);
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let place = Place::new();
    let _standin = place.daemon(|_| ok(piece(0, &"line\n".repeat(200_000), true)));
    let mut child = place.command(&["logs", "a"]).spawn().unwrap();
    drop(child.stdout.take());
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
}
