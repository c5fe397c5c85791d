//! The log.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use woodward_core::{EventId, EventSeq};

use super::world::World;
use crate::records::{LogEntry, LoggedEvent};
use crate::store::Store;

fn id(logged: &LoggedEvent) -> EventId {
    match &logged.entry {
        LogEntry::Task { event, .. } => event.id,
        LogEntry::Retention(_) => panic!("no retention here"),
    }
}

pub(super) async fn a_reader_resumes_without_missing_or_repeating(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    for n in 0..7 {
        world.queued(&format!("task-{n}")).await;
    }
    let all = world.store.events_after(EventSeq(0), 100).await;
    let all = all.expect("reads");
    assert_eq!(all.events.len(), 7);
    let mut paged = Vec::new();
    let mut from = EventSeq(0);
    loop {
        let page = world.store.events_after(from, 3).await.expect("reads");
        if page.events.is_empty() {
            assert_eq!(page.next, from);
            break;
        }
        from = page.next;
        paged.extend(page.events);
    }
    assert_eq!(paged, all.events);
    assert!(paged.windows(2).all(|pair| pair[0].seq < pair[1].seq));
}

pub(super) async fn readers_beside_many_writers_miss_nothing(store: Arc<dyn Store>) {
    const WRITERS: usize = 6;
    const EACH: usize = 25;
    let world = World::on(store).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let world = world.clone();
            tokio::spawn(async move {
                for n in 0..EACH {
                    world.queued(&format!("task-{writer}-{n}")).await;
                }
            })
        })
        .collect();
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move {
                let mut wakeups = world
                    .store
                    .wakeups()
                    .polling_every(Duration::from_millis(20));
                let mut seen = Vec::new();
                let mut from = EventSeq(0);
                while seen.len() < WRITERS * EACH {
                    let page = world.store.events_after(from, 10).await.expect("reads");
                    from = page.next;
                    if page.events.is_empty() {
                        wakeups.next().await;
                    }
                    seen.extend(page.events.iter().map(id));
                }
                seen
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("writes");
    }
    let log = world.store.events_after(EventSeq(0), 1_000).await;
    let all: BTreeSet<EventId> = log.expect("reads").events.iter().map(id).collect();
    for reader in readers {
        let seen = tokio::time::timeout(Duration::from_secs(30), reader)
            .await
            .expect("a reader that misses an event never ends")
            .expect("reads");
        assert_eq!(seen.len(), all.len(), "nothing twice");
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), all);
    }
}

pub(super) async fn an_empty_log_stays_where_it_is(store: Arc<dyn Store>) {
    let page = store.events_after(EventSeq(41), 10).await.expect("reads");
    assert_eq!((page.events.len(), page.next), (0, EventSeq(41)));
}

pub(super) async fn writers_wake_readers(store: Arc<dyn Store>) {
    let world = World::on(store).await;
    let mut wakeups = world.store.wakeups().polling_every(Duration::from_secs(60));
    // What was written before counts as seen once it has been waited for.
    while tokio::time::timeout(Duration::ZERO, wakeups.next())
        .await
        .is_ok()
    {}
    let writer = {
        let world = world.clone();
        tokio::spawn(async move { world.queued("auth-api").await })
    };
    let told = tokio::time::timeout(Duration::from_secs(20), wakeups.next()).await;
    assert_eq!(told, Ok(true), "told, not polled");
    writer.await.expect("writes");
}
