//! The ledger: once for each piece of evidence.

use std::sync::Arc;

use serde_json::json;
use woodward_core::{EventSeq, Fact, Millis, Note, Task};

use super::world::{LONG, SPENT, World};
use crate::error::StoreError;
use crate::records::{
    CursorMove, ENTRIES_MAX, ENTRY_BYTES_MAX, ENTRY_KEY_BYTES_MAX, EntryFilter, EntryKind,
    EntryState, NewEntry, RecordEntries, Retention, TakenEntry,
};
use crate::store::Store;

const CURSOR: &str = "reactions";

fn entry(world: &World, key: &str) -> NewEntry {
    NewEntry {
        key: key.into(),
        kind: EntryKind::Reaction,
        project: world.project,
        task: None,
        state: EntryState::Pending,
        wait: Millis(0),
        doc: json!({ "said": "'quoted' \"text\" with ümlauts; \u{0} and 日本" }),
    }
}

fn of_task(world: &World, task: &Task, key: &str) -> NewEntry {
    NewEntry {
        task: Some(task.id),
        ..entry(world, key)
    }
}

async fn record(world: &World, entries: Vec<NewEntry>) -> Vec<String> {
    let record = RecordEntries {
        entries,
        ..RecordEntries::default()
    };
    world.store.record_entries(record).await.expect("records")
}

async fn take(world: &World, length: Millis) -> Vec<TakenEntry> {
    world
        .store
        .take_entries(world.worker, EntryKind::Reaction, 10, length)
        .await
        .expect("hands out")
}

fn step(from: Option<u64>, to: u64) -> CursorMove {
    CursorMove {
        name: CURSOR.into(),
        from: from.map(EventSeq),
        to: EventSeq(to),
    }
}

async fn keys(world: &World, filter: EntryFilter) -> Vec<String> {
    let entries = world.store.load_entries(filter).await.expect("loads");
    entries.into_iter().map(|entry| entry.key).collect()
}

pub(super) async fn the_same_evidence_is_recorded_once(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let asked = || vec![entry(&world, "a"), entry(&world, "b")];
    assert_eq!(record(&world, asked()).await, ["a", "b"]);
    let mut more = asked();
    more[0].doc = json!("something else");
    more.push(entry(&world, "c"));
    assert_eq!(record(&world, more).await, ["c"], "only what is new");
    let kept = world.store.load_entry("a".into()).await.expect("loads");
    assert_eq!(kept.expect("exists").doc, asked()[0].doc, "the first stays");
    assert_eq!(
        world.store.load_entry("d".into()).await.expect("loads"),
        None
    );
    assert_eq!(take(&world, LONG).await.len(), 3);
}

pub(super) async fn many_recorders_of_one_evidence_record_it_once(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let recorders: Vec<_> = (0..16)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move { record(&world, vec![entry(&world, "a")]).await.len() })
        })
        .collect();
    let mut new = 0;
    for recorder in recorders {
        new += recorder.await.expect("no panic");
    }
    assert_eq!(new, 1);
    assert_eq!(take(&world, LONG).await.len(), 1);
}

