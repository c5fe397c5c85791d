//! What was left behind: lock files, worktrees of no task, conversations that were cut off.

use std::collections::HashSet;

use woodward_api::{Check, CheckState};
use woodward_core::StateKind;
use woodward_core::hint::NextCommand;

use super::{good, note};
use crate::agent::resume::{resumable, why_lost};
use crate::clock;
use crate::engine::Engine;
use crate::error::Result;
use crate::files;
use crate::git::Removal;
use crate::project::Project;
use crate::supervise::{self, Seen};

impl Engine {
    pub(super) async fn leftovers(&self, project: &Project, fix: bool) -> Result<Vec<Check>> {
        let mut checks = Vec::new();
        checks.extend(locks(project, fix).await?);
        checks.extend(self.stray_worktrees(project, fix).await?);
        checks.extend(self.cut_off(project).await?);
        let trash = project.repo.trash(&project.worktrees());
        if !trash.is_empty() {
            checks.push(good(
                "trash",
                format!("{} removed worktrees can be brought back", trash.len()),
            ));
        }
        Ok(checks)
    }

    /// Tasks whose last run lost its processes, as by a restart of the machine, and which have not
    /// gone on yet.
    async fn cut_off(&self, project: &Project) -> Result<Vec<Check>> {
        let paths = &self.inner.options.paths;
        let mut checks = Vec::new();
        for task in self.inner.open_tasks(project.id()).await?.iter() {
            let runs = self.inner.store.load_runs(task.id).await?;
            let Some(last) = runs.last() else {
                continue;
            };
            let dir = paths.run(last.id);
            if !matches!(supervise::look(&dir), Ok(Seen::Lost)) {
                continue;
            }
            let name = &task.name;
            let mut found = format!("{name}: {}", why_lost(&dir, last.agent.as_str()));
            let Some(one) = resumable(&runs, &last.agent, |run| paths.run(run)) else {
                continue;
            };
            found += &format!("; its conversation {} can be resumed", one.session);
            let kind = task.state.kind();
            let task = name.clone();
            let fix = match kind {
                StateKind::Failed => Some(NextCommand::Retry { task }.to_string()),
                StateKind::Paused => Some(NextCommand::Resume { task }.to_string()),
                StateKind::Review => Some(NextCommand::Prompt { task }.to_string()),
                _ => {
                    found += "; it goes on by itself";
                    None
                }
            };
            checks.push(note("conversation", found, fix));
        }
        Ok(checks)
    }

    async fn stray_worktrees(&self, project: &Project, fix: bool) -> Result<Vec<Check>> {
        let tasks = self.inner.open_tasks(project.id()).await?;
        let named: HashSet<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        let mut checks = Vec::new();
        for path in files::subdirectories(&project.worktrees()) {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.starts_with('.') || named.contains(name.as_str()) {
                continue;
            }
            let Some(worktree) = project.repo.occupant(&path) else {
                checks.push(note(
                    "worktree",
                    format!("{} is not Woodward's", path.display()),
                    None,
                ));
                continue;
            };
            if !fix {
                checks.push(note(
                    "worktree",
                    format!("{} belongs to no open task", path.display()),
                    Some(NextCommand::DoctorFix.to_string()),
                ));
                continue;
            }
            project
                .repo
                .remove_worktree(&Removal {
                    worktree: &worktree,
                    task: &name,
                    id: &format!("doctor-{}", clock::now().0),
                    why: "it belonged to no open task",
                    is_landed: false,
                    now: clock::now(),
                })
                .await?;
            checks.push(Check {
                name: "worktree".into(),
                state: CheckState::Fixed,
                found: format!("{} went to the trash, its work is saved", path.display()),
                fix: None,
            });
        }
        Ok(checks)
    }
}

async fn locks(project: &Project, fix: bool) -> Result<Vec<Check>> {
    let found = project.repo.locks();
    if found.is_empty() {
        return Ok(vec![good("locks", "none is left behind")]);
    }
    if !fix {
        let held = found.iter().map(|path| {
            note(
                "locks",
                format!("{} exists", path.display()),
                Some(NextCommand::DoctorFix.purpose("if no git runs").to_string()),
            )
        });
        return Ok(held.collect());
    }
    let swept = project.repo.sweep_locks().await?;
    let removed = swept.removed.into_iter().map(|path| Check {
        name: "locks".into(),
        state: CheckState::Fixed,
        found: format!("{} was held by nobody and is removed", path.display()),
        fix: None,
    });
    let held = swept.held.into_iter().map(|(path, holder)| {
        note(
            "locks",
            format!("{} is held by {holder}", path.display()),
            None,
        )
    });
    Ok(removed.chain(held).collect())
}
