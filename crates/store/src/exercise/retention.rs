//! Retention.

use std::sync::Arc;

use woodward_core::step::replay;
use woodward_core::{EventSeq, Fact, Millis, Note, StateKind, Task, TaskSpec};

use super::world::{LONG, World};
use crate::error::StoreError;
use crate::records::{LogEntry, Retention, TaskFilter};
use crate::store::Store;

/// Everything is old at once.
const NOTHING_KEPT: Retention = Retention {
    finished_tasks: Millis(0),
    performed_effects: Millis(0),
    archived_events: Millis(0),
    finished_entries: Millis(0),
    gate_verdicts: Millis(0),
    logs: Millis(0),
};

async fn perform_all(world: &World) {
    loop {
        let taken = world.store.take_effects(world.worker, 50, LONG).await;
        let taken = taken.expect("hands out");
        if taken.is_empty() {
            break;
        }
        for effect in &taken {
            world.store.finish_effect(effect).await.expect("reports");
        }
    }
}

async fn cancelled(world: &World, name: &str) -> Task {
    let task = world.queued(name).await;
    let reason = Note::from("no");
    world.person_says(&task, Fact::Cancelled { reason }).await
}

pub(super) async fn finished_tasks_are_archived_and_still_found(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let finished = cancelled(&world, "finished").await;
    let open = world.queued("open").await;
    let policy = Retention {
        finished_tasks: Millis(0),
        ..Retention::default()
    };
    let report = world.store.retain(policy).await.expect("passes");
    assert_eq!(report.tasks_archived, 0, "its effects are still due");
    perform_all(&world).await;
    let report = world.store.retain(policy).await.expect("passes");
    assert_eq!(report.tasks_archived, 1);

    let hot = world.store.load_tasks(TaskFilter::default()).await;
    assert_eq!(hot.expect("loads"), std::slice::from_ref(&open));
    assert_eq!(world.reload(&finished).await, finished);
    let found = world
        .store
        .find_task(world.project, finished.name.clone())
        .await;
    assert_eq!(found.expect("finds"), Some(finished.clone()));
    let history = world.store.load_history(finished.id).await.expect("loads");
    let replayed = replay(history.iter().map(|(event, policy)| (event, policy)));
    assert_eq!(replayed.expect("applies"), Some(finished.clone()));
    // A task that comes after an archived one still learns what became of it.
    let spec = TaskSpec {
        after: vec![finished.id],
        ..TaskSpec::default()
    };
    let later = world.queued_as("later", spec).await;
    assert_eq!(later.blockers.len(), 1);
    let event = world.event(super::world::person(), Fact::Retried);
    let refused = world
        .store
        .advance(finished.id, event, world.policy.clone())
        .await;
    assert!(
        matches!(refused, Err(StoreError::NotFound { .. })),
        "an archived task is history: {refused:?}"
    );
}

pub(super) async fn retention_is_never_silent(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    cancelled(&world, "finished").await;
    perform_all(&world).await;
    let before = world.store.events_after(EventSeq(0), 100).await;
    let before = before.expect("reads").next;
    let report = world.store.retain(NOTHING_KEPT).await.expect("passes");
    assert!(report.tasks_archived == 1 && report.effects_removed > 0);
    let log = world.store.events_after(before, 100).await.expect("reads");
    let said: Vec<_> = log
        .events
        .iter()
        .map(|logged| match &logged.entry {
            LogEntry::Retention(report) => *report,
            LogEntry::Task { .. } => panic!("only retention wrote"),
        })
        .collect();
    assert_eq!(said, [report]);
    let idle = world.store.retain(NOTHING_KEPT).await.expect("passes");
    assert!(
        idle.is_empty(),
        "nothing left to do, nothing to say: {idle:?}"
    );
    let after = world.store.events_after(log.next, 100).await;
    assert_eq!(after.expect("reads").events, []);
}

pub(super) async fn open_tasks_and_their_events_are_never_removed(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let open = world.in_review("open").await;
    let failed = world.queued("failed").await;
    perform_all(&world).await;
    world.store.retain(NOTHING_KEPT).await.expect("passes");
    for task in [&open, &failed] {
        let history = world.store.load_history(task.id).await.expect("loads");
        let replayed = replay(history.iter().map(|(event, policy)| (event, policy)));
        assert_eq!(replayed.expect("applies"), Some(world.reload(task).await));
    }
    assert_eq!(world.state_of(&open).await, StateKind::Review);
}

pub(super) async fn a_key_of_an_archived_task_still_makes_one_task(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let asked = || {
        let mut asked = world.asked("auth-api", TaskSpec::default());
        asked.idempotency_key = Some("issue-7".into());
        asked
    };
    let created = world.try_create(vec![asked()]).await.expect("creates");
    let reason = Note::from("no");
    world
        .person_says(&created[0].task, Fact::Cancelled { reason })
        .await;
    perform_all(&world).await;
    world.store.retain(NOTHING_KEPT).await.expect("passes");
    let again = world.try_create(vec![asked()]).await.expect("finds");
    assert!(again[0].existed);
    assert_eq!(again[0].task.id, created[0].task.id);
}
