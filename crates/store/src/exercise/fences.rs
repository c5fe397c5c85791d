//! Stale writes, lost races, doubled events.

use std::sync::Arc;

use woodward_core::budget::Spend;
use woodward_core::event::Outcome;
use woodward_core::gate::Verdict;
use woodward_core::lease::Resource;
use woodward_core::state::Purpose;
use woodward_core::step::replay;
use woodward_core::{
    EventSeq, Fact, Millis, Note, RunId, State, StateKind, Task, TaskSpec, Timestamp,
};

use super::world::{
    LONG, SPENT, World, claim_of, commit_of, failing, gates, holder, person, prepared,
};
use crate::error::{Result, StoreError};
use crate::ids::fresh_uuid;
use crate::records::{Delivery, LeaseRef, Run, RunState};
use crate::store::Store;

/// A task whose claim was lost: as its former holder knows it, and as it is now.
async fn lost(world: &World) -> (Task, Task) {
    world.queued("auth-api").await;
    let zombie = world.claim_one_for(SPENT).await;
    let expired = world
        .store
        .expire_leases(Millis(0), 10, world.policy.clone())
        .await
        .expect("expires");
    assert_eq!(expired.len(), 1);
    let successor = world.as_other_worker().claim_one().await;
    assert_eq!(successor.id, zombie.id);
    assert!(successor.epoch > zombie.epoch);
    (zombie, successor)
}

fn assert_stale<T: std::fmt::Debug>(written: Result<T>) {
    assert!(
        matches!(written, Err(StoreError::Stale { carried, current, .. }) if carried < current),
        "{written:?}"
    );
}

pub(super) async fn a_stale_claim_changes_nothing_and_says_so(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let (zombie, successor) = lost(&world).await;
    let log = world.store.events_after(EventSeq(0), 100).await;
    let before = log.expect("reads").events.len();

    // As it believes the task to be, and on the task as it is now.
    let event = world.event(holder(&zombie), prepared(&zombie));
    assert_stale(world.store.commit(&zombie, &event, &world.policy).await);
    let event = world.event(holder(&zombie), prepared(&zombie));
    assert_stale(world.store.commit(&successor, &event, &world.policy).await);
    let event = world.event(holder(&zombie), prepared(&zombie));
    assert_stale(
        world
            .store
            .advance(zombie.id, event, world.policy.clone())
            .await,
    );

    assert_eq!(world.reload(&zombie).await, successor);
    let log = world.store.events_after(EventSeq(0), 100).await;
    assert_eq!(log.expect("reads").events.len(), before, "no event either");
}

pub(super) async fn a_stale_side_write_changes_nothing_and_says_so(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let (zombie, _) = lost(&world).await;
    let claim = claim_of(&zombie);

    let result = failing(commit_of(&zombie));
    assert_stale(world.store.save_gate_results(claim, vec![result]).await);
    assert_stale(world.store.save_run(run(&zombie)).await);
    let prompt = world.store.load_messages(zombie.id).await.expect("loads");
    assert_stale(
        world
            .store
            .record_delivery(claim, prompt[0].id, Delivery::Accepted)
            .await,
    );
    let lease = LeaseRef {
        resource: Resource::Task(zombie.id),
        epoch: zombie.epoch,
    };
    let lost = world
        .store
        .renew_leases(world.worker, vec![lease.clone()], LONG)
        .await;
    assert_eq!(lost.expect("answers"), [lease]);

    let store = &world.store;
    assert_eq!(store.load_gate_results(zombie.id).await.expect("loads"), []);
    assert_eq!(store.load_runs(zombie.id).await.expect("loads"), []);
    let prompt = store.load_messages(zombie.id).await.expect("loads");
    assert_eq!(prompt[0].delivery, Delivery::Stored);
}

fn run(task: &Task) -> Run {
    Run {
        id: RunId::new(fresh_uuid()),
        task: task.id,
        epoch: task.epoch,
        worker: task.holder.expect("claimed"),
        agent: "mine".parse().expect("a valid name"),
        purpose: Purpose::First,
        state: RunState::Running,
        started_at: Timestamp(1),
        finished_at: None,
        session: None,
        spend: Spend::NONE,
        note: None,
    }
}

