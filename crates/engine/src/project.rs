//! A project as the engine works on it: its repository, its places, its rules.
//!
//! Rules are read from the trusted base commit. Only where that has none at all does the file in the
//! person's own checkout count: no agent can write there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use woodward_api::{Code, Problem, ProjectView};
use woodward_core::hint::NextCommand;
use woodward_core::risk::{self, EmbeddedRepository, FileSizeLimits, Signal, Touched, signals};
use woodward_core::{CommitId, Epoch, ProjectId, Task, TaskName};
use woodward_store as store;

use crate::config::Config;
use crate::error::{EngineError, Result};
use crate::files;
use crate::gate::content::Covered;
use crate::git::{Door, FileObject, FileStat, Repo, Side};
use crate::outside::{FileVersion, RulesVersion};
use crate::paths::Paths;
use crate::targets::Targets;
use std::sync::Arc;

/// How much of a patch is searched for what it does to tests.
const PATCH_MAX: usize = 2 << 20;

/// The file with a project's rules.
pub const CONFIG_FILE: &str = crate::config::FILE_NAME;
/// How long rules are believed without another look, where being late does no harm.
const FRESH: Duration = Duration::from_secs(1);

/// One project.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) record: store::Project,
    pub(crate) repo: Repo,
    /// The branch that rules are read from, and that tasks start from unless they say otherwise.
    base: String,
    rules: Mutex<Option<(Instant, Arc<Config>)>>,
    /// The rules' text as a tip of the base has it.
    committed: Mutex<Option<(CommitId, Option<Vec<u8>>)>>,
    /// What gates cover in trees.
    pub(crate) covered: Covered,
    /// Which commits were part of its target branches.
    pub(crate) targets: Targets,
    /// Why nothing starts, as last said.
    complaint: Mutex<Option<String>>,
}

/// What is remembered of a project besides the database's row.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    base: String,
}

impl Project {
    /// Opens a known project's repository.
    /// `base` counts only for one that is opened for the first time.
    pub(crate) async fn open(
        record: store::Project,
        paths: &Paths,
        git: &Door,
        base: Option<&str>,
    ) -> Result<Self> {
        let repo = Repo::discover(git, Path::new(&record.root)).await?;
        let file = paths
            .state()
            .join("projects")
            .join(format!("{}.json", record.id));
        let base = match files::load_json::<Remembered>(&file) {
            Some(remembered) => remembered.base,
            None => {
                let base = match base {
                    Some(base) => base.to_owned(),
                    None => repo.default_base().await?,
                };
                files::save_json(&file, &Remembered { base: base.clone() })
                    .map_err(EngineError::file(file.display().to_string()))?;
                base
            }
        };
        let targets = paths.state().join("targets");
        let targets = Targets::load(targets.join(format!("{}.json", record.id)));
        Ok(Self {
            record,
            repo,
            base,
            rules: Mutex::default(),
            committed: Mutex::default(),
            covered: Covered::default(),
            targets,
            complaint: Mutex::default(),
        })
    }

    /// By what its rules are known to be the same, without asking git.
    pub(crate) fn rules_version(&self) -> RulesVersion {
        (
            self.repo.loose_tip(&self.base),
            FileVersion::of(&self.root().join(CONFIG_FILE)),
        )
    }

    /// Says why nothing starts, once for each reason.
    pub(crate) fn complain(&self, now: Option<String>, say: impl FnOnce(&str)) {
        let mut complaint = self.complaint.lock().unwrap_or_else(|e| e.into_inner());
        if *complaint != now {
            if let Some(now) = &now {
                say(now);
            }
            *complaint = now;
        }
    }

    pub(crate) const fn id(&self) -> ProjectId {
        self.record.id
    }

    /// The person's checkout.
    pub(crate) fn root(&self) -> &Path {
        self.repo.root()
    }

    /// Whether it was made with this base.
    pub(crate) fn starts_from(&self, base: &str) -> bool {
        self.base == base
    }

    /// The branch tasks start from and land on unless they say otherwise.
    pub(crate) fn base(&self, config: &Config) -> String {
        config.base.clone().unwrap_or_else(|| self.base.clone())
    }

