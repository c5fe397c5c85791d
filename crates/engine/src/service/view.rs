//! Tasks as people see them. Built from what is recorded; git is not asked.

use std::collections::HashMap;

use woodward_api::{Progress, Spent, TaskSummary};
use woodward_core::attention::{Attention, TaskView, attention};
use woodward_core::hint::NextCommand;
use woodward_core::provider::ProviderWait;
use woodward_core::state::Delay;
use woodward_core::{State, Task, TaskId, TaskName};

use crate::clock;
use crate::config::{Config, ConflictPolicy};
use crate::engine::Engine;
use crate::error::Result;
use crate::land::HELD_BY_CHECKOUT;
use crate::project::Project;

/// A task's place in the merge queue.
#[derive(Clone, Debug, Default)]
pub(super) struct InLine {
    place: u32,
    /// What is in its way.
    held: Option<String>,
    /// Why a person lets it wait.
    stopped: Option<String>,
}

/// What a summary needs to know of the other tasks.
#[derive(Default)]
pub(super) struct Others<'a> {
    pub(super) names: HashMap<TaskId, &'a TaskName>,
    pub(super) dependents: HashMap<TaskId, u32>,
    pub(super) queue: HashMap<TaskId, InLine>,
    pub(super) risks: HashMap<TaskId, u32>,
    /// What the programs of their current runs wait for.
    pub(super) run_waits: HashMap<TaskId, ProviderWait>,
    /// How far the clock on the wall is ahead of UTC.
    local_offset_ms: i64,
    /// Why queued tasks wait for others that touch the same.
    pub(super) behind: HashMap<TaskId, String>,
}

impl<'a> Others<'a> {
    pub(super) fn of(tasks: &'a [Task]) -> Self {
        let mut others = Self {
            local_offset_ms: clock::local_offset(clock::now()),
            ..Self::default()
        };
        for task in tasks {
            others.names.insert(task.id, &task.name);
            for on in task.blockers.keys() {
                *others.dependents.entry(*on).or_default() += 1;
            }
        }
        others
    }

    pub(super) fn view(&self, task: &'a Task) -> TaskView<'a> {
        TaskView {
            task,
            dependents: self.dependents.get(&task.id).copied().unwrap_or_default(),
            risk: self.risks.get(&task.id).copied().unwrap_or_default(),
            blockers: task
                .blockers
                .iter()
                .filter_map(|(on, blocker)| Some((*self.names.get(on)?, blocker)))
                .collect(),
            run_waits: self.run_waits.get(&task.id).copied(),
            local_offset_ms: self.local_offset_ms,
        }
    }
}

impl Engine {
    pub(super) async fn summary(
        &self,
        project: &Project,
        config: &Config,
        task: &Task,
    ) -> Result<TaskSummary> {
        let meets = self.inner.radar.of(project.id());
        let mut waits_for = Vec::new();
        for (other, ..) in meets.of(task.id) {
            waits_for.extend(self.inner.store.load_task(other).await?);
        }
        for on in task.blockers.keys() {
            waits_for.extend(self.inner.store.load_task(*on).await?);
        }
        let mut others = Others::of(&waits_for);
        if let State::Landing { .. } = task.state {
            others.queue = self.places(project).await?;
        }
        if let State::Queued { .. } = task.state
            && config.conflicts.policy == ConflictPolicy::Serialise
        {
            let open = self.inner.open_tasks(project.id()).await?;
            others.behind = self.held_reasons(project, config, &open).await;
        }
        Ok(self.summarise(project, config, &others, task))
    }

    /// Each queued task's place and what holds it.
    pub(super) async fn places(&self, project: &Project) -> Result<HashMap<TaskId, InLine>> {
        let queue = self.inner.store.load_queue(project.id()).await?;
        if queue.is_empty() {
            return Ok(HashMap::new());
        }
        let freezes = self.inner.store.load_freezes(project.id()).await?;
        let frozen = |branch: &str| {
            let freeze = freezes.iter().find(|freeze| freeze.branch == branch)?;
            Some(format!("nothing lands on {branch}: {}", freeze.reason))
        };
        Ok(queue
            .into_iter()
            .zip(1..)
            .map(|(queued, place)| {
                let stopped = queued.stopped.map(|why| format!("you let it wait: {why}"));
                let place = InLine {
                    place,
                    held: queued.hold.map(String::from),
                    stopped: stopped.or_else(|| frozen(&queued.entry.branch)),
                };
                (queued.entry.task, place)
            })
            .collect())
    }

