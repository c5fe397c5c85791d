//! What commands send that do something to a task.

use std::sync::mpsc;

use insta::assert_snapshot;
use woodward_api::{Changed, CreateTasks, Health, QuestionView, TaskDetail};
use woodward_core::attention::Level;
use woodward_core::{EventSeq, State, StateKind};

use crate::place::{Place, Ran, eventually};
use crate::standin::{Asked, Reply, ok};
use crate::{done, sample};

const COMMIT: &str = "4f2a9c1e8b7d6054f2a9c1e8b7d6054f2a9c1e8b";

fn detail(state: StateKind, question: Option<QuestionView>) -> TaskDetail {
    TaskDetail {
        task: sample::task(1, "docs", state, Level::Done, 1),
        state: State::Draft,
        prompt: None,
        after: Vec::new(),
        labels: Vec::new(),
        question,
        messages: Vec::new(),
        runs: Vec::new(),
        gates: Vec::new(),
        merged_gates: Vec::new(),
        change: None,
        risks: Vec::new(),
        conflicts: Vec::new(),
        rescued: Vec::new(),
    }
}

fn agreeable(asked: &Asked) -> Reply {
    match (asked.method.as_str(), asked.path.as_str()) {
        ("GET", "/api/v1/changes") => ok(Changed {
            seq: EventSeq(1),
            bells: 0,
        }),
        ("GET", _) => ok(detail(StateKind::Landed, None)),
        ("POST", "/api/v1/create/check") => {
            let request: CreateTasks = serde_json::from_str(&asked.body).expect("a request");
            ok(request.tasks)
        }
        _ => ok(done("docs", "done", &[])),
    }
}

/// The one thing that is sent.
fn sent(args: &[&str]) -> String {
    let place = Place::new();
    let standin = place.daemon(agreeable);
    let ran = place.run(args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    let mut asked = standin.asked().into_iter();
    // Before an agent starts, this shell's variables may be handed over.
    let asked = asked.find(|asked| asked.path != "/api/v1/environment");
    let asked = asked.expect("a request");
    format!("{} {}", asked.route(), asked.body)
}

#[test]
fn every_deed_is_one_request() {
    let deeds = [
        &["approve", "docs"][..],
        &["approve", "docs", "--commit", COMMIT],
        &["reject", "docs", "-m", "Shorter, please"],
        &["merge", "docs", "--commit", COMMIT],
        &["cancel", "docs"],
        &["pause", "docs", "-m", "later"],
        &["resume", "docs"],
        &["retry", "docs"],
        &["rm", "docs"],
        &["answer", "docs", "the", "second"],
        &["tell", "docs", "more", "words"],
        &["undo"],
    ];
    let sent: String = deeds.iter().map(|args| sent(args) + "\n").collect();
    assert_snapshot!(sent, @r#"
    POST /api/v1/tasks/docs/approve {"commit":null}
    POST /api/v1/tasks/docs/approve {"commit":"4f2a9c1e8b7d6054f2a9c1e8b7d6054f2a9c1e8b"}
    POST /api/v1/tasks/docs/reject {"text":"Shorter, please"}
    POST /api/v1/tasks/docs/merge {"commit":"4f2a9c1e8b7d6054f2a9c1e8b7d6054f2a9c1e8b"}
    POST /api/v1/tasks/docs/cancel {"reason":""}
    POST /api/v1/tasks/docs/pause {"reason":"later"}
    POST /api/v1/tasks/docs/resume {}
    POST /api/v1/tasks/docs/retry {}
    POST /api/v1/tasks/docs/remove {}
    POST /api/v1/tasks/docs/answer {"text":"the second"}
    POST /api/v1/tasks/docs/prompt {"text":"more words"}
    POST /api/v1/undo {"task":null}
    "#);
}

#[test]
fn a_dry_run_changes_nothing() {
    let place = Place::new();
    let standin = place.daemon(agreeable);
    let seen: String = [
        &["cancel", "docs", "--dry-run"][..],
        &["rm", "docs", "-n"],
        &["prompt", "docs", "more", "-n"],
        &["create", "a", "b", "--priority", "3", "-n"],
    ]
    .iter()
    .map(|args| place.seen(args))
    .collect();
    assert_snapshot!(seen, @"
    $ woodward cancel docs --dry-run
    would cancel docs, which is landed
    $ woodward rm docs -n
    would remove docs, which is landed
    $ woodward prompt docs more -n
    would prompt docs, which is landed
    $ woodward create a b --priority 3 -n
    would create a (draft; priority 3)
    would create b (draft; priority 3)
    ");
    let only_asks = |asked: &Asked| asked.method == "GET" || asked.path == "/api/v1/create/check";
    assert!(standin.asked().iter().all(only_asks));
}

#[test]
fn a_merge_can_wait_for_the_landing() {
    let place = Place::new();
    let _standin = place.daemon(agreeable);
    assert_snapshot!(place.seen(&["merge", "docs", "--wait"]), @"
    $ woodward merge docs --wait
    ✓ done
    docs: landed
    ");
}

#[test]
fn an_answer_that_is_missing_shows_the_question() {
    let place = Place::new();
    let standin = place.daemon(|_| {
        let question = QuestionView {
            text: "Which database?".into(),
            choices: vec!["SQLite".into(), "PostgreSQL".into()],
        };
        ok(detail(StateKind::Waiting, Some(question)))
    });
    assert_snapshot!(place.seen(&["answer", "docs"]), @r#"
    $ woodward answer docs
    ! error: an answer is missing
    ! Which database?
    !   1. SQLite
    !   2. PostgreSQL
    !   ↳ woodward answer docs "…"
    (exit 2)
    "#);
    drop(standin);
    let _standin = place.daemon(|_| ok(detail(StateKind::Working, None)));
    assert_snapshot!(place.seen(&["answer", "docs"]), @r#"
    $ woodward answer docs
    ! error: docs asks nothing
    !   ↳ to tell its agent something: woodward prompt docs "…"
    (exit 1)
    "#);
}

#[test]
fn a_stop_waits_until_the_daemon_is_gone() {
    let place = Place::new();
    let (sender, told) = mpsc::channel();
    let standin = place.daemon(move |asked| {
        if asked.method == "POST" {
            sender.send(asked.route()).expect("the test listens");
            return ok(serde_json::json!({}));
        }
        ok(Health {
            version: "0.1.0".into(),
            pid: 42,
            started_at: sample::NOW,
            database: "sqlite".into(),
            state_dir: "/state".into(),
            ready: true,
            running: 3,
            listen: None,
        })
    });
    let mut child = place.command(&["down"]).spawn().unwrap();
    assert_eq!(told.recv().unwrap(), "POST /api/v1/shutdown");
    // It looks again and again while somebody answers.
    eventually("two more looks", || standin.asked().len() >= 4);
    assert!(child.try_wait().unwrap().is_none());
    drop(standin);
    let ran = Ran::of(&child.wait_with_output().unwrap());
    assert_snapshot!(ran.stdout, @"the daemon has ended; 3 agents still running, which the next daemon takes over");
}
