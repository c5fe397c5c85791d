//! The merge queue: looking at it, steering it, and what a merge would do.

use std::collections::HashMap;
use std::path::Path;

use woodward_api::{
    BranchQueue, Code, Done, FreezeQueue, FreezeView, MergePlan, PaceView, PlannedMerge, Problem,
    QueueView, QueuedTask,
};
use woodward_core::hint::NextCommand;
use woodward_core::regenerate;
use woodward_core::risk::embedded_text;
use woodward_core::state::Approver;
use woodward_core::{CommitId, Fact, Note, State, Task, TaskId, TaskName};
use woodward_store::Queued;

use super::act::hint;
use super::{Answered, Found, TaskRef};
use crate::clock;
use crate::config::{Config, MergeStyle};
use crate::engine::Engine;
use crate::error::Result;
use crate::git::{Rebuild, Rebuilt, Side};
use crate::land;
use crate::project::Project;

/// Tasks that are planned at once, at most.
const PLANNED_MAX: usize = 200;

impl Engine {
    /// The merge queues of a project.
    ///
    /// # Errors
    /// When the directory belongs to no project.
    pub async fn queue(&self, root: &Path) -> Answered<QueueView> {
        let project = self.project_of(root).await?;
        Ok(self.load_queue(&project).await?)
    }

    async fn load_queue(&self, project: &Project) -> Result<QueueView> {
        let inner = &self.inner;
        let queue = inner.store.load_queue(project.id()).await?;
        let freezes = inner.store.load_freezes(project.id()).await?;
        let tasks = self.all_tasks(project.id()).await?;
        let by_id: HashMap<TaskId, &Task> = tasks.iter().map(|task| (task.id, task)).collect();
        let mut branches: Vec<BranchQueue> = Vec::new();
        for freeze in freezes {
            branches.push(BranchQueue {
                frozen: Some(FreezeView {
                    reason: freeze.reason.into(),
                    since: freeze.at,
                }),
                ..self.empty(project, freeze.branch, &by_id)
            });
        }
        for queued in queue {
            let Some(task) = by_id.get(&queued.entry.task) else {
                continue;
            };
            let known = branches
                .iter()
                .position(|branch| branch.branch == queued.entry.branch);
            let at = known.unwrap_or_else(|| {
                branches.push(self.empty(project, queued.entry.branch.clone(), &by_id));
                branches.len() - 1
            });
            let place = u32::try_from(branches[at].entries.len() + 1).unwrap_or(u32::MAX);
            branches[at].entries.push(entry(task, queued, place));
        }
        branches.sort_by(|a, b| a.branch.cmp(&b.branch));
        let backlog = branches
            .iter()
            .map(|it| it.entries.len())
            .max()
            .unwrap_or(0);
        let config = project.config().await?;
        Ok(QueueView {
            branches,
            pace: self.pace(project, backlog, &config),
        })
    }

    fn empty(
        &self,
        project: &Project,
        branch: String,
        by_id: &HashMap<TaskId, &Task>,
    ) -> BranchQueue {
        let looks = self.inner.landers.looks(project.id(), &branch);
        let name = |id: &TaskId| by_id.get(id).map(|task| task.name.clone());
        BranchQueue {
            looks: looks
                .iter()
                .map(|tasks| tasks.iter().filter_map(name).collect())
                .collect(),
            branch,
            frozen: None,
            entries: Vec::new(),
        }
    }

