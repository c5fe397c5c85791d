//! Finding the task that somebody means.

use std::path::Path;

use woodward_api::{Code, Problem};
use woodward_core::hint::NextCommand;
use woodward_core::{ProjectId, Task};

use super::{Found, TaskRef};
use crate::config::nearest;
use crate::engine::Engine;
use crate::error::Result;

/// The most candidates that a refusal names.
const CANDIDATES_MAX: usize = 8;

impl Engine {
    /// All tasks of a project that are not archived.
    pub(super) async fn all_tasks(&self, project: ProjectId) -> Result<Vec<Task>> {
        self.inner.all_tasks(project).await
    }

    pub(super) async fn find(&self, wanted: &TaskRef<'_>) -> Result<Found> {
        let project = self.project_of(wanted.root).await?;
        let tasks = self.all_tasks(project.id()).await?;
        let task = if wanted.name == "." {
            let cwd = wanted.cwd.unwrap_or(wanted.root);
            here(&tasks, &project.worktrees(), cwd)?
        } else {
            named(&tasks, wanted.name)?
        };
        let task = task.clone();
        let config = project.config().await?;
        Ok(Found {
            task,
            project,
            config,
        })
    }
}

/// The task whose worktree a directory is in.
pub(super) fn here<'a>(
    tasks: &'a [Task],
    worktrees: &Path,
    cwd: &Path,
) -> Result<&'a Task, Problem> {
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let name = cwd
        .strip_prefix(worktrees)
        .ok()
        .and_then(|rest| rest.components().next())
        .map(|first| first.as_os_str().to_string_lossy().into_owned());
    name.as_ref()
        .and_then(|name| newest(tasks, |task| task.name.as_str() == name))
        .ok_or_else(|| {
            let what = format!("{} is in no task's worktree", cwd.display());
            Problem::new(Code::NotFound, what)
                .hint(NextCommand::Status.purpose("name the task; list them"))
        })
}

/// The open task that fits, else the one that was created last.
fn newest(tasks: &[Task], fits: impl Fn(&Task) -> bool) -> Option<&Task> {
    let fitting = || tasks.iter().filter(|task| fits(task));
    fitting()
        .find(|task| !task.state.kind().is_finished())
        .or_else(|| fitting().max_by_key(|task| task.id))
}

/// A task by name, id, branch, or by a beginning of its name that only it has.
pub(super) fn named<'a>(tasks: &'a [Task], wanted: &str) -> Result<&'a Task, Problem> {
    let exact = |task: &Task| {
        task.name.as_str() == wanted
            || task.id.to_string() == wanted
            || task.worktree.as_ref().is_some_and(|w| w.branch == wanted)
    };
    if let Some(task) = newest(tasks, exact) {
        return Ok(task);
    }
    let begins = |task: &&Task| !wanted.is_empty() && task.name.as_str().starts_with(wanted);
    for finished in [false, true] {
        let mut names: Vec<&str> = tasks
            .iter()
            .filter(|task| task.state.kind().is_finished() == finished)
            .filter(begins)
            .map(|task| task.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        match names.as_slice() {
            [] => {}
            [only] => {
                return newest(tasks, |task| task.name.as_str() == *only)
                    .ok_or_else(|| Problem::new(Code::Internal, "a task vanished"));
            }
            several => {
                let shown: Vec<&str> = several.iter().take(CANDIDATES_MAX).copied().collect();
                return Err(Problem::new(
                    Code::NotFound,
                    format!("`{wanted}` could be any of {}", shown.join(", ")),
                )
                .hint("type more of the name"));
            }
        }
    }
    let problem = Problem::new(Code::NotFound, format!("there is no task `{wanted}`"));
    let names = tasks.iter().map(|task| task.name.as_str());
    Err(match nearest(wanted, names) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem,
    }
    .hint(NextCommand::StatusAll.purpose("list what there is")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use woodward_core::step::create;
    use woodward_core::{Actor, Fact, NewTask, TaskId, TaskSpec};
    use woodward_store::fresh_uuid;

    fn task(name: &str) -> Task {
        let new = NewTask {
            id: TaskId::new(fresh_uuid()),
            project: ProjectId::new(fresh_uuid()),
            name: name.parse().unwrap(),
            spec: TaskSpec::default(),
            prompted: false,
            blockers: std::collections::BTreeMap::new(),
        };
        let event = crate::clock::event(Actor::Woodward, Fact::Created(new.clone()));
        create(&new, &event).next
    }

    #[test]
    fn a_task_is_known_by_name_id_and_unique_beginning() {
        let tasks = [task("auth-api"), task("auth"), task("dashboard")];
        let found = |wanted: &str| named(&tasks, wanted).unwrap().name.to_string();
        assert_eq!(found("auth"), "auth", "a whole name wins over a beginning");
        assert_eq!(found("auth-"), "auth-api");
        assert_eq!(found("d"), "dashboard");
        assert_eq!(found(&tasks[2].id.to_string()), "dashboard");
    }

    #[test]
    fn what_is_not_clear_is_said() {
        let tasks = [task("auth-api"), task("auth-ui")];
        let refused = named(&tasks, "auth").unwrap_err();
        assert_eq!(refused.code, Code::NotFound);
        assert!(refused.message.contains("auth-api, auth-ui"), "{refused}");
        let refused = named(&tasks, "auth-apo").unwrap_err();
        assert_eq!(refused.hints[0], "did you mean `auth-api`?");
        assert!(named(&tasks, "").is_err());
    }
}
