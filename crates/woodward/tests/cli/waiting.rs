//! `wait`: until tasks are there, or can't get there by themselves.

use std::sync::atomic::{AtomicU32, Ordering};

use insta::assert_snapshot;
use woodward_api::{Changed, TaskDetail};
use woodward_core::attention::Level;
use woodward_core::{EventSeq, State, StateKind};

use crate::place::Place;
use crate::sample;
use crate::standin::{Asked, Reply, ok};

fn detail(state: StateKind, level: Level) -> TaskDetail {
    TaskDetail {
        task: sample::advised(
            sample::task(1, "docs", state, level, 1),
            "all gates passed; it needs your yes",
            "woodward merge docs",
        ),
        state: State::Draft,
        prompt: None,
        after: Vec::new(),
        labels: Vec::new(),
        question: None,
        messages: Vec::new(),
        runs: Vec::new(),
        gates: Vec::new(),
        change: None,
        risks: Vec::new(),
        conflicts: Vec::new(),
        rescued: Vec::new(),
    }
}

/// The task works until the log of events has come to 3; then it is in review.
fn daemon() -> impl Fn(&Asked) -> Reply + Send + Sync {
    let seq = AtomicU32::new(0);
    move |asked| {
        if asked.path == "/api/v1/changes" {
            let next = seq.fetch_add(1, Ordering::SeqCst) + 1;
            return ok(Changed {
                seq: EventSeq(next.into()),
                bells: 0,
            });
        }
        ok(if seq.load(Ordering::SeqCst) < 3 {
            detail(StateKind::Working, Level::Working)
        } else {
            detail(StateKind::Review, Level::Merge)
        })
    }
}

#[test]
fn a_wait_ends_with_the_change_it_waits_for() {
    let place = Place::new();
    let standin = place.daemon(daemon());
    assert_snapshot!(place.seen(&["wait", "docs", "--until", "review"]), @"
    $ woodward wait docs --until review
    docs: review
    ");
    let polls: Vec<String> = standin
        .asked()
        .into_iter()
        .filter(|asked| asked.path == "/api/v1/changes")
        .map(|asked| asked.query)
        .collect();
    assert!(polls[0].ends_with("after=0&wait_ms=0"), "{polls:?}");
    assert!(polls[2].ends_with("after=2&wait_ms=20000"), "{polls:?}");
}

#[test]
fn a_wait_that_needs_the_person_says_so() {
    let place = Place::new();
    let _standin = place.daemon(daemon());
    assert_snapshot!(place.seen(&["wait", "docs", "--until", "landed"]), @"
    $ woodward wait docs --until landed
    docs: review
    ! error: docs needs you first: all gates passed; it needs your yes
    !   ↳ woodward merge docs
    (exit 12)
    ");
    let ran = place.run(&["wait", "docs", "--until", "landed", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(said["data"][0]["reached"], false);
}

#[test]
fn a_wait_ends_at_its_time_limit() {
    let place = Place::new();
    let _standin = place.daemon(|asked| {
        if asked.path == "/api/v1/changes" {
            return ok(Changed {
                seq: EventSeq(1),
                bells: 0,
            });
        }
        ok(detail(StateKind::Working, Level::Working))
    });
    assert_snapshot!(place.seen(&["wait", "docs", "--timeout", "0s"]), @"
    $ woodward wait docs --timeout 0s
    ! error: not all tasks were there after 0 ms
    !   ↳ woodward status
    (exit 124)
    ");
}
