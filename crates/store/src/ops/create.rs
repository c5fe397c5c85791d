//! Creating tasks, all or none.
//!
//! A key given twice makes one task. What a task comes after is looked at under lock, so that a
//! dependency that lands at this very moment is either seen as landed or will tell this task.

use std::collections::BTreeMap;

use woodward_core::graph::find_cycle;
use woodward_core::step::create;
use woodward_core::task::Blocker;
use woodward_core::{Event, Fact, NewTask, Policy, Roll, Task, TaskId, TaskName, Transition};

use crate::conn::{Conn, Op, Param};
use crate::error::{Result, StoreError};
use crate::ops::messages;
use crate::ops::tasks;
use crate::ops::write::{Columns, EventRow, INSERT_EVENT, locking};
use crate::policies::NamedPolicy;
use crate::records::{CREATE_MAX, CreateTask, CreateTasks, Created};

/// Creates tasks together.
#[derive(Debug)]
pub(crate) struct Create(pub(crate) CreateTasks);

impl CreateTasks {
    /// Checks what needs no database: the size of the batch and its cycles.
    ///
    /// # Errors
    /// When the batch or a prompt is too large, or tasks would wait for each other.
    pub fn check(&self) -> Result<()> {
        let batch = &self.tasks;
        if batch.len() > CREATE_MAX {
            return Err(StoreError::TooLarge {
                what: "the list of tasks",
                size: batch.len(),
                max: CREATE_MAX,
            });
        }
        for prompt in batch.iter().filter_map(|task| task.prompt.as_ref()) {
            messages::check(prompt)?;
        }
        let after: BTreeMap<TaskId, Vec<TaskId>> = batch
            .iter()
            .map(|task| (task.id, task.spec.after.clone()))
            .collect();
        let Some(cycle) = find_cycle(&after) else {
            return Ok(());
        };
        let names: BTreeMap<TaskId, &TaskName> =
            batch.iter().map(|task| (task.id, &task.name)).collect();
        Err(StoreError::Cycle {
            names: cycle
                .iter()
                .filter_map(|id| names.get(id).copied().cloned())
                .collect(),
        })
    }
}

impl Op for Create {
    type Out = Vec<Created>;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Created>> {
        // Creation asks no policy; its event names the default one.
        let policy = NamedPolicy::new(Policy::default());
        policy.save(conn).await?;

        // A task whose key was used before keeps the id it got then; others of the batch may come
        // after it.
        let mut made: BTreeMap<TaskId, Task> = BTreeMap::new();
        let mut created = Vec::with_capacity(self.0.tasks.len());
        let mut waiting: Vec<&CreateTask> = self.0.tasks.iter().collect();
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut later = Vec::new();
            for task in waiting {
                let batch_mate_missing = task.spec.after.iter().any(|on| {
                    !made.contains_key(on) && self.0.tasks.iter().any(|other| other.id == *on)
                });
                if batch_mate_missing {
                    later.push(task);
                    continue;
                }
                let done = self.create_one(conn, task, &made, &policy).await?;
                made.insert(task.id, done.task.clone());
                created.push((task.id, done));
            }
            debug_assert!(later.len() < before, "cycles are refused before");
            waiting = later;
        }
        // Answer in the order of the question.
        let mut by_id: BTreeMap<TaskId, Created> = created.into_iter().collect();
        Ok(self
            .0
            .tasks
            .iter()
            .filter_map(|task| by_id.remove(&task.id))
            .collect())
    }
}

