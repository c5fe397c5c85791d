//! Lists of a project's tasks.
//!
//! Decoding a task is expensive: what runs for every event must not decode all of them.

use std::sync::Arc;

use woodward_core::task::all_done;
use woodward_core::{ProjectId, State, Task, TaskId, TaskName, Version};
use woodward_store::{PAGE_MAX, TaskFilter};

use crate::engine::Inner;
use crate::error::Result;
use crate::task_cache::unchanged;

/// Up to this many changed tasks are read one by one; beyond that, the whole list is read.
const READ_SINGLY_MAX: usize = 16;
/// How many open tasks are read to find one that has started.
const STARTED_SAMPLE: u32 = 4;

impl Inner {
    /// All open tasks of a project, by id.
    pub(crate) async fn open_tasks(&self, project: ProjectId) -> Result<Arc<Vec<Task>>> {
        let listed = self.open_versions(project).await?;
        let cached = self.task_cache.load(project);
        let id_and_version = |task: &Task| (task.id, task.version);
        if cached.iter().map(id_and_version).eq(listed.iter().copied()) {
            return Ok(cached);
        }
        let unchanged = unchanged(&cached, &listed);
        let changed = unchanged.iter().filter(|task| task.is_none()).count();
        let tasks = if changed > READ_SINGLY_MAX {
            self.pages_of_tasks(project, true).await?
        } else {
            let mut tasks = Vec::with_capacity(listed.len());
            for ((id, _), unchanged) in listed.iter().zip(unchanged) {
                match unchanged {
                    Some(task) => tasks.push(task.clone()),
                    // A task that has finished since it was listed is left out.
                    None => tasks.extend(self.load_open_task(*id).await?),
                }
            }
            tasks
        };
        let tasks = Arc::new(tasks);
        self.task_cache.save(project, &tasks);
        Ok(tasks)
    }

    async fn load_open_task(&self, id: TaskId) -> Result<Option<Task>> {
        let task = self.store.load_task(id).await?;
        Ok(task.filter(|task| !task.state.kind().is_finished()))
    }

    async fn open_versions(&self, project: ProjectId) -> Result<Vec<(TaskId, Version)>> {
        let mut listed: Vec<(TaskId, Version)> = Vec::new();
        loop {
            let after = listed.last().map(|(id, _)| *id);
            let page = self.store.load_open_versions(project, after).await?;
            let is_last = page.len() < PAGE_MAX as usize;
            listed.extend(page);
            if is_last {
                return Ok(listed);
            }
        }
    }

    /// All tasks of a project that are not archived.
    pub(crate) async fn all_tasks(&self, project: ProjectId) -> Result<Vec<Task>> {
        self.pages_of_tasks(project, false).await
    }

    /// All tasks with this name that are not archived.
    pub(crate) async fn namesakes(&self, project: ProjectId, name: &TaskName) -> Result<Vec<Task>> {
        let filter = TaskFilter {
            project: Some(project),
            name: Some(name.clone()),
            ..TaskFilter::default()
        };
        Ok(self.store.load_tasks(filter).await?)
    }

    async fn pages_of_tasks(&self, project: ProjectId, open_only: bool) -> Result<Vec<Task>> {
        let mut tasks: Vec<Task> = Vec::new();
        loop {
            let filter = TaskFilter {
                project: Some(project),
                open_only,
                after: tasks.last().map(|task| task.id),
                ..TaskFilter::default()
            };
            let page = self.store.load_tasks(filter).await?;
            let is_last = page.len() < PAGE_MAX as usize;
            tasks.extend(page);
            if is_last {
                return Ok(tasks);
            }
        }
    }

    /// The task that finished last, if no task of the project has more to do. Called for each task that
    /// finishes, so it reads the whole list only if none of the first open tasks has started.
    pub(crate) async fn all_done(&self, project: ProjectId) -> Result<Option<Task>> {
        let filter = TaskFilter {
            project: Some(project),
            open_only: true,
            limit: Some(STARTED_SAMPLE),
            ..TaskFilter::default()
        };
        let open = self.store.load_tasks(filter).await?;
        if open.iter().any(|task| !matches!(task.state, State::Draft)) {
            return Ok(None);
        }
        let tasks = self.all_tasks(project).await?;
        Ok(all_done(&tasks).cloned())
    }
}