pub(super) async fn a_persons_write_loses_to_a_newer_version(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let seen = world.queued("auth-api").await;
    world.claim_one().await;
    let reason = Note::from("no");
    let event = world.event(person(), Fact::Cancelled { reason });
    let lost = world.store.commit(&seen, &event, &world.policy).await;
    assert!(matches!(lost, Err(StoreError::Conflict { .. })), "{lost:?}");
    assert_eq!(world.state_of(&seen).await, StateKind::Preparing);
}

pub(super) async fn the_same_event_again_is_the_same_transition(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.queued("auth-api").await;
    let reason = Note::from("no");
    let event = world.event(person(), Fact::Cancelled { reason });
    let first = world.store.commit(&task, &event, &world.policy).await;
    let again = world.store.commit(&task, &event, &world.policy).await;
    assert_eq!(first.expect("writes").next, again.expect("knows it").next);
    let advanced = world
        .store
        .advance(task.id, event, world.policy.clone())
        .await;
    assert_eq!(advanced.expect("knows it").effects, []);
    let history = world.store.load_history(task.id).await.expect("loads");
    assert_eq!(history.len(), 2, "created and cancelled, once");
}

pub(super) async fn an_illegal_fact_changes_nothing(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.queued("auth-api").await;
    let event = world.event(person(), Fact::Resumed);
    let refused = world.store.commit(&task, &event, &world.policy).await;
    let refused = refused.expect_err("it is not paused");
    assert!(matches!(refused, StoreError::Illegal(_)), "{refused}");
    let advanced = world
        .store
        .advance(task.id, event, world.policy.clone())
        .await;
    assert!(matches!(advanced, Err(StoreError::Illegal(_))));
    assert_eq!(world.reload(&task).await, task);
}

/// A transition that fails half-way (its task's name was taken meanwhile) leaves neither event nor
/// effect.
pub(super) async fn a_transition_is_one_with_its_event_and_its_effects(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.queued("auth-api").await;
    let reason = Note::from("no");
    let first = world.person_says(&first, Fact::Cancelled { reason }).await;
    world.queued_as("auth-api", TaskSpec::default()).await;
    let effects = world.store.load_pending_effects(first.id).await;
    let effects = effects.expect("loads").len();

    let event = world.event(person(), Fact::Retried);
    let refused = world.store.commit(&first, &event, &world.policy).await;
    assert!(
        matches!(refused, Err(StoreError::NameTaken { .. })),
        "{refused:?}"
    );
    assert_eq!(world.reload(&first).await, first);
    let history = world.store.load_history(first.id).await.expect("loads");
    assert_eq!(history.len(), 2);
    let left = world.store.load_pending_effects(first.id).await;
    assert_eq!(left.expect("loads").len(), effects);
    // And the store goes on working.
    world.queued("next").await;
}

/// The fact that a working task's run has a result.
fn finished(task: &Task) -> Fact {
    let State::Working { run, .. } = task.state else {
        panic!("{:?}", task.state);
    };
    Fact::RunFinished {
        run,
        outcome: Outcome::Done {
            commit: commit_of(task),
        },
        total: Spend::NONE,
    }
}

pub(super) async fn replay_of_the_log_is_the_live_task(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("auth-api").await;
    let claimed = world.claim_one().await;
    let task = world.holder_says(&claimed, prepared(&claimed)).await;
    let task = world.holder_says(&task, finished(&task)).await;
    let task = world.holder_says(&task, gates(&task, Verdict::Fail)).await;
    // From here under another policy: the log must remember which was in force when.
    let world = world.without_review();
    // A failing gate goes back to the agent.
    let task = world.holder_says(&task, finished(&task)).await;
    let task = world.holder_says(&task, gates(&task, Verdict::Pass)).await;
    assert_eq!(task.state.kind(), StateKind::Landing, "nobody reviews");

    let history = world.store.load_history(task.id).await.expect("loads");
    let replayed = replay(history.iter().map(|(event, policy)| (event, policy)));
    assert_eq!(replayed.expect("applies"), Some(world.reload(&task).await));
}