    fn pace(&self, project: &Project, backlog: usize, config: &crate::config::Config) -> PaceView {
        let learned = self.inner.landers.learned(&self.inner, project.id());
        let pace = land::pace(&learned, backlog, config);
        let batch = match pace.one_by_one {
            true => 1,
            false => self.inner.landers.together(project.id(), pace, backlog),
        };
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a probability in thousandths"
        )]
        let failing_permille = (learned.failing() * 1_000.0) as u32;
        PaceView {
            failing_permille,
            look_ms: learned.look(pace.slots).map(|millis| millis.0),
            slots: small(pace.slots),
            batch: small(batch),
        }
    }

    /// Lets a queued task wait until it is released.
    ///
    /// # Errors
    /// When it is not queued.
    pub async fn queue_hold(&self, wanted: &TaskRef<'_>, reason: String) -> Answered<Done> {
        let found = self.queued(wanted).await?;
        let name = found.task.name.clone();
        let reason = match reason.trim() {
            "" => "you said so",
            said => said,
        };
        let reason = Some(Note::from(reason));
        self.steer(
            self.inner.store.stop_entry(found.task.id, reason).await,
            &name,
        )?;
        // It may have begun to land a moment before.
        self.queued(wanted).await?;
        let done = self
            .done(found, format!("{name} waits in the queue"))
            .await?;
        Ok(hint(
            done,
            NextCommand::QueueRelease { task: name }.purpose("let it go on"),
        ))
    }

    /// Lets a queued task go on.
    ///
    /// # Errors
    /// When it is not queued.
    pub async fn queue_release(&self, wanted: &TaskRef<'_>) -> Answered<Done> {
        let found = self.queued(wanted).await?;
        let name = found.task.name.clone();
        self.steer(
            self.inner.store.stop_entry(found.task.id, None).await,
            &name,
        )?;
        self.inner.landers.try_now(found.task.id);
        Ok(self.done(found, format!("{name} goes on")).await?)
    }

    /// Puts a queued task before all others.
    ///
    /// # Errors
    /// When it is not queued.
    pub async fn queue_bump(&self, wanted: &TaskRef<'_>) -> Answered<Done> {
        let found = self.queued(wanted).await?;
        let name = found.task.name.clone();
        self.bump(&found.task).await?;
        Ok(self.done(found, format!("{name} is first in line")).await?)
    }

    pub(super) async fn bump(&self, task: &Task) -> Answered<()> {
        self.inner.landers.try_now(task.id);
        self.steer(self.inner.store.bump_entry(task.id).await, &task.name)
    }

    /// Takes a task out of the queue; it lies still until somebody says what becomes of it.
    ///
    /// # Errors
    /// When it is not queued, or lands at this moment.
    pub async fn queue_drop(&self, wanted: &TaskRef<'_>, reason: String) -> Answered<Done> {
        let found = self.queued(wanted).await?;
        let name = found.task.name.clone();
        let reason = match reason.trim() {
            "" => "taken out of the merge queue".to_owned(),
            said => format!("taken out of the merge queue: {said}"),
        };
        let fact = Fact::Paused {
            reason: Note::from(reason),
        };
        let said = format!("{name} is out of the queue");
        let done = self.tell(found, fact, said).await?;
        let back = NextCommand::Resume { task: name.clone() };
        let done = hint(done, back.purpose("put it back"));
        // A paused task has no result up for review that could be rejected.
        let change = NextCommand::Prompt { task: name };
        Ok(hint(
            done,
            change.purpose("or say what should change before that"),
        ))
    }

    /// Lets nothing land on a branch, or lets it again.
    ///
    /// # Errors
    /// When there is no such branch, or no reason is given.
    pub async fn queue_freeze(&self, root: &Path, wish: FreezeQueue) -> Answered<QueueView> {
        let project = self.project_of(root).await?;
        let branch = match wish.branch {
            Some(branch) => branch,
            None => project.base(&*project.load_config().await?),
        };
        let freeze = match wish.reason {
            Some(reason) if reason.trim().is_empty() => {
                return Err(Problem::new(Code::Usage, "no reason is given")
                    .hint(NextCommand::QueueFreeze.purpose("say why, others will ask")));
            }
            Some(reason) => {
                let known = project.repo.tip(&branch).await;
                if known.map_err(crate::error::EngineError::from)?.is_none() {
                    return Err(super::create::no_branch(&branch));
                }
                Some((Note::from(reason.trim()), clock::now()))
            }
            None => None,
        };
        let store = &self.inner.store;
        let set = store.set_freeze(project.id(), branch, freeze).await;
        set.map_err(crate::error::EngineError::from)?;
        self.inner.look.notify_one();
        Ok(self.load_queue(&project).await?)
    }

    async fn queued(&self, wanted: &TaskRef<'_>) -> Answered<Found> {
        let found = self.find(wanted).await?;
        match &found.task.state {
            State::Landing { intent: None, .. } => Ok(found),
            State::Landing { .. } => Err(Problem::new(
                Code::WrongState,
                format!("{} is landing at this moment", found.task.name),
            )),
            _ => Err(not_queued(&found.task)),
        }
    }

    fn steer(
        &self,
        done: std::result::Result<(), woodward_store::StoreError>,
        name: &TaskName,
    ) -> Answered<()> {
        match done {
            Ok(()) => {
                self.inner.look.notify_one();
                Ok(())
            }
            // It left the queue meanwhile.
            Err(woodward_store::StoreError::NotFound { .. }) => Err(Problem::new(
                Code::WrongState,
                format!("{name} is not in the merge queue any more"),
            )),
            Err(error) => Err(crate::error::EngineError::from(error).into()),
        }
    }

    /// What would happen if tasks were merged: nothing is changed.
    ///
    /// # Errors
    /// When a task is not known.
    pub async fn plan_merge(
        &self,
        root: &Path,
        cwd: Option<&Path>,
        names: &[&str],
    ) -> Answered<MergePlan> {
        if names.len() > PLANNED_MAX {
            let what = format!("at most {PLANNED_MAX} tasks are planned at once");
            return Err(Problem::new(Code::Usage, what));
        }
        let mut founds = Vec::new();
        for name in names {
            founds.push(self.find(&TaskRef { root, name, cwd }).await?);
        }
        let mut steps = Vec::new();
        let mut freezes = HashMap::new();
        let mut chains: HashMap<String, Vec<Earlier>> = HashMap::new();
        for found in founds {
            let branch = found.task.spec.base.clone();
            if !chains.contains_key(&branch) {
                let before = self.before(&found.project, &branch).await?;
                chains.insert(branch.clone(), before);
                let frozen = self.inner.store.load_freezes(found.project.id()).await;
                for freeze in frozen.map_err(crate::error::EngineError::from)? {
                    freezes.insert(freeze.branch, freeze.reason);
                }
            }
            let frozen = freezes.get(&branch);
            let before = chains.entry(branch.clone()).or_default();
            let mut step = plan_one(&found, before).await?;
            if let Some(reason) = frozen.filter(|_| step.refused.is_none()) {
                step.held = Some(format!("nothing lands on {branch}: {}", reason.as_str()));
            }
            if let (Some(commit), None) = (&step.commit, &step.refused) {
                let Found { task, project, .. } = &found;
                before.push(earlier(project, &found.config, task, commit).await?);
            }
            steps.push(step);
        }
        Ok(MergePlan { steps })
    }

    /// What is queued for a branch already.
    async fn before(&self, project: &Project, branch: &str) -> Result<Vec<Earlier>> {
        let mut before = Vec::new();
        let config = project.config().await?;
        for queued in self.inner.store.load_queue(project.id()).await? {
            if queued.entry.branch == branch
                && let Some(task) = self.inner.store.load_task(queued.entry.task).await?
            {
                before.push(earlier(project, &config, &task, &queued.entry.commit).await?);
            }
        }
        Ok(before)
    }
}

