//! Looking at what tasks under way have changed, as seldom as it can be.
//!
//! A branch's tip is a file; whether an agent does anything is seen by its output. Only where one of
//! them says so, or after a while that grows, git is asked what differs in a worktree. A task that is
//! alone is looked at only when its target branch has moved since it began.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use woodward_core::{CommitId, Millis, ProjectId, State, StateKind, Task, TaskId, Version};

use super::picture::{Picture, Watched};
use super::{Published, SideFacts, act};
use crate::clock;
use crate::engine::Inner;
use crate::error::Result;
use crate::git::Seen;
use crate::project::Project;

/// The most tasks of one branch that are compared.
const SIDES_MAX: usize = 128;
/// How often the signs of a working agent are looked at.
const TICK: Duration = Duration::from_secs(2);
/// How long an agent works before it is looked at.
const BEGINS: Millis = Millis::from_secs(1);
/// The longest that a worktree without any sign goes without a look.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// All looks together take at most this part of one core.
const SHARE: u32 = 20;

/// What is watched, project by project.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    projects: HashMap<ProjectId, Watch>,
}

#[derive(Debug, Default)]
struct Watch {
    /// Tasks under way when the log was last read.
    tasks: Vec<Task>,
    sides: HashMap<TaskId, Looked>,
    pictures: HashMap<String, Picture<SideId>>,
    published: Published,
}

/// What is compared: the tasks, and the branch that they land on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum SideId {
    Task(TaskId),
    Target,
}

/// How a side was when it was last looked at.
#[derive(Debug)]
struct Looked {
    version: Version,
    signs: Signs,
    at: Instant,
    /// How long it may go without a look if there is no sign.
    pause: Duration,
    /// How long the look took.
    took: Duration,
    watched: Watched,
}

/// What shows without asking git that an agent did something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Signs {
    tip: Option<CommitId>,
    output: u64,
}

impl Watcher {
    /// Looks at all that is due; says how long until something is due again.
    pub(super) async fn pass(
        &mut self,
        inner: &Arc<Inner>,
        force: bool,
        news: bool,
    ) -> Option<Duration> {
        let mut live = false;
        let projects = inner.all_projects();
        self.projects
            .retain(|id, _| projects.iter().any(|project| project.id() == *id));
        for project in projects {
            let watch = self.projects.entry(project.id()).or_insert_with(|| {
                project.repo.sweep_scratch();
                Watch::default()
            });
            match watch.pass(inner, &project, force, news).await {
                Ok(some) => live |= some,
                Err(error) => {
                    // One project in trouble must not keep the others from being looked at.
                    let name = &project.record.name;
                    tracing::debug!(project = %name, %error, "its branches could not be compared now");
                }
            }
        }
        live.then_some(TICK)
    }
}

/// Whether an agent may be writing just now.
const fn is_live(task: &Task) -> bool {
    matches!(
        task.state.kind(),
        StateKind::Working | StateKind::Waiting | StateKind::Preparing
    )
}

/// Whether all that counts is committed.
const fn is_settled(task: &Task) -> bool {
    matches!(
        task.state.kind(),
        StateKind::Review | StateKind::Landing | StateKind::Verifying
    )
}

impl Watch {
    /// Whether any of its sides may change by itself.
    async fn pass(
        &mut self,
        inner: &Arc<Inner>,
        project: &Arc<Project>,
        force: bool,
        news: bool,
    ) -> Result<bool> {
        if news || force {
            let tasks = inner.open_tasks(project.id()).await?;
            let is_here = |task: &&Task| {
                let worktree = task.worktree.as_ref();
                worktree.is_some_and(|worktree| worktree.worker == inner.worker)
            };
            self.tasks = tasks.iter().filter(is_here).cloned().collect();
        }
        let mut groups: BTreeMap<String, Vec<&Task>> = BTreeMap::new();
        for task in &self.tasks {
            groups.entry(task.spec.base.clone()).or_default().push(task);
        }
        // A task alone can still conflict with what landed since it began.
        groups.retain(|base, tasks| {
            let tip = project.repo.loose_tip(base);
            let is_behind = |task: &&Task| {
                let recorded = task.worktree.as_ref().map(|worktree| &worktree.base);
                tip.is_some() && recorded != tip.as_ref()
            };
            tasks.len() > 1 || tasks.iter().any(is_behind)
        });
        for tasks in groups.values_mut() {
            tasks.sort_by_key(|task| task.id);
            tasks.truncate(SIDES_MAX);
        }
        self.pictures.retain(|base, _| groups.contains_key(base));
        let watched: Vec<&Task> = groups.values().flatten().copied().collect();
        self.sides
            .retain(|id, _| watched.iter().any(|task| task.id == *id));
        let live = watched.iter().filter(|task| is_live(task)).count();
        let pace = Pace::of(live, self.sides.values());
        let mut changed = news;
        for task in &watched {
            changed |= look(inner, project, &mut self.sides, task, force, pace).await;
        }
        if changed {
            let groups: BTreeMap<String, Vec<TaskId>> = groups
                .into_iter()
                .map(|(base, tasks)| (base, tasks.iter().map(|task| task.id).collect()))
                .collect();
            self.compare(inner, project, &groups).await?;
        }
        // Without news, there can be nothing new to do either, unless the picture has changed.
        if changed {
            act::act(inner, project, &self.published).await?;
        }
        Ok(live > 0)
    }

