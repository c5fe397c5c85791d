//! Where tasks meet, as people see it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use woodward_api::{
    Code, ConflictTask, ConflictsView, CreateTasks, ForeseenFile, ForeseenPair, MeetingNote,
    OverlapCheck, PairView, Problem, TargetConflict, WaitingView,
};
use woodward_core::radar::foresee::{HeldBack, Reach, common};
use woodward_core::radar::{Clash, Level, Verdict};
use woodward_core::{StateKind, Task, TaskId, TaskName};

use super::Answered;
use super::create::{path_patterns, task_name};
use crate::config::{Config, ConflictPolicy};
use crate::engine::Engine;
use crate::error::Result;
use crate::project::Project;
use crate::radar::{Published, foresee};

/// The most tasks without a beginning that are compared by what is foreseen.
const QUEUED_MAX: usize = 64;
/// What both are foreseen to touch, at most.
const FORESEEN_MAX: usize = 20;
/// The most notes of one task at a glance.
const NOTES_MAX: usize = 3;

impl Engine {
    /// Where the tasks of a project meet, after a fresh look.
    ///
    /// # Errors
    /// When there is no project.
    pub async fn conflicts(&self, root: &Path) -> Answered<ConflictsView> {
        Ok(self.load_conflicts(root).await?)
    }

    async fn load_conflicts(&self, root: &Path) -> Result<ConflictsView> {
        let project = self.project_of(root).await?;
        let config = project.config().await?;
        let published = self.inner.radar.fresh(project.id()).await;
        let tasks = self.inner.open_tasks(project.id()).await?;
        let name = |id: TaskId| tasks.iter().find(|task| task.id == id).map(|t| &t.name);
        let mut pairs = Vec::new();
        for ((a, b), verdict) in &published.pairs {
            if let (Some(a), Some(b)) = (name(*a), name(*b)) {
                pairs.push(pair(a, b, verdict));
            }
        }
        let (foreseen, named) = self.foreseen(&project, &config, &published, &tasks).await?;
        pairs.extend(foreseen);
        pairs.sort_by(|x, y| (y.level, &x.a, &x.b).cmp(&(x.level, &y.a, &y.b)));
        let mut on_target: Vec<TargetConflict> = tasks
            .iter()
            .filter_map(|task| with_target(task, published.with_target.get(&task.id)?))
            .collect();
        on_target.sort_by(|x, y| x.task.cmp(&y.task));
        let waiting = foresee::waiting(&self.inner, &project, &config, &tasks).await?;
        let waiting = waiting.into_iter().filter_map(|held| {
            Some(WaitingView {
                task: name(held.task)?.clone(),
                behind: name(held.behind)?.clone(),
                why: held.why,
            })
        });
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let mut listed: Vec<&Task> = tasks
            .iter()
            .filter(|task| published.sides.contains_key(&task.id) || named.contains(&task.id))
            .collect();
        listed.sort_by_key(|task| (task.created_at, task.id));
        let tasks = listed.into_iter().map(|task| {
            let side = published.sides.get(&task.id);
            ConflictTask {
                name: task.name.clone(),
                state: task.state.kind(),
                files: count(side.map_or(0, |side| side.files.len())),
                uncommitted: count(side.map_or(0, |side| side.loose)),
                begun: side.is_some(),
                cut: side.is_some_and(|side| side.cut),
            }
        });
        Ok(ConflictsView {
            policy: policy_word(config.conflicts.policy).into(),
            at: (!published.sides.is_empty()).then_some(published.at),
            tasks: tasks.collect(),
            pairs,
            with_target: on_target,
            waiting: waiting.collect(),
        })
    }

