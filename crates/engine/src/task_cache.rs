//! Caches the decoded open tasks of projects, so that listing many tasks decodes only those that have
//! changed.
//!
//! Callers ask the database for the current version of each task every time. A task of another version
//! must never be taken for the current one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use woodward_core::{ProjectId, Task, TaskId, Version};

/// Cached tasks of all projects together.
const TASKS_MAX: usize = 2_000;

/// The open tasks as last read, by project.
#[derive(Debug, Default)]
pub(crate) struct TaskCache {
    projects: Mutex<HashMap<ProjectId, Arc<Vec<Task>>>>,
}

impl TaskCache {
    /// The open tasks of a project as last saved, by id.
    pub(crate) fn load(&self, project: ProjectId) -> Arc<Vec<Task>> {
        self.lock().get(&project).cloned().unwrap_or_default()
    }

    /// Replaces the open tasks of a project, and drops those of all others where there are too many.
    pub(crate) fn save(&self, project: ProjectId, tasks: &Arc<Vec<Task>>) {
        let mut projects = self.lock();
        projects.remove(&project);
        if tasks.is_empty() || tasks.len() > TASKS_MAX {
            return;
        }
        let others: usize = projects.values().map(|tasks| tasks.len()).sum();
        if others + tasks.len() > TASKS_MAX {
            projects.clear();
        }
        projects.insert(project, Arc::clone(tasks));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProjectId, Arc<Vec<Task>>>> {
        self.projects.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// For each listed task, the cached one if it has exactly this version.
pub(crate) fn unchanged<'a>(
    cached: &'a [Task],
    listed: &[(TaskId, Version)],
) -> Vec<Option<&'a Task>> {
    let by_id: HashMap<TaskId, &Task> = cached.iter().map(|task| (task.id, task)).collect();
    let find = |(id, version): &(TaskId, Version)| {
        let task = by_id.get(id).copied();
        task.filter(|task| task.version == *version)
    };
    listed.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use woodward_core::step::create;
    use woodward_core::{Actor, Fact, NewTask, TaskSpec};
    use woodward_store::fresh_uuid;

    fn tasks(project: ProjectId, count: usize) -> Arc<Vec<Task>> {
        let task = || {
            let new = NewTask {
                id: TaskId::new(fresh_uuid()),
                project,
                name: "auth".parse().unwrap(),
                spec: TaskSpec::default(),
                prompted: false,
                blockers: std::collections::BTreeMap::new(),
            };
            let event = crate::clock::event(Actor::Woodward, Fact::Created(new.clone()));
            create(&new, &event).next
        };
        Arc::new((0..count).map(|_| task()).collect())
    }

    fn project() -> ProjectId {
        ProjectId::new(fresh_uuid())
    }

    #[test]
    fn each_project_has_its_own_tasks() {
        let (ours, theirs) = (project(), project());
        let cache = TaskCache::default();
        assert!(cache.load(ours).is_empty());
        let (two, one) = (tasks(ours, 2), tasks(theirs, 1));
        cache.save(ours, &two);
        cache.save(theirs, &one);
        assert_eq!(cache.load(ours), two);
        assert_eq!(cache.load(theirs), one);
        cache.save(ours, &Arc::default());
        assert!(cache.load(ours).is_empty());
        assert_eq!(cache.load(theirs), one);
    }

    #[test]
    fn only_tasks_of_the_listed_version_are_unchanged() {
        let cached = tasks(project(), 3);
        let [first, second, _] = &cached[..] else {
            panic!("three were made");
        };
        let newer = Version(second.version.0 + 1);
        let unknown = TaskId::new(fresh_uuid());
        let listed = [
            (first.id, first.version),
            (second.id, newer),
            (unknown, first.version),
        ];
        assert_eq!(unchanged(&cached, &listed), [Some(first), None, None]);
        assert_eq!(unchanged(&[], &listed), [None, None, None]);
    }

    #[test]
    fn it_is_bounded_over_all_projects() {
        let cache = TaskCache::default();
        for count in [TASKS_MAX / 2, TASKS_MAX / 2, TASKS_MAX / 2, TASKS_MAX] {
            let ours = project();
            cache.save(ours, &tasks(ours, count));
            assert_eq!(cache.load(ours).len(), count);
            let all = cache
                .lock()
                .values()
                .map(|tasks| tasks.len())
                .sum::<usize>();
            assert!(all <= TASKS_MAX, "{all}");
        }
        let ours = project();
        cache.save(ours, &tasks(ours, TASKS_MAX + 1));
        assert!(cache.load(ours).is_empty());
    }
}
