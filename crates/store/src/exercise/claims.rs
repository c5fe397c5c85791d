//! Claiming.

use std::sync::Arc;

use woodward_core::budget::Spend;
use woodward_core::event::Outcome;
use woodward_core::schedule::{Held, Limits, plan};
use woodward_core::{Fact, Note, ProjectId, State, StateKind, Task, TaskId, TaskSpec, Timestamp};

use super::world::{World, counts, new_worker};
use crate::error::StoreError;
use crate::ids::fresh_uuid;
use crate::records::{ClaimRequest, TaskFilter};
use crate::store::Store;

fn ids(tasks: &[Task]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id).collect()
}

pub(super) async fn a_claim_takes_the_first_in_line_with_a_new_epoch(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.queued("first").await;
    world.queued("second").await;
    let claimed = world.claim_one().await;
    assert_eq!(claimed.id, first.id);
    assert_eq!(claimed.epoch, first.epoch.next());
    assert_eq!(claimed.version, first.version.next());
    assert_eq!(claimed.holder, Some(world.worker));
    assert_eq!(claimed.state.kind(), StateKind::Preparing);
    assert_eq!(world.reload(&claimed).await, claimed);
    let leases = world.store.load_leases(Some(world.worker)).await;
    let leases = leases.expect("loads");
    assert_eq!(leases.len(), 1);
    assert_eq!(leases[0].epoch, claimed.epoch);
    assert_eq!(world.claim(5).await.tasks.len(), 1, "only one is left");
}

/// A task that was started and came back to the queue.
async fn returned(world: &World, name: &str) -> Task {
    let task = world.working(name).await;
    let State::Working { run, .. } = task.state else {
        panic!("{:?}", task.state);
    };
    let outcome = Outcome::RateLimited {
        until: Timestamp(0),
    };
    let total = Spend::NONE;
    world
        .holder_says(
            &task,
            Fact::RunFinished {
                run,
                outcome,
                total,
            },
        )
        .await
}

pub(super) async fn started_work_goes_before_new_work(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let started = returned(&world, "started").await;
    let urgent = TaskSpec {
        priority: 100,
        ..TaskSpec::default()
    };
    let fresh = world.queued_as("fresh", urgent).await;
    assert_eq!(ids(&world.claim(2).await.tasks), [started.id, fresh.id]);
}

pub(super) async fn priority_goes_first_but_age_wins_in_the_end(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let with = |priority| TaskSpec {
        priority,
        ..TaskSpec::default()
    };
    let low = world.queued_as("low", with(-1)).await;
    let normal = world.queued("normal").await;
    let high = world.queued_as("high", with(1)).await;
    let line = ids(&world.claim(3).await.tasks);
    assert_eq!(line, [high.id, normal.id, low.id]);

    let aged = world.queued_as("aged", with(-1)).await;
    // Ten minutes a step: 21 minutes later even a task two steps higher is behind.
    for _ in 0..21 * 60 * 1_000 / 10_000 {
        for _ in 0..10_000 {
            world.tick();
        }
    }
    let newer = world.queued_as("newer", with(1)).await;
    assert_eq!(ids(&world.claim(2).await.tasks), [aged.id, newer.id]);
}

pub(super) async fn a_task_in_backoff_is_not_claimed_before_its_time(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.working("auth-api").await;
    let State::Working { run, .. } = task.state else {
        panic!("{:?}", task.state);
    };
    let in_an_hour = Timestamp(i64::MAX / 2);
    let outcome = Outcome::RateLimited { until: in_an_hour };
    let total = Spend::NONE;
    let task = world
        .holder_says(
            &task,
            Fact::RunFinished {
                run,
                outcome,
                total,
            },
        )
        .await;
    assert_eq!(task.state.kind(), StateKind::Queued);
    assert!(world.claim(1).await.tasks.is_empty());
    let other = world.queued("other").await;
    assert_eq!(world.claim_one().await.id, other.id, "it blocks nobody");
}

pub(super) async fn blocked_tasks_are_not_claimed(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.queued("first").await;
    let spec = TaskSpec {
        after: vec![first.id],
        ..TaskSpec::default()
    };
    world.queued_as("second", spec).await;
    assert_eq!(ids(&world.claim(5).await.tasks), [first.id]);
}

pub(super) async fn what_is_excepted_is_passed_over(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.queued("first").await;
    let second = world.queued("second").await;
    let third = world.queued("third").await;
    let request = ClaimRequest {
        except: vec![first.id],
        ..world.request(1)
    };
    let claims = world.store.claim(request).await.expect("claims");
    assert_eq!(
        ids(&claims.tasks),
        [second.id],
        "the next in line goes first"
    );
    let request = ClaimRequest {
        except: vec![first.id, third.id],
        ..world.request(5)
    };
    let claims = world.store.claim(request).await.expect("claims");
    assert!(claims.tasks.is_empty());
    let request = ClaimRequest {
        among: Some(vec![third.id]),
        ..world.request(5)
    };
    let claims = world.store.claim(request).await.expect("claims");
    assert_eq!(
        ids(&claims.tasks),
        [third.id],
        "who was not seen is not taken"
    );
    assert_eq!(ids(&world.claim(5).await.tasks), [first.id]);
}

