//! The merge queue and the journal of landings.

use std::sync::Arc;

use woodward_core::landing::IntentState;
use woodward_core::lease::Lease;
use woodward_core::{Epoch, Fact, Note, State, StateKind, Task, TaskSpec, Timestamp};

use super::world::{World, earlier, failing};
use crate::error::StoreError;
use crate::records::LeaseRef;
use crate::store::Store;

async fn queue_of(world: &World) -> Vec<woodward_core::TaskId> {
    let queue = world.store.load_queue(world.project).await.expect("loads");
    queue.iter().map(|queued| queued.entry.task).collect()
}

pub(super) async fn an_approved_task_is_in_the_queue_and_a_landed_one_is_not(
    store: Arc<dyn Store>,
) {
    let world = World::on(store).await;
    let task = world.in_review("auth-api").await;
    assert_eq!(queue_of(&world).await, []);
    let task = world.approve(&task).await;
    let queue = world.store.load_queue(world.project).await.expect("loads");
    assert_eq!(queue[0].entry.commit, super::world::commit_of(&task));
    assert_eq!(queue[0].entry.epoch, task.epoch);
    assert_eq!(queue[0].entry.branch, "main");
    world.land(&task).await;
    assert_eq!(queue_of(&world).await, []);
    assert_eq!(world.state_of(&task).await, StateKind::Landed);
}