/// A task that lands before another one.
struct Earlier {
    name: TaskName,
    /// Its own change on top of the branch; `None` if it does not fit there.
    on_base: Option<CommitId>,
}

async fn earlier(
    project: &Project,
    config: &Config,
    task: &Task,
    commit: &CommitId,
) -> Result<Earlier> {
    let base = project.change_base(task, recorded(task), commit).await?;
    let onto = project.ground(config, &task.spec.base).await?;
    let rebuild = Rebuild {
        base: &base.commit,
        head: commit,
        onto: &onto,
        task: task.name.as_str(),
        now: clock::now(),
    };
    let on_base = match project.repo.rebuild(&rebuild).await? {
        Rebuilt::Commit(commit) => Some(commit),
        Rebuilt::Conflict(_) => None,
    };
    Ok(Earlier {
        name: task.name.clone(),
        on_base,
    })
}

/// The commit of the target that Woodward last made part of a task's branch.
fn recorded(task: &Task) -> Option<&CommitId> {
    task.worktree.as_ref().map(|worktree| &worktree.base)
}

fn not_queued(task: &Task) -> Problem {
    let name = &task.name;
    let kind = task.state.kind();
    let problem = Problem::new(Code::WrongState, format!("{name} is {kind}, not queued"));
    match task.state {
        State::Review { .. } => {
            let task = name.clone();
            problem.hint(NextCommand::Merge { task }.purpose("queue it"))
        }
        _ => problem.hint(NextCommand::Queue.purpose("what is queued")),
    }
}

