//! What a person is told, whatever state a task is in.

#[expect(
    dead_code,
    reason = "each test file uses its part of the common module"
)]
mod common;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::Config;
use woodward_core::attention::{Level, TaskView, attention, inbox};
use woodward_core::budget::Limit;
use woodward_core::notice::notice_of;
use woodward_core::state::{
    AnswerVia, Approval, Approver, Delay, Evidence, Failure, LandingIntent, PauseReason, Purpose,
    Question, RejectionSource, ResumePoint,
};
use woodward_core::task::{Blocker, RejectedResult, Standing};
use woodward_core::text::Note;
use woodward_core::time::{Millis, Timestamp};
use woodward_core::{Policy, State, StateKind, Task, TaskName};

use common::facts::gate;
use common::histories::histories;
use common::{World, commit, intent, message, new_task, pending, run, task_id};

const NOW: Timestamp = Timestamp(10_000_000);

/// What a reason may have besides one note.
const FRAME_MAX: usize = 300;

fn task(id: u128, state: State) -> Task {
    let mut task = World::create(new_task(true, &[]), Policy::default()).task;
    task.id = task_id(id);
    task.since = Timestamp(1_000);
    task.state = state;
    task
}

fn view(task: &Task) -> TaskView<'_> {
    TaskView {
        task,
        dependents: 0,
        risk: 0,
        blockers: vec![],
        run_waits: None,
        local_offset_ms: 0,
    }
}

/// Every state in every form that is told differently; all free text is `note`.
fn states(note: &Note) -> Vec<State> {
    let note = || note.clone();
    let (run, purpose) = (run(1), Purpose::First);
    let approval = Approval {
        commit: commit(1),
        by: Approver::Policy,
        at: NOW,
    };
    let queued = |run_at, delay| State::Queued {
        purpose: Purpose::First,
        run_at,
        delay,
    };
    let later = NOW + Millis::from_mins(3);
    let back = ResumePoint::Landing {
        approval: approval.clone(),
    };
    let paused = |reason| State::Paused {
        reason,
        back: back.clone(),
    };
    let mut states = vec![
        State::Draft,
        queued(NOW, None),
        queued(later, None),
        queued(later, Some(Delay::RateLimit)),
        queued(
            later,
            Some(Delay::Backoff {
                failures: u32::MAX - 1,
                last: note(),
            }),
        ),
        State::Preparing {
            run,
            purpose: purpose.clone(),
        },
        State::Working {
            run,
            purpose: purpose.clone(),
        },
        State::Waiting {
            run,
            purpose,
            question: Question {
                id: message(1),
                text: note(),
                choices: vec![note(); 50],
                via: Default::default(),
            },
        },
        State::Verifying { commit: commit(1) },
        State::Landing {
            approval: approval.clone(),
            intent: None,
        },
        State::Landing {
            approval: approval.clone(),
            intent: Some(LandingIntent {
                id: intent(1),
                result: commit(2),
            }),
        },
        State::Landed {
            commit: commit(2),
            intent: intent(1),
        },
        paused(PauseReason::Person(note())),
        paused(PauseReason::Rule(note())),
        paused(PauseReason::Budget(Limit::Money {
            used_micro_usd: u64::MAX,
            max_micro_usd: 1,
        })),
        State::Cancelled { reason: note() },
        State::Superseded { by: task_id(2) },
    ];
    for evidence in [
        Evidence::Pass,
        Evidence::Flaky,
        Evidence::Baseline,
        Evidence::Unverified,
    ] {
        let commit = commit(1);
        states.push(State::Review { commit, evidence });
    }
    for failure in [
        Failure::Empty,
        Failure::AttemptsSpent {
            attempts: 3,
            last: note(),
        },
        Failure::FixesSpent { gate: None },
        Failure::FixesSpent {
            gate: Some(gate("test")),
        },
        Failure::GateTimedOut {
            gate: gate("test"),
            limit: Millis::from_mins(10),
        },
        Failure::NoChanges {
            after: RejectionSource::Review,
            attempts: 3,
        },
        Failure::SetupFailed { note: note() },
        Failure::GateBroken { note: note() },
        Failure::ConflictsSpent { conflicts: 4 },
        Failure::LeaseLossesSpent { losses: 11 },
        Failure::NotPrepared { note: note() },
        Failure::NeedsPerson { note: note() },
    ] {
        states.push(State::Failed { failure });
    }
    states
}