    /// Where its worktrees are: beside the repository, never inside.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.repo.worktrees_dir()
    }

    /// A task's working directory.
    pub(crate) fn worktree(&self, task: &TaskName) -> PathBuf {
        self.worktrees().join(task.as_str())
    }

    /// The branch of the worktree that a claim makes.
    pub(crate) fn branch(config: &Config, task: &Task, epoch: Epoch) -> String {
        config.worktree.branch.branch(&task.name, epoch)
    }

    /// What tasks for a branch build on: where it is, or where it was last seen on the remote that
    /// decides, if that is further. That is recorded as part of the branch.
    pub(crate) async fn ground(&self, config: &Config, branch: &str) -> Result<CommitId> {
        let mut tip = self.repo.require_tip(branch).await?;
        if let Some(remote) = &config.queue.remote
            && let Some(theirs) = self.repo.fetched(remote, branch).await?
            && self.repo.is_ancestor(&tip, &theirs).await?
        {
            tip = theirs;
        }
        self.observe(branch, &tip).await?;
        Ok(tip)
    }

    /// The rules as they are now.
    pub(crate) async fn load_config(&self) -> Result<Arc<Config>> {
        let config = Arc::new(self.read_config().await?);
        let mut rules = self.rules.lock().unwrap_or_else(|e| e.into_inner());
        *rules = Some((Instant::now(), Arc::clone(&config)));
        Ok(config)
    }

    /// The rules as they were a moment ago at most.
    pub(crate) async fn config(&self) -> Result<Arc<Config>> {
        let known = self.rules.lock().unwrap_or_else(|e| e.into_inner()).clone();
        match known {
            Some((at, config)) if at.elapsed() < FRESH => Ok(config),
            _ => self.load_config().await,
        }
    }

    /// The rules as last known, for showing only. They are looked at again meanwhile, so that the next
    /// one who asks sees what changed.
    pub(crate) async fn config_to_show(self: &Arc<Self>) -> Result<Arc<Config>> {
        let known = self.rules.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let Some((at, config)) = known else {
            return self.load_config().await;
        };
        if at.elapsed() >= FRESH {
            let project = Arc::clone(self);
            tokio::spawn(async move {
                if project.load_config().await.is_err() {
                    // Now they make no sense: the next one who asks is told.
                    *project.rules.lock().unwrap_or_else(|e| e.into_inner()) = None;
                }
            });
        }
        Ok(config)
    }

    /// The rules as the trusted base has them.
    pub(crate) async fn committed_config(&self) -> Result<Option<Vec<u8>>> {
        let tip = self.repo.loose_tip(&self.base);
        let known = self
            .committed
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .clone();
        if let (Some(tip), Some((at, file))) = (&tip, known)
            && *tip == at
        {
            return Ok(file);
        }
        let file = self.repo.file_at_branch(&self.base, CONFIG_FILE).await?;
        // The branch may have moved between the two looks: then what was read is not that tip's.
        if let Some(tip) = tip
            && self.repo.loose_tip(&self.base).as_ref() == Some(&tip)
        {
            let mut committed = self.committed.lock().unwrap_or_else(|e| e.into_inner());
            *committed = Some((tip, file.clone()));
        }
        Ok(file)
    }

    /// The base has moved by our own hand: where that left the rules' file alone, they are still known.
    pub(crate) async fn moved(&self, branch: &str, old: &CommitId, new: &CommitId) {
        self.targets.advanced(branch, old, new);
        if branch != self.base {
            return;
        }
        let same = self.repo.is_same_file(CONFIG_FILE, old, new).await;
        let mut committed = self.committed.lock().unwrap_or_else(|e| e.into_inner());
        if let (Some((at, _)), Ok(true)) = (committed.as_mut(), same)
            && at == old
        {
            *at = new.clone();
        }
    }

    async fn read_config(&self) -> Result<Config> {
        if let Some(bytes) = self.committed_config().await? {
            let text = String::from_utf8_lossy(&bytes);
            return Ok(Config::parse(
                &text,
                &format!("{}:{CONFIG_FILE}", self.base),
            )?);
        }
        let file = self.root().join(CONFIG_FILE);
        match std::fs::read_to_string(&file) {
            Ok(text) => Ok(Config::parse(&text, &file.display().to_string())?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
            Err(error) => Err(EngineError::file(file.display().to_string())(error)),
        }
    }

    /// What a task's own commits change.
    pub(crate) async fn change(
        &self,
        task: &Task,
        recorded: &CommitId,
        head: &CommitId,
    ) -> Result<Change> {
        let from = self.change_base(task, Some(recorded), head).await?.commit;
        let files = self.repo.numstat(&from, Side::Commit(head)).await?;
        let names = |file: &FileStat| file.was.clone().into_iter().chain([file.path.clone()]);
        let mut names = files.iter().flat_map(names);
        let code = names.any(|name| risk::may_hold_tests(&name));
        let patch = if code {
            let patch = self.repo.diff(&from, Side::Commit(head), PATCH_MAX).await?;
            String::from_utf8_lossy(&patch.text).into_owned()
        } else {
            String::new()
        };
        let undeclared = self.repo.undeclared_submodules(&from, head, &files).await?;
        let embedded = self.embedded(task, &undeclared);
        let config = self.config().await?;
        let (oversize, links) = self.file_risks(&files, config.file_sizes).await?;
        Ok(Change {
            files,
            patch,
            scope: task.spec.paths.clone(),
            gates: (config.gates().iter())
                .map(|gate| gate.command.shown())
                .collect(),
            oversize,
            links,
            embedded,
        })
    }

    /// The git repositories in a task's result that are not declared submodules.
    fn embedded(&self, task: &Task, undeclared: &[String]) -> Vec<EmbeddedRepository> {
        let worktree = task.worktree.as_ref();
        let worktree = worktree.and_then(|made| {
            let path = self.worktree(&task.name);
            self.repo.worktree(&path, &made.branch).ok()
        });
        let without_commit = worktree
            .map(|worktree| self.repo.repositories_without_commit(&worktree))
            .unwrap_or_default();
        risk::embedded_repositories(
            undeclared.iter().map(String::as_str),
            without_commit.iter().map(String::as_str),
        )
    }

    /// The files that a change made larger than the limits, with their sizes, and the symbolic links
    /// that it adds or redirects, with their targets.
    async fn file_risks(
        &self,
        files: &[FileStat],
        limits: FileSizeLimits,
    ) -> Result<(HashMap<String, u64>, HashMap<String, String>)> {
        let contents = |pick: fn(&FileObject) -> bool| {
            files.iter().filter_map(move |file| {
                let now = file.now.as_ref().filter(|now| pick(now))?;
                let is_new = file.before.as_ref().is_none_or(|old| old.id != now.id);
                is_new.then_some((file, now.id.as_str()))
            })
        };
        let ids: Vec<&str> = contents(FileObject::is_file).map(|(_, id)| id).collect();
        let sizes = self.repo.blob_sizes(&ids).await?;
        let exceeds = |file: &FileStat, bytes: u64| limits.exceeded_by(bytes, file.lines.is_some());
        let mut oversize: Vec<(&FileStat, u64)> = contents(FileObject::is_file)
            .filter_map(|(file, id)| Some((file, *sizes.get(id)?)))
            .filter(|(file, bytes)| exceeds(file, *bytes))
            .collect();
        // What was too large before is no news.
        let before = |file: &FileStat| file.before.as_ref().map(|old| old.id.clone());
        let ids: Vec<String> = oversize.iter().filter_map(|(it, _)| before(it)).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let earlier = self.repo.blob_sizes(&ids).await?;
        oversize.retain(|(file, _)| {
            let old = before(file).and_then(|id| earlier.get(&id).copied());
            !old.is_some_and(|bytes| exceeds(file, bytes))
        });
        let links: Vec<(&FileStat, &str)> = contents(FileObject::is_link).collect();
        let ids: Vec<&str> = links.iter().map(|(_, id)| *id).collect();
        let targets = self.repo.contents(&ids).await?;
        let target = |(file, id): &(&FileStat, &str)| {
            let target = String::from_utf8_lossy(targets.get(*id)?).into_owned();
            Some((file.path.clone(), target))
        };
        Ok((
            (oversize.into_iter())
                .map(|(file, bytes)| (file.path.clone(), bytes))
                .collect(),
            links.iter().filter_map(target).collect(),
        ))
    }

    pub(crate) fn view(&self, config: &Config) -> ProjectView {
        ProjectView {
            id: self.record.id,
            name: self.record.name.clone(),
            root: self.root().display().to_string(),
            base: self.base(config),
            worktrees: self.worktrees().display().to_string(),
            trust: None,
        }
    }
}

