//! Driving held tasks: one driver a task, from the claim until the claim is let go.
//!
//! A driver looks where its task is and does what that state needs: make the worktree, run the agent,
//! run the gates. Then it reports and looks again. It keeps nothing that a restart would lose, so
//! taking up a task after a crash is the same as going on. A driver whose claim was taken away writes
//! nothing more and stops.

mod prepare;
pub(crate) mod prompt;
mod talk;
mod verify;
mod work;

pub(crate) use work::{PROMPT_FILE, purpose_text};

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use woodward_core::budget::Spend;
use woodward_core::event::Outcome;
use woodward_core::{Epoch, Fact, Policy, RunId, State, Task, TaskId, Transition};
use woodward_store::fresh_uuid;

use crate::config::Config;
use crate::disk;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::project::Project;

/// How long a driver that met trouble waits before it looks again.
const TROUBLE: Duration = Duration::from_millis(200);
const TROUBLE_MAX: Duration = Duration::from_secs(5);
/// So many troubles in a row, over most of a minute, are no passing thing.
const TROUBLES_MAX: u32 = 12;

/// How long a driver that met a full disk waits for room before it tries again all the same.
const DISK_RETRY: Duration = Duration::from_secs(30);
const DISK_RETRY_MAX: Duration = Duration::from_mins(5);

/// All drivers of this machine.
#[derive(Debug, Default)]
pub(crate) struct Drivers {
    running: Mutex<HashMap<TaskId, Handle>>,
    count: watch::Sender<usize>,
}

#[derive(Clone, Debug)]
struct Handle {
    epoch: Epoch,
    /// The claim is gone: stop at the next wait.
    cancel: CancellationToken,
    /// Stop the agent: this machine may have lost its claims.
    halt: CancellationToken,
    /// There is a message for the run.
    told: Arc<Notify>,
    over: CancellationToken,
}