fn entry(task: &Task, queued: Queued, place: u32) -> QueuedTask {
    let (by, landing) = match &task.state {
        State::Landing { approval, intent } => (
            match &approval.by {
                Approver::Person(name) => name.clone(),
                Approver::Policy => "policy".to_owned(),
            },
            intent.is_some(),
        ),
        _ => (String::new(), false),
    };
    QueuedTask {
        place,
        task: task.name.clone(),
        commit: queued.entry.commit,
        approved_by: by,
        approved_at: queued.entry.queued_at,
        held: queued.hold.map(String::from),
        stopped: queued.stopped.map(String::from),
        landing,
    }
}

/// Whether all that conflicts are files that a command writes anew.
fn is_written_anew(config: &Config, files: &[String]) -> bool {
    let patterns = config.regenerate.iter().map(|rule| rule.paths.as_slice());
    config.merge_style != MergeStyle::Rebase && regenerate::plan(patterns, files).is_some()
}

/// What would happen to one task after those before it.
async fn plan_one(found: &Found, before: &[Earlier]) -> Result<PlannedMerge> {
    let Found {
        task,
        project,
        config,
    } = found;
    let repo = &project.repo;
    let branch = &task.spec.base;
    let own = before.iter().position(|earlier| earlier.name == task.name);
    let before = &before[..own.unwrap_or(before.len())];
    let mut step = PlannedMerge {
        task: task.name.clone(),
        branch: branch.clone(),
        behind: u32::try_from(before.len()).unwrap_or(u32::MAX),
        commit: None,
        refused: None,
        conflicts: Vec::new(),
        conflicts_with: None,
        held: None,
        gates: Vec::new(),
        files: 0,
    };
    let commit = match &task.state {
        State::Review { commit, .. } => commit.clone(),
        State::Landing { approval, .. } => approval.commit.clone(),
        state => {
            step.refused = Some(format!("it is {}", state.kind()));
            return Ok(step);
        }
    };
    if let Some(contained) = embedded_text(&task.embedded) {
        step.refused = Some(format!("it contains {contained}"));
        return Ok(step);
    }
    step.commit = Some(commit.clone());
    let base = project.ground(config, branch).await?;
    let is_anothers = |files: &Vec<String>| !files.is_empty() && !is_written_anew(config, files);
    let since = project.change_base(task, recorded(task), &commit).await?;
    let since = since.commit;
    step.conflicts = repo.change_conflicts(&since, &base, &commit).await?;
    if !is_anothers(&step.conflicts) {
        step.conflicts.clear();
        for Earlier { name, on_base } in before {
            // One that does not fit the branch itself lands before nobody.
            let Some(other) = on_base else { continue };
            let files = repo.change_conflicts(&since, other, &commit).await?;
            if is_anothers(&files) {
                step.conflicts_with = Some((name.clone(), files));
                break;
            }
        }
    }
    let changed = repo.numstat(&since, Side::Commit(&commit)).await?;
    step.files = u32::try_from(changed.len()).unwrap_or(u32::MAX);
    let paths: Vec<String> = changed
        .into_iter()
        .flat_map(|file| file.was.into_iter().chain([file.path]))
        .collect();
    if step.conflicts.is_empty() {
        step.held = land::would_hold(project, config, task, &base, &commit).await?;
    }
    let covered = config.gates().iter().filter(|gate| gate.covers(&paths));
    step.gates = covered.map(|gate| gate.name.to_string()).collect();
    Ok(step)
}
