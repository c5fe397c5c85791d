//! Who starts, in which order, and why the others wait.

#[expect(
    dead_code,
    reason = "each test file uses its part of the common module"
)]
mod common;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::Config;
use woodward_core::schedule::{Held, Limits, Load, PRIORITY_STEP, Plan, WhyNot, admit, plan, rank};
use woodward_core::state::{Delay, Evidence, Purpose};
use woodward_core::task::{Blocker, Standing};
use woodward_core::time::{Millis, Timestamp};
use woodward_core::{Actor, Event, EventId, Fact, Policy, Roll, State, Task, TaskId, step};

use common::{World, commit, new_task, pending, run, task_id, worker, worktree};

const NOW: Timestamp = Timestamp(10_000_000_000);

fn task(id: u128, priority: i8, state: State) -> Task {
    let mut task = World::create(new_task(true, &[]), Policy::default()).task;
    task.id = task_id(id);
    task.spec.priority = priority;
    task.holder = state.kind().is_held().then(|| worker(1));
    task.state = state;
    task
}

fn queued(id: u128, priority: i8, purpose: Purpose, run_at: Timestamp) -> Task {
    let state = State::Queued {
        purpose,
        run_at,
        delay: None,
    };
    task(id, priority, state)
}

fn fresh(id: u128, priority: i8, run_at: Timestamp) -> Task {
    queued(id, priority, Purpose::First, run_at)
}

/// Work that has begun: it has a worktree, or its purpose says so.
fn started(id: u128, priority: i8, run_at: Timestamp) -> Task {
    queued(id, priority, Purpose::Continue, run_at)
}

fn working(id: u128) -> Task {
    let (run, purpose) = (run(id), Purpose::First);
    task(id, 0, State::Working { run, purpose })
}

fn in_review(id: u128) -> Task {
    let state = State::Review {
        commit: commit(id),
        evidence: Evidence::Pass,
    };
    task(id, 0, state)
}

const fn limits(running_max: Option<u32>, review_max: Option<u32>) -> Limits {
    Limits {
        running_max,
        review_max,
    }
}

fn is_fresh(task: &Task) -> bool {
    rank(task).is_some_and(|rank| rank.fresh)
}

/// The tasks of one project, each in some state.
fn projects() -> impl Strategy<Value = Vec<Task>> {
    let one = (0_u8..8, any::<i8>(), -5_000_000_i64..200_000, 0_u8..4);
    prop::collection::vec(one, 0..25).prop_map(|tasks| {
        let with_id = |(n, (kind, priority, ago, more)): (usize, (u8, i8, i64, u8))| {
            let id = n as u128 + 1;
            let run_at = Timestamp(NOW.0 + ago);
            let mut task = match kind {
                0..3 => fresh(id, priority, run_at),
                3 | 4 => started(id, priority, run_at),
                5 => working(id),
                6 => in_review(id),
                _ => task(id, priority, State::Draft),
            };
            if more == 0 && matches!(task.state, State::Queued { .. }) {
                task.blockers.insert(task_id(900), pending());
            }
            if more == 1 && matches!(task.state, State::Queued { .. }) {
                task.holder = Some(worker(1));
                task.worktree = Some(worktree(&task));
                task.holder = None;
            }
            task
        };
        tasks.into_iter().enumerate().map(with_id).collect()
    })
}

fn any_limits() -> impl Strategy<Value = Limits> {
    let max = || prop::option::of(0_u32..12);
    (max(), max()).prop_map(|(running_max, review_max)| limits(running_max, review_max))
}

