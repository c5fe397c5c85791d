//! The engine: one process that speaks for this machine.
//!
//! It claims tasks, drives each held task, performs what transitions ask for, lands what is approved,
//! and keeps its leases alive. Every loop looks at what is recorded and acts on that: being woken is
//! only a reason to look, so that a restart goes on exactly where a crash left off.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use woodward_core::lease::LeaseTiming;
use woodward_core::{
    Actor, Epoch, Event, EventSeq, Fact, ProjectId, Task, TaskId, Timestamp, Transition, WorkerId,
};
use woodward_store::{Activity, Due, PostgresStore, SqliteStore, Store, StoreError};

use crate::agent::available::Waits;
use crate::agent::price::{self, Prices};
use crate::clock;
use crate::directory_watch::DirectoryWatcher;
use crate::disk::{self, DiskWaits};
use crate::drive::Drivers;
use crate::effects::Outbox;
use crate::error::{EngineError, Result};
use crate::evidence::Book;
use crate::gate::slots::{Questions, Slots};
use crate::gate::verdicts::Verdicts;
use crate::git::Door;
use crate::handover::Handover;
use crate::land::Landers;
use crate::notify::Notices;
use crate::paths::Paths;
use crate::project::Project;
use crate::radar::Radar;
use crate::start;
use crate::supervise::{Pool, Program};
use crate::tail::Tail;
use crate::task_cache::TaskCache;

/// How long a refused or unreachable database is left alone.
const STORE_RETRY: Duration = Duration::from_millis(100);
const STORE_RETRY_MAX: Duration = Duration::from_secs(2);

/// How long a reader of the database sleeps that nobody wakes. What this process writes always wakes, what
/// others write may not.
const SLEEP_MAX: Duration = Duration::from_secs(3_600);
const SLEEP_MAX_SHARED: Duration = Duration::from_secs(30);
/// How long it waits after the database gave no answer.
const READ_RETRY: Duration = Duration::from_secs(1);

/// Where the state is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// In a file of the state directory.
    Sqlite,
    /// In a PostgreSQL server, for several machines.
    Postgres(String),
}

impl Database {
    /// The one word for it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    pub(crate) async fn open(&self, file: &Path) -> Result<Arc<dyn Store>> {
        Ok(match self {
            Self::Sqlite => Arc::new(SqliteStore::open(file)?),
            Self::Postgres(url) => Arc::new(PostgresStore::connect(url).await?),
        })
    }
}

/// How an engine is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where things are.
    pub paths: Paths,
    /// Where the state is kept.
    pub database: Database,
    /// How a supervisor is started.
    pub supervisor: Program,
    /// This program, for agents that want to ask something.
    pub program: PathBuf,
    /// The rhythm of leases.
    pub timing: LeaseTiming,
    /// How soon what failed is tried again.
    pub retry_pace: RetryPace,
}

/// How many times sooner than usual a driver or a landing that failed is tried again. Only tests are in
/// a hurry; the order of attempts, their number and how they come further apart stay the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPace(NonZeroU32);

impl Default for RetryPace {
    fn default() -> Self {
        Self(NonZeroU32::MIN)
    }
}

impl RetryPace {
    /// So many times sooner than usual.
    pub const fn faster(times: NonZeroU32) -> Self {
        Self(times)
    }

    /// What a wait is at this pace.
    pub(crate) fn wait(self, usual: Duration) -> Duration {
        usual / self.0.get()
    }
}