#[test]
fn every_state_has_its_reason_and_its_command() {
    let mut kinds = BTreeSet::new();
    for note in ["", "why not", "\u{1b}[2J\u{7}\n\n", &"ä".repeat(100_000)] {
        for state in states(&note.into()) {
            kinds.insert(state.kind());
            let task = task(1, state);
            let told = attention(&view(&task), NOW);
            let state = &task.state;
            assert!(!told.reason.trim().is_empty(), "{state:?}");
            assert!(
                told.reason.len() <= Note::BYTES_MAX + FRAME_MAX,
                "{} bytes for {state:?}",
                told.reason.len()
            );
            assert_eq!(told.since, task.since);
            let command = told.command.as_deref();
            if told.level.needs_person() {
                assert!(command.is_some(), "{state:?}");
            }
            if let Some(command) = command {
                assert!(command.starts_with("woodward "), "{command}");
                assert!(command.contains(task.name.as_str()), "{command}");
                // `show` prints this command: it must lead further.
                let itself = format!("woodward show {}", task.name);
                assert_ne!(command, itself, "{state:?}");
            }
        }
    }
    assert_eq!(kinds.len(), StateKind::ALL.len());
}

#[test]
fn a_question_that_only_its_terminal_takes_names_attach() {
    for (via, command) in [
        (AnswerVia::Command, "woodward answer"),
        (AnswerVia::Terminal, "woodward attach"),
    ] {
        let question = Question {
            id: message(1),
            text: Note::from("Which one?"),
            choices: vec![],
            via,
        };
        let waiting = State::Waiting {
            run: run(1),
            purpose: Purpose::First,
            question,
        };
        let task = task(1, waiting);
        let said = attention(&view(&task), NOW).command;
        assert_eq!(said, Some(format!("{command} {}", task.name)));
    }
}

#[test]
fn a_level_follows_from_the_state() {
    for state in states(&"note".into()) {
        let level = attention(&view(&task(1, state.clone())), NOW).level;
        let expected = match &state {
            State::Waiting { .. } => Level::Answer,
            State::Review {
                evidence: Evidence::Pass,
                ..
            } => Level::Merge,
            State::Review { .. } => Level::Review,
            State::Failed { .. }
            | State::Paused {
                reason: PauseReason::Budget(_) | PauseReason::Rule(_) | PauseReason::MovedBranch(_),
                ..
            } => Level::Broken,
            State::Draft
            | State::Queued { .. }
            | State::Paused { .. }
            | State::Landing { intent: None, .. } => Level::Waiting,
            State::Preparing { .. }
            | State::Working { .. }
            | State::Verifying { .. }
            | State::Landing { .. } => Level::Working,
            State::Landed { .. } | State::Cancelled { .. } | State::Superseded { .. } => {
                Level::Done
            }
        };
        assert_eq!(level, expected, "{state:?}");
    }
}

#[test]
fn a_queued_task_says_what_it_waits_for() {
    let names: Vec<TaskName> = (0..5_000)
        .map(|n| format!("{}-{n}", "long".repeat(12)).parse().expect("valid"))
        .collect();
    let queued = task(1, states(&Note::default())[1].clone());
    let told = |blockers| {
        let blocked = TaskView {
            blockers,
            ..view(&queued)
        };
        attention(&blocked, NOW)
    };
    let pending = pending();
    let two = told(names[..2].iter().map(|name| (name, &pending)).collect());
    assert_eq!(two.level, Level::Waiting);
    assert_eq!(
        two.reason,
        format!("it comes after {}, {}", names[0], names[1])
    );
    let many = told(names.iter().map(|name| (name, &pending)).collect());
    assert!(
        many.reason.len() <= Note::BYTES_MAX,
        "{}",
        many.reason.len()
    );
    assert!(many.reason.ends_with(" more"), "{}", many.reason);

    let failed = Blocker {
        standing: Standing::Failed("failed: the agent changed nothing".into()),
        ..pending.clone()
    };
    let lost = told(vec![(&names[0], &pending), (&names[1], &failed)]);
    assert_eq!(lost.level, Level::Broken);
    assert_eq!(
        lost.reason,
        format!("blocked: {} failed: the agent changed nothing", names[1])
    );
    let resume = format!("woodward resume {}", queued.name);
    assert_eq!(
        lost.command,
        Some(format!("{resume} --without {}", names[1]))
    );
    let lost = told(vec![(&names[0], &failed), (&names[1], &failed)]);
    assert_eq!(
        lost.reason,
        format!(
            "blocked: {} failed: the agent changed nothing; also by {}",
            names[0], names[1]
        )
    );
    assert_eq!(
        lost.command,
        Some(format!(
            "{resume} --without {} --without {}",
            names[0], names[1]
        ))
    );
    let all = told(names.iter().map(|name| (name, &failed)).collect());
    assert!(all.reason.len() <= Note::BYTES_MAX + FRAME_MAX);
}

