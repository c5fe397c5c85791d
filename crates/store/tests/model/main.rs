//! The real stores against the reference model that the simulation uses.
//!
//! Random sequences of operations, stale and doubled ones among them, are done on a store and on the
//! model. Each must be accepted by both or by neither, claims must go to the same tasks, and after
//! every step both must have the same tasks, the same log and the same leases. So what the
//! simulation proves of the model holds for the stores.

mod pair;
mod steps;

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use woodward_store::{PostgresStore, SqliteStore, Store};
use woodward_testkit::postgres::PgAccess;

use pair::Pair;
use steps::Step;

/// Runs `cases` random sequences, each on a fresh store.
fn compare(cases: u32, fresh: impl Fn(&tokio::runtime::Runtime) -> (Arc<dyn Store>, Keep)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let sequences = prop::collection::vec(steps::any_step(), 10..60);
    let outcome = runner.run(&sequences, |sequence| {
        let (store, _keep) = fresh(&runtime);
        runtime
            .block_on(play(store, &sequence))
            .map_err(TestCaseError::fail)
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// What must live as long as a store.
type Keep = Option<tempfile::TempDir>;

async fn play(store: Arc<dyn Store>, sequence: &[Step]) -> Result<(), String> {
    let mut pair = Pair::on(store).await;
    for (number, step) in sequence.iter().enumerate() {
        pair.take(step)
            .await
            .and(pair.compare().await)
            .map_err(|difference| format!("step {number}, {step:?}: {difference}"))?;
    }
    Ok(())
}

#[test]
fn sqlite_does_what_the_model_does() {
    compare(150, |_| {
        let directory = tempfile::tempdir().expect("a directory");
        let store = SqliteStore::open(&directory.path().join("woodward.db")).expect("opens");
        (Arc::new(store), Some(directory))
    });
}

#[test]
fn postgres_does_what_the_model_does() {
    let server = PgAccess::shared().expect("the server starts");
    compare(40, |runtime| {
        let url = server.create_database().expect("creates");
        let store = runtime.block_on(PostgresStore::connect(&url));
        (Arc::new(store.expect("connects")), None)
    });
}

/// The sequences are worth something only if they reach deep: over many of them, every state is
/// visited and writes are refused.
#[test]
fn random_sequences_reach_everything() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    let mut refused = 0;
    for _ in 0..60 {
        let sequence = prop::collection::vec(steps::any_step(), 60)
            .new_tree(&mut runner)
            .expect("generates")
            .current();
        let directory = tempfile::tempdir().expect("a directory");
        let store = SqliteStore::open(&directory.path().join("woodward.db")).expect("opens");
        runtime.block_on(async {
            let mut pair = Pair::on(Arc::new(store)).await;
            for step in &sequence {
                pair.take(step).await.expect("agree");
                seen.extend(pair.kinds());
            }
            refused += pair.refused;
        });
    }
    let missing: Vec<_> = woodward_core::StateKind::ALL
        .iter()
        .filter(|kind| !seen.contains(kind))
        .collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
    assert!(refused > 100, "only {refused} writes were refused");
}
