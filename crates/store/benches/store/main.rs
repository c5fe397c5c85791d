//! Claim+complete pairs a second, next to the raw limit of the same SQL, in one run.
//!
//! Ours and the raw loop take turns in short slices, so that a noisy disk hits both alike; what
//! counts is the ratio. A claimed task is handed back, so the backlog stays as large as it was.
//! `cargo xtask bench store [--quick]`.

mod clients;
mod raw_postgres;
mod raw_sqlite;
mod report;
mod seed;

use std::time::Duration;

use anyhow::Context;
use woodward_store::{PostgresOptions, PostgresStore, SqliteStore};
use woodward_testkit::postgres::{PgServer, Profile};

use report::{Line, Report};

const BACKLOGS: [usize; 2] = [1_000, 100_000];
const SQLITE_CLIENTS: [usize; 3] = [1, 16, 64];
const POSTGRES_CLIENTS: [usize; 3] = [1, 4, 16];

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` would run this too; it is no test.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let quick = std::env::args().any(|arg| arg == "--quick");
    let timing = Timing {
        slices: if quick { 2 } else { 5 },
        slice: Duration::from_millis(if quick { 500 } else { 1_500 }),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut report = Report::default();
    report.heading(timing);
    for backlog in BACKLOGS {
        for clients in SQLITE_CLIENTS {
            report.add(sqlite(&runtime, backlog, clients, timing)?);
        }
    }
    let server = PgServer::start(Profile::Bench)?;
    for backlog in BACKLOGS {
        for clients in POSTGRES_CLIENTS {
            report.add(postgres(&runtime, &server, backlog, clients, timing)?);
        }
    }
    report.verdict();
    Ok(())
}

/// How long is measured.
#[derive(Clone, Copy, Debug)]
struct Timing {
    slices: usize,
    slice: Duration,
}

fn sqlite(
    runtime: &tokio::runtime::Runtime,
    backlog: usize,
    clients: usize,
    timing: Timing,
) -> anyhow::Result<Line> {
    let directory = tempfile::tempdir()?;
    let ours = directory.path().join("ours.db");
    let raw = directory.path().join("raw.db");
    let world = {
        let _open = runtime.enter();
        let store = SqliteStore::open(&ours)?;
        runtime.block_on(seed::template(store))?
    };
    seed::fill_sqlite(&ours, backlog)?;
    std::fs::copy(&ours, &raw).context("the raw loop gets the same data")?;
    let mut line = Line::new("SQLite", backlog, clients);
    let mut bare = raw_sqlite::Bare::open(&raw, world.project)?;
    let store = SqliteStore::open(&ours)?;
    for _ in 0..timing.slices {
        let slice = runtime.block_on(clients::run(store.clone(), &world, clients, timing.slice))?;
        line.ours(slice.pairs, slice.elapsed);
        line.latencies(slice.claims);
        let (pairs, elapsed) = bare.run(clients, timing.slice)?;
        line.raw(pairs, elapsed);
    }
    Ok(line)
}

fn postgres(
    runtime: &tokio::runtime::Runtime,
    server: &PgServer,
    backlog: usize,
    clients: usize,
    timing: Timing,
) -> anyhow::Result<Line> {
    let [ours, raw] = [server.create_database()?, server.create_database()?];
    let options = PostgresOptions {
        connections: clients,
        ..PostgresOptions::default()
    };
    let mut line = Line::new("PostgreSQL", backlog, clients);
    let store = runtime.block_on(PostgresStore::connect_with(&ours, options))?;
    let world = runtime.block_on(seed::template(store.clone()))?;
    let other = {
        let store = runtime.block_on(PostgresStore::connect(&raw))?;
        runtime.block_on(seed::template(store))?
    };
    for url in [&ours, &raw] {
        seed::fill_postgres(server, url, backlog)?;
    }
    let bare = raw_postgres::Bare::new(server, &raw, other.project)?;
    for _ in 0..timing.slices {
        let slice = runtime.block_on(clients::run(store.clone(), &world, clients, timing.slice))?;
        line.ours(slice.pairs, slice.elapsed);
        line.latencies(slice.claims);
        let (pairs, elapsed) = bare.run(clients, timing.slice)?;
        line.raw(pairs, elapsed);
    }
    Ok(line)
}
