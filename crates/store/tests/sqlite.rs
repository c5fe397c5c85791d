//! What is SQLite's own: one daemon a file, files that are not what they should be, torn logs,
//! group commit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use woodward_core::TaskSpec;
use woodward_store::exercise::World;
use woodward_store::{SqliteOptions, SqliteStore, Store, StoreError, TaskFilter, raw_sql};

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("woodward.db");
    (directory, path)
}

fn shared() -> SqliteOptions {
    SqliteOptions {
        exclusive: false,
        ..SqliteOptions::default()
    }
}

async fn names(store: &dyn Store) -> Vec<String> {
    let tasks = store.load_tasks(TaskFilter::default()).await;
    let mut names: Vec<String> = tasks
        .expect("loads")
        .iter()
        .map(|task| task.name.to_string())
        .collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_second_daemon_is_refused_and_told_who_is_there() {
    let (_directory, path) = place();
    let first = SqliteStore::open(&path).expect("opens");
    let refused = SqliteStore::open(&path).expect_err("is in use");
    let own = std::process::id().to_string();
    assert!(
        matches!(&refused, StoreError::InUse { pid, .. } if *pid == own),
        "{refused}"
    );
    assert!(
        refused
            .hint()
            .expect("a hint")
            .to_string()
            .contains("woodward down")
    );
    drop(first);
    SqliteStore::open(&path).expect("is free again");
}

#[tokio::test]
async fn a_look_from_outside_does_not_disturb_the_daemon() {
    let (_directory, path) = place();
    let daemon = SqliteStore::open(&path).expect("opens");
    let world = World::on(Arc::new(daemon)).await;
    let task = world.queued("auth-api").await;
    let outside = SqliteStore::open_with(&path, shared()).expect("may look");
    assert_eq!(outside.load_task(task.id).await.expect("reads"), Some(task));
    world.queued("other").await;
    assert_eq!(names(&outside).await, ["auth-api", "other"]);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let (_directory, path) = place();
    let garbage = b"dear diary, today I learnt about file formats".repeat(40);
    std::fs::write(&path, &garbage).expect("writes");
    let refused = SqliteStore::open(&path).expect_err("is no database");
    assert!(
        matches!(
            refused,
            StoreError::Corrupt {
                what: "database",
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(std::fs::read(&path).expect("reads"), garbage);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_named() {
    let refused = SqliteStore::open(Path::new("/no/such/folder/woodward.db"));
    let refused = refused.expect_err("there is none");
    assert!(refused.to_string().contains("/no/such/folder"), "{refused}");
}

/// Each operation of a group keeps its own fate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_fails_takes_nobody_along() {
    let (_directory, path) = place();
    let world = World::on(Arc::new(SqliteStore::open(&path).expect("opens"))).await;
    world.queued("taken").await;
    let creators: Vec<_> = (0..200)
        .map(|n| {
            let world = world.clone();
            // A batch that fails at its second task has written its first by then.
            tokio::spawn(async move {
                if n % 2 == 0 {
                    world.queued(&format!("good-{n}")).await;
                    return;
                }
                let spec = TaskSpec::default();
                let refused = world.create_two(&format!("bad-{n}"), "taken", spec).await;
                assert!(matches!(refused, Err(StoreError::NameTaken { .. })));
            })
        })
        .collect();
    for creator in creators {
        creator.await.expect("no panic");
    }
    let names = names(world.store.as_ref()).await;
    assert_eq!(names.len(), 101);
    assert!(
        names.iter().all(|name| !name.starts_with("bad")),
        "{names:?}"
    );
}

/// Whatever a power cut left of the last frames, the database opens with a prefix of what was
/// written, and each transition is whole or absent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_log_opens_with_a_prefix() {
    const TASKS: usize = 12;
    let (directory, path) = place();
    let world = World::on(Arc::new(SqliteStore::open(&path).expect("opens"))).await;
    for n in 0..TASKS {
        world.queued(&format!("task-{n:02}")).await;
    }
    let wal = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
    let log = std::fs::read(wal(&path)).expect("the log is there");
    let copy = directory.path().join("copy.db");
    let mut last = TASKS;
    for cut in [0, 1, 23, 24, 100, 4_095, 4_120, 9_000, 20_000, 60_000] {
        std::fs::copy(&path, &copy).expect("copies");
        let _ = std::fs::remove_file(format!("{}-shm", copy.display()));
        std::fs::write(wal(&copy), &log[..log.len().saturating_sub(cut)]).expect("writes");
        let opened = SqliteStore::open_with(&copy, shared()).expect("opens what is left");
        let names = names(&opened).await;
        let expected: Vec<String> = (0..names.len()).map(|n| format!("task-{n:02}")).collect();
        assert_eq!(names, expected, "a prefix, {cut} bytes short");
        assert!(names.len() <= last, "less log, not more tasks");
        last = names.len();
        for task in opened
            .load_tasks(TaskFilter::default())
            .await
            .expect("loads")
        {
            let history = opened
                .load_history(task.id)
                .await
                .expect("its event is there");
            assert_eq!(history.len(), 1);
            let prompt = opened.load_messages(task.id).await.expect("loads");
            assert_eq!(prompt.len(), 1);
        }
        drop(opened);
    }
    assert!(last < TASKS, "the longest cut loses something");
}

#[tokio::test]
async fn a_claim_reads_the_line_from_its_index() {
    let (_directory, path) = place();
    let world = World::on(Arc::new(SqliteStore::open(&path).expect("opens"))).await;
    world.queued("auth-api").await;
    let connection = rusqlite::Connection::open(&path).expect("opens");
    connection
        .create_scalar_function(
            "now_ms",
            0,
            rusqlite::functions::FunctionFlags::SQLITE_UTF8,
            |_| Ok(0_i64),
        )
        .expect("registers");
    let plan = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {}", raw_sql::SQLITE_PICK))
        .expect("prepares")
        .query_map(rusqlite::params![[0_u8; 16], 1, 1], |row| row.get(3))
        .expect("explains")
        .collect::<rusqlite::Result<Vec<String>>>()
        .expect("reads");
    assert_eq!(plan.len(), 1, "no sorting step: {plan:?}");
    assert!(plan[0].contains("USING INDEX tasks_claim"), "{plan:?}");
}

#[tokio::test]
async fn every_commit_is_durable_before_it_is_acknowledged() {
    let (_directory, path) = place();
    let world = World::on(Arc::new(SqliteStore::open(&path).expect("opens"))).await;
    let mode: String = rusqlite::Connection::open(&path)
        .expect("opens")
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .expect("reads");
    assert_eq!(mode, "wal");
    let before = std::fs::metadata(format!("{}-wal", path.display()))
        .expect("there is a log")
        .len();
    world.queued("auth-api").await;
    let after = std::fs::metadata(format!("{}-wal", path.display()))
        .expect("there is a log")
        .len();
    assert!(after > before, "the answer came after the write");
}