fn load(tasks: &[Task]) -> Load {
    let mut load = Load::default();
    for task in tasks {
        load.count(task.state.kind());
    }
    load
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_queued_task_starts_or_waits_for_a_reason(
        tasks in projects(), limits in any_limits(), wanted in 0_u32..12,
    ) {
        let Plan { start, wait } = plan(&tasks, limits, wanted, NOW);
        let mut planned: Vec<TaskId> = start.clone();
        planned.extend(wait.iter().map(|(task, _)| *task));
        let distinct: BTreeSet<TaskId> = planned.iter().copied().collect();
        prop_assert_eq!(distinct.len(), planned.len(), "nobody is named twice");
        let queued: BTreeSet<TaskId> = tasks
            .iter()
            .filter(|task| matches!(task.state, State::Queued { .. }))
            .map(|task| task.id)
            .collect();
        prop_assert_eq!(distinct, queued);
    }

    #[test]
    fn no_limit_is_ever_exceeded(
        tasks in projects(), limits in any_limits(), wanted in 0_u32..12,
    ) {
        let starts = plan(&tasks, limits, wanted, NOW).start.len();
        let load = load(&tasks);
        prop_assert!(starts <= wanted as usize);
        if let Some(max) = limits.running_max {
            prop_assert!(starts <= max.saturating_sub(load.running) as usize);
        }
    }

    #[test]
    fn no_slot_stays_empty_while_somebody_could_use_it(
        tasks in projects(), limits in any_limits(), wanted in 0_u32..12,
    ) {
        let Plan { start, wait } = plan(&tasks, limits, wanted, NOW);
        let room = limits
            .running_max
            .map_or(u32::MAX, |max| max.saturating_sub(load(&tasks).running));
        if (start.len() as u32) < wanted.min(room) {
            for (task, why) in wait {
                prop_assert!(
                    !matches!(why, WhyNot::Turn | WhyNot::Held(Held::Running { .. })),
                    "{} waits by {:?}", task, why
                );
            }
        }
    }

    #[test]
    fn full_reviews_hold_back_fresh_work_and_nothing_else(
        tasks in projects(), limits in any_limits(), wanted in 0_u32..12,
    ) {
        let by_id: BTreeMap<TaskId, &Task> = tasks.iter().map(|task| (task.id, task)).collect();
        let full = limits.review_max.is_some_and(|max| load(&tasks).in_review >= max);
        let Plan { start, wait } = plan(&tasks, limits, wanted, NOW);
        for task in start {
            prop_assert!(!full || !is_fresh(by_id[&task]));
        }
        for (task, why) in wait {
            let fresh = is_fresh(by_id[&task]);
            if matches!(why, WhyNot::Held(Held::Review { .. })) {
                prop_assert!(full && fresh, "{task} waits by {why:?}");
            }
            if full && fresh && matches!(by_id[&task].state, State::Queued { run_at, .. } if run_at <= NOW) {
                prop_assert!(matches!(why, WhyNot::Held(_)), "{task} waits by {why:?}");
            }
        }
    }

    #[test]
    fn what_starts_goes_in_the_order_of_rank(
        tasks in projects(), limits in any_limits(), wanted in 0_u32..12,
    ) {
        let by_id: BTreeMap<TaskId, &Task> = tasks.iter().map(|task| (task.id, task)).collect();
        let Plan { start, wait } = plan(&tasks, limits, wanted, NOW);
        let place = |task: &TaskId| (rank(by_id[task]).expect("claimable"), *task);
        prop_assert!(start.is_sorted_by_key(place));
        let waiting = wait.iter().filter(|(_, why)| matches!(why, WhyNot::Turn));
        for (task, _) in waiting {
            prop_assert!(start.iter().all(|first| place(first) < place(task)));
        }
    }

    #[test]
    fn what_the_plan_starts_can_be_claimed_and_what_it_holds_for_its_own_sake_cannot(
        tasks in projects(), wanted in 0_u32..12,
    ) {
        let by_id: BTreeMap<TaskId, &Task> = tasks.iter().map(|task| (task.id, task)).collect();
        let claim = |task: &TaskId| {
            let event = Event {
                id: EventId::new(task.as_uuid()),
                at: NOW,
                actor: Actor::Woodward,
                roll: Roll(0),
                fact: Fact::Claimed { worker: worker(1), run: run(1) },
            };
            step(by_id[task], &event, &Policy::default())
        };
        let Plan { start, wait } = plan(&tasks, Limits::default(), wanted, NOW);
        for task in &start {
            prop_assert!(claim(task).is_ok());
        }
        for (task, why) in &wait {
            prop_assert_eq!(claim(task).is_ok(), matches!(why, WhyNot::Turn), "{:?}", why);
        }
    }

    #[test]
    fn the_order_in_which_tasks_were_read_does_not_matter(
        tasks in projects(),
        limits in any_limits(),
        wanted in 0_u32..12,
        swaps in prop::collection::vec((any::<Index>(), any::<Index>()), 0..25),
    ) {
        let mut shuffled = tasks.clone();
        if !shuffled.is_empty() {
            for (a, b) in swaps {
                let (a, b) = (a.index(shuffled.len()), b.index(shuffled.len()));
                shuffled.swap(a, b);
            }
        }
        prop_assert_eq!(
            plan(&shuffled, limits, wanted, NOW),
            plan(&tasks, limits, wanted, NOW)
        );
    }

    #[test]
    fn a_task_that_waited_long_enough_goes_before_any_newer_one(
        low: i8, high: i8, queued_at in 0_i64..1 << 50, more in 1_u64..1_000,
    ) {
        let steps = i64::from(high) - i64::from(low);
        let handicap = Millis(PRIORITY_STEP.0 * steps.max(0).unsigned_abs());
        let old = fresh(1, low, Timestamp(queued_at));
        let new = fresh(2, high, Timestamp(queued_at) + handicap + Millis(more));
        prop_assert!(rank(&old) < rank(&new));
    }

    #[test]
    fn started_work_goes_before_fresh_work(a: i8, b: i8, at in 0_i64..1 << 50, bt in 0_i64..1 << 50) {
        let begun = rank(&started(2, a, Timestamp(at)));
        prop_assert!(begun < rank(&fresh(1, b, Timestamp(bt))));
    }

    #[test]
    fn an_admission_says_what_holds_work_back(
        running in 0_u32..10, in_review in 0_u32..10, limits in any_limits(), wanted in 0_u32..10,
    ) {
        let load = Load { running, in_review };
        let admission = admit(load, limits, wanted);
        prop_assert!(admission.start_max <= wanted);
        prop_assert_eq!(admission.fresh, limits.review_max.is_none_or(|max| in_review < max));
        let no_room = limits.running_max.is_some_and(|max| running >= max);
        prop_assert!(!no_room || admission.start_max == 0);
        prop_assert_eq!(admission.held.is_some(), no_room || !admission.fresh);
        if let Some(held) = admission.held {
            let text = held.to_string();
            prop_assert_eq!(text.contains("review"), !no_room, "{}", text);
        }
    }
}