    /// Queued tasks that have not begun, and what they are foreseen to share with others.
    async fn foreseen(
        &self,
        project: &Project,
        config: &Config,
        published: &Published,
        tasks: &[Task],
    ) -> Result<(Vec<PairView>, BTreeSet<TaskId>)> {
        let queued: BTreeSet<TaskId> = tasks
            .iter()
            .filter(|task| {
                let kind = task.state.kind();
                matches!(kind, StateKind::Queued | StateKind::Draft) && task.worktree.is_none()
            })
            .map(|task| task.id)
            .take(QUEUED_MAX)
            .collect();
        if queued.is_empty() {
            return Ok((Vec::new(), queued));
        }
        let compared: Vec<Task> = tasks
            .iter()
            .filter(|task| queued.contains(&task.id) || published.sides.contains_key(&task.id))
            .cloned()
            .collect();
        let reaches = foresee::reaches(&self.inner, project, config, &compared).await?;
        let mut pairs = Vec::new();
        for (at, b) in compared.iter().enumerate() {
            for a in &compared[..at] {
                let new = queued.contains(&a.id) || queued.contains(&b.id);
                let (Some(x), Some(y)) = (reaches.get(&a.id), reaches.get(&b.id)) else {
                    continue;
                };
                if !new || a.spec.base != b.spec.base {
                    continue;
                }
                let foreseen = common(x, y, &config.conflicts.ignore, FORESEEN_MAX);
                if !foreseen.is_empty() {
                    pairs.push(PairView {
                        a: a.name.clone(),
                        b: b.name.clone(),
                        level: Level::Foreseen,
                        files: Vec::new(),
                        files_total: 0,
                        calls: Vec::new(),
                        foreseen,
                        unsure: false,
                    });
                }
            }
        }
        Ok((pairs, queued))
    }

    /// How a task meets others, in full.
    pub(super) fn pairs_of(&self, task: &Task, others: &[Task]) -> Vec<PairView> {
        let published = self.inner.radar.of(task.project);
        let named = published.of(task.id).into_iter();
        named
            .filter_map(|(other, is_first, verdict)| {
                let other = others.iter().find(|task| task.id == other)?;
                Some(if is_first {
                    pair(&task.name, &other.name, verdict)
                } else {
                    pair(&other.name, &task.name, verdict)
                })
            })
            .collect()
    }

    /// How a task meets others, at a glance: what its person should know.
    pub(super) fn meets(
        &self,
        task: &Task,
        names: &HashMap<TaskId, &TaskName>,
    ) -> Vec<MeetingNote> {
        let published = self.inner.radar.of(task.project);
        let found = published.of(task.id).into_iter();
        found
            .filter(|(_, _, verdict)| verdict.level.is_trouble())
            .filter_map(|(other, is_first, verdict)| {
                Some(MeetingNote {
                    with: (*names.get(&other)?).clone(),
                    level: verdict.level,
                    what: glance(verdict, is_first),
                })
            })
            .take(NOTES_MAX)
            .collect()
    }

    /// Where a task conflicts with the branch that it lands on.
    pub(super) fn target_conflict(&self, task: &Task) -> Option<TargetConflict> {
        if task.state.kind().is_finished() {
            return None;
        }
        let published = self.inner.radar.of(task.project);
        with_target(task, published.with_target.get(&task.id)?)
    }

    /// Why queued tasks wait for others, in words.
    pub(super) async fn held_reasons(
        &self,
        project: &Project,
        config: &Config,
        tasks: &[Task],
    ) -> HashMap<TaskId, String> {
        if config.conflicts.policy != ConflictPolicy::Serialise {
            return HashMap::new();
        }
        let open: Vec<Task> = tasks
            .iter()
            .filter(|task| !task.state.kind().is_finished())
            .cloned()
            .collect();
        let held = foresee::waiting(&self.inner, project, config, &open).await;
        let held = held.unwrap_or_default();
        let name = |id: TaskId| open.iter().find(|task| task.id == id).map(|t| &t.name);
        held.into_iter()
            .filter_map(|held| Some((held.task, reason(&held, name(held.behind)?))))
            .collect()
    }

    /// Whether a task that has not begun waits for another.
    pub(super) async fn is_held_back(
        &self,
        project: &Project,
        config: &Config,
        task: &Task,
    ) -> Result<bool> {
        let tasks = self.inner.open_tasks(project.id()).await?;
        let held = foresee::waiting(&self.inner, project, config, &tasks).await?;
        Ok(held.iter().any(|held| held.task == task.id))
    }

    /// Says which tasks would meet if they were created, and creates nothing.
    ///
    /// # Errors
    /// When a name makes no sense, or a base is not there.
    pub async fn check_overlap(&self, root: &Path, request: CreateTasks) -> Answered<OverlapCheck> {
        if request.tasks.is_empty() {
            return Err(Problem::new(Code::Usage, "no task is named").hint("name at least one"));
        }
        Ok(self.load_check(root, request).await?)
    }