pub(super) async fn the_queue_is_in_order_and_holds(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.landing("first").await;
    let second = world.landing("second").await;
    let urgent = TaskSpec {
        priority: 5,
        ..TaskSpec::default()
    };
    world.queued_as("urgent", urgent).await;
    let claimed = world.claim_one().await;
    let urgent = world.to_review(&claimed).await;
    let urgent = world.approve(&urgent).await;
    assert_eq!(queue_of(&world).await, [urgent.id, first.id, second.id]);

    let reason = Note::from("main.rs is being edited");
    world
        .store
        .hold_entry(first.id, Some(reason.clone()))
        .await
        .expect("holds");
    let queue = world.store.load_queue(world.project).await.expect("loads");
    assert_eq!(queue[1].hold, Some(reason));
    world
        .store
        .hold_entry(first.id, None)
        .await
        .expect("lets go");
    let cancelled = Note::from("no");
    world
        .person_says(&second, Fact::Cancelled { reason: cancelled })
        .await;
    assert_eq!(queue_of(&world).await, [urgent.id, first.id]);
    let unknown = world.store.hold_entry(second.id, None).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

pub(super) async fn people_order_the_queue(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.landing("first").await;
    world.store.bump_entry(first.id).await.expect("is alone");
    let second = world.landing("second").await;
    let third = world.landing("third").await;
    let store = &world.store;
    store.bump_entry(third.id).await.expect("bumps");
    let expected = [third.id, first.id, second.id];
    assert_eq!(queue_of(&world).await, expected);
    store.bump_entry(third.id).await.expect("is first already");
    store.bump_entry(second.id).await.expect("bumps");
    assert_eq!(queue_of(&world).await, [second.id, third.id, first.id]);

    let why = Note::from("after the release");
    let stop = store.stop_entry(third.id, Some(why.clone())).await;
    stop.expect("stops");
    let queue = store.load_queue(world.project).await.expect("loads");
    assert_eq!(
        (&queue[1].stopped, &queue[1].hold),
        (&Some(why.clone()), &None)
    );
    store.stop_entry(third.id, None).await.expect("lets go");
    let queue = store.load_queue(world.project).await.expect("loads");
    assert_eq!(queue[1].stopped, None);

    let freeze = |reason: Option<&str>| {
        let freeze = reason.map(|reason| (Note::from(reason), Timestamp(7)));
        store.set_freeze(world.project, "main".to_owned(), freeze)
    };
    freeze(Some("release")).await.expect("freezes");
    freeze(Some("a longer release")).await.expect("freezes");
    let frozen = store.load_freezes(world.project).await.expect("loads");
    assert_eq!(frozen.len(), 1);
    assert_eq!(frozen[0].reason, Note::from("a longer release"));
    assert_eq!(
        (frozen[0].branch.as_str(), frozen[0].at),
        ("main", Timestamp(7))
    );
    freeze(None).await.expect("thaws");
    freeze(None).await.expect("thaws twice");
    let frozen = store.load_freezes(world.project).await.expect("loads");
    assert!(frozen.is_empty());

    world
        .person_says(&first, Fact::Cancelled { reason: why })
        .await;
    for gone in [
        store.bump_entry(first.id).await,
        store.stop_entry(first.id, None).await,
    ] {
        assert!(matches!(gone, Err(StoreError::NotFound { .. })));
    }
}

pub(super) async fn who_was_told_to_wait_does_not_land(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.landing("first").await;
    let second = world.landing("second").await;
    let right = world.landing_right().await;
    let store = &world.store;
    let try_both = || store.open_intent(world.intent(&right, &[&first, &second]));
    let why = Some(Note::from("not today"));
    store.stop_entry(second.id, why).await.expect("stops");
    let refused = try_both().await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
    store.stop_entry(second.id, None).await.expect("lets go");
    let freeze = Some((Note::from("release"), Timestamp(7)));
    let frozen = store.set_freeze(world.project, "main".to_owned(), freeze);
    frozen.await.expect("freezes");
    let refused = try_both().await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
    let thawed = store.set_freeze(world.project, "main".to_owned(), None);
    thawed.await.expect("thaws");
    assert_eq!(world.reload(&first).await, first);
    try_both().await.expect("opens");
}

pub(super) async fn one_unfinished_landing_a_branch(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.landing("first").await;
    let second = world.landing("second").await;
    let right = world.landing_right().await;
    let open = world.intent(&right, &[&first]);
    let id = open.intent.id;
    world.store.open_intent(open.clone()).await.expect("opens");
    world
        .store
        .open_intent(open)
        .await
        .expect("opening it twice is opening it once");
    let refused = world
        .store
        .open_intent(world.intent(&right, &[&second]))
        .await
        .expect_err("one at a time");
    assert!(
        matches!(refused, StoreError::IntentPending { intent, .. } if intent == id),
        "{refused}"
    );
    assert_eq!(world.reload(&second).await, second);
    let pending = world.store.load_pending_intents(world.project).await;
    assert_eq!(pending.expect("loads")[0].id, id);
    let State::Landing { intent, .. } = world.reload(&first).await.state else {
        panic!("is landing");
    };
    assert_eq!(intent.expect("is on record").id, id);
}

pub(super) async fn an_intent_without_the_landing_right_changes_nothing(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.landing("auth-api").await;
    let right = world.landing_right().await;
    // A second start of the same lander: the first one's right is stale now.
    let current = world.landing_right().await;
    assert_eq!(right.epoch, earlier(current.epoch));
    let refused = world
        .store
        .open_intent(world.intent(&right, &[&task]))
        .await;
    assert!(
        matches!(refused, Err(StoreError::Stale { .. })),
        "{refused:?}"
    );
    let thief = Lease {
        holder: super::world::new_worker(),
        epoch: Epoch(current.epoch.0),
        ..current.clone()
    };
    let refused = world
        .store
        .open_intent(world.intent(&thief, &[&task]))
        .await;
    assert!(
        matches!(refused, Err(StoreError::Stale { .. })),
        "{refused:?}"
    );
    assert_eq!(world.reload(&task).await, task);

    let open = world.intent(&current, &[&task]);
    let id = open.intent.id;
    world.store.open_intent(open).await.expect("opens");
    let late = world.closing(&right, id, IntentState::Landed);
    let refused = world.store.close_intent(late).await;
    assert!(
        matches!(refused, Err(StoreError::Stale { .. })),
        "{refused:?}"
    );
    assert_eq!(world.state_of(&task).await, StateKind::Landing);
}

pub(super) async fn tasks_that_land_together_have_a_commit_each(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.landing("auth-api").await;
    let second = world.landing("billing").await;
    let right = world.landing_right().await;
    let open = world.intent(&right, &[&first, &second]);
    let id = open.intent.id;
    let own: Vec<_> = open.members.iter().map(|it| it.result.clone()).collect();
    assert_ne!(own[0], own[1]);
    world.store.open_intent(open).await.expect("opens");
    let close = world.closing(&right, id, IntentState::Landed);
    world.store.close_intent(close).await.expect("closes");
    for (task, commit) in [first, second].iter().zip(own) {
        let landed = State::Landed { commit, intent: id };
        assert_eq!(world.reload(task).await.state, landed);
    }
}

pub(super) async fn closing_an_intent_twice_is_closing_it_once(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.landing("auth-api").await;
    let right = world.landing_right().await;
    let open = world.intent(&right, &[&task]);
    let id = open.intent.id;
    world.store.open_intent(open).await.expect("opens");
    for _ in 0..2 {
        let close = world.closing(&right, id, IntentState::Landed);
        world.store.close_intent(close).await.expect("closes");
    }
    let landed = world.reload(&task).await;
    assert_eq!(landed.state.kind(), StateKind::Landed);
    let history = world.store.load_history(task.id).await.expect("loads");
    let landings = history
        .iter()
        .filter(|(event, _)| matches!(event.fact, Fact::Landed { .. }))
        .count();
    assert_eq!(landings, 1);
    let recorded = world.store.load_intent(id).await.expect("loads");
    assert_eq!(recorded.expect("is on record").state, IntentState::Landed);
    let other = world.closing(&right, id, IntentState::Void);
    let refused = world.store.close_intent(other).await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
}

pub(super) async fn a_void_intent_leaves_its_tasks_in_the_queue(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.landing("auth-api").await;
    let right = world.landing_right().await;
    let open = world.intent(&right, &[&task]);
    let id = open.intent.id;
    world.store.open_intent(open).await.expect("opens");
    let close = world.closing(&right, id, IntentState::Void);
    world.store.close_intent(close).await.expect("closes");
    assert_eq!(queue_of(&world).await, [task.id]);
    let task = world.reload(&task).await;
    let mut again = world.intent(&right, &[&task]);
    again.intent.id = id;
    let refused = world.store.open_intent(again).await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "what is settled is not begun again: {refused:?}"
    );
    world.land(&task).await;
    assert_eq!(world.state_of(&task).await, StateKind::Landed);
}

