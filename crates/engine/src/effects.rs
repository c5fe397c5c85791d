//! Performing what transitions ask for.
//!
//! Effects come at least once; performing one twice does what performing it once does. What belongs
//! to a current claim only wakes its driver, which looks at the task itself; cleaning up and telling
//! others is done here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;
use woodward_core::effect::DependencyNews;
use woodward_core::task::Worktree;
use woodward_core::{
    Action, Actor, CommitId, Effect, Fact, Millis, Note, RunId, State, Task, TaskId, Version,
};
use woodward_store::TakenEffect;

use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::git::{GitError, Removal};
use crate::project::Project;
use crate::supervise::{self, Launch};
use crate::{clock, drive, files, gate, removed, run_env};

const TAKEN_AT_ONCE: u32 = 64;
/// How long an effect is ours before it is handed out again.
const LENGTH: Millis = Millis::from_secs(10);
/// What a person stops is gone within five seconds, also where it does not listen.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// An effect that could not be performed waits so long, longer each time.
const AGAIN: Millis = Millis::from_secs(1);
const AGAIN_MAX: Millis = Millis::from_secs(60);

/// Effects that are being performed.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Which handing-out counts: one that takes long is handed to us again meanwhile.
    under_way: Mutex<HashMap<i64, TakenEffect>>,
    /// Clearing up is never urgent: one worktree after the other, since those who work need the cores.
    clearing: Semaphore,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            under_way: Mutex::default(),
            clearing: Semaphore::new(1),
        }
    }
}

impl Outbox {
    /// Whether it is new; otherwise only the handing-out is noted.
    fn begin(&self, taken: &TakenEffect) -> bool {
        let mut under_way = self.under_way.lock().unwrap_or_else(|e| e.into_inner());
        under_way.insert(taken.id, taken.clone()).is_none()
    }

    fn latest(&self, id: i64) -> Option<TakenEffect> {
        let under_way = self.under_way.lock().unwrap_or_else(|e| e.into_inner());
        under_way.get(&id).cloned()
    }

    fn end(&self, id: i64) {
        let mut under_way = self.under_way.lock().unwrap_or_else(|e| e.into_inner());
        under_way.remove(&id);
    }
}

/// Takes what is due and starts to perform it.
pub(crate) async fn take(inner: &Arc<Inner>) -> Result<()> {
    loop {
        let taken = inner
            .store
            .take_effects(inner.worker, TAKEN_AT_ONCE, LENGTH)
            .await?;
        let full = taken.len() == TAKEN_AT_ONCE as usize;
        for effect in taken {
            if inner.outbox.begin(&effect) {
                let inner = Arc::clone(inner);
                inner.tasks.clone().spawn(async move {
                    perform_and_report(&inner, effect).await;
                });
            }
        }
        if !full {
            return Ok(());
        }
    }
}

async fn perform_and_report(inner: &Arc<Inner>, taken: TakenEffect) {
    let verb = taken.effect.action.verb();
    let performed = perform(inner, &taken.effect).await;
    let latest = inner
        .outbox
        .latest(taken.id)
        .unwrap_or_else(|| taken.clone());
    let reported = match performed {
        Ok(()) => inner.store.finish_effect(&latest).await,
        Err(error) => {
            tracing::warn!(task = %taken.effect.task, verb, %error, "an effect could not be performed; it comes again");
            let wait = Millis((AGAIN.0 << latest.attempt.min(6)).min(AGAIN_MAX.0));
            let note = Note::from(error.to_string());
            inner.store.postpone_effect(&latest, wait, note).await
        }
    };
    inner.outbox.end(taken.id);
    if let Err(error) = reported {
        // It will be handed out again, and done again, to no harm.
        tracing::debug!(verb, %error, "the report on an effect was not taken");
    }
}

async fn perform(inner: &Arc<Inner>, effect: &Effect) -> Result<()> {
    match &effect.action {
        Action::PrepareWorktree { .. } | Action::StartRun { .. } | Action::RunGates { .. } => {
            drive::ensure(inner, effect.task, effect.epoch);
            Ok(())
        }
        Action::DeliverMessage { .. } => {
            inner.drivers.tell(effect.task);
            Ok(())
        }
        Action::StopRun { run } => stop_run(inner, effect, *run).await,
        Action::StopGates { commit } => stop_gates(inner, effect, commit).await,
        Action::RemoveWorktree { worktree } => remove_worktree(inner, effect, worktree).await,
        Action::TellDependents { news, as_of } => {
            tell_dependents(inner, effect.task, news, *as_of).await
        }
    }
}

/// Whether nothing of a task is left to be stopped or removed on this machine.
pub(crate) async fn is_tidied(inner: &Inner, task: TaskId) -> Result<bool> {
    let pending = inner.store.load_pending_effects(task).await?;
    Ok(!pending.iter().any(|effect| match &effect.action {
        Action::RemoveWorktree { worktree } => worktree.worker == inner.worker,
        Action::StopRun { .. } | Action::StopGates { .. } => effect.worker == Some(inner.worker),
        _ => false,
    }))
}

async fn require_task(inner: &Inner, task: TaskId) -> Result<Task> {
    inner.store.load_task(task).await?.ok_or_else(|| {
        EngineError::Store(woodward_store::StoreError::NotFound {
            what: format!("task {task}"),
        })
    })
}