    async fn load_check(&self, root: &Path, request: CreateTasks) -> Result<OverlapCheck> {
        let project = self.project_of(root).await?;
        let config = project.load_config().await?;
        let mut all: Vec<(TaskName, String, bool, Reach)> = Vec::new();
        for draft in &request.tasks {
            let name = task_name(&draft.name)?;
            path_patterns(&draft.paths)?;
            let base = draft.base.clone();
            let base = base.unwrap_or_else(|| project.base(&config));
            let past = foresee::past(&self.inner, &project, &config, &base).await?;
            let named = past.named_in(draft.prompt.as_deref().unwrap_or_default());
            all.push((name, base, false, past.reach(&draft.paths, &named)));
        }
        let unknown = all.iter().filter(|(.., reach)| reach.is_empty());
        let unknown = unknown.map(|(name, ..)| name.clone()).collect();
        let new = all.len();
        let open = self.inner.open_tasks(project.id()).await?;
        let is_idle =
            |task: &Task| matches!(task.state.kind(), StateKind::Draft | StateKind::Failed);
        let open: Vec<Task> = open.iter().filter(|task| !is_idle(task)).cloned().collect();
        let mut reaches = foresee::reaches(&self.inner, &project, &config, &open).await?;
        for task in open {
            if let Some(reach) = reaches.remove(&task.id) {
                all.push((task.name, task.spec.base, true, reach));
            }
        }
        let mut pairs = Vec::new();
        for (at, (name, base, _, reach)) in all.iter().enumerate().take(new) {
            for (other, other_base, is_open, other_reach) in &all[at + 1..] {
                if base != other_base {
                    continue;
                }
                let met = common(reach, other_reach, &config.conflicts.ignore, FORESEEN_MAX);
                if met.is_empty() {
                    continue;
                }
                let what = met.into_iter().map(|one| ForeseenFile {
                    because: one.likely.then(|| because(&one.what, reach, other_reach)),
                    what: one.what,
                });
                pairs.push(ForeseenPair {
                    a: name.clone(),
                    b: other.clone(),
                    b_open: *is_open,
                    what: what.collect(),
                });
            }
        }
        Ok(OverlapCheck {
            commits: config.conflicts.history,
            unknown,
            pairs,
        })
    }
}

/// Why history says that two tasks meet in a file.
fn because(file: &str, a: &Reach, b: &Reach) -> String {
    let companions: BTreeMap<_, _> = a
        .likely
        .get(file)
        .into_iter()
        .chain(b.likely.get(file))
        .map(|with| (with.with.as_str(), with))
        .collect();
    let said: Vec<String> = companions
        .values()
        .map(|with| {
            format!(
                "with {} in {} of {} commits",
                with.with, with.together, with.of
            )
        })
        .collect();
    format!("changed {}", said.join(", "))
}

fn reason(held: &HeldBack, behind: &TaskName) -> String {
    let likely = if held.why.likely { "likely " } else { "" };
    format!(
        "it starts after {behind} has landed: both {likely}touch {}",
        held.why.what
    )
}

/// What a verdict on a task and its target says, if they conflict.
fn with_target(task: &Task, verdict: &Verdict) -> Option<TargetConflict> {
    let files: Vec<_> = verdict.conflicts().cloned().collect();
    (!files.is_empty()).then(|| TargetConflict {
        task: task.name.clone(),
        branch: task.spec.base.clone(),
        files,
    })
}

fn pair(a: &TaskName, b: &TaskName, verdict: &Verdict) -> PairView {
    PairView {
        a: a.clone(),
        b: b.clone(),
        level: verdict.level,
        files: verdict.files.clone(),
        files_total: verdict.files_total,
        calls: verdict.calls.clone(),
        foreseen: Vec::new(),
        unsure: verdict.unsure,
    }
}

/// The worst of a verdict, in one sentence.
fn glance(verdict: &Verdict, is_first: bool) -> String {
    let files: Vec<&str> = verdict.conflicts().map(|file| file.path.as_str()).collect();
    match (files.first(), verdict.calls.first()) {
        (Some(first), _) => {
            let more = match files.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let clash = verdict.conflicts().next().and_then(|file| file.clash);
            format!("{first}{more}: {}", clash.unwrap_or(Clash::Lines))
        }
        (None, Some(call)) => {
            let deed = if call.removed { "removes" } else { "changes" };
            if call.by_first == is_first {
                format!("it {deed} `{}`, which the other newly uses", call.name)
            } else {
                format!("it newly uses `{}`, which the other {deed}", call.name)
            }
        }
        (None, None) => "they change the same files".into(),
    }
}

const fn policy_word(policy: ConflictPolicy) -> &'static str {
    match policy {
        ConflictPolicy::Show => "show",
        ConflictPolicy::Warn => "warn",
        ConflictPolicy::Hold => "hold",
        ConflictPolicy::Serialise => "serialise",
    }
}