/// What a task changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    files: Vec<FileStat>,
    /// The patch, where it may be about tests; bounded.
    patch: String,
    /// What it should keep to.
    scope: Vec<String>,
    /// The commands of the project's gates.
    gates: Vec<String>,
    /// Files that it made larger than the project's limits, with their sizes.
    oversize: HashMap<String, u64>,
    /// Symbolic links that it adds or redirects, with their targets.
    links: HashMap<String, String>,
    /// Git repositories in it that are not declared submodules.
    embedded: Vec<EmbeddedRepository>,
}

impl Change {
    pub(crate) fn files(&self) -> &[FileStat] {
        &self.files
    }

    /// The files that it touches, by all their names.
    pub(crate) fn paths(&self) -> Vec<String> {
        let names = |file: &FileStat| {
            let was = file.was.clone();
            was.into_iter().chain([file.path.clone()])
        };
        self.files.iter().flat_map(names).collect()
    }

    /// The files that it touches and should not.
    pub(crate) fn outside(&self) -> Vec<String> {
        risk::outside(&self.scope, &self.paths())
    }

    /// The git repositories in it that are not declared submodules.
    pub(crate) fn embedded(&self) -> &[EmbeddedRepository] {
        &self.embedded
    }

    /// What about it deserves a closer look.
    pub(crate) fn signals(&self) -> Vec<Signal> {
        let touched: Vec<Touched> = self
            .files
            .iter()
            .map(|file| Touched {
                path: file.path.clone(),
                was: file.was.clone(),
                lines: file.lines,
                oversize: self.oversize.get(&file.path).copied(),
                link: self.links.get(&file.path).cloned(),
            })
            .collect();
        let mut found = signals(&touched);
        found.extend(risk::weakened(&self.patch));
        let paths = self.paths();
        found.extend(
            self.gates
                .iter()
                .find_map(|command| risk::runs(command, &paths)),
        );
        if let Some(first) = self.outside().into_iter().next() {
            found.push(Signal::Outside(first));
        }
        let embedded = self.embedded.iter().map(|it| it.path.clone());
        found.extend(embedded.map(Signal::EmbeddedRepository));
        found.sort();
        found
    }
}

/// No project contains a directory.
pub(crate) fn unknown(directory: &Path) -> EngineError {
    EngineError::Problem(
        Problem::new(
            Code::NotFound,
            format!("{} belongs to no project", directory.display()),
        )
        .hint(NextCommand::Init.purpose("make its repository one")),
    )
}
