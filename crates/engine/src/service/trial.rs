//! Fresh worktrees in which `init` tries setup commands and gates.
//!
//! They are checkouts like those in which gates verify results. The person's checkout is read and
//! never changed, and no worktree outlives the process that asked for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use woodward_api::{CloseTrial, Code, OpenTrial, Problem, TrialLeftovers, TrialWorktree};

use super::Answered;
use crate::engine::Engine;
use crate::environment;
use crate::error::{EngineError, Result};
use crate::project::Project;
use crate::run_env;
use crate::supervise::{Identity, probe};

/// The directory beside the tasks' worktrees.
const DIRECTORY: &str = ".trial";
/// The most ignored and untracked entries that are listed.
const ENTRIES_MAX: usize = 500;
/// How often it is checked whether the process that asked is still there.
const CHECK_EVERY: Duration = Duration::from_secs(2);

impl Engine {
    /// Makes a fresh worktree of the commit that tasks start from.
    ///
    /// # Errors
    /// When there is no such project or commit, or git can't check it out.
    pub async fn open_trial(&self, request: &OpenTrial) -> Answered<TrialWorktree> {
        let project = self.project_of(Path::new(&request.root)).await?;
        let owner = Identity::of(request.pid).map_err(|error| {
            let what = format!("process {} can't be found: {error}", request.pid);
            Problem::new(Code::Usage, what)
        })?;
        self.remove_abandoned_trials(&project).await?;
        let config = project.load_config().await?;
        let commit = project.ground(&config, &project.base(&config)).await?;
        let path = directory(&project, request.pid);
        let git = |error| Problem::from(EngineError::from(error));
        let made = project.repo.checkout_detached(&path, &commit).await;
        made.map_err(git)?;
        self.remove_when_ended(&project, owner, path.clone());
        let ignored = project.repo.ignored_entries(project.root(), ENTRIES_MAX);
        let ignored = ignored.await.map_err(git)?;
        let mut env = run_env::of_project(&self.inner, &project, &config);
        environment::forbid_toolchain_installs(&mut env);
        let shown = path.display().to_string();
        env.insert(run_env::WORKTREE.to_owned(), shown.clone());
        Ok(TrialWorktree {
            path: shown,
            commit: commit.to_string(),
            env,
            ignored,
        })
    }

    /// Removes a worktree that [`Self::open_trial`] made, and says what was left in it.
    ///
    /// # Errors
    /// When there is no such project, or it can't be removed.
    pub async fn close_trial(&self, request: &CloseTrial) -> Answered<TrialLeftovers> {
        let project = self.project_of(Path::new(&request.root)).await?;
        let path = directory(&project, request.pid);
        let listed = project.repo.untracked_entries(&path, ENTRIES_MAX).await;
        let removed = project.repo.discard_detached(&path).await;
        removed.map_err(|error| Problem::from(EngineError::from(error)))?;
        Ok(TrialLeftovers {
            untracked: listed.unwrap_or_default(),
        })
    }

    /// Removes worktrees whose processes ended while no daemon was there to notice.
    async fn remove_abandoned_trials(&self, project: &Project) -> Result<()> {
        let Ok(entries) = std::fs::read_dir(project.worktrees().join(DIRECTORY)) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.parse().ok());
            if pid.is_some_and(|pid| Identity::of(pid).is_err()) {
                project.repo.discard_detached(&entry.path()).await?;
            }
        }
        Ok(())
    }

    fn remove_when_ended(&self, project: &Arc<Project>, owner: Identity, path: PathBuf) {
        let project = Arc::clone(project);
        let stopping = self.inner.stopping.clone();
        self.inner.tasks.spawn(async move {
            while path.exists() && probe(&owner).unwrap_or(false) {
                let wait = stopping.run_until_cancelled(tokio::time::sleep(CHECK_EVERY));
                if wait.await.is_none() {
                    return;
                }
            }
            if path.exists()
                && let Err(error) = project.repo.discard_detached(&path).await
            {
                tracing::warn!(path = %path.display(), %error, "a trial's worktree stays");
            }
        });
    }
}

fn directory(project: &Project, pid: u32) -> PathBuf {
    project.worktrees().join(DIRECTORY).join(pid.to_string())
}
