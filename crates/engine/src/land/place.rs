//! Clean directories in which gates look at a commit.
//!
//! They belong to Woodward alone: whatever gates leave in them is thrown away. Ignored files (build
//! caches) stay, which is what makes the next gate fast. What the project copies or sets up for its
//! agents is there for its gates, too.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use woodward_core::queue::learn::SLOTS_MAX;
use woodward_core::{CommitId, risk};

use crate::config::Config;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::gate::content::digest;
use crate::project::Project;
use crate::setup::{self, Setup};
use crate::{files, gate, run_env};

/// For so long after its first use of a project's directories, an engine does not end the gates that an
/// earlier engine has started there: their tasks are about to take them up.
const TAKE_UP_MAX: Duration = Duration::from_secs(30);
const TAKE_UP_PAUSE: Duration = Duration::from_millis(50);

/// What a directory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Use {
    /// Results of tasks.
    Verify,
    /// Merged trees on their way to a branch.
    Landing,
    /// What tasks start from.
    Base,
}

impl Use {
    /// The name of one of its directories.
    fn name(self, number: usize) -> String {
        match number {
            1 => self.as_str().to_owned(),
            _ => format!("{}-{number}", self.as_str()),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Landing => "landing",
            Self::Base => "base",
        }
    }

    /// How many directories there are for it.
    fn count(self) -> usize {
        match self {
            // No fewer than gates can run at once: a slow one must not keep the others waiting. Only as
            // many are made as are needed at the same time.
            Self::Verify => {
                let cores = std::thread::available_parallelism().map_or(2, usize::from);
                cores.clamp(2, 8)
            }
            Self::Base => 2,
            // As many merged trees as are ever looked at at once.
            Self::Landing => SLOTS_MAX,
        }
    }
}

/// The directories of one project for one use.
#[derive(Debug)]
pub(super) struct Pool {
    free: std::sync::Mutex<Vec<usize>>,
    permits: Arc<Semaphore>,
    first_used: Instant,
}

impl Pool {
    fn new(count: usize) -> Self {
        Self {
            // The first is taken first: its caches are the warmest.
            free: std::sync::Mutex::new((1..=count).rev().collect()),
            permits: Arc::new(Semaphore::new(count)),
            first_used: Instant::now(),
        }
    }
}

/// Whose gates run in a place.
#[derive(Debug, Serialize, Deserialize)]
struct User {
    job: PathBuf,
    /// Whether everything they need was there when they began.
    #[serde(default)]
    ready: bool,
}

impl User {
    fn file(inner: &Inner, project: &Project, place: &str) -> PathBuf {
        let places = inner.options.paths.state().join("places");
        places.join(format!("{}-{place}.json", project.id()))
    }

    fn load(inner: &Inner, project: &Project, place: &str) -> Option<Self> {
        files::load_json(&Self::file(inner, project, place))
    }

    /// Not durable: what ran before a power cut runs no more.
    fn save(&self, inner: &Inner, project: &Project, place: &str) -> Result<()> {
        let file = Self::file(inner, project, place);
        files::save_json_lazily(&file, self).map_err(EngineError::file(file.display().to_string()))
    }
}

/// The jobs whose gates run in a project's directories for a use, whoever started them.
pub(super) fn running(inner: &Inner, project: &Project, use_: Use) -> Vec<PathBuf> {
    let user = |number| User::load(inner, project, &use_.name(number));
    let jobs = (1..=use_.count()).filter_map(user).map(|user| user.job);
    jobs.filter(|job| gate::is_running(job)).collect()
}

/// What a place was set up for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ready {
    setup: String,
}

/// A checkout of a commit, ours alone while it is held.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    _held: Held,
}

impl Place {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The right to use one of a project's directories.
#[derive(Debug)]
pub(crate) struct Held {
    name: String,
    number: usize,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut free = self.pool.free.lock().unwrap_or_else(|e| e.into_inner());
        free.push(self.number);
        free.sort_unstable_by(|a, b| b.cmp(a));
    }
}