/// A running engine. Clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) worker: WorkerId,
    /// The one door for git.
    pub(crate) git: Door,
    pub(crate) started_at: Timestamp,
    pub(crate) projects: RwLock<HashMap<ProjectId, Arc<Project>>>,
    /// Projects whose repository could not be opened, and why.
    pub(crate) absent: Mutex<HashMap<ProjectId, String>>,
    pub(crate) drivers: Drivers,
    pub(crate) landers: Landers,
    pub(crate) outbox: Outbox,
    /// Whoever starts a run under a budget: what one reserves, the next one must see.
    pub(crate) budget: tokio::sync::Mutex<()>,
    pub(crate) evidence: Book,
    /// Open tasks as they were last read.
    pub(crate) task_cache: TaskCache,
    /// Tasks that wait for room on a disk.
    pub(crate) disks: DiskWaits,
    pub(crate) tail: Tail,
    /// What is on its way to people.
    pub(crate) notices: Notices,
    /// Where tasks under way meet.
    pub(crate) radar: Radar,
    /// Agents whose providers said to wait.
    pub(crate) waits: Waits,
    /// Variables that people's shells handed over.
    pub(crate) handover: Handover,
    /// What tokens cost.
    pub(crate) prices: Prices,
    /// Gates at once, over all tasks.
    pub(crate) slots: Slots,
    /// Supervisors for gates.
    pub(crate) runners: Pool,
    /// What gates said a moment ago.
    pub(crate) verdicts: Verdicts,
    /// Questions about bases.
    pub(crate) baselines: Questions,
    /// There may be something to do.
    pub(crate) look: Notify,
    /// There is something in the ledger that rules may answer to.
    pub(crate) react: Notify,
    /// A lease was taken: from now on it must be renewed.
    pub(crate) lease_taken: Notify,
    /// Counts changes of rules and of a person's own settings.
    pub(crate) settings: watch::Sender<u64>,
    /// Counts looks at what no event tells, for all who look with them.
    pub(crate) tick: watch::Sender<u64>,
    /// Directories in which somebody waits for files.
    pub(crate) directories: DirectoryWatcher,
    /// The state directory was removed.
    pub(crate) state_lost: CancellationToken,
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) ready: AtomicBool,
    /// Where news from outside is taken over TCP.
    pub(crate) listen: std::sync::OnceLock<std::net::SocketAddr>,
    /// Held as long as the engine lives.
    pub(crate) lock: std::fs::File,
}

impl Engine {
    /// Opens the state, takes up what was under way, and starts to work.
    ///
    /// # Errors
    /// When another engine has this state, or it can't be opened.
    pub async fn start(options: Options) -> Result<Self> {
        let lock = start::lock(&options.paths).await?;
        let store = start::open(&options).await?;
        let worker = start::worker(&options.paths)?;
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let jobs_pipe = options.paths.state().join("jobs");
        let inner = Arc::new(Inner {
            budget: tokio::sync::Mutex::new(()),
            task_cache: TaskCache::default(),
            evidence: Book::new(options.paths.state().join("evidence")),
            disks: DiskWaits::default(),
            git: Door::new(options.paths.digest()),
            tail: Tail::default(),
            notices: Notices::default(),
            radar: Radar::default(),
            waits: Waits::load(options.paths.state().join("agents/waits.json")),
            handover: Handover::new(options.paths.state().join("agents/variables")),
            prices: price::Prices::load(&price::own_table()).unwrap_or_else(|error| {
                tracing::warn!(error, "only the built-in prices count");
                Prices::built_in()
            }),
            runners: Pool::new(options.supervisor.clone()),
            options,
            store,
            worker,
            started_at: clock::now(),
            projects: RwLock::default(),
            absent: Mutex::default(),
            drivers: Drivers::default(),
            landers: Landers::default(),
            outbox: Outbox::default(),
            slots: Slots::new(u32::try_from(cores.max(2)).unwrap_or(2), jobs_pipe),
            verdicts: Verdicts::default(),
            baselines: Questions::default(),
            look: Notify::new(),
            react: Notify::new(),
            lease_taken: Notify::new(),
            settings: watch::Sender::new(0),
            tick: watch::Sender::new(0),
            directories: DirectoryWatcher::new(),
            state_lost: CancellationToken::new(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            ready: AtomicBool::new(false),
            listen: std::sync::OnceLock::new(),
            lock,
        });
        start::recover(&inner).await?;
        start::loops(&inner);
        inner.ready.store(true, Ordering::Release);
        Ok(Self { inner })
    }

    /// Stops working and lets go of the state. Agents go on; the next engine takes them up.
    pub async fn stop(self) {
        self.inner.stopping.cancel();
        self.inner.tasks.close();
        // A git command under way is let finish; whatever takes longer is taken up by the next one.
        let _ = tokio::time::timeout(Duration::from_secs(10), self.inner.tasks.wait()).await;
        self.inner.runners.close().await;
    }

    /// Says where news from outside is taken over TCP, so that people can be told.
    pub fn listens_on(&self, address: std::net::SocketAddr) {
        let _ = self.inner.listen.set(address);
    }

    /// Resolves once the engine was told to stop.
    pub async fn stopped(&self) {
        self.inner.stopping.cancelled().await;
    }

    /// Resolves once the state directory is gone. From then on the engine must write nothing, so it is not
    /// stopped but dropped.
    pub async fn state_lost(&self) {
        self.inner.state_lost.cancelled().await;
    }

    /// Waits until the log is not at this place any more.
    pub async fn wait_for_event_after(&self, known: EventSeq) {
        self.inner.tail.wait_for_change(known).await;
    }

    /// How many operations its database has performed.
    pub fn activity(&self) -> Activity {
        self.inner.store.activity()
    }

    /// Tells the engine to stop.
    pub fn begin_stop(&self) {
        self.inner.stopping.cancel();
    }
}

impl Inner {
    pub(crate) fn project(&self, id: ProjectId) -> Option<Arc<Project>> {
        let projects = self.projects.read().unwrap_or_else(|e| e.into_inner());
        projects.get(&id).cloned()
    }

