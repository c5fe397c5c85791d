//! What is PostgreSQL's own: lost answers, lost servers, commits out of order, plans.

mod proxy;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::{Client, NoTls};
use woodward_core::{Actor, Event, EventId, EventSeq, Fact, Roll, StateKind, Timestamp};
use woodward_store::exercise::{World, holder};
use woodward_store::{
    PostgresOptions, PostgresStore, Store, StoreError, TaskFilter, fresh_uuid, raw_sql,
};
use woodward_testkit::postgres::{PgAccess, PgServer, Profile};

use proxy::{Cut, Proxy};

/// How long the log may take to show an event, and how often it is read until then.
const LOG_MAX: Duration = Duration::from_secs(60);
const LOG_PAUSE: Duration = Duration::from_millis(5);

fn server() -> &'static PgAccess {
    PgAccess::shared().expect("the server starts")
}

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connects");
    tokio::spawn(connection);
    client
}

/// A store behind a proxy, with one task in line.
async fn behind_proxy() -> (Proxy, World) {
    let url = server().create_database().expect("creates");
    let proxy = Proxy::start(server().port()).await;
    let store = PostgresStore::connect(&proxy.url(&url))
        .await
        .expect("connects");
    let world = World::on(Arc::new(store)).await;
    world.queued("auth-api").await;
    world.queued("other").await;
    (proxy, world)
}

async fn claims_in_log(world: &World) -> usize {
    let log = world.store.events_after(EventSeq(0), 100).await;
    let events = log.expect("reads").events;
    let entries = events.iter().map(|logged| format!("{:?}", logged.entry));
    entries.filter(|entry| entry.contains("Claimed")).count()
}

/// The claims of all tasks, whether or not the log shows them yet: it shows an event when no older
/// transaction of the server is open, and the one that was cut may be, as may be those of other tests.
async fn claims_in_histories(world: &World) -> usize {
    let tasks = world.store.load_tasks(TaskFilter::default()).await;
    let mut claims = 0;
    for task in tasks.expect("reads") {
        let history = world.store.load_history(task.id).await.expect("reads");
        let entries = history.iter().map(|event| format!("{event:?}"));
        claims += entries.filter(|event| event.contains("Claimed")).count();
    }
    claims
}