/// Waits until one of a project's directories for this use is free: the one that the job has used
/// before, if there is one, else one in which nothing runs.
pub(crate) async fn turn(inner: &Inner, project: &Project, use_: Use, job: &Path) -> Result<Held> {
    let pool = {
        let mut places = inner
            .landers
            .places
            .lock()
            .unwrap_or_else(|e| e.into_inner());
        let pool = places.entry((project.id(), use_));
        Arc::clone(pool.or_insert_with(|| Arc::new(Pool::new(use_.count()))))
    };
    let occupancy = |number: &usize| match User::load(inner, project, &use_.name(*number)) {
        Some(user) if user.job == *job => Occupancy::Own,
        Some(user) if gate::is_running(&user.job) => Occupancy::Running,
        _ => Occupancy::Idle,
    };
    loop {
        let permit = Arc::clone(&pool.permits).acquire_owned().await;
        let permit = permit.map_err(|_| EngineError::interrupted())?;
        let number = {
            let mut free = pool.free.lock().unwrap_or_else(|e| e.into_inner());
            let found: Vec<Occupancy> = free.iter().map(occupancy).collect();
            let may_end_gates = pool.first_used.elapsed() > TAKE_UP_MAX;
            choose(&found, may_end_gates).map(|at| free.remove(at))
        };
        if let Some(number) = number {
            return Ok(Held {
                name: use_.name(number),
                number,
                pool,
                _permit: permit,
            });
        }
        // Those whose gates run there need the permit to take them up.
        drop(permit);
        tokio::time::sleep(TAKE_UP_PAUSE).await;
    }
}

/// What is going on in a directory that this engine does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occupancy {
    /// The job that wants a directory has used it before.
    Own,
    Idle,
    /// Gates of another job run there, which an earlier engine has started.
    Running,
}

/// The directory to take, by its position among the free ones. The last ones are taken first.
fn choose(free: &[Occupancy], may_end_gates: bool) -> Option<usize> {
    let last = |wanted| free.iter().rposition(|found| *found == wanted);
    let running = || last(Occupancy::Running).filter(|_| may_end_gates);
    last(Occupancy::Own)
        .or_else(|| last(Occupancy::Idle))
        .or_else(running)
}

/// A clean checkout of `commit`, in the directory that is held, for the gates of `job`, set up as the
/// project wants. Gates that an earlier engine left running there are ended first.
pub(crate) async fn checkout(
    inner: &Inner,
    project: &Project,
    config: &Config,
    held: Held,
    commit: &CommitId,
    job: &Path,
    cancel: &CancellationToken,
) -> Result<Place> {
    let path = project.worktrees().join(".gates").join(&held.name);
    match User::load(inner, project, &held.name) {
        Some(user) if user.job != job => {
            if gate::is_running(&user.job) {
                let (place, job) = (path.display(), user.job.display());
                tracing::info!(%place, %job, "gates that an earlier engine has started are ended");
            }
            gate::stop_all(&user.job).await?;
        }
        // Nothing is changed under the feet of a gate that runs.
        Some(user) if user.ready && gate::is_running(job) => {
            return Ok(Place { path, _held: held });
        }
        _ => {}
    }
    let name = held.name.clone();
    let mut user = User {
        job: job.to_owned(),
        ready: false,
    };
    user.save(inner, project, &name)?;
    let is_new = !path.join(".git").exists();
    project.repo.checkout_detached(&path, commit).await?;
    let place = Place { path, _held: held };
    place
        .set_up(inner, project, config, commit, job, is_new, cancel)
        .await?;
    user.ready = true;
    user.save(inner, project, &name)?;
    Ok(place)
}

