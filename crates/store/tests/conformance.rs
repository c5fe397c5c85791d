//! Runs the conformance suite unchanged on both databases.

use std::path::PathBuf;
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use woodward_store::exercise::{CASES, Case};
use woodward_store::{PostgresStore, SqliteStore, Store};
use woodward_testkit::postgres::PgAccess;

fn main() {
    let args = Arguments::from_args();
    let trials = CASES
        .iter()
        .flat_map(|case| {
            [
                Trial::test(format!("sqlite::{}", case.name), || on_sqlite(*case)),
                Trial::test(format!("postgres::{}", case.name), || on_postgres(*case)),
            ]
        })
        .collect();
    libtest_mimic::run(&args, trials).exit();
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts")
        .block_on(future);
}

fn on_sqlite(case: Case) -> Result<(), libtest_mimic::Failed> {
    let directory = tempfile::tempdir()?;
    let path: PathBuf = directory.path().join("woodward.db");
    block_on(async {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).expect("opens"));
        (case.run)(store).await;
    });
    Ok(())
}

fn on_postgres(case: Case) -> Result<(), libtest_mimic::Failed> {
    let url = PgAccess::shared()?.create_database()?;
    block_on(async {
        let store = PostgresStore::connect(&url).await.expect("connects");
        let store: Arc<dyn Store> = Arc::new(store);
        (case.run)(store).await;
    });
    Ok(())
}