/// Ends the agent, then saves what it left uncommitted.
async fn stop_run(inner: &Inner, effect: &Effect, run: RunId) -> Result<()> {
    inner.drivers.end(effect.task, effect.epoch).await;
    let dir = inner.options.paths.run(run);
    supervise::stop(&dir, STOP_GRACE).await?;
    for setup in files::subdirectories(&dir) {
        if setup
            .file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("setup-"))
        {
            supervise::stop(&setup, STOP_GRACE).await?;
        }
    }
    let task = require_task(inner, effect.task).await?;
    let project = inner.require_project(task.project)?;
    let path = project.worktree(&task.name);
    let Some(worktree) = &task.worktree else {
        // It is being removed; that saves what is there.
        return Ok(());
    };
    let Ok(place) = project.repo.worktree(&path, &worktree.branch) else {
        return Ok(());
    };
    if path.is_dir()
        && let Some(rescue) = project
            .repo
            .snapshot(
                &place,
                task.name.as_str(),
                "the run was stopped",
                clock::now(),
            )
            .await?
    {
        tracing::info!(task = %task.name, reference = rescue.name, "saved uncommitted work");
    }
    Ok(())
}

async fn stop_gates(inner: &Inner, effect: &Effect, commit: &CommitId) -> Result<()> {
    inner.drivers.end(effect.task, effect.epoch).await;
    for job in files::subdirectories(&inner.options.paths.gates(effect.task, commit)) {
        if gate::is_job_of(&job, effect.epoch) {
            gate::stop_all(&job).await?;
        }
    }
    Ok(())
}

/// Moves a worktree to the trash, its unlanded work saved first.
async fn remove_worktree(inner: &Inner, effect: &Effect, worktree: &Worktree) -> Result<()> {
    let task = require_task(inner, effect.task).await?;
    let current = task.worktree.as_ref();
    if current.is_some_and(|current| current.branch == worktree.branch) {
        // It was brought back, or only its base has changed.
        return Ok(());
    }
    if task.holder.is_none() || task.epoch != effect.epoch {
        inner.drivers.end(effect.task, effect.epoch).await;
    }
    let project = inner.require_project(task.project)?;
    let path = project.worktree(&task.name);
    let id = format!("{}-{}", task.id, effect.epoch);
    let place = match project.repo.worktree(&path, &worktree.branch) {
        Ok(place) => place,
        // Removed before, if only in part, or never made; another one there is not ours to touch.
        Err(GitError::Gone(_) | GitError::PathTaken(_)) => {
            project.repo.finish_removals(&path).await?;
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    if path.is_dir() {
        tear_down(inner, &task, worktree, &path).await;
    }
    removed::save(&inner.options.paths, task.id, worktree)?;
    let why = format!("task {} is {}", task.name, task.state.kind());
    let is_landed = is_proved(&project, &task).await;
    let _turn = inner.outbox.clearing.acquire().await;
    let removed = project
        .repo
        .remove_worktree(&Removal {
            worktree: &place,
            task: task.name.as_str(),
            id: &id,
            why: &why,
            is_landed,
            now: clock::now(),
        })
        .await?;
    if removed.branch_kept {
        tracing::warn!(task = %task.name, branch = worktree.branch, "its branch is in use and stays");
    }
    Ok(())
}

/// Whether what a task landed is on its branch. Whatever can't be proved is kept as if it were not.
async fn is_proved(project: &Project, task: &Task) -> bool {
    let State::Landed { commit, .. } = &task.state else {
        return false;
    };
    let proved = async {
        let config = project.config().await?;
        let tip = project.ground(&config, &task.spec.base).await?;
        Ok::<bool, EngineError>(project.repo.is_ancestor(commit, &tip).await?)
    };
    let proved = proved.await.unwrap_or(false);
    if !proved {
        tracing::warn!(task = %task.name, %commit, "what it landed is not seen on its branch; its directory is kept longer");
    }
    proved
}

/// Runs the project's teardown commands. A failing one is only noted: the worktree goes anyway.
async fn tear_down(inner: &Inner, task: &Task, worktree: &Worktree, path: &std::path::Path) {
    let Some(project) = inner.project(task.project) else {
        return;
    };
    let Ok(config) = project.config().await else {
        return;
    };
    let wishes = &config.worktree;
    for (number, command) in wishes.teardown.iter().enumerate() {
        let name = format!("teardown-{}-{}-{}", task.id, worktree.made_by, number + 1);
        let dir = inner.options.paths.state().join("runs").join(name);
        let launch = Launch {
            command: command.argv(),
            cwd: path.to_owned(),
            env: run_env::of_task(inner, &project, &config, task, worktree, path),
            stdin: None,
            mark: format!("{}-teardown-{number}", task.id),
            output_max_bytes: config.log_bytes_max,
            time_limit_ms: Some(wishes.teardown_timeout.0),
            stall_limit_ms: None,
            term_grace_ms: 5_000,
            jobs: None,
            repeatable: false,
        };
        let ended = async {
            supervise::launch(&dir, &launch, &inner.options.supervisor).await?;
            supervise::ended(&dir).await
        };
        match ended.await {
            Ok(seen) => {
                tracing::info!(task = %task.name, command = command.shown(), ?seen, "teardown");
            }
            Err(error) => tracing::warn!(task = %task.name, %error, "a teardown command failed"),
        }
    }
}

async fn tell_dependents(
    inner: &Inner,
    task: TaskId,
    news: &DependencyNews,
    as_of: Version,
) -> Result<()> {
    for dependent in inner.store.load_dependents(task).await? {
        let fact = match news {
            DependencyNews::Landed => Fact::DependencyLanded { task },
            DependencyNews::Failed(reason) => Fact::DependencyFailed {
                task,
                reason: reason.clone(),
                as_of,
            },
            DependencyNews::Reopened => Fact::DependencyReopened { task, as_of },
        };
        let event = clock::event(Actor::Woodward, fact);
        let policy = woodward_core::Policy::default();
        match inner.persist(dependent, event, &policy).await {
            Ok(_) => {}
            Err(error) if error.is_repeated() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