#[test]
fn a_result_without_changes_says_so_first_and_offers_merge_last() {
    for (source, said) in [
        (
            RejectionSource::Review,
            "the agent made no changes after your review; all gates passed",
        ),
        (
            RejectionSource::CiFailed,
            "the agent made no changes after CI failed; all gates passed",
        ),
    ] {
        let mut task = task(
            1,
            State::Review {
                commit: commit(1),
                evidence: Evidence::Pass,
            },
        );
        let notice = |task: &Task| notice_of(task, None).expect("a person is told");
        let first = notice(&task);
        task.rejected = Some(RejectedResult {
            commit: commit(1),
            tree: None,
            source,
            run_ended: false,
            unchanged_runs: 1,
        });
        let told = attention(&view(&task), NOW);
        assert_eq!((told.level, told.reason.as_str()), (Level::Review, said));
        let name = &task.name;
        let offered: Vec<String> = told.command.into_iter().chain(told.alternatives).collect();
        assert_eq!(
            offered,
            [
                format!("woodward prompt {name} \"…\""),
                format!("woodward reject {name} -m \"…\""),
                format!("woodward merge {name}"),
            ]
        );
        let again = notice(&task);
        assert_ne!(first.key, again.key, "the same commit is told again");
        assert_eq!(again.text.as_str(), said);
    }
}

#[test]
fn a_task_whose_target_was_rewritten_says_so_and_names_a_command() {
    let rewritten = task(
        1,
        State::Queued {
            purpose: Purpose::Verify { commit: commit(1) },
            run_at: NOW,
            delay: Some(Delay::TargetRewritten),
        },
    );
    let told = attention(&view(&rewritten), NOW);
    assert!(told.reason.contains("was rewritten"), "{}", told.reason);
    let command = format!("woodward diff {}", rewritten.name);
    assert_eq!(told.command, Some(command));
}

#[test]
fn the_list_goes_by_level_dependents_risk_and_age() {
    let state = |n: usize| states(&"note".into())[n].clone();
    let (waiting, working) = (state(7), state(6));
    let review = State::Review {
        commit: commit(1),
        evidence: Evidence::Pass,
    };
    let mut tasks: Vec<Task> = [
        &waiting, &review, &review, &review, &review, &review, &working,
    ]
    .into_iter()
    .enumerate()
    .map(|(n, state)| task(n as u128, state.clone()))
    .collect();
    // Each is ahead of the next by one thing, and behind it in all that counts less.
    let facts = [
        (0, 0, 9_000),
        (2, 0, 9_000),
        (1, 5, 9_000),
        (1, 4, 1_000),
        (1, 4, 2_000),
        (1, 4, 2_000),
        (9, 9, 0),
    ];
    for (task, (_, _, since)) in tasks.iter_mut().zip(facts) {
        task.since = Timestamp(since);
    }
    let views = tasks
        .iter()
        .zip(facts)
        .map(|(task, (dependents, risk, _))| TaskView {
            dependents,
            risk,
            ..view(task)
        });
    let order = |views: Vec<TaskView<'_>>| -> Vec<u128> {
        let list = inbox(views, NOW);
        list.iter()
            .map(|(task, _)| task.id.as_uuid().as_u128())
            .collect()
    };
    let views: Vec<TaskView<'_>> = views.collect();
    let backwards = views.iter().rev().cloned().collect();
    assert_eq!(order(views), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(order(backwards), [0, 1, 2, 3, 4, 5, 6]);
}

proptest! {
    #![proptest_config(Config { cases: 64, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_task_that_can_be_has_one_entry(
        histories in prop::collection::vec(histories(), 0..6),
    ) {
        let tasks: Vec<Task> = histories.iter().map(|history| history.live(|_| ()).task).collect();
        let list = inbox(tasks.iter().map(view), NOW);
        prop_assert_eq!(list.len(), tasks.len());
        prop_assert!(list.is_sorted_by_key(|(_, told)| told.level));
        for (task, told) in list {
            prop_assert!(!told.reason.is_empty());
            prop_assert!(told.command.is_some() || !told.level.needs_person(), "{:?}", task.state);
        }
    }
}