pub(super) async fn the_running_limit_holds_for_many_claimers_at_once(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    for n in 0..20 {
        world.queued(&format!("task-{n}")).await;
    }
    let claimers: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&world.store);
            let request = ClaimRequest {
                worker: new_worker(),
                limits: Limits {
                    running_max: Some(5),
                    review_max: None,
                },
                ..world.request(3)
            };
            tokio::spawn(async move { store.claim(request).await.expect("claims") })
        })
        .collect();
    let mut claimed = Vec::new();
    let mut held = 0;
    for claimer in claimers {
        let claims = claimer.await.expect("no panic");
        claimed.extend(ids(&claims.tasks));
        held += usize::from(claims.held.is_some());
    }
    assert_eq!(claimed.len(), 5, "exactly as many as may run");
    assert!(counts(claimed).values().all(|count| *count == 1));
    assert!(held >= 6, "the others were told why not");
}

pub(super) async fn full_reviews_hold_new_work_and_say_so(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.in_review("reviewed").await;
    let started = returned(&world, "started").await;
    world.queued("fresh").await;
    let request = || ClaimRequest {
        limits: Limits {
            running_max: None,
            review_max: Some(1),
        },
        ..world.request(5)
    };
    let claims = world.store.claim(request()).await.expect("claims");
    assert_eq!(ids(&claims.tasks), [started.id], "what was begun goes on");
    let held = claims.held.expect("is held back");
    assert_eq!(held, Held::Review { waiting: 1, max: 1 });
    assert_eq!(
        held.to_string(),
        "no new work starts: 1 of 1 results wait for review"
    );
}

/// The database's order is the core's order: a project with all sorts of tasks is claimed exactly
/// as the plan says.
pub(super) async fn claims_follow_the_plan_of_the_core(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    returned(&world, "started").await;
    for (n, priority) in [0_i8, 3, -2, 0, 7, 1].into_iter().enumerate() {
        let spec = TaskSpec {
            priority,
            ..TaskSpec::default()
        };
        world.queued_as(&format!("task-{n}"), spec).await;
    }
    let blocked_on = world.queued("blocked-on").await;
    let spec = TaskSpec {
        after: vec![blocked_on.id],
        ..TaskSpec::default()
    };
    world.queued_as("blocked", spec).await;
    let cancelled = world.queued("cancelled").await;
    let reason = Note::from("no");
    world
        .person_says(&cancelled, Fact::Cancelled { reason })
        .await;

    let limits = Limits {
        running_max: Some(6),
        review_max: Some(2),
    };
    let tasks = world
        .store
        .load_tasks(TaskFilter::default())
        .await
        .expect("loads");
    let planned = plan(&tasks, limits, 10, Timestamp(i64::MAX));
    assert_eq!(planned.start.len(), 6);
    let request = ClaimRequest {
        limits,
        ..world.request(10)
    };
    let claims = world.store.claim(request).await.expect("claims");
    assert_eq!(ids(&claims.tasks), planned.start);
}

pub(super) async fn many_claimers_never_share_a_task(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    for n in 0..60 {
        world.queued(&format!("task-{n}")).await;
    }
    let claimers: Vec<_> = (0..6)
        .map(|_| {
            let world = world.as_other_worker();
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                loop {
                    let tasks = world.claim(2).await.tasks;
                    if tasks.is_empty() {
                        return claimed;
                    }
                    claimed.extend(ids(&tasks));
                }
            })
        })
        .collect();
    let mut all = Vec::new();
    for claimer in claimers {
        all.extend(claimer.await.expect("no panic"));
    }
    // A claimer may come away empty while another has the last rows locked, so count what is left.
    all.extend(ids(&world.claim(60).await.tasks));
    assert_eq!(all.len(), 60);
    assert!(counts(all).values().all(|count| *count == 1));
}

pub(super) async fn a_lost_answer_is_recalled(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("first").await;
    world.queued("second").await;
    let request = world.request(2);
    let heard = world.store.claim(request.clone()).await.expect("claims");
    let mut recalled = world.store.recall_claim(request).await.expect("recalls");
    recalled.sort_by_key(|task| task.id);
    let mut expected = heard.tasks;
    expected.sort_by_key(|task| task.id);
    assert_eq!(recalled, expected);
    let other = world.store.recall_claim(world.request(2)).await;
    assert_eq!(other.expect("recalls"), []);
}

pub(super) async fn an_unknown_project_with_limits_is_an_error(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let request = ClaimRequest {
        project: ProjectId::new(fresh_uuid()),
        limits: Limits {
            running_max: Some(1),
            review_max: None,
        },
        ..world.request(1)
    };
    let refused = world.store.claim(request).await;
    assert!(
        matches!(refused, Err(StoreError::NotFound { .. })),
        "{refused:?}"
    );
}