impl Drivers {
    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Handle>> {
        self.running.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The claims that are being driven.
    pub(crate) fn held(&self) -> Vec<(TaskId, Epoch)> {
        self.lock()
            .iter()
            .map(|(task, h)| (*task, h.epoch))
            .collect()
    }

    /// A claim is lost.
    pub(crate) fn cancel(&self, task: TaskId, epoch: Epoch) {
        if let Some(handle) = self.lock().get(&task)
            && handle.epoch <= epoch
        {
            handle.cancel.cancel();
        }
    }

    /// Cancels the driver of a claim and waits until it has let go.
    pub(crate) async fn end(&self, task: TaskId, epoch: Epoch) {
        let over = {
            let drivers = self.lock();
            let Some(handle) = drivers.get(&task).filter(|h| h.epoch <= epoch) else {
                return;
            };
            handle.cancel.cancel();
            handle.over.clone()
        };
        over.cancelled().await;
    }

    /// Stops every agent of this machine.
    pub(crate) fn halt_all(&self) {
        for handle in self.lock().values() {
            handle.halt.cancel();
        }
    }

    /// There is a message for a task's run.
    pub(crate) fn tell(&self, task: TaskId) {
        if let Some(handle) = self.lock().get(&task) {
            handle.told.notify_one();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// How many there are, for who waits until that changes.
    pub(crate) fn watch_count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }
}

/// Sees to it that a claim is driven.
pub(crate) fn ensure(inner: &Arc<Inner>, task: TaskId, epoch: Epoch) {
    let handle = Handle {
        epoch,
        cancel: inner.stopping.child_token(),
        halt: CancellationToken::new(),
        told: Arc::default(),
        over: CancellationToken::new(),
    };
    let before = {
        let mut drivers = inner.drivers.lock();
        match drivers.get(&task) {
            Some(current) if current.epoch >= epoch => return,
            _ => {
                let before = drivers.insert(task, handle.clone());
                inner.drivers.count.send_replace(drivers.len());
                before
            }
        }
    };
    inner.lease_taken.notify_one();
    let inner = Arc::clone(inner);
    inner.tasks.clone().spawn(async move {
        if let Some(before) = before {
            before.cancel.cancel();
            before.over.cancelled().await;
        }
        let driver = Driver {
            inner: Arc::clone(&inner),
            task,
            handle: handle.clone(),
            rerun_gates: AtomicBool::new(false),
        };
        driver.run().await;
        inner.disks.clear(task);
        let mut drivers = inner.drivers.lock();
        if drivers.get(&task).is_some_and(|h| h.epoch == epoch) {
            drivers.remove(&task);
            inner.drivers.count.send_replace(drivers.len());
        }
        drop(drivers);
        handle.over.cancel();
        inner.look.notify_one();
    });
}

struct Driver {
    inner: Arc<Inner>,
    task: TaskId,
    handle: Handle,
    /// The gates' last results were obtained on a full disk and must not be used again.
    rerun_gates: AtomicBool,
}

/// What a driver found when it looked.
struct Scene {
    task: Task,
    project: Arc<Project>,
    config: Arc<Config>,
}

impl Driver {
    async fn run(self) {
        let mut trouble = TROUBLE;
        let mut troubles = 0;
        let mut disk_retry = DISK_RETRY;
        while !self.handle.cancel.is_cancelled() {
            match self.advance().await {
                Ok(true) => {
                    (trouble, troubles, disk_retry) = (TROUBLE, 0, DISK_RETRY);
                    self.inner.disks.clear(self.task);
                }
                Ok(false) => return,
                Err(error) if error.is_stale() => {
                    tracing::info!(task = %self.task, "its claim is gone");
                    return;
                }
                // Somebody else moved the task; look where it is now.
                Err(error) if error.is_repeated() => {
                    tracing::debug!(task = %self.task, %error, "outdated");
                }
                Err(EngineError::DiskFull(full)) => {
                    tracing::warn!(task = %self.task, %full, "waiting for free disk space");
                    let cancel = &self.handle.cancel;
                    let waited = (self.inner.disks).wait(self.task, &full, disk_retry, cancel);
                    waited.await;
                    disk_retry = (disk_retry * 2).min(DISK_RETRY_MAX);
                }
                Err(error) => {
                    tracing::warn!(task = %self.task, %error, "trouble; looking again");
                    let pace = self.inner.options.retry_pace;
                    let wait = tokio::time::sleep(pace.wait(trouble));
                    let _ = self.handle.cancel.run_until_cancelled(wait).await;
                    trouble = (trouble * 2).min(TROUBLE_MAX);
                    // The database comes back, and rules are the person's, who is told of them.
                    if !matches!(error, EngineError::Store(_) | EngineError::Config(_)) {
                        troubles += 1;
                    }
                    if troubles >= TROUBLES_MAX {
                        troubles = 0;
                        if let Err(error) = self.give_up(error).await {
                            tracing::warn!(task = %self.task, %error, "it could not be given up");
                        }
                    }
                }
            }
        }
    }

    /// Does what the task's state needs; `false` when there is nothing left to do under this claim.
    async fn advance(&self) -> Result<bool> {
        let Some(task) = self.inner.store.load_task(self.task).await? else {
            return Ok(false);
        };
        if task.epoch != self.handle.epoch || task.holder != Some(self.inner.worker) {
            return Ok(false);
        }
        let project = self.inner.require_project(task.project)?;
        let state = task.state.clone();
        let config = match project.load_config().await {
            Ok(config) => config,
            // Rules that make no sense stop nothing that is under way, but nothing starts under them.
            Err(EngineError::Config(error)) if matches!(state, State::Preparing { .. }) => {
                // Which limits would hold is what can't be read.
                let policy = Policy::default();
                let error = EngineError::Config(error);
                return self.not_prepared(&task, error, &policy).await;
            }
            Err(error) => return Err(error),
        };
        let scene = Scene {
            task,
            project,
            config,
        };
        let done = match &state {
            State::Preparing { run, purpose } => self.prepare(&scene, *run, purpose).await,
            State::Working { run, purpose } | State::Waiting { run, purpose, .. } => {
                self.work(&scene, *run, purpose).await
            }
            State::Verifying { commit } => self.verify(&scene, commit).await,
            _ => Ok(false),
        };
        done.map_err(|error| {
            let is_outdated = error.is_stale() || error.is_repeated();
            match disk::behind(&error, &self.disks(&scene)) {
                Some(full) if !is_outdated => EngineError::DiskFull(full),
                _ => error,
            }
        })
    }

    /// The directories on whose disks a task's work is done.
    fn disks(&self, scene: &Scene) -> [PathBuf; 3] {
        [
            scene.project.worktrees(),
            scene.project.repo.common_dir().to_owned(),
            self.inner.options.paths.state().to_owned(),
        ]
    }

    /// What was tried over and over does not work: a failed attempt, of which there are only so many.
    async fn give_up(&self, error: EngineError) -> Result<()> {
        let Some(task) = self.inner.store.load_task(self.task).await? else {
            return Ok(());
        };
        let config = self.inner.require_project(task.project)?.config().await?;
        let note = error.into_note();
        let fact = match task.state {
            State::Working { run, .. } | State::Waiting { run, .. } => Fact::RunFinished {
                run,
                outcome: Outcome::Broke { note },
                total: Spend::NONE,
            },
            State::Verifying { commit } => Fact::GatesFinished {
                commit,
                tree: None,
                reports: verify::none_ran(&config),
                risky: true,
                embedded: Vec::new(),
                next_run: RunId::new(fresh_uuid()),
            },
            _ => return Ok(()),
        };
        self.report(&config, fact).await.map(|_| ())
    }

    /// Says something under the claim. `true` when the claim goes on.
    async fn report(&self, config: &Config, fact: Fact) -> Result<bool> {
        let event = crate::clock::event(self.inner.claim(self.handle.epoch), fact);
        let Transition { next, .. } = self
            .inner
            .persist(self.task, event, &config.policy())
            .await?;
        Ok(next.holder == Some(self.inner.worker) && next.epoch == self.handle.epoch)
    }
}
