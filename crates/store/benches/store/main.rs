//! Claim+complete pairs a second, next to the raw limit of the same SQL, in one run.
//!
//! Ours and the raw loop, with a small and with a large backlog, take turns in short slices, so that a
//! noisy disk hits all alike; what counts is the ratio. A claimed task is handed back, so the backlog
//! stays as large as it was. `cargo xtask bench store [--quick] [--sqlite | --postgres]`.

mod clients;
mod raw_postgres;
mod raw_sqlite;
mod report;
mod seed;

use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Runtime;
use woodward_store::{PostgresOptions, PostgresStore, SqliteStore, Store};
use woodward_testkit::postgres::{PgServer, Profile};

use report::{Line, Report};
use seed::World;

const BACKLOGS: [usize; 2] = [1_000, 100_000];
const SQLITE_CLIENTS: [usize; 3] = [1, 16, 64];
const POSTGRES_CLIENTS: [usize; 3] = [1, 4, 16];

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` would run this too; it is no test.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    let asked = |flag: &str| std::env::args().any(|arg| arg == flag);
    let timing = if asked("--quick") {
        Timing {
            slices: 3,
            slice: Duration::from_secs(1),
        }
    } else {
        Timing {
            slices: 7,
            slice: Duration::from_secs(2),
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut report = Report::default();
    report.heading(timing);
    if !asked("--postgres") {
        for clients in SQLITE_CLIENTS {
            let arenas = BACKLOGS.map(|backlog| SqliteArena::new(&runtime, backlog));
            report.add_all(measure("SQLite", arenas, &runtime, clients, timing)?);
        }
    }
    if !asked("--sqlite") {
        let server = PgServer::start(Profile::Bench)?;
        for clients in POSTGRES_CLIENTS {
            let arenas =
                BACKLOGS.map(|backlog| PostgresArena::new(&runtime, &server, backlog, clients));
            report.add_all(measure("PostgreSQL", arenas, &runtime, clients, timing)?);
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

/// A database for the store and one for the raw loop, with the same backlog.
trait Arena {
    type Store: Store + Clone;

    fn ours(&self) -> (Self::Store, World);

    fn raw(&mut self, clients: usize, slice: Duration) -> anyhow::Result<(u64, Duration)>;
}

/// Takes turns: ours and raw, small and large backlog, slice by slice, so that whatever the machine
/// does meanwhile hits all alike.
fn measure<A: Arena>(
    database: &'static str,
    arenas: [anyhow::Result<A>; 2],
    runtime: &Runtime,
    clients: usize,
    timing: Timing,
) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (arena, backlog) in arenas.into_iter().zip(BACKLOGS) {
        lines.push((arena?, Line::new(database, backlog, clients)));
    }
    for _ in 0..timing.slices {
        for (arena, line) in &mut lines {
            let (store, world) = arena.ours();
            let slice = runtime.block_on(clients::run(store, &world, clients, timing.slice))?;
            line.ours(slice.pairs, slice.elapsed);
            line.latencies(slice.claims);
            let (pairs, elapsed) = arena.raw(clients, timing.slice)?;
            line.raw(pairs, elapsed);
        }
    }
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

struct SqliteArena {
    store: SqliteStore,
    world: World,
    bare: raw_sqlite::Bare,
    /// The files go when this goes.
    _directory: tempfile::TempDir,
}

impl SqliteArena {
    fn new(runtime: &Runtime, backlog: usize) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let ours = directory.path().join("ours.db");
        let raw = directory.path().join("raw.db");
        let world = runtime.block_on(seed::template(SqliteStore::open(&ours)?))?;
        seed::fill_sqlite(&ours, backlog)?;
        std::fs::copy(&ours, &raw).context("the raw loop gets the same data")?;
        Ok(Self {
            bare: raw_sqlite::Bare::open(&raw, world.project)?,
            store: SqliteStore::open(&ours)?,
            world,
            _directory: directory,
        })
    }
}

impl Arena for SqliteArena {
    type Store = SqliteStore;

    fn ours(&self) -> (SqliteStore, World) {
        (self.store.clone(), self.world)
    }

    fn raw(&mut self, clients: usize, slice: Duration) -> anyhow::Result<(u64, Duration)> {
        self.bare.run(clients, slice)
    }
}

struct PostgresArena {
    store: PostgresStore,
    world: World,
    bare: raw_postgres::Bare,
}

impl PostgresArena {
    fn new(
        runtime: &Runtime,
        server: &PgServer,
        backlog: usize,
        clients: usize,
    ) -> anyhow::Result<Self> {
        let [ours, raw] = [server.create_database()?, server.create_database()?];
        let options = PostgresOptions {
            connections: clients,
            ..PostgresOptions::default()
        };
        let store = runtime.block_on(PostgresStore::connect_with(&ours, options))?;
        let world = runtime.block_on(seed::template(store.clone()))?;
        let other = runtime
            .block_on(async { seed::template(PostgresStore::connect(&raw).await?).await })?;
        for url in [&ours, &raw] {
            seed::fill_postgres(server, url, backlog)?;
        }
        Ok(Self {
            bare: raw_postgres::Bare::new(server, &raw, other.project)?,
            store,
            world,
        })
    }
}

impl Arena for PostgresArena {
    type Store = PostgresStore;

    fn ours(&self) -> (PostgresStore, World) {
        (self.store.clone(), self.world)
    }

    fn raw(&mut self, clients: usize, slice: Duration) -> anyhow::Result<(u64, Duration)> {
        self.bare.run(clients, slice)
    }
}