pub(super) async fn an_intent_is_all_or_none(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let first = world.landing("first").await;
    let second = world.landing("second").await;
    let reason = Note::from("no");
    world.person_says(&second, Fact::Cancelled { reason }).await;
    let right = world.landing_right().await;
    // `second` is given as it was before it was cancelled.
    let members: [&Task; 2] = [&first, &second];
    let refused = world
        .store
        .open_intent(world.intent(&right, &members))
        .await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
    assert_eq!(world.reload(&first).await, first);
    let pending = world.store.load_pending_intents(world.project).await;
    assert_eq!(pending.expect("loads"), []);
}

pub(super) async fn what_gates_said_of_a_merged_tree_is_kept_with_all_in_it(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let tasks = [world.landing("one").await, world.landing("two").await];
    let late = world.landing_right().await;
    let right = world.landing_right().await;
    let mut result = failing("b".repeat(40).parse().expect("40 hex digits"));
    result.detail.merged = true;
    let save = |right: &Lease| {
        let lease = LeaseRef {
            resource: right.resource.clone(),
            epoch: right.epoch,
        };
        let ids = tasks.iter().map(|task| task.id).collect();
        let results = vec![result.clone()];
        world
            .store
            .save_merged_results(right.holder, lease, ids, results)
    };
    let refused = save(&late).await;
    assert!(
        matches!(refused, Err(StoreError::Stale { .. })),
        "{refused:?}"
    );
    let kept = async |task: &Task| world.store.load_gate_results(task.id).await;
    assert_eq!(kept(&tasks[0]).await.expect("loads"), []);
    for _ in 0..2 {
        save(&right).await.expect("saves");
    }
    for task in &tasks {
        let kept = kept(task).await.expect("loads");
        assert_eq!(kept, std::slice::from_ref(&result), "once");
        assert_eq!(world.reload(task).await, *task, "nothing else changes");
    }
}
