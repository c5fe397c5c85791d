//! What a person is told: on edges, once for the same evidence, with the command to type.

#[expect(
    dead_code,
    reason = "each test file uses its part of the common module"
)]
mod common;

use woodward_core::budget::Limit;
use woodward_core::notice::{Level, Notice, Reason, notice_of};
use woodward_core::state::{
    Approval, Approver, Evidence, Failure, PauseReason, Purpose, Question, ResumePoint,
};
use woodward_core::task::all_done;
use woodward_core::{Note, Policy, State, Task, Timestamp};

use common::{World, commit, intent, message, new_task, run, task_id};

fn task(state: State) -> Task {
    let mut task = World::create(new_task(true, &[]), Policy::default()).task;
    task.id = task_id(7);
    task.since = Timestamp(1_000);
    task.state = state;
    task
}

fn asks(number: u128) -> State {
    State::Waiting {
        run: run(1),
        purpose: Purpose::First,
        question: Question {
            id: message(number),
            text: Note::from("Which colour?"),
            choices: vec![Note::from("red"), Note::from("blue")],
            via: Default::default(),
        },
    }
}

fn landing() -> State {
    State::Landing {
        approval: Approval {
            commit: commit(1),
            by: Approver::Policy,
            at: Timestamp(5),
        },
        intent: None,
    }
}

fn budget() -> State {
    State::Paused {
        reason: PauseReason::Budget(Limit::Tokens { used: 9, max: 8 }),
        back: ResumePoint::Queue {
            purpose: Purpose::First,
            run_at: Timestamp(0),
        },
    }
}

fn told(state: State) -> Option<Notice> {
    notice_of(&task(state), None)
}

#[test]
fn what_needs_a_person_is_told_with_the_command_to_type() {
    let name = task(State::Draft).name;
    let review = State::Review {
        commit: commit(1),
        evidence: Evidence::Pass,
    };
    let failed = State::Failed {
        failure: Failure::Empty,
    };
    let landed = State::Landed {
        commit: commit(2),
        intent: intent(1),
    };
    for (state, reason, level, command) in [
        (asks(1), Reason::Question, Level::Urgent, Some("answer")),
        (review, Reason::Review, Level::Normal, Some("merge")),
        (failed, Reason::Failed, Level::High, Some("prompt")),
        (budget(), Reason::Budget, Level::High, Some("resume")),
        (landed, Reason::Landed, Level::Low, None),
    ] {
        let notice = told(state).unwrap();
        assert_eq!((notice.reason, notice.level), (reason, level));
        assert!(!notice.text.as_str().is_empty());
        assert!(notice.title().contains(name.as_str()), "{}", notice.title());
        match (command, notice.command) {
            (None, None) => {}
            (Some(verb), Some(command)) => {
                let start = format!("woodward {verb} {name}");
                assert!(command.starts_with(&start), "{command}");
            }
            (expected, found) => panic!("{reason}: {expected:?}, {found:?}"),
        }
    }
}

#[test]
fn a_question_is_told_with_its_choices() {
    let notice = told(asks(1)).unwrap();
    assert_eq!(notice.text.as_str(), "Which colour?");
    assert_eq!(notice.choices.len(), 2);
}

#[test]
fn what_goes_on_by_itself_is_not_told() {
    let working = State::Working {
        run: run(1),
        purpose: Purpose::First,
    };
    let by_person = State::Paused {
        reason: PauseReason::Person(Note::from("lunch")),
        back: ResumePoint::Queue {
            purpose: Purpose::First,
            run_at: Timestamp(0),
        },
    };
    let cancelled = State::Cancelled {
        reason: Note::from("no"),
    };
    for state in [State::Draft, working, by_person, cancelled, landing()] {
        assert_eq!(told(state.clone()), None, "{state:?}");
    }
}

#[test]
fn the_same_evidence_is_the_same_notice() {
    let key = |state| told(state).unwrap().key;
    assert_eq!(key(asks(1)), key(asks(1)));
    assert_ne!(key(asks(1)), key(asks(2)));
    let failed_at = |at| {
        let state = State::Failed {
            failure: Failure::Empty,
        };
        let mut task = task(state);
        task.since = Timestamp(at);
        notice_of(&task, None).unwrap().key
    };
    assert_eq!(failed_at(1), failed_at(1));
    assert_ne!(failed_at(1), failed_at(2), "failing again is news");
    let review = |number, at| {
        let mut task = task(State::Review {
            commit: commit(number),
            evidence: Evidence::Pass,
        });
        task.since = Timestamp(at);
        notice_of(&task, None).unwrap().key
    };
    assert_eq!(review(1, 1), review(1, 2), "paused and resumed is no news");
    assert_ne!(review(1, 1), review(2, 1));
}

#[test]
fn a_held_landing_is_told_once_whatever_files_are_in_the_way() {
    let task = task(landing());
    let held = |text: &str| notice_of(&task, Some(&Note::from(text))).unwrap();
    let first = held("your checkout has changes in the way: a.txt");
    assert_eq!(first.reason, Reason::Held);
    assert_eq!(
        first.key,
        held("your checkout has changes in the way: b.txt").key
    );
    assert_ne!(first.key, held("its landing can't be finished: disk").key);
}

#[test]
fn a_key_is_bounded_whatever_the_evidence_is() {
    let notice = Notice::about(
        &task(State::Draft),
        Reason::Escalation,
        &"x\0y".repeat(10_000),
        "gave up",
        None,
    );
    assert!(notice.key.len() < 400 && !notice.key.contains('\0'));
    assert_eq!(notice.level, Level::Urgent);
}

#[test]
fn all_is_done_when_something_is_finished_and_only_drafts_are_left() {
    let task = |id: u128, since: i64, state: State| {
        let mut task = World::create(new_task(true, &[]), Policy::default()).task;
        task.id = task_id(id);
        task.since = Timestamp(since);
        task.state = state;
        task
    };
    let landed = |id, since| {
        let (commit, intent) = (commit(1), intent(1));
        task(id, since, State::Landed { commit, intent })
    };
    let draft = task(3, 9, State::Draft);
    let queued = State::Queued {
        purpose: Purpose::First,
        run_at: Timestamp(0),
        delay: None,
    };
    let open = task(4, 1, queued);
    let last = |tasks: &[Task]| all_done(tasks).map(|task| task.id);
    assert_eq!(last(&[landed(1, 5), landed(2, 4)]), Some(task_id(1)));
    // A draft that nobody has begun keeps nothing from being done, and is never the last.
    let with_draft = [landed(1, 5), draft.clone()];
    assert_eq!(last(&with_draft), Some(task_id(1)));
    assert_eq!(last(&[landed(1, 5), open]), None);
    assert_eq!(last(&[draft]), None);
    assert_eq!(last(&[]), None);
}

#[test]
fn all_done_is_told_of_the_project() {
    let last = task(State::Landed {
        commit: commit(2),
        intent: intent(1),
    });
    let notice = Notice::all_done(&last);
    assert_eq!((notice.task, notice.level), (None, Level::Normal));
    assert!(notice.text.as_str().contains(last.name.as_str()));
    assert!(notice.key.starts_with(&last.project.to_string()));
}