    async fn compare(
        &mut self,
        inner: &Arc<Inner>,
        project: &Arc<Project>,
        groups: &BTreeMap<String, Vec<TaskId>>,
    ) -> Result<()> {
        let mut now = Published::default();
        for (base, tasks) in groups {
            let Some(trunk) = project.repo.tip(base).await? else {
                continue;
            };
            let was_rewritten = project.was_rewritten(base);
            let picture = self
                .pictures
                .entry(base.clone())
                .or_insert_with(|| Picture::new(project.repo.clone()));
            let mut sides: BTreeMap<SideId, Watched> = BTreeMap::new();
            for id in tasks {
                let task = self.tasks.iter().find(|task| task.id == *id);
                let (Some(task), Some(side)) = (task, self.sides.get(id)) else {
                    continue;
                };
                let mut watched = side.watched.clone();
                // While the branch only grows, where a task left it is where its change begins.
                if let (true, Some(head)) = (was_rewritten, &watched.seen.head) {
                    let recorded = task.worktree.as_ref().map(|worktree| &worktree.base);
                    let found = project.change_base(task, recorded, head).await?;
                    watched.base = Some(found.commit);
                }
                sides.insert(SideId::Task(*id), watched);
            }
            let target = Watched {
                seen: Seen::at(trunk.clone()),
                root: None,
                base: None,
                is_target: true,
            };
            sides.insert(SideId::Target, target);
            if let Err(error) = picture.update(&trunk, &sides).await {
                // Perhaps a branch is gone; all of it is worked out anew next time.
                *picture = Picture::new(project.repo.clone());
                return Err(error.into());
            }
            for (id, watched) in &sides {
                let SideId::Task(task) = id else { continue };
                let side = picture.own_change(*id);
                let files = side.iter().flat_map(|side| side.files.keys().cloned());
                let facts = SideFacts {
                    base: base.clone(),
                    files: files.collect(),
                    loose: watched.seen.loose.len(),
                    cut: side.as_ref().is_some_and(|side| side.cut),
                };
                now.sides.insert(*task, facts);
            }
            for (pair, verdict) in picture.verdicts() {
                match *pair {
                    (SideId::Task(a), SideId::Task(b)) => {
                        now.pairs.insert((a, b), verdict.clone());
                    }
                    (SideId::Task(task), SideId::Target) => {
                        now.with_target.insert(task, verdict.clone());
                    }
                    (SideId::Target, _) => {}
                }
            }
        }
        now.at = self.published.at;
        if now != self.published || now.at == woodward_core::Timestamp(0) {
            now.at = clock::now();
            self.published = now.clone();
            inner.radar.publish(project.id(), now);
            // Tasks may wait for others that touch the same.
            inner.look.notify_one();
        }
        Ok(())
    }
}

/// The shortest time between two looks at one worktree.
#[derive(Clone, Copy)]
struct Pace(Duration);

impl Pace {
    fn of<'a>(live: usize, sides: impl Iterator<Item = &'a Looked>) -> Self {
        let slowest = sides.map(|side| side.took).max().unwrap_or_default();
        let many = u32::try_from(live).unwrap_or(u32::MAX);
        Self(TICK.max(slowest.saturating_mul(SHARE.saturating_mul(many))))
    }
}

/// Looks at one side if that is due; whether it is not as it was.
async fn look(
    inner: &Inner,
    project: &Project,
    sides: &mut HashMap<TaskId, Looked>,
    task: &Task,
    force: bool,
    Pace(pace): Pace,
) -> bool {
    let Some(worktree) = &task.worktree else {
        return false;
    };
    let signs = Signs {
        tip: project.repo.loose_tip(&worktree.branch),
        output: match &task.state {
            State::Working { run, .. } | State::Waiting { run, .. } => {
                output(&inner.options.paths.run(*run).join("output"))
            }
            _ => 0,
        },
    };
    let known = sides.get(&task.id);
    let due = match known {
        // It may be over before there is anything to see.
        None => {
            let young = clock::now().since(task.since) < BEGINS;
            force || !is_live(task) || !young
        }
        Some(known) if known.version != task.version => true,
        Some(known) if is_live(task) => {
            let pause = if known.signs == signs {
                known.pause.max(pace)
            } else {
                pace
            };
            force || known.at.elapsed() >= pause
        }
        Some(known) => force || known.signs != signs,
    };
    if !due {
        return false;
    }
    let began = Instant::now();
    let path = project.worktree(&task.name);
    let place = project.repo.worktree(&path, &worktree.branch).ok();
    let seen = match place.filter(|_| !is_settled(task)) {
        Some(place) => project.repo.glance(&place).await.ok(),
        None => None,
    };
    let seen = match seen {
        Some(seen) => seen,
        None => {
            let tip = match signs.tip.clone() {
                Some(tip) => Some(tip),
                None => project.repo.tip(&worktree.branch).await.ok().flatten(),
            };
            Seen {
                head: tip.or_else(|| task.head.clone()),
                ..Seen::default()
            }
        }
    };
    let watched = Watched {
        root: (!seen.loose.is_empty()).then_some(path),
        seen,
        base: None,
        is_target: false,
    };
    let same = known.is_some_and(|known| known.watched == watched);
    let pause = match known {
        Some(known) if same && known.signs == signs => (known.pause * 2).min(PAUSE_MAX),
        _ => TICK,
    };
    sides.insert(
        task.id,
        Looked {
            version: task.version,
            signs,
            at: began,
            pause,
            took: began.elapsed(),
            watched,
        },
    );
    !same
}

/// How much a run has printed.
fn output(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return 0;
    };
    let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok());
    sizes.map(|meta| meta.len()).sum()
}