#[test]
fn the_lowest_priority_is_two_days_of_waiting_behind_the_highest() {
    let hours_43 = Millis::from_mins(43 * 60);
    let old = fresh(1, i8::MIN, NOW - hours_43);
    let new = fresh(2, i8::MAX, NOW);
    let plan = plan(&[new, old], Limits::default(), 1, NOW);
    assert_eq!(plan.start, [task_id(1)]);
}

#[test]
fn a_retry_counts_as_fresh_until_there_is_a_worktree() {
    let mut task = queued(1, 0, Purpose::Retry, NOW);
    assert!(is_fresh(&task));
    task.worktree = Some(worktree(&task));
    assert!(!is_fresh(&task));
}

#[test]
fn only_queued_tasks_without_blockers_have_a_rank() {
    assert_eq!(rank(&working(1)), None);
    let mut blocked = fresh(1, 0, NOW);
    blocked.blockers.insert(task_id(9), pending());
    assert_eq!(rank(&blocked), None);
}

#[test]
fn each_reason_to_wait_is_the_one_that_matters() {
    let mut after = fresh(1, 0, NOW);
    after.blockers.insert(task_id(90), pending());
    let mut lost = fresh(2, 0, NOW);
    lost.blockers.insert(task_id(90), pending());
    let failed = Blocker {
        standing: Standing::Failed("cancelled".into()),
        ..pending()
    };
    lost.blockers.insert(task_id(91), failed);
    let later = NOW + Millis(1);
    let early = task(
        3,
        0,
        State::Queued {
            purpose: Purpose::Continue,
            run_at: later,
            delay: Some(Delay::RateLimit),
        },
    );
    let tasks = [after, lost, early, fresh(4, 0, NOW), started(5, 0, NOW)];
    let why = |limits, wanted, others: &[Task]| {
        let all: Vec<Task> = tasks.iter().chain(others).cloned().collect();
        let plan = plan(&all, limits, wanted, NOW);
        (plan.start, BTreeMap::from_iter(plan.wait))
    };

    let (start, wait) = why(Limits::default(), 1, &[]);
    assert_eq!(start, [task_id(5)]);
    assert_eq!(wait[&task_id(1)], WhyNot::After(vec![task_id(90)]));
    assert_eq!(wait[&task_id(2)], WhyNot::DependencyFailed(task_id(91)));
    assert_eq!(
        wait[&task_id(3)],
        WhyNot::Until(later, Some(Delay::RateLimit))
    );
    assert_eq!(wait[&task_id(4)], WhyNot::Turn);

    let (start, wait) = why(limits(Some(1), None), 9, &[working(6)]);
    assert!(start.is_empty());
    let full = WhyNot::Held(Held::Running { running: 1, max: 1 });
    assert_eq!(wait[&task_id(5)], full);

    let review = WhyNot::Held(Held::Review { waiting: 1, max: 1 });
    let (start, wait) = why(limits(None, Some(1)), 9, &[in_review(6)]);
    assert_eq!(start, [task_id(5)]);
    assert_eq!(wait[&task_id(4)], review);
    let (_, wait) = why(limits(None, Some(1)), 0, &[in_review(6)]);
    assert_eq!(
        wait[&task_id(5)],
        WhyNot::Turn,
        "started work is not held back by reviews"
    );
}