    pub(crate) fn all_projects(&self) -> Vec<Arc<Project>> {
        let projects = self.projects.read().unwrap_or_else(|e| e.into_inner());
        projects.values().cloned().collect()
    }

    pub(crate) fn require_project(&self, id: ProjectId) -> Result<Arc<Project>> {
        self.project(id).ok_or_else(|| {
            let absent = self.absent.lock().unwrap_or_else(|e| e.into_inner());
            let why = absent.get(&id).cloned();
            EngineError::Store(StoreError::NotFound {
                what: why.unwrap_or_else(|| format!("project {id}")),
            })
        })
    }

    /// The longest that a reader of the database sleeps that nobody wakes.
    pub(crate) const fn sleep_max(&self) -> Duration {
        match self.options.database {
            Database::Sqlite => SLEEP_MAX,
            Database::Postgres(_) => SLEEP_MAX_SHARED,
        }
    }

    /// How long until something on record becomes due by itself.
    pub(crate) async fn until_due(&self, due: Due) -> Duration {
        match self.store.next_due(due).await {
            Ok(Some(wait)) => Duration::from_millis(wait.0).min(self.sleep_max()),
            Ok(None) => self.sleep_max(),
            Err(error) => {
                tracing::debug!(%error, "what is due can't be read now");
                READ_RETRY
            }
        }
    }

    /// What the holder of a claim says.
    pub(crate) const fn claim(&self, epoch: Epoch) -> Actor {
        Actor::Claim {
            worker: self.worker,
            epoch,
        }
    }

    /// Records a fact about a task, under the rules of its project.
    pub(crate) async fn record(&self, task: &Task, actor: Actor, fact: Fact) -> Result<Transition> {
        let project = self.require_project(task.project)?;
        let config = project.config().await?;
        self.persist(task.id, clock::event(actor, fact), &config.policy())
            .await
    }

    /// Writes one event, and goes on trying while the database is only out of reach: the same event
    /// twice is one event.
    pub(crate) async fn persist(
        &self,
        task: TaskId,
        event: Event,
        policy: &woodward_core::Policy,
    ) -> Result<Transition> {
        let mut wait = STORE_RETRY;
        let mut waited_for_disk = false;
        loop {
            match self
                .store
                .advance(task, event.clone(), policy.clone())
                .await
            {
                Ok(transition) => {
                    if waited_for_disk {
                        self.disks.clear(task);
                    }
                    return Ok(transition);
                }
                Err(
                    error @ (StoreError::Unavailable(_)
                    | StoreError::CommitUnknown
                    | StoreError::DiskFull),
                ) if !self.stopping.is_cancelled() => {
                    let state = self.options.paths.state().to_owned();
                    if let (StoreError::DiskFull, Some(full)) = (error, disk::find_full(&[state])) {
                        self.disks.note(task, full);
                        waited_for_disk = true;
                    }
                    tracing::warn!(%task, fact = event.fact.as_str(), "the database is out of reach; trying again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(STORE_RETRY_MAX);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
