//! Every earlier schema's real data is carried forward, and a newer one is refused untouched.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use woodward_core::step::replay;
use woodward_core::{EventSeq, Millis, StateKind, Task, WorkerId};
use woodward_store::{
    EntryFilter, EntryKind, EntryState, LogEntry, PostgresStore, Retention, SCHEMA_VERSION,
    SqliteStore, Store, StoreError, TaskFilter,
};
use woodward_testkit::postgres::PgAccess;

fn fixture(database: &str, version: i64) -> String {
    let path: PathBuf = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo tells"))
        .join("fixtures")
        .join(format!("{database}-v{version}.sql"));
    std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; cargo xtask fixtures", path.display()))
}

fn server() -> &'static PgAccess {
    PgAccess::shared().expect("the server starts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_earlier_sqlite_schema_comes_forward_with_its_data() {
    for version in 1..=SCHEMA_VERSION {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("woodward.db");
        let connection = rusqlite::Connection::open(&path).expect("opens");
        connection
            .execute_batch(&fixture("sqlite", version))
            .expect("the fixture is SQL");
        drop(connection);
        let store = SqliteStore::open(&path).expect("migrates");
        everything_is_there(Arc::new(store), version).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_earlier_postgres_schema_comes_forward_with_its_data() {
    for version in 1..=SCHEMA_VERSION {
        let url = server().create_database().expect("creates");
        load(&url, &fixture("postgres", version)).await;
        let store = PostgresStore::connect(&url).await.expect("migrates");
        everything_is_there(Arc::new(store), version).await;
    }
}

/// The data means what it meant, and work goes on with it.
async fn everything_is_there(store: Arc<dyn Store>, version: i64) {
    let filter = TaskFilter::default();
    let tasks = store.load_tasks(filter.clone()).await.expect("loads");
    let kinds: std::collections::BTreeSet<StateKind> =
        tasks.iter().map(|task| task.state.kind()).collect();
    assert_eq!(kinds.len(), StateKind::ALL.len(), "{kinds:?}");
    for task in &tasks {
        let history = store.load_history(task.id).await.expect("loads");
        let replayed = replay(history.iter().map(|(event, policy)| (event, policy)));
        assert_eq!(replayed.expect("applies").as_ref(), Some(task));
    }
    let by_name = |name: &str| -> &Task {
        tasks
            .iter()
            .find(|task| task.name.as_str() == name)
            .unwrap_or_else(|| panic!("no {name}"))
    };
    let log = store.events_after(EventSeq(0), 1_000).await.expect("reads");
    let of_tasks = log
        .events
        .iter()
        .filter(|logged| matches!(logged.entry, LogEntry::Task { .. }));
    let versions: u64 = tasks.iter().map(|task| task.version.0).sum();
    assert_eq!(of_tasks.count() as u64, versions, "every event is there");

    let working = by_name("working");
    assert_eq!(store.load_runs(working.id).await.expect("loads").len(), 1);
    let results = store.load_gate_results(working.id).await.expect("loads");
    assert_eq!(results.len(), 1);
    let project = working.project;
    let queue = store.load_queue(project).await.expect("loads");
    assert_eq!(queue.len(), 1);
    assert_eq!(queue[0].entry.task, by_name("landing").id);
    let leases = store.load_leases(None).await.expect("loads");
    let held = tasks.iter().filter(|task| task.holder.is_some()).count();
    assert_eq!(leases.len(), held + 1, "the tasks' and the landing right");
    let prompt = store.load_messages(by_name("queued").id).await;
    assert!(prompt.expect("loads")[0].body.contains("日本"));
    assert_eq!(store.load_workers().await.expect("loads").len(), 1);

    let cursor = store.load_cursor("reactions".into()).await.expect("loads");
    assert_eq!(cursor, (version >= 3).then_some(EventSeq(7)));
    for kind in EntryKind::ALL {
        let entries = store.load_entries(EntryFilter::of(kind)).await;
        let expected = if version >= 3 {
            EntryState::ALL.len()
        } else {
            0
        };
        assert_eq!(entries.expect("loads").len(), expected);
    }

    let worker = working.holder.expect("is held");
    let effects = perform_all(store.as_ref(), worker).await;
    assert!(effects > 0, "what was due is still due");
    store.retain(Retention::default()).await.expect("passes");
    let left = store.load_tasks(filter).await.expect("loads");
    let finished = |task: &&Task| task.state.kind().is_finished();
    assert_eq!(
        left.iter().filter(finished).count(),
        0,
        "what finished in 1970 is archived"
    );
}

async fn perform_all(store: &dyn Store, worker: WorkerId) -> usize {
    let mut performed = 0;
    loop {
        let taken = store.take_effects(worker, 100, Millis(60_000)).await;
        let taken = taken.expect("hands out");
        if taken.is_empty() {
            return performed;
        }
        for effect in &taken {
            store.finish_effect(effect).await.expect("reports");
            performed += 1;
        }
    }
}

async fn load(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .expect("connects");
    let driver = tokio::spawn(connection);
    client.batch_execute(sql).await.expect("the SQL runs");
    drop(client);
    driver.await.expect("no panic").expect("ends well");
}

#[tokio::test]
async fn an_older_binary_refuses_a_newer_sqlite_database_and_leaves_it_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("woodward.db");
    drop(SqliteStore::open(&path).expect("opens"));
    let newer = SCHEMA_VERSION + 1;
    let connection = rusqlite::Connection::open(&path).expect("opens");
    connection
        .pragma_update(None, "user_version", newer)
        .expect("writes");
    drop(connection);
    let refused = SqliteStore::open(&path).expect_err("is newer");
    assert_newer(&refused);
    let connection = rusqlite::Connection::open(&path).expect("opens");
    let version: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .expect("reads");
    assert_eq!(version, newer);
}

#[tokio::test]
async fn an_older_binary_refuses_a_newer_postgres_database_and_leaves_it_alone() {
    let url = server().create_database().expect("creates");
    drop(PostgresStore::connect(&url).await.expect("migrates"));
    let newer = SCHEMA_VERSION + 1;
    let sql = format!("INSERT INTO schema_version (version) VALUES ({newer})");
    load(&url, &sql).await;
    let refused = PostgresStore::connect(&url).await.expect_err("is newer");
    assert_newer(&refused);
}

fn assert_newer(refused: &StoreError) {
    assert!(
        matches!(refused, StoreError::NewerSchema { found, known } if found > known),
        "{refused}"
    );
    let text = refused.to_string();
    assert!(text.contains(&SCHEMA_VERSION.to_string()), "{text}");
    let hint = refused.hint().expect("says what to do").to_string();
    assert!(hint.contains("newer woodward"), "{hint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_open_a_fresh_postgres_database_at_once() {
    let url = server().create_database().expect("creates");
    let openers: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { PostgresStore::connect(&url).await.map(drop) })
        })
        .collect();
    for opener in openers {
        opener.await.expect("no panic").expect("migrates or waits");
    }
}
