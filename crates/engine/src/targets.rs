//! Which commits were part of a project's target branches, and where a task's own change begins.
//!
//! Every look at a target branch for work is recorded. While a branch only grows, its tip stands for all
//! that it ever had; when a person rewrites it, the tip that was dropped is kept here and by a ref, so
//! that what it had is never taken for the change of a task that began before. This never moves a branch
//! and never decides what lands.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use woodward_core::change_base::{Observation, TargetRecord};
use woodward_core::{Actor, CommitId, EventSeq, Fact, State, Task};

use crate::config::Config;
use crate::engine::Inner;
use crate::error::{EngineError, Result};
use crate::files;
use crate::project::Project;

/// Commits that are known to be part of a branch, at most.
const MEMBERS_MAX: usize = 4_096;
/// Answers that are remembered, at most.
const FOUND_MAX: usize = 1_024;

/// The record of a project's target branches.
#[derive(Debug)]
pub(crate) struct Targets {
    file: PathBuf,
    state: Mutex<Known>,
    /// One observation at a time.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    records: BTreeMap<String, TargetRecord>,
    /// Commits that are part of a branch as long as it only grows.
    members: HashMap<String, HashSet<CommitId>>,
    /// Where branches were when their files were last looked at.
    tips: HashMap<String, Option<CommitId>>,
    found: HashMap<Question, ChangeBase>,
    /// How far the log was when the results for a rewritten branch were last looked at.
    rebuilt_at: HashMap<String, EventSeq>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    head: CommitId,
    current: Vec<CommitId>,
    recorded: Vec<CommitId>,
}

/// Where a task's own change begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeBase {
    /// The newest commit in its head's history that was part of the target branch.
    pub(crate) commit: CommitId,
    /// Whether that commit still is part of the target. If not, the target was rewritten, and the change
    /// must be rebuilt before it can land.
    pub(crate) on_target: bool,
}