impl Place {
    /// Copies and sets up what the project names, when the directory is new or what that depends on
    /// has changed.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing that is known of the place"
    )]
    async fn set_up(
        &self,
        inner: &Inner,
        project: &Project,
        config: &Config,
        commit: &CommitId,
        job: &Path,
        is_new: bool,
        cancel: &CancellationToken,
    ) -> Result<()> {
        let wishes = &config.worktree;
        if wishes.copy.is_empty() && wishes.setup.is_empty() {
            return Ok(());
        }
        let name = format!("{}-{}.ready.json", project.id(), self._held.name);
        let file = inner.options.paths.state().join("places").join(name);
        let wanted = Ready {
            setup: what_it_depends_on(project, config, commit).await?,
        };
        if !is_new && files::load_json::<Ready>(&file).as_ref() == Some(&wanted) {
            return Ok(());
        }
        tracing::info!(place = %self.path.display(), "setting up");
        for named in &wishes.copy {
            // An older copy, under a plain name.
            if !named.contains('*') {
                discard(&self.path, named).await;
            }
        }
        let mut env = run_env::of_project(inner, project, config);
        env.insert(
            run_env::WORKTREE.to_owned(),
            self.path.display().to_string(),
        );
        let setup = Setup {
            path: &self.path,
            dir: job.join("setup-"),
            env,
            mark: format!("{}-{commit}", self._held.name),
        };
        setup::run(inner, project, config, &setup, cancel).await?;
        files::save_json(&file, &wanted).map_err(EngineError::file(file.display().to_string()))
    }
}

/// Removes a copy of ours in a directory of ours. Never through a link: what a link leads to is
/// somebody else's.
async fn discard(place: &Path, named: &str) {
    let path = place.join(named);
    let (Ok(inside), Some(Ok(parent))) =
        (place.canonicalize(), path.parent().map(Path::canonicalize))
    else {
        return;
    };
    if !parent.starts_with(&inside) {
        tracing::warn!(path = %path.display(), "an old copy lies behind a link and stays");
        return;
    }
    let removed = match tokio::fs::symlink_metadata(&path).await {
        Ok(found) if found.is_dir() => tokio::fs::remove_dir_all(&path).await,
        Ok(_) => tokio::fs::remove_file(&path).await,
        Err(_) => return,
    };
    if let Err(error) = removed {
        tracing::warn!(path = %path.display(), %error, "an old copy could not be removed");
    }
}

/// A digest of what setup is made of: its commands, the project's lists of dependencies, and what is
/// copied.
async fn what_it_depends_on(
    project: &Project,
    config: &Config,
    commit: &CommitId,
) -> Result<String> {
    use std::os::unix::fs::MetadataExt as _;
    let wishes = &config.worktree;
    let mut text = format!("{:?}\n{:?}\n", wishes.copy, wishes.setup);
    for named in &wishes.copy {
        if let Ok(found) = std::fs::metadata(project.root().join(named)) {
            text.push_str(&format!("{named} {} {}\n", found.size(), found.mtime()));
        }
    }
    if !wishes.setup.is_empty() {
        let tree = project.repo.tree_of(commit).await?;
        for (path, line) in project.repo.list_tree(&tree).await? {
            if risk::is_about_dependencies(&path) {
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
    Ok(digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_of_an_earlier_engine_are_only_ended_when_their_tasks_had_time_to_take_them_up() {
        use Occupancy::{Idle, Own, Running};
        assert_eq!(choose(&[Own, Idle, Running], false), Some(0));
        assert_eq!(choose(&[Running, Idle, Idle, Running], false), Some(2));
        assert_eq!(choose(&[Running, Running], false), None);
        assert_eq!(choose(&[Running, Running], true), Some(1));
        assert_eq!(choose(&[Idle, Running], true), Some(0));
    }

    #[tokio::test]
    async fn an_old_copy_goes_but_nothing_that_a_link_leads_to() {
        let around = tempfile::tempdir().unwrap();
        let (place, person) = (around.path().join("place"), around.path().join("person"));
        for dir in [&place, &person] {
            std::fs::create_dir_all(dir.join("deep")).unwrap();
            std::fs::write(dir.join("deep/file"), "words").unwrap();
        }
        std::os::unix::fs::symlink(&person, place.join("link")).unwrap();
        for named in [
            "link/deep",
            "link/deep/file",
            "../person/deep",
            "deep",
            "link",
        ] {
            discard(&place, named).await;
        }
        assert!(!place.join("deep").exists());
        assert!(std::fs::symlink_metadata(place.join("link")).is_err());
        let kept = std::fs::read_to_string(person.join("deep/file"));
        assert_eq!(kept.unwrap(), "words");
    }
}
