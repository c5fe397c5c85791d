//! A backlog: one task made by the store itself, then copies of its row.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use rusqlite::Connection;
use uuid::Uuid;
use woodward_core::{Actor, EventId, MessageId, ProjectId, TaskId, TaskSpec, Timestamp, WorkerId};
use woodward_store::{CreateTask, CreateTasks, NewMessage, Project, Store, fresh_uuid};
use woodward_testkit::postgres::PgServer;

/// What the clients need to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) project: ProjectId,
    pub(crate) worker: WorkerId,
}

/// Makes the project and its first task.
pub(crate) async fn template(store: impl Store) -> anyhow::Result<World> {
    let project = Project {
        id: ProjectId::new(fresh_uuid()),
        name: "bench".parse()?,
        root: "/src/bench".into(),
        created_at: Timestamp(1),
    };
    let project = store.save_project(project).await?.id;
    let task = CreateTask {
        id: TaskId::new(fresh_uuid()),
        event: EventId::new(fresh_uuid()),
        project,
        name: "template".parse()?,
        spec: TaskSpec::default(),
        prompt: Some(NewMessage {
            id: MessageId::new(fresh_uuid()),
            body: "do it".into(),
        }),
        idempotency_key: None,
    };
    let tasks = CreateTasks {
        tasks: vec![task],
        actor: Actor::Person("bench".into()),
        at: Timestamp(1),
    };
    store.create_tasks(tasks).await?;
    Ok(World {
        project,
        worker: WorkerId::new(fresh_uuid()),
    })
}

/// Copies the template until there are `count` tasks.
pub(crate) fn fill_sqlite(path: &Path, count: usize) -> anyhow::Result<()> {
    let mut connection = Connection::open(path)?;
    let (template, doc): (Vec<u8>, String) =
        connection.query_row("SELECT id, doc FROM tasks", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let original = Uuid::from_slice(&template)?.to_string();
    let transaction = connection.transaction()?;
    {
        let mut copy = transaction.prepare(
            "INSERT INTO tasks SELECT ?1, project, ?2, NULL, epoch, version, state, fresh,
                 claim_key, run_at, holder, ?3, updated_at FROM tasks WHERE id = ?4",
        )?;
        for n in 1..count {
            let id = fresh_uuid();
            let name = format!("task-{n}");
            let doc = doc
                .replace(&original, &id.to_string())
                .replace("template", &name);
            copy.execute((id.as_bytes().as_slice(), name, doc, &template))?;
        }
    }
    transaction.commit()?;
    connection.execute_batch("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

/// The same on PostgreSQL, in one statement.
pub(crate) fn fill_postgres(server: &PgServer, url: &str, count: usize) -> anyhow::Result<()> {
    let sql = format!(
        "INSERT INTO tasks SELECT new.id, project, 'task-' || new.n, NULL, epoch, version, state,
             fresh, claim_key, run_at, holder,
             replace(replace(doc, tasks.id::text, new.id::text), 'template', 'task-' || new.n),
             updated_at
         FROM tasks, (SELECT gen_random_uuid() AS id, n FROM generate_series(1, {}) AS n) AS new
         WHERE name = 'template'",
        count - 1
    );
    for sql in [sql.as_str(), "VACUUM ANALYZE", "CHECKPOINT"] {
        let done = Command::new(server.bin("psql"))
            .args(["-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql])
            .status()?;
        ensure!(done.success(), "psql could not run: {sql}");
    }
    Ok(())
}
