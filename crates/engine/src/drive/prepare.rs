//! Making a task's worktree ready.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use woodward_core::event::Fault;
use woodward_core::state::Purpose;
use woodward_core::task::Worktree;
use woodward_core::{CommitId, Fact, Policy, RunId, Task};
use woodward_store::RunState;

use super::{Driver, Scene};
use crate::error::{EngineError, Result};
use crate::git::{Rebuild, Rebuilt, Removal, WorktreeSpec};
use crate::project::Project;
use crate::setup::{self, Setup};
use crate::{disk, effects, files, run_env, supervise};

/// How long an agent that must go gets to end by itself.
pub(crate) const STOP_GRACE: std::time::Duration = std::time::Duration::from_secs(10);

/// How long a worktree that is being removed is waited for: its teardown may take minutes.
const REMOVAL_MAX: std::time::Duration = std::time::Duration::from_secs(300);
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(50);

/// What is remembered of a worktree besides the database's record.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Made {
    /// Whether its setup commands have passed.
    set_up: bool,
}

impl Driver {
    pub(super) async fn prepare(
        &self,
        scene: &Scene,
        run: RunId,
        purpose: &Purpose,
    ) -> Result<bool> {
        let disks = self.disks(scene);
        if let Some(full) = disk::find_full(&disks) {
            return Err(EngineError::DiskFull(full));
        }
        match self.make_ready(scene, run, purpose).await {
            Ok((worktree, rebuilt)) => {
                let fact = Fact::Prepared { worktree, rebuilt };
                self.report(&scene.config, fact).await
            }
            Err(error) if error.is_stale() || self.handle.cancel.is_cancelled() => Err(error),
            Err(error) => {
                if let Some(full) = disk::behind(&error, &disks) {
                    self.discard_setup(run);
                    return Err(EngineError::DiskFull(full));
                }
                let policy = scene.config.policy();
                self.not_prepared(&scene.task, error, &policy).await
            }
        }
    }

    pub(super) async fn not_prepared(
        &self,
        task: &Task,
        error: EngineError,
        policy: &Policy,
    ) -> Result<bool> {
        let fault = error.fault();
        if fault == Fault::Transient && matches!(error, EngineError::Store(_)) {
            return Err(error);
        }
        let (note, in_setup) = match &error {
            EngineError::Setup(failed) => (failed.note(&task.name), true),
            _ => (error.into_note(), false),
        };
        tracing::warn!(task = %task.name, note = note.as_str(), "its worktree could not be made ready");
        let fact = Fact::PrepareFailed {
            fault,
            note,
            in_setup,
        };
        let event = crate::clock::event(self.inner.claim(self.handle.epoch), fact);
        self.inner.persist(self.task, event, policy).await?;
        Ok(false)
    }

