//! What a task's programs are told through their environment.

use std::collections::BTreeMap;
use std::path::Path;

use woodward_core::Task;
use woodward_core::task::Worktree;

use crate::config::Config;
use crate::engine::Inner;
use crate::environment;
use crate::project::Project;

/// Where a program works.
pub(crate) const WORKTREE: &str = "WOODWARD_WORKTREE";

/// The environment of setup commands, gates and agents of a task.
pub(crate) fn of_task(
    inner: &Inner,
    project: &Project,
    config: &Config,
    task: &Task,
    worktree: &Worktree,
    path: &Path,
) -> BTreeMap<String, String> {
    let mut env = of_project(inner, project, config);
    let text = |path: &Path| path.display().to_string();
    env.extend([
        ("WOODWARD_TASK".to_owned(), task.name.to_string()),
        ("WOODWARD_TASK_ID".to_owned(), task.id.to_string()),
        (WORKTREE.to_owned(), text(path)),
        ("WOODWARD_BRANCH".to_owned(), worktree.branch.clone()),
        ("WOODWARD_BASE".to_owned(), task.spec.base.clone()),
    ]);
    env
}

/// The environment of a task's gates, which look at a tree at `path`: the task's own directory or
/// another one. What a gate is told must not depend on which.
pub(crate) fn of_gates(
    inner: &Inner,
    project: &Project,
    config: &Config,
    task: &Task,
    path: &Path,
) -> BTreeMap<String, String> {
    match &task.worktree {
        Some(worktree) => of_task(inner, project, config, task, worktree, path),
        None => of_project(inner, project, config),
    }
}

/// The environment of everything that runs for a project.
pub(crate) fn of_project(
    inner: &Inner,
    project: &Project,
    config: &Config,
) -> BTreeMap<String, String> {
    let mut env = environment::passed(&config.environment);
    let text = |path: &Path| path.display().to_string();
    env.extend([
        (
            "WOODWARD_PROJECT".to_owned(),
            project.record.name.to_string(),
        ),
        ("WOODWARD_ROOT".to_owned(), text(project.root())),
        (
            "WOODWARD_STATE_DIR".to_owned(),
            text(inner.options.paths.state()),
        ),
        ("WOODWARD_BIN".to_owned(), text(&inner.options.program)),
    ]);
    env
}