impl Targets {
    pub(crate) fn load(file: PathBuf) -> Self {
        let known = Known {
            records: files::load_json(&file).unwrap_or_default(),
            ..Known::default()
        };
        Self {
            file,
            state: Mutex::new(known),
            turn: tokio::sync::Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn dropped(&self, branch: &str) -> Vec<CommitId> {
        let known = self.lock();
        let record = known.records.get(branch);
        record
            .map(|record| record.dropped.clone())
            .unwrap_or_default()
    }

    /// A landing moved a branch from where it was last observed.
    pub(crate) fn advanced(&self, branch: &str, old: &CommitId, new: &CommitId) {
        let mut known = self.lock();
        let record = known.records.entry(branch.to_owned()).or_default();
        if record.last.as_ref() != Some(old) {
            return;
        }
        record.last = Some(new.clone());
        known.add_member(branch, new);
        self.save_lazily(&known);
    }

    fn save_lazily(&self, known: &Known) {
        // What can't be written now is observed again.
        if let Err(error) = files::save_json_lazily(&self.file, &known.records) {
            tracing::debug!(%error, "the record of the target branches was not written");
        }
    }
}

impl Known {
    fn add_member(&mut self, branch: &str, commit: &CommitId) {
        let members = self.members.entry(branch.to_owned()).or_default();
        if members.len() >= MEMBERS_MAX {
            members.clear();
        }
        members.insert(commit.clone());
    }
}

impl Project {
    /// Records where a target branch is.
    pub(crate) async fn observe(&self, branch: &str, tip: &CommitId) -> Result<()> {
        let last = |known: &Known| known.records.get(branch)?.last.clone();
        if last(&self.targets.lock()).as_ref() == Some(tip) {
            return Ok(());
        }
        let _turn = self.targets.turn.lock().await;
        let last = last(&self.targets.lock());
        let contains_last = match &last {
            None => true,
            Some(last) if last == tip || self.repo.is_known_below(last, tip) => true,
            // A tip that is gone from the repository is not part of anything.
            Some(last) => self.repo.is_ancestor(last, tip).await.unwrap_or(false),
        };
        if let (Some(last), false) = (&last, contains_last) {
            if !self.is_there_now(branch, tip).await? {
                // The branch moved on while it was looked at.
                return Ok(());
            }
            tracing::warn!(branch, dropped = %last, now = %tip, "a target branch was rewritten");
            if let Err(error) = self.repo.pin_dropped(last).await {
                tracing::warn!(%error, "a dropped tip could not be kept");
            }
        }
        let mut known = self.targets.lock();
        let record = known.records.entry(branch.to_owned()).or_default();
        match record.observe(tip, contains_last) {
            Observation::Same => {}
            Observation::Advanced => {
                known.add_member(branch, tip);
                self.targets.save_lazily(&known);
            }
            Observation::Rewritten(_) => {
                known.members.remove(branch);
                known.add_member(branch, tip);
                let file = &self.targets.file;
                files::save_json(file, &known.records)
                    .map_err(EngineError::file(file.display().to_string()))?;
            }
        }
        Ok(())
    }

    async fn is_there_now(&self, branch: &str, tip: &CommitId) -> Result<bool> {
        let config = self.config().await.ok();
        let tips = self.tips_now(config.as_deref(), branch).await?;
        Ok(tips.contains(tip))
    }

    /// Where a target branch is: here, and as last fetched from the remote that decides.
    async fn tips_now(&self, config: Option<&Config>, branch: &str) -> Result<Vec<CommitId>> {
        let mut tips = Vec::from_iter(self.repo.tip(branch).await?);
        if let Some(remote) = config.and_then(|config| config.queue.remote.as_ref())
            && let Some(theirs) = self.repo.fetched(remote, branch).await?
            && !tips.contains(&theirs)
        {
            tips.push(theirs);
        }
        Ok(tips)
    }

    /// Where a task's own change begins: the one answer for everybody who asks what a task changes.
    /// `recorded` is the commit of the target that was last made part of its branch by Woodward.
    pub(crate) async fn change_base(
        &self,
        task: &Task,
        recorded: Option<&CommitId>,
        head: &CommitId,
    ) -> Result<ChangeBase> {
        let branch = &task.spec.base;
        if let State::Landed { commit, .. } = &task.state {
            // Now it is part of the target itself: what counts is the target before it.
            let before = self
                .repo
                .objects([format!("{commit}^1^{{commit}}")])
                .await?;
            let before: Vec<CommitId> = before.into_iter().flatten().collect();
            return self.find(branch, recorded, head, &before, &[]).await;
        }
        // Rules that make no sense must not keep a person from looking at a change.
        let config = self.config().await.ok();
        let current = self.tips_now(config.as_deref(), branch).await?;
        if let (Some(config), false) = (&config, current.is_empty()) {
            self.ground(config, branch).await?;
        }
        self.change_base_on(task, recorded, head, &current).await
    }

    /// The same, for a target that is at these commits.
    pub(crate) async fn change_base_on(
        &self,
        task: &Task,
        recorded: Option<&CommitId>,
        head: &CommitId,
        current: &[CommitId],
    ) -> Result<ChangeBase> {
        let branch = &task.spec.base;
        let dropped = self.targets.dropped(branch);
        let found = self.find(branch, recorded, head, current, &dropped).await?;
        if found.on_target || found.commit != *head || recorded == Some(head) {
            return Ok(found);
        }
        // A person merged the task's branch by hand and took that back: it is still the task's change.
        let mut others = Vec::new();
        for tip in dropped {
            if !self.repo.is_ancestor(head, &tip).await.unwrap_or(false) {
                others.push(tip);
            }
        }
        self.find(branch, recorded, head, current, &others).await
    }

    /// Whether a target has only grown since this commit of it was made part of a task's branch. Then the
    /// task's change base is on the target, whichever it is.
    pub(crate) async fn only_grew(
        &self,
        branch: &str,
        recorded: Option<&CommitId>,
        current: &[CommitId],
    ) -> bool {
        !self.was_rewritten(branch) && self.is_recorded(branch, recorded, current).await
    }

    async fn is_recorded(
        &self,
        branch: &str,
        recorded: Option<&CommitId>,
        current: &[CommitId],
    ) -> bool {
        match recorded {
            Some(recorded) => self.is_member(branch, recorded, current).await,
            None => true,
        }
    }

    async fn find(
        &self,
        branch: &str,
        recorded: Option<&CommitId>,
        head: &CommitId,
        current: &[CommitId],
        dropped: &[CommitId],
    ) -> Result<ChangeBase> {
        let only_grew = dropped.is_empty() && self.is_recorded(branch, recorded, current).await;
        if only_grew
            && let Some(recorded) = recorded
            && let Some(commit) = self.repo.known_fork(head, recorded, current)
        {
            let on_target = true;
            return Ok(ChangeBase { commit, on_target });
        }
        let question = Question {
            head: head.clone(),
            current: current.to_vec(),
            recorded: recorded.into_iter().chain(dropped).cloned().collect(),
        };
        if let Some(found) = self.targets.lock().found.get(&question) {
            return Ok(found.clone());
        }
        let tips: Vec<CommitId> = current.iter().chain(&question.recorded).cloned().collect();
        let newest = self.repo.newest_in_common(head, &tips).await?;
        let mut on_target = true;
        for commit in newest.iter().filter(|_| !only_grew) {
            on_target &= self.is_part_of(commit, current).await;
        }
        let commit = match self.repo.joint_base(&newest).await? {
            Some(commit) => commit,
            // Histories without anything in common: what was recorded is the best that is known.
            None => recorded.or(current.first()).unwrap_or(head).clone(),
        };
        let found = ChangeBase { commit, on_target };
        let mut known = self.targets.lock();
        if known.found.len() >= FOUND_MAX {
            known.found.clear();
        }
        known.found.insert(question, found.clone());
        Ok(found)
    }

    /// Whether a branch was rewritten and open tasks may still have what it dropped.
    pub(crate) fn was_rewritten(&self, branch: &str) -> bool {
        !self.targets.dropped(branch).is_empty()
    }

    async fn is_member(&self, branch: &str, commit: &CommitId, current: &[CommitId]) -> bool {
        let members = |known: &Known| known.members.get(branch)?.get(commit).cloned();
        if members(&self.targets.lock()).is_some() {
            return true;
        }
        let is = self.is_part_of(commit, current).await;
        let mut known = self.targets.lock();
        let last = known.records.get(branch).and_then(|it| it.last.as_ref());
        // Only what was asked of the branch as it is now stays true while it grows.
        if is && last.is_some_and(|last| current.contains(last)) {
            known.add_member(branch, commit);
        }
        is
    }

    async fn is_part_of(&self, commit: &CommitId, tips: &[CommitId]) -> bool {
        for tip in tips {
            if commit == tip
                || self.repo.is_known_below(commit, tip)
                || self.repo.is_ancestor(commit, tip).await.unwrap_or(false)
            {
                return true;
            }
        }
        false
    }

    /// Whether a branch's own file says that it is not where it was. No process: one that is packed is
    /// observed when it is next worked on.
    fn has_moved(&self, branch: &str) -> bool {
        let tip = self.repo.loose_tip(branch);
        let mut known = self.targets.lock();
        known.tips.insert(branch.to_owned(), tip.clone()) != Some(tip)
    }

    /// No open task needs what was dropped from a branch.
    async fn forget_dropped(&self, branch: &str, open: &[Task]) -> Result<()> {
        let dropped = {
            let mut known = self.targets.lock();
            let Some(record) = known.records.get_mut(branch) else {
                return Ok(());
            };
            let dropped = std::mem::take(&mut record.dropped);
            known.members.remove(branch);
            self.targets.save_lazily(&known);
            dropped
        };
        for tip in &dropped {
            self.repo.unpin_dropped(tip).await?;
        }
        let names: Vec<&str> = open.iter().map(|task| task.name.as_str()).collect();
        Ok(self.repo.unpin_rebuilds(&names).await?)
    }
}

/// Looks at all target branches: records where they are, and has the changes of tasks in review rebuilt
/// whose target was rewritten. Those in the merge queue are the queue's.
pub(crate) async fn watch(inner: &Arc<Inner>) {
    for project in inner.all_projects() {
        if let Err(error) = watch_project(inner, &project).await {
            tracing::debug!(project = %project.record.name, %error, "its target branches could not be looked at");
        }
    }
}

async fn watch_project(inner: &Arc<Inner>, project: &Arc<Project>) -> Result<()> {
    let branches: Vec<(String, bool)> = {
        let known = project.targets.lock();
        let record = |(branch, record): (&String, &TargetRecord)| {
            (branch.clone(), !record.dropped.is_empty())
        };
        known.records.iter().map(record).collect()
    };
    let log = inner.tail.now();
    for (branch, was_rewritten) in branches {
        let has_moved = project.has_moved(&branch);
        if has_moved && project.repo.tip(&branch).await?.is_some() {
            let config = project.config().await?;
            project.ground(&config, &branch).await?;
            // What waits for the branch to move is tried again.
            inner.look.notify_one();
        }
        let was_rewritten = was_rewritten || !project.targets.dropped(&branch).is_empty();
        // Without an event, the tasks are where they were.
        let has_news = project.targets.lock().rebuilt_at.get(&branch) != Some(&log);
        if was_rewritten && (has_moved || has_news) {
            rebuild_reviewed(inner, project, &branch).await?;
            let mut known = project.targets.lock();
            known.rebuilt_at.insert(branch, log);
        }
    }
    Ok(())
}

async fn rebuild_reviewed(inner: &Arc<Inner>, project: &Project, branch: &str) -> Result<()> {
    let open = inner.open_tasks(project.id()).await?;
    // One that is being prepared may have begun already at what was dropped.
    let is_based = |task: &&Task| {
        let has_begun = task.worktree.is_some() || task.head.is_some();
        task.spec.base == branch && (has_begun || task.state.kind().is_held())
    };
    if !open.iter().any(|task| is_based(&task)) {
        return project.forget_dropped(branch, &open).await;
    }
    for task in open.iter().filter(is_based) {
        let State::Review { commit, .. } = &task.state else {
            continue;
        };
        let worktree = task.worktree.as_ref();
        if worktree.is_some_and(|worktree| worktree.worker != inner.worker) {
            continue;
        }
        let recorded = worktree.map(|worktree| &worktree.base);
        let base = project.change_base(task, recorded, commit).await?;
        if base.on_target {
            continue;
        }
        let Some(onto) = project.repo.tip(branch).await? else {
            continue;
        };
        // What conflicts goes to its agent when it is to land, as any other conflict does.
        let conflicts = project
            .repo
            .change_conflicts(&base.commit, &onto, commit)
            .await?;
        if conflicts.is_empty() {
            let fact = Fact::TargetRewritten {
                commit: commit.clone(),
            };
            match inner.record(task, Actor::Woodward, fact).await {
                Err(error) if !error.is_repeated() => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}