/// The first claim of a process also stores its policy and commits on its own; later ones send their
/// commit along with the write. Both must survive.
async fn a_claim_survives(cut: Cut) {
    for claims_before in [0, 1] {
        let (proxy, world) = behind_proxy().await;
        for _ in 0..claims_before {
            world.claim_one().await;
        }
        proxy.cut(cut);
        let claimed = world.claim_one().await;
        assert!(proxy.has_cut(), "something was really lost");
        let claims = claims_before + 1;
        assert_eq!(claims_in_histories(&world).await, claims, "once");
        let in_log = async {
            while claims_in_log(&world).await < claims {
                tokio::time::sleep(LOG_PAUSE).await;
            }
        };
        let shown = tokio::time::timeout(LOG_MAX, in_log).await;
        shown.expect("the log shows them");
        assert_eq!(claims_in_log(&world).await, claims, "once");
        assert_eq!(world.reload(&claimed).await, claimed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_answer_was_lost_is_found_again() {
    a_claim_survives(Cut::AnswerTo("COMMIT")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_never_arrived_is_made_once() {
    a_claim_survives(Cut::Request("COMMIT")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transition_whose_answer_was_lost_is_not_written_twice() {
    for cut in [Cut::AnswerTo("handed_back"), Cut::Request("handed_back")] {
        let (proxy, world) = behind_proxy().await;
        let claimed = world.claim_one().await;
        let event = Event {
            id: EventId::new(fresh_uuid()),
            at: Timestamp(5),
            actor: holder(&claimed),
            roll: Roll(0),
            fact: Fact::HandedBack,
        };
        proxy.cut(cut);
        let written = world.store.commit(&claimed, &event, &world.policy).await;
        let next = written.expect("looks it up, then knows").next;
        assert!(proxy.has_cut());
        assert_eq!(next.state.kind(), StateKind::Queued);
        assert_eq!(world.reload(&claimed).await, next);
        let history = world.store.load_history(claimed.id).await.expect("loads");
        assert_eq!(history.len(), 3, "created, claimed, handed back: once each");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_server_dies() {
    let mut server = tokio::task::spawn_blocking(|| PgServer::start(Profile::Test))
        .await
        .expect("no panic")
        .expect("starts");
    let url = server.create_database().expect("creates");
    let options = PostgresOptions {
        patience: Duration::from_secs(60),
        ..PostgresOptions::default()
    };
    let store = PostgresStore::connect_with(&url, options)
        .await
        .expect("connects");
    let world = World::on(Arc::new(store)).await;
    let (report, mut acknowledged) = tokio::sync::mpsc::unbounded_channel();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (world, report) = (world.clone(), report.clone());
            tokio::spawn(async move {
                for n in 0.. {
                    let task = world.queued(&format!("task-{writer}-{n}")).await;
                    if report.send(task.id).is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    drop(report);
    let mut known = BTreeSet::new();
    for _ in 0..4 {
        // Each time after some more was acknowledged, in the middle of whatever is under way.
        for _ in 0..60 {
            known.insert(acknowledged.recv().await.expect("writers go on"));
        }
        server = tokio::task::spawn_blocking(move || {
            server.stop_immediately().expect("stops");
            server.restart().expect("starts again");
            server
        })
        .await
        .expect("no panic");
    }
    acknowledged.close();
    while let Some(id) = acknowledged.recv().await {
        known.insert(id);
    }
    for writer in writers {
        writer.await.expect("no writer was refused");
    }
    let mut found = BTreeSet::new();
    loop {
        let page = world.store.load_tasks(TaskFilter {
            after: found.last().copied(),
            ..TaskFilter::default()
        });
        let page = page.await.expect("loads");
        if page.is_empty() {
            break;
        }
        found.extend(page.iter().map(|task| task.id));
    }
    assert!(known.is_subset(&found), "acknowledged and gone");
    assert!(known.len() >= 240);
}

/// Puts an event into the log in a transaction that stays open.
async fn open_event(client: &mut Client) -> tokio_postgres::Transaction<'_> {
    let transaction = client.transaction().await.expect("begins");
    write_event(&transaction).await;
    transaction
}

async fn write_event(transaction: &tokio_postgres::Transaction<'_>) {
    let report = serde_json::json!({
        "tasks_archived": 1, "effects_removed": 0, "events_removed": 0,
        "policy": woodward_store::Retention::default(),
    });
    transaction
        .execute(
            "INSERT INTO events (id, at, kind, doc) VALUES ($1, 1, 'retention', $2)",
            &[&fresh_uuid(), &report.to_string()],
        )
        .await
        .expect("writes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_commits_late_is_not_missed() {
    let url = server().create_database().expect("creates");
    let store = PostgresStore::connect(&url).await.expect("connects");
    let world = World::on(Arc::new(store)).await;
    world.queued("before").await;
    let start = world
        .store
        .events_after(EventSeq(0), 10)
        .await
        .expect("reads")
        .next;

    let mut slow = client(&url).await;
    let late = open_event(&mut slow).await;
    world.queued("after").await;
    // The later one is committed, the earlier one is not: the reader must not step over it.
    let page = world.store.events_after(start, 10).await.expect("reads");
    assert_eq!((page.events.len(), page.next), (0, start));
    let reader = {
        let store = Arc::clone(&world.store);
        tokio::spawn(async move { store.events_after(start, 10).await.expect("reads") })
    };
    late.commit().await.expect("commits");
    let page = reader.await.expect("no panic");
    let page = if page.events.is_empty() {
        world.store.events_after(start, 10).await.expect("reads")
    } else {
        page
    };
    assert_eq!(page.events.len(), 2, "both, in order");
    assert!(page.events[0].seq < page.events[1].seq);
}

/// A snapshot ends after the newest transaction that has *ended*. One that was numbered later and is
/// still open lies beyond it, and may have drawn the earlier place all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_event_is_not_missed_when_its_transaction_is_the_newest() {
    let url = server().create_database().expect("creates");
    let store = PostgresStore::connect(&url).await.expect("connects");
    let (mut first, mut second) = (client(&url).await, client(&url).await);
    let numbered_first = first.transaction().await.expect("begins");
    numbered_first
        .execute("SELECT pg_current_xact_id()", &[])
        .await
        .expect("is numbered");
    let placed_first = open_event(&mut second).await;
    write_event(&numbered_first).await;
    numbered_first.commit().await.expect("commits");

    let page = store.events_after(EventSeq(0), 10).await.expect("reads");
    assert_eq!((page.events.len(), page.next), (0, EventSeq(0)));
    placed_first.commit().await.expect("commits");
    let page = store.events_after(EventSeq(0), 10).await.expect("reads");
    assert_eq!((page.events.len(), page.next), (2, EventSeq(2)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_never_commits_holds_nobody_up() {
    let url = server().create_database().expect("creates");
    let store = PostgresStore::connect(&url).await.expect("connects");
    let world = World::on(Arc::new(store)).await;
    let mut slow = client(&url).await;
    open_event(&mut slow)
        .await
        .rollback()
        .await
        .expect("rolls back");
    world.queued("after").await;
    // Transactions of other tests on the same server may hold one answer up, but not for ever.
    let asked = async {
        loop {
            let page = world.store.events_after(EventSeq(0), 10).await;
            let page = page.expect("reads");
            if !page.events.is_empty() {
                return page;
            }
        }
    };
    let page = tokio::time::timeout(std::time::Duration::from_secs(60), asked).await;
    let page = page.expect("nobody is held up for ever");
    assert_eq!(page.events.len(), 1);
    assert_eq!(page.next, EventSeq(2), "the first place stays empty");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_by_another_process_wakes_a_reader() {
    let url = server().create_database().expect("creates");
    let here = PostgresStore::connect(&url).await.expect("connects");
    let there = PostgresStore::connect(&url).await.expect("connects");
    let mut wakeups = here.wakeups().polling_every(Duration::from_secs(2));
    let world = World::on(Arc::new(there)).await;
    // Whoever does not listen yet polls; once it listens, it is told.
    for n in 0..30 {
        world.queued(&format!("task-{n}")).await;
        if wakeups.next().await {
            return;
        }
    }
    panic!("only ever polled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_reads_the_line_from_its_index() {
    let url = server().create_database().expect("creates");
    let store = PostgresStore::connect(&url).await.expect("connects");
    let world = World::on(Arc::new(store)).await;
    world.queued("auth-api").await;
    let client = client(&url).await;
    client
        .batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        .await
        .expect("sets");
    let sql = raw_sql::POSTGRES_PICK
        .replace("$1", &format!("'{}'", world.project))
        .replace("$2", "1")
        .replace("$3", "1");
    let rows = client
        .query(&format!("EXPLAIN {sql}"), &[])
        .await
        .expect("explains");
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let picking = plan
        .iter()
        .skip_while(|line| !line.contains("CTE picked"))
        .take_while(|line| !line.contains("CTE Scan"))
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        picking.contains("Index Scan using tasks_claim"),
        "{plan:#?}"
    );
    assert!(!picking.contains("Sort"), "{plan:#?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_to_be() {
    let refused = PostgresStore::connect("host=127.0.0.1 port=1 user=nobody dbname=none")
        .await
        .expect_err("nobody listens");
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    assert!(refused.to_string().contains("refused"), "{refused}");
    assert!(
        refused
            .hint()
            .expect("a hint")
            .to_string()
            .contains("woodward doctor")
    );
    let refused = PostgresStore::connect("what=ever")
        .await
        .expect_err("nonsense");
    assert!(
        refused.to_string().contains("address is wrong"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_of_a_person_who_is_no_holder_is_refused_on_the_wire_too() {
    let (_proxy, world) = behind_proxy().await;
    let claimed = world.claim_one().await;
    let event = Event {
        id: EventId::new(fresh_uuid()),
        at: Timestamp(5),
        actor: Actor::Person("mallory".into()),
        roll: Roll(0),
        fact: Fact::HandedBack,
    };
    let refused = world.store.commit(&claimed, &event, &world.policy).await;
    assert!(
        matches!(refused, Err(StoreError::Illegal(_))),
        "{refused:?}"
    );
}