    /// Setup commands that ran on a full disk run again.
    fn discard_setup(&self, run: RunId) {
        let dir = self.inner.options.paths.run(run);
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let is_setup = entry
                .file_name()
                .to_string_lossy()
                .starts_with(setup::DIRECTORY);
            if is_setup && let Err(error) = std::fs::remove_dir_all(entry.path()) {
                tracing::warn!(%run, %error, "the result of a setup command was not removed");
            }
        }
    }

    async fn make_ready(
        &self,
        scene: &Scene,
        run: RunId,
        purpose: &Purpose,
    ) -> Result<(Worktree, Option<CommitId>)> {
        let Scene {
            task,
            project,
            config,
        } = scene;
        self.end_earlier_runs(task, run).await?;
        let path = project.worktree(&task.name);
        let kept = match &task.worktree {
            Some(worktree)
                if worktree.worker == self.inner.worker
                    && path.is_dir()
                    && project.repo.worktree(&path, &worktree.branch).is_ok() =>
            {
                Some(worktree.clone())
            }
            _ => None,
        };
        let mut worktree = match kept {
            Some(worktree) => worktree,
            None => self.create(scene, &path).await?,
        };
        self.set_up(scene, &worktree, run, &path).await?;
        let rebuilt = self.rebuild(scene, &mut worktree, &path, purpose).await?;
        if let Purpose::Conflict { .. } | Purpose::Fix { .. } = purpose {
            // What lands is the merged tree: that is what the agent must see and repair.
            let onto = project.ground(config, &task.spec.base).await?;
            let place = project.repo.worktree(&path, &worktree.branch)?;
            let now = crate::clock::now();
            let name = task.name.as_str();
            project.repo.bring_in(&place, &onto, name, now).await?;
            // What others have landed is not this task's change.
            worktree.base = onto;
        }
        Ok((worktree, rebuilt))
    }

    /// Rebuilds the task's change if its target was rewritten; says on which commit it is then. With
    /// uncommitted work of an earlier run in the worktree that waits until the work is committed.
    async fn rebuild(
        &self,
        scene: &Scene,
        worktree: &mut Worktree,
        path: &Path,
        purpose: &Purpose,
    ) -> Result<Option<CommitId>> {
        let Scene {
            task,
            project,
            config,
        } = scene;
        let repo = &project.repo;
        let place = repo.worktree(path, &worktree.branch)?;
        let now = crate::clock::now();
        repo.undo_cut_off(&place, task.name.as_str(), now).await?;
        let onto = project.ground(config, &task.spec.base).await?;
        let head = repo.require_tip(&worktree.branch).await?;
        let recorded = worktree.base.clone();
        let base = project.change_base(task, Some(&recorded), &head).await?;
        if base.on_target {
            // A daemon that was killed may have rebuilt it without saying so.
            return Ok(match purpose {
                Purpose::Verify { commit } if *commit != head => {
                    let before = project.change_base(task, Some(&recorded), commit).await?;
                    (!before.on_target).then_some(head)
                }
                _ => None,
            });
        }
        let may_reset = match purpose {
            Purpose::Verify { .. } | Purpose::Conflict { .. } | Purpose::Fix { .. } => true,
            _ => repo.is_pristine(&place).await,
        };
        if !may_reset {
            return Ok(None);
        }
        let keep_conflicts = matches!(purpose, Purpose::Conflict { .. } | Purpose::Fix { .. });
        let rebuild = Rebuild {
            base: &base.commit,
            head: &head,
            onto: &onto,
            task: task.name.as_str(),
            now,
        };
        let rebuilt = repo.rebuild_in(&place, &rebuild, keep_conflicts).await?;
        tracing::info!(task = %task.name, base = %base.commit, %onto, ?rebuilt, "its target was rewritten");
        match rebuilt {
            Rebuilt::Commit(commit) => {
                worktree.base = onto;
                Ok(Some(commit))
            }
            Rebuilt::Conflict(_) => {
                if keep_conflicts {
                    worktree.base = onto;
                }
                Ok(None)
            }
        }
    }

    /// Agents of earlier claims on this machine are gone before a new one may touch the worktree.
    async fn end_earlier_runs(&self, task: &Task, run: RunId) -> Result<()> {
        for earlier in self.inner.store.load_runs(task.id).await? {
            let ours = earlier.worker == self.inner.worker && earlier.id != run;
            if ours && earlier.state != RunState::Finished {
                supervise::stop(&self.inner.options.paths.run(earlier.id), STOP_GRACE).await?;
            }
        }
        Ok(())
    }

    async fn create(&self, scene: &Scene, path: &Path) -> Result<Worktree> {
        let Scene {
            task,
            project,
            config,
        } = scene;
        let branch = Project::branch(config, task, task.epoch);
        let base = project.ground(config, &task.spec.base).await?;
        let start = self.start_of(scene, &base).await?;
        let own = branch.rsplit_once('/').map(|(own, _)| own.to_owned());
        self.clear_way(scene, path, &branch, own.as_deref()).await?;
        project
            .repo
            .create_worktree(&WorktreeSpec {
                path: path.to_owned(),
                branch: branch.clone(),
                start: start.clone(),
                own,
                lock_reason: format!("used by the task {} of Woodward", task.name),
            })
            .await?;
        let base = match &task.worktree {
            Some(earlier) if start != base => earlier.base.clone(),
            // A daemon that was killed before it could say so may have made it when the branch was
            // elsewhere: then that is where it begins.
            _ => {
                let head = project.repo.require_tip(&branch).await?;
                if head == base || (task.worktree.is_none() && task.head.is_none()) {
                    // Nobody has worked on it yet: it is where the target was.
                    head
                } else {
                    let found = project.change_base(task, Some(&base), &head).await?;
                    found.commit
                }
            }
        };
        Ok(Worktree {
            branch,
            made_by: task.epoch,
            worker: self.inner.worker,
            base,
        })
    }

    /// A worktree that an earlier task of this name, or an earlier claim, left where the new one goes
    /// is moved to the trash with all its work.
    async fn clear_way(
        &self,
        scene: &Scene,
        path: &Path,
        branch: &str,
        own: Option<&str>,
    ) -> Result<()> {
        let Scene { task, project, .. } = scene;
        if project.repo.occupant(path).is_some() {
            self.await_removals(scene).await?;
        }
        let Some(left) = project.repo.occupant(path) else {
            project.repo.finish_removals(path).await?;
            return Ok(());
        };
        let same_name = left.branch.rsplit_once('/').map(|(own, _)| own) == own;
        if left.branch == branch || !same_name {
            return Ok(());
        }
        project
            .repo
            .remove_worktree(&Removal {
                worktree: &left,
                task: task.name.as_str(),
                id: &format!("{}-before-{}", task.id, task.epoch),
                why: "it was in the way of a new worktree",
                is_landed: false,
                now: crate::clock::now(),
            })
            .await?;
        Ok(())
    }

    /// What is there may be on its way out: the worktree of an earlier task of this name, or of this
    /// one before it was given up. A new one must not be taken for it.
    async fn await_removals(&self, scene: &Scene) -> Result<()> {
        let Scene { task, project, .. } = scene;
        let namesakes = self.inner.namesakes(project.id(), &task.name).await?;
        let removed = async {
            for namesake in &namesakes {
                while !effects::is_tidied(&self.inner, namesake.id).await? {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
            Ok(())
        };
        let waited = tokio::time::timeout(REMOVAL_MAX, removed);
        match self.handle.cancel.run_until_cancelled(waited).await {
            Some(Ok(removed)) => removed,
            Some(Err(_)) => Err(EngineError::File {
                what: format!(
                    "an earlier worktree of {} is still being removed",
                    task.name
                ),
                source: std::io::ErrorKind::TimedOut.into(),
            }),
            None => Err(EngineError::interrupted()),
        }
    }

    /// Work whose directory is gone goes on from its branch; work that was done on another machine,
    /// from its last result, if that is known here.
    async fn start_of(&self, scene: &Scene, base: &CommitId) -> Result<CommitId> {
        let Scene { task, project, .. } = scene;
        if let Some(earlier) = &task.worktree
            && let Some(tip) = project.repo.tip(&earlier.branch).await?
        {
            return Ok(tip);
        }
        Ok(match &task.head {
            Some(head) if project.repo.resolve(head.as_str()).await.is_ok() => head.clone(),
            _ => base.clone(),
        })
    }

    /// Copies what the project names and runs its setup commands, once a worktree.
    async fn set_up(
        &self,
        scene: &Scene,
        worktree: &Worktree,
        run: RunId,
        path: &Path,
    ) -> Result<()> {
        let Scene {
            task,
            project,
            config,
        } = scene;
        let file = self.made_file(task, worktree);
        if files::load_json::<Made>(&file).is_some_and(|made| made.set_up) {
            return Ok(());
        }
        let setup = Setup {
            path,
            dir: self.inner.options.paths.run(run).join(setup::DIRECTORY),
            env: self.command_env(scene, worktree, path),
            mark: run.to_string(),
        };
        setup::run(&self.inner, project, config, &setup, &self.handle.cancel).await?;
        files::save_json_lazily(&file, &Made { set_up: true })
            .map_err(EngineError::file(file.display().to_string()))
    }

    fn made_file(&self, task: &Task, worktree: &Worktree) -> PathBuf {
        let name = format!("{}-{}.json", task.id, worktree.made_by);
        let state = self.inner.options.paths.state();
        state.join("worktrees").join(name)
    }

    /// What setup commands and gates of a task see.
    pub(super) fn command_env(
        &self,
        scene: &Scene,
        worktree: &Worktree,
        path: &Path,
    ) -> BTreeMap<String, String> {
        run_env::of_task(
            &self.inner,
            &scene.project,
            &scene.config,
            &scene.task,
            worktree,
            path,
        )
    }
}
