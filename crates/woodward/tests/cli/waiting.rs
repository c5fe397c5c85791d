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
        merged_gates: Vec::new(),
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

/// Who waits in a script learns what is missing from the exit code.
#[test]
fn a_missing_login_and_a_used_up_budget_have_codes_of_their_own() {
    use woodward_api::RunView;
    use woodward_core::budget::Limit;
    use woodward_core::state::{Failure, PauseReason, ResumePoint};
    use woodward_core::{Note, RunId, Timestamp};

    let run = |logged_out: bool| RunView {
        id: RunId::new(uuid::Uuid::nil()),
        purpose: "first".into(),
        agent: "claude-code".into(),
        model: None,
        session: None,
        spent: None,
        state: "finished".into(),
        resumable: false,
        logged_out,
        started_at: sample::NOW,
        finished_at: Some(sample::NOW),
        note: None,
        exit_code: Some(1),
        cpu_ms: None,
        memory_peak_bytes: None,
        output_bytes: None,
    };
    let failed = || State::Failed {
        failure: Failure::NeedsPerson {
            note: Note::from("Claude Code is not logged in"),
        },
    };
    let paused = || State::Paused {
        reason: PauseReason::Budget(Limit::Tokens { used: 2, max: 1 }),
        back: ResumePoint::Queue {
            purpose: woodward_core::state::Purpose::First,
            run_at: Timestamp(0),
        },
    };
    for (state, kind, logged_out, code) in [
        (failed(), StateKind::Failed, true, 4),
        (failed(), StateKind::Failed, false, 12),
        (paused(), StateKind::Paused, false, 13),
    ] {
        let place = Place::new();
        let _standin = place.daemon(move |asked| {
            if asked.path == "/api/v1/changes" {
                return ok(Changed {
                    seq: EventSeq(1),
                    bells: 0,
                });
            }
            ok(TaskDetail {
                state: state.clone(),
                runs: vec![run(logged_out)],
                ..detail(kind, Level::Broken)
            })
        });
        let ran = place.run(&["wait", "docs", "--until", "review"]);
        assert_eq!(ran.code, code, "{ran:?}");
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