impl Create {
    async fn create_one<C: Conn>(
        &self,
        conn: &mut C,
        asked: &CreateTask,
        made: &BTreeMap<TaskId, Task>,
        policy: &NamedPolicy,
    ) -> Result<Created> {
        if let Some(task) = made_before(conn, asked).await? {
            return Ok(Created {
                task,
                existed: true,
            });
        }
        let mut spec = asked.spec.clone();
        let mut blockers = BTreeMap::new();
        for on in &mut spec.after {
            let other = match made.get(on) {
                Some(task) => task.clone(),
                None => require_dependency(conn, *on).await?,
            };
            *on = other.id;
            if let Some(standing) = other.standing() {
                let as_of = other.version;
                blockers.insert(other.id, Blocker { standing, as_of });
            }
        }
        let new = NewTask {
            id: asked.id,
            project: asked.project,
            name: asked.name.clone(),
            spec,
            prompted: asked.prompt.is_some(),
            blockers,
        };
        let event = Event {
            id: asked.event,
            at: self.0.at,
            actor: self.0.actor.clone(),
            roll: Roll(0),
            fact: Fact::Created(new.clone()),
        };
        let Transition { next, .. } = create(&new, &event);
        if !insert(conn, asked, &next, &EventRow::of(&event, policy)).await? {
            // Either a concurrent call with the same key was first, or an open task has the name.
            return match made_before(conn, asked).await? {
                Some(task) => Ok(Created {
                    task,
                    existed: true,
                }),
                None => Err(StoreError::NameTaken {
                    name: asked.name.clone(),
                }),
            };
        }
        if let Some(prompt) = &asked.prompt {
            messages::insert(conn, next.id, &self.0.actor, self.0.at, prompt).await?;
        }
        Ok(Created {
            task: next,
            existed: false,
        })
    }
}

/// A task that another comes after; it can't change until the transaction ends.
async fn require_dependency<C: Conn>(conn: &mut C, on: TaskId) -> Result<Task> {
    let hot = locking::<C>(
        "SELECT doc FROM tasks WHERE id = $1",
        "SELECT doc FROM tasks WHERE id = $1 FOR SHARE",
    );
    for sql in [hot, "SELECT doc FROM tasks_archive WHERE id = $1"] {
        if let Some(row) = conn.query(sql, &[on.into()]).await?.first() {
            return tasks::read(row, 0);
        }
    }
    Err(tasks::not_found(on))
}

/// The task that an earlier call with the same key or the same id made.
async fn made_before<C: Conn>(conn: &mut C, asked: &CreateTask) -> Result<Option<Task>> {
    let rows = conn
        .query(
            "SELECT doc FROM tasks WHERE id = $1 OR (project = $2 AND create_key = $3)
             UNION ALL
             SELECT doc FROM tasks_archive WHERE id = $1 OR (project = $2 AND create_key = $3)
             LIMIT 1",
            &[
                asked.id.into(),
                asked.project.into(),
                Param::opt_text(asked.idempotency_key.as_deref()),
            ],
        )
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let task = tasks::read(row, 0)?;
    match &asked.idempotency_key {
        Some(key) if task.name != asked.name => Err(StoreError::KeyReused {
            key: key.clone(),
            name: task.name,
        }),
        _ => Ok(Some(task)),
    }
}

async fn insert<C: Conn>(
    conn: &mut C,
    asked: &CreateTask,
    task: &Task,
    event: &EventRow,
) -> Result<bool> {
    let columns = Columns::of(task);
    let inserted = conn
        .execute(
            "INSERT INTO tasks (id, project, name, create_key, epoch, version, state, fresh,
                 claim_key, run_at, holder, doc, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, $11, $12)
             ON CONFLICT DO NOTHING",
            &[
                task.id.into(),
                task.project.into(),
                Param::Text(task.name.as_str()),
                Param::opt_text(asked.idempotency_key.as_deref()),
                columns.epoch.into(),
                columns.version.into(),
                columns.state.into(),
                Param::Int(columns.fresh),
                Param::opt_int(columns.claim_key),
                columns.run_at.into(),
                (&columns.doc).into(),
                event.at.into(),
            ],
        )
        .await?;
    if inserted == 0 {
        return Ok(false);
    }
    conn.execute(
        INSERT_EVENT,
        &[
            event.id.into(),
            task.project.into(),
            task.id.into(),
            task.version.into(),
            event.at.into(),
            event.kind.into(),
            (&event.policy).into(),
            (&event.doc).into(),
        ],
    )
    .await?;
    for on in &task.spec.after {
        conn.execute(
            "INSERT INTO task_after (task, on_task) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            &[task.id.into(), (*on).into()],
        )
        .await?;
    }
    Ok(true)
}
