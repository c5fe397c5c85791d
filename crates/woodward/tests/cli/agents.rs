//! `ask`, as agents use it inside a run.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use insta::assert_snapshot;
use woodward_api::{AnswerState, NewQuestion};

use crate::place::{Place, Ran};
use crate::standin::{Asked, hang_up, ok, unknown};

const RUN: &str = "01900000-0000-7000-8000-00000000000a";

fn ask(place: &Place) -> Command {
    let mut command = place.command(&[
        "ask",
        "Which database?",
        "--choice",
        "SQLite",
        "--choice",
        "PostgreSQL",
    ]);
    command.env("WOODWARD_RUN", RUN);
    command
}

fn question(asked: &Asked) -> NewQuestion {
    serde_json::from_str(&asked.body).expect("a question")
}

#[test]
fn a_question_survives_a_restart_of_the_daemon() {
    let place = Place::new();
    let posts = format!("POST /api/v1/runs/{RUN}/questions");
    let (sender, polled) = mpsc::channel();
    let first = place.daemon(move |asked| {
        if asked.method == "POST" {
            return ok(woodward_api::Asked {
                question: question(asked).id,
            });
        }
        let _ = sender.send(());
        hang_up()
    });
    let child = ask(&place).spawn().unwrap();
    polled.recv().unwrap();
    let asked = question(&first.one(&posts));
    assert_eq!(asked.choices, ["SQLite", "PostgreSQL"]);
    drop(first);
    let second = place.daemon(|_| {
        ok(AnswerState::Answered {
            text: "PostgreSQL".into(),
        })
    });
    let ran = Ran::of(&child.wait_with_output().unwrap());
    let said = (ran.code, ran.stdout.as_str());
    assert_eq!(said, (0, "PostgreSQL\n"), "{}", ran.stderr);
    let route = format!("GET /api/v1/runs/{RUN}/questions/{}", asked.id);
    assert!(second.one(&route).query.starts_with("wait_ms="));
}

#[test]
fn a_question_whose_record_was_not_confirmed_is_asked_again_as_the_same() {
    let place = Place::new();
    let calls = AtomicU32::new(0);
    let standin = place.daemon(move |asked| match asked.method.as_str() {
        "POST" if calls.fetch_add(1, Ordering::SeqCst) == 0 => hang_up(),
        "POST" => ok(woodward_api::Asked {
            question: question(asked).id,
        }),
        _ => ok(AnswerState::Answered { text: "yes".into() }),
    });
    let ran = Ran::of(&ask(&place).output().unwrap());
    assert_eq!(ran.stdout, "yes\n", "{}", ran.stderr);
    let asked = standin.asked();
    let posts = asked.iter().filter(|asked| asked.method == "POST");
    let ids: Vec<_> = posts.map(|asked| question(asked).id).collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn a_question_that_nobody_will_answer_fails() {
    let place = Place::new();
    let _standin = place.daemon(|asked| match asked.method.as_str() {
        "POST" => ok(woodward_api::Asked {
            question: question(asked).id,
        }),
        "GET" => ok(AnswerState::Gone),
        _ => unknown(asked),
    });
    let ran = Ran::of(&ask(&place).output().unwrap());
    assert_eq!(ran.code, 12);
    assert_snapshot!(ran.stderr, @"error: nobody will answer: the run is over or the task was stopped");
}

#[test]
fn asking_outside_a_run_is_refused() {
    let place = Place::new();
    assert_snapshot!(place.seen(&["ask", "Who?"]), @"
$ woodward ask Who?
! error: `ask` is for agents inside a run, and WOODWARD_RUN is not set
!   ↳ to see which agents ask something: woodward status
(exit 2)
");
}