pub(super) async fn a_cursor_moves_only_from_where_it_was(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let cursor = || world.store.load_cursor(CURSOR.into());
    assert_eq!(cursor().await.expect("loads"), None, "it never began");
    let go = |cursor, key: &str| {
        world.store.record_entries(RecordEntries {
            cursor: Some(cursor),
            entries: vec![entry(&world, key)],
            close: Vec::new(),
        })
    };
    let refused = go(step(Some(0), 5), "no").await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
    assert_eq!(go(step(None, 0), "a").await.expect("begins"), ["a"]);
    assert_eq!(cursor().await.expect("loads"), Some(EventSeq(0)));
    assert_eq!(go(step(Some(0), 5), "b").await.expect("goes on"), ["b"]);
    for late in [step(None, 9), step(Some(0), 9)] {
        let refused = go(late, "no").await;
        assert!(
            matches!(refused, Err(StoreError::Conflict { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(cursor().await.expect("loads"), Some(EventSeq(5)));
    let reactions = EntryFilter::of(EntryKind::Reaction);
    assert_eq!(keys(&world, reactions).await, ["b", "a"], "and no `no`");
}

pub(super) async fn an_entry_comes_again_until_it_is_over(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    record(&world, vec![entry(&world, "a")]).await;
    let late = take(&world, SPENT).await.remove(0);
    let current = take(&world, LONG).await.remove(0);
    assert_eq!((late.attempt, current.attempt), (1, 2));
    assert_eq!(take(&world, LONG).await, [], "it is being performed");
    let refused = world
        .store
        .finish_entry(&late, EntryState::Done, None)
        .await;
    assert!(
        matches!(refused, Err(StoreError::Stale { .. })),
        "{refused:?}"
    );
    for _ in 0..2 {
        world
            .store
            .finish_entry(&current, EntryState::Done, Some(json!({ "sent": true })))
            .await
            .expect("reporting twice is reporting once");
    }
    let refused = world
        .store
        .finish_entry(&current, EntryState::Dropped, None)
        .await;
    assert!(refused.is_err(), "it is done, not dropped");
    let refused = world.store.postpone_entry(&current, LONG, None).await;
    assert!(refused.is_err(), "what is over does not come again");
    let entry = world.store.load_entry("a".into()).await.expect("loads");
    let entry = entry.expect("exists");
    assert_eq!(entry.state, EntryState::Done);
    assert_eq!(entry.doc, json!({ "sent": true }));
    assert!(entry.finished_at.is_some());
    assert_eq!(take(&world, LONG).await, []);
}

pub(super) async fn a_postponed_entry_waits_and_keeps_its_record(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let mut later = entry(&world, "later");
    later.wait = LONG;
    record(&world, vec![entry(&world, "a"), later]).await;
    let mut taken = take(&world, LONG).await;
    assert_eq!(taken.len(), 1, "what waits from the start is not due");
    let taken = taken.remove(0);
    let store = &world.store;
    let note = json!({ "error": "not reachable" });
    store
        .postpone_entry(&taken, LONG, Some(note.clone()))
        .await
        .expect("postpones");
    assert_eq!(take(&world, LONG).await, []);
    store
        .postpone_entry(&taken, Millis(0), None)
        .await
        .expect("the same handing-out may say so again");
    let again = take(&world, LONG).await.remove(0);
    assert_eq!(again.attempt, 2);
    assert_eq!(again.entry.doc, note, "what it said stays");
}

pub(super) async fn entries_of_a_dead_process_are_due_when_its_worker_is_back(
    store: Arc<dyn Store>,
) {
    let world = World::on(store).await;
    let other = world.as_other_worker();
    let mut waiting = entry(&world, "waiting");
    waiting.wait = LONG;
    record(&world, vec![entry(&world, "a"), waiting]).await;
    assert_eq!(take(&world, LONG).await.len(), 1);
    let register = |worker| {
        world
            .store
            .register_worker(worker, "oak".into(), 4_712, "0.1.0".into())
    };
    register(other.worker).await.expect("registers");
    assert_eq!(take(&other, LONG).await, [], "somebody else is back");
    register(world.worker).await.expect("registers");
    let due = take(&other, LONG).await;
    assert_eq!(due.len(), 1, "and what has to wait still waits");
    assert_eq!(due[0].attempt, 2);
}

pub(super) async fn entries_of_a_kind_come_to_those_who_perform_it(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let entries = EntryKind::ALL.map(|kind| NewEntry {
        kind,
        ..entry(&world, kind.as_str())
    });
    record(&world, entries.to_vec()).await;
    for kind in EntryKind::ALL {
        let taken = world.store.take_entries(world.worker, kind, 10, LONG).await;
        let taken = taken.expect("hands out");
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].entry.key, kind.as_str());
        assert_eq!(keys(&world, EntryFilter::of(kind)).await, [kind.as_str()]);
    }
}

pub(super) async fn what_is_dropped_or_closed_is_kept_and_not_handed_out(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let mut dropped = entry(&world, "dropped");
    dropped.state = EntryState::Dropped;
    record(&world, vec![dropped, entry(&world, "remark")]).await;
    let record = RecordEntries {
        close: vec!["remark".into(), "unknown".into()],
        ..RecordEntries::default()
    };
    world.store.record_entries(record).await.expect("closes");
    assert_eq!(take(&world, LONG).await, []);
    for (key, state) in [
        ("dropped", EntryState::Dropped),
        ("remark", EntryState::Done),
    ] {
        let entry = world.store.load_entry(key.into()).await.expect("loads");
        let entry = entry.expect("is kept");
        assert_eq!(entry.state, state);
        assert!(entry.finished_at.is_some());
    }
}

pub(super) async fn entries_are_filtered_and_paged(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let task = world.queued("auth-api").await;
    let mut entries: Vec<NewEntry> = (0..5)
        .map(|n| of_task(&world, &task, &format!("task/{n}")))
        .collect();
    entries[1].state = EntryState::Dropped;
    entries.push(entry(&world, "project"));
    record(&world, entries).await;

    let all = EntryFilter::of(EntryKind::Reaction);
    let of_task = EntryFilter {
        task: Some(task.id),
        ..all.clone()
    };
    let newest_first = ["task/4", "task/3", "task/2", "task/1", "task/0"];
    assert_eq!(keys(&world, of_task.clone()).await, newest_first);
    let dropped = EntryFilter {
        state: Some(EntryState::Dropped),
        ..of_task.clone()
    };
    assert_eq!(keys(&world, dropped.clone()).await, ["task/1"]);
    let everywhere = EntryFilter {
        task: None,
        ..dropped
    };
    assert_eq!(keys(&world, everywhere).await, ["task/1"]);
    let of_project = EntryFilter {
        project: Some(world.project),
        ..all.clone()
    };
    assert_eq!(keys(&world, of_project).await.len(), 6);
    let elsewhere = EntryFilter {
        project: Some(woodward_core::ProjectId::new(crate::ids::fresh_uuid())),
        ..of_task.clone()
    };
    assert_eq!(keys(&world, elsewhere).await.len(), 0);

    let mut paged = Vec::new();
    let mut before = None;
    loop {
        let page = EntryFilter {
            before,
            limit: Some(2),
            ..of_task.clone()
        };
        let page = world.store.load_entries(page).await.expect("loads");
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        assert!(page.len() <= 2);
        paged.extend(page.into_iter().map(|entry| entry.key));
    }
    assert_eq!(paged, newest_first);
}

pub(super) async fn an_oversized_entry_is_refused(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let mut large = entry(&world, "large");
    large.doc = json!("x".repeat(ENTRY_BYTES_MAX));
    let long_key = entry(&world, &"k".repeat(ENTRY_KEY_BYTES_MAX + 1));
    let many = (0..=ENTRIES_MAX)
        .map(|n| entry(&world, &n.to_string()))
        .collect();
    for entries in [vec![large], vec![long_key], many] {
        let record = RecordEntries {
            entries,
            ..RecordEntries::default()
        };
        let refused = world.store.record_entries(record).await;
        assert!(
            matches!(refused, Err(StoreError::TooLarge { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(take(&world, LONG).await, []);
}

pub(super) async fn only_old_entries_of_finished_work_are_removed(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let open = world.queued("open").await;
    let finished = world.queued("finished").await;
    let reason = Note::from("no");
    world
        .person_says(&finished, Fact::Cancelled { reason })
        .await;
    let mut entries = vec![
        of_task(&world, &open, "open"),
        of_task(&world, &finished, "finished"),
        entry(&world, "project"),
    ];
    for entry in &mut entries {
        entry.state = EntryState::Dropped;
    }
    entries.push(of_task(&world, &finished, "due"));
    record(&world, entries).await;
    let kept = world.store.retain(Retention::default()).await;
    assert_eq!(kept.expect("passes").entries_removed, 0, "nothing is old");
    let policy = Retention {
        finished_entries: Millis(0),
        ..Retention::default()
    };
    let report = world.store.retain(policy).await.expect("passes");
    assert_eq!(report.entries_removed, 2);
    assert!(!report.is_empty(), "it is said in the log");
    let left = keys(&world, EntryFilter::of(EntryKind::Reaction)).await;
    assert_eq!(left, ["due", "open"]);
}
