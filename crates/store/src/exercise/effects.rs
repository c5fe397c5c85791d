//! The outbox.

use std::sync::Arc;

use woodward_core::{Action, Fact, Millis, Note};

use super::world::{LONG, SPENT, World};
use crate::error::StoreError;
use crate::records::{Due, TakenEffect};
use crate::store::Store;

async fn take(world: &World, length: Millis) -> Vec<TakenEffect> {
    world
        .store
        .take_effects(world.worker, 10, length)
        .await
        .expect("hands out")
}

fn verbs(effects: &[TakenEffect]) -> Vec<&'static str> {
    effects
        .iter()
        .map(|taken| taken.effect.action.verb())
        .collect()
}

pub(super) async fn effects_of_a_task_come_in_order(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.working("auth-api").await;
    let reason = Note::from("no");
    // Stop what runs, remove the worktree, tell the dependents: three effects, two for the worker.
    world.person_says(&task, Fact::Cancelled { reason }).await;
    let mut performed = Vec::new();
    loop {
        let taken = take(&world, LONG).await;
        if taken.is_empty() {
            break;
        }
        for effect in &taken {
            world.store.finish_effect(effect).await.expect("reports");
        }
        performed.extend(verbs(&taken));
    }
    let place = |verb| {
        performed
            .iter()
            .position(|done| *done == verb)
            .unwrap_or_else(|| panic!("{verb} in {performed:?}"))
    };
    assert!(place("stop_run") < place("remove_worktree"));
    place("tell_dependents");
    assert!(
        !performed.contains(&"start_run"),
        "what the lost claim would have started is void: {performed:?}"
    );
}

pub(super) async fn what_was_handed_to_a_dead_process_is_due_when_its_worker_is_back(
    store: Arc<dyn Store>,
) {
    let world = World::on(store).await;
    world.queued("auth-api").await;
    world.claim_one().await;
    let lost = take(&world, LONG).await;
    assert_eq!(take(&world, LONG).await, [], "it is being performed");
    world
        .store
        .register_worker(world.worker, "oak".into(), 4_712, "0.1.0".into())
        .await
        .expect("registers");
    let again = take(&world, LONG).await;
    assert_eq!(verbs(&again), verbs(&lost));
}

pub(super) async fn an_effect_comes_again_until_it_is_done(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("auth-api").await;
    world.claim_one().await;
    let first = take(&world, SPENT).await;
    assert_eq!(verbs(&first), ["prepare_worktree"]);
    let again = take(&world, LONG).await;
    assert_eq!(again[0].effect.key, first[0].effect.key, "the same key");
    assert_eq!(again[0].attempt, 2);
    assert_eq!(take(&world, LONG).await, [], "it is being performed");
    world.store.finish_effect(&again[0]).await.expect("reports");
    world
        .store
        .finish_effect(&again[0])
        .await
        .expect("reporting twice is reporting once");
    assert_eq!(take(&world, LONG).await, []);
}

pub(super) async fn a_late_performer_is_told(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("auth-api").await;
    world.claim_one().await;
    let late = take(&world, SPENT).await.remove(0);
    let current = take(&world, LONG).await.remove(0);
    let refused = world.store.finish_effect(&late).await;
    assert!(
        matches!(refused, Err(StoreError::Stale { .. })),
        "{refused:?}"
    );
    world.store.finish_effect(&current).await.expect("reports");
}

pub(super) async fn effects_of_a_lost_claim_are_voided(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("auth-api").await;
    world.claim_one_for(SPENT).await;
    world
        .store
        .expire_leases(Millis(0), 10, world.policy.clone())
        .await
        .expect("expires");
    let taken = take(&world, LONG).await;
    assert_eq!(verbs(&taken), ["stop_run"], "its worktree is not wanted");
}

pub(super) async fn cleaning_up_outlives_the_claim(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.working("auth-api").await;
    let reason = Note::from("no");
    world.person_says(&task, Fact::Cancelled { reason }).await;
    let pending = world.store.load_pending_effects(task.id).await;
    let pending = pending.expect("loads");
    let stop = pending
        .iter()
        .find(|effect| matches!(effect.action, Action::StopRun { .. }))
        .expect("what runs is stopped");
    assert_eq!(stop.worker, Some(world.worker), "by the one who runs it");
}

pub(super) async fn a_postponed_effect_waits(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("auth-api").await;
    world.claim_one().await;
    let effect = take(&world, LONG).await.remove(0);
    world
        .store
        .postpone_effect(&effect, LONG, Note::from("disk busy"))
        .await
        .expect("postpones");
    assert_eq!(take(&world, LONG).await, []);
    world
        .store
        .postpone_effect(&effect, Millis(0), Note::from("disk busy"))
        .await
        .expect("the same handing-out may say so again");
    assert_eq!(take(&world, LONG).await.len(), 1);
}

pub(super) async fn who_sleeps_until_something_is_due_misses_nothing(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let due = Due::Work(world.worker);
    let next = || async { world.store.next_due(due).await.expect("reads") };
    assert_eq!(next().await, None);
    let can_claim = || async {
        let claimable = world.store.has_claimable(world.project);
        claimable.await.expect("reads")
    };
    assert!(!can_claim().await);
    world.queued("auth-api").await;
    assert_eq!(next().await, Some(Millis(0)));
    assert!(can_claim().await);
    world.claim_one().await;
    assert!(!can_claim().await);
    // Its worktree is to be made.
    assert_eq!(next().await, Some(Millis(0)));
    let taken = take(&world, LONG).await;
    let wait = next().await.expect("it comes again");
    assert!(wait > Millis(0) && wait <= LONG, "{wait}");
    for effect in &taken {
        world.store.finish_effect(effect).await.expect("is done");
    }
    assert_eq!(next().await, None);
}

pub(super) async fn effects_go_to_whom_they_are_addressed(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    world.queued("auth-api").await;
    world.claim_one().await;
    let other = world.as_other_worker();
    assert_eq!(take(&other, LONG).await, []);
    assert_eq!(take(&world, LONG).await.len(), 1);
}