    pub(super) fn summarise(
        &self,
        project: &Project,
        config: &Config,
        others: &Others<'_>,
        task: &Task,
    ) -> TaskSummary {
        let mut view = others.view(task);
        view.run_waits = self.inner.evidence.of(task.id).provider_wait;
        let attention = attention(&view, clock::now());
        let attention = self.with_obstacles(others, task, attention);
        self.summarise_with(project, config, others, task, attention)
    }

    /// What a person should do about a task, given what is in its way besides its state.
    pub(super) fn with_obstacles(
        &self,
        others: &Others<'_>,
        task: &Task,
        mut attention: Attention,
    ) -> Attention {
        let in_line = others.queue.get(&task.id);
        let held = in_line.and_then(|line| line.held.as_ref());
        if let Some(reason) = in_line.and_then(|line| line.stopped.as_ref()) {
            attention.reason.clone_from(reason);
            attention.command = Some(NextCommand::Queue.to_string());
        } else if let Some(reason) = held {
            // It can't land until the person has tidied up.
            attention.level = woodward_core::attention::Level::Broken;
            attention.reason = reason.clone();
            attention.command = Some(if reason.starts_with(HELD_BY_CHECKOUT) {
                "git status".into()
            } else {
                let task = task.name.clone();
                NextCommand::QueueRelease { task }.to_string()
            });
        }
        if let Some(reason) = others.behind.get(&task.id) {
            attention.reason.clone_from(reason);
            let task = task.name.clone();
            attention.command = Some(NextCommand::Resume { task }.to_string());
        }
        if let Some(disk) = self.inner.disks.of(task.id) {
            attention.level = woodward_core::attention::Level::Waiting;
            attention.reason = disk.to_string();
            attention.command = Some(NextCommand::Doctor.to_string());
        }
        attention
    }

    /// The summary of a task of which it is known already what a person should do.
    pub(super) fn summarise_with(
        &self,
        project: &Project,
        config: &Config,
        others: &Others<'_>,
        task: &Task,
        attention: Attention,
    ) -> TaskSummary {
        let known = self.inner.evidence.of(task.id);
        let mut view = others.view(task);
        view.run_waits = known.provider_wait;
        let in_line = others.queue.get(&task.id);
        let disk_full = self.inner.disks.of(task.id).or_else(|| match &task.state {
            State::Queued {
                delay: Some(Delay::DiskFull(disk)),
                ..
            } => Some(disk.clone()),
            _ => None,
        });
        let agent = known
            .agent
            .or_else(|| task.spec.agent.clone())
            .or_else(|| config.agent(None).ok().map(|agent| agent.name.clone()));
        let here = |worktree: &woodward_core::task::Worktree| {
            let ours = worktree.worker == self.inner.worker;
            ours.then(|| project.worktree(&task.name).display().to_string())
        };
        TaskSummary {
            id: task.id,
            name: task.name.clone(),
            state: task.state.kind(),
            since: task.since,
            created_at: task.created_at,
            attention,
            agent: agent.map_or_else(|| "—".into(), |agent| agent.to_string()),
            priority: task.spec.priority,
            base: task.spec.base.clone(),
            branch: task.worktree.as_ref().map(|w| w.branch.clone()),
            worktree: task.worktree.as_ref().and_then(here),
            head: task.head.clone(),
            progress: Progress {
                runs: known.runs,
                commits: known.commits,
                plan: known.plan,
                tests: known.tests,
                gates: known.gates,
            },
            spent: spent(task.tally.spent),
            queue_position: in_line.map(|line| line.place),
            held: in_line.and_then(|line| line.held.clone()),
            disk_full,
            provider_wait: view.provider_wait(),
            meets: self.meets(task, &others.names),
            target_conflict: self.target_conflict(task),
        }
    }
}

/// What was used, for people; `None` when there is nothing to tell.
pub(super) fn spent(spend: woodward_core::budget::Spend) -> Option<Spent> {
    (spend.tokens > 0 || spend.micro_usd > 0).then_some(Spent {
        tokens: spend.tokens,
        usd_micros: spend.price_known.then_some(spend.micro_usd),
    })
}
