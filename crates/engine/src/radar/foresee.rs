//! Which files tasks will likely touch, from what they declare, what their prompt names, what they
//! have changed and what history says changes together.
//!
//! History and tree are looked at once for each tip of the base and kept in memory; so is what a
//! prompt names. Nothing here starts or stops a task.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use woodward_core::radar::foresee::{HeldBack, REACH_MAX, Reach, companions, held_back};
use woodward_core::reaction::pattern;
use woodward_core::{CommitId, ProjectId, Task, TaskId};

use super::act::RULE;
use crate::config::{Config, ConflictPolicy};
use crate::engine::Inner;
use crate::error::Result;
use crate::project::Project;
use crate::words::Words;

/// How much of a prompt is searched for the names of files.
const PROMPT_MAX: usize = 64 << 10;
/// The most files that a prompt names.
const NAMED_MAX: usize = 100;
/// Tasks whose prompts are remembered.
const PROMPTS_MAX: usize = 10_000;

/// What need not be looked up again.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    past: Mutex<HashMap<(ProjectId, String), Past>>,
    /// The files that the prompts of tasks name.
    named: Mutex<HashMap<TaskId, Arc<BTreeSet<String>>>>,
}

/// A branch's files and what changed together on it.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    tip: CommitId,
    commits: u32,
    pub(crate) files: Arc<BTreeSet<String>>,
    history: Arc<Vec<Vec<String>>>,
}

impl Past {
    /// The files that a task will likely touch.
    pub(crate) fn reach(&self, patterns: &[String], named: &BTreeSet<String>) -> Reach {
        let patterns: Vec<String> = patterns.iter().take(REACH_MAX).cloned().collect();
        let mut grounded = BTreeSet::new();
        let mut covers = BTreeSet::new();
        for it in &patterns {
            let mut hits = self.files.iter().filter(|file| pattern::matches(it, file));
            let room = REACH_MAX - covers.len().min(REACH_MAX);
            let found: Vec<&String> = hits.by_ref().take(room).collect();
            // What there is no room for is compared by its pattern.
            if !found.is_empty() && hits.next().is_none() {
                grounded.insert(it.clone());
            }
            covers.extend(found.into_iter().cloned());
        }
        let mut known = covers.clone();
        known.extend(named.iter().take(REACH_MAX).cloned());
        let likely = companions(&self.history, &known);
        Reach {
            patterns,
            grounded,
            covers,
            files: named.clone(),
            likely,
        }
    }

    /// The files that a text names.
    pub(crate) fn named_in(&self, text: &str) -> BTreeSet<String> {
        let text: String = text.chars().take(PROMPT_MAX).collect();
        let is_path =
            |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '@' | '+');
        text.split(|c| !is_path(c))
            .map(|word| word.trim_matches('.').trim_start_matches('/'))
            .filter(|word| word.contains(['.', '/']) && self.files.contains(*word))
            .take(NAMED_MAX)
            .map(str::to_owned)
            .collect()
    }
}

/// What a branch is like, as far as it helps to foresee.
pub(crate) async fn past(
    inner: &Inner,
    project: &Project,
    config: &Config,
    base: &str,
) -> Result<Past> {
    let tip = project.repo.require_tip(base).await?;
    let commits = config.conflicts.history;
    let key = (project.id(), base.to_owned());
    {
        let past = inner.radar.memory.past.lock();
        let past = past.unwrap_or_else(|e| e.into_inner());
        if let Some(known) = past.get(&key)
            && known.tip == tip
            && known.commits == commits
        {
            return Ok(known.clone());
        }
    }
    let files = project.repo.tracked(&tip).await?.into_iter().collect();
    let history = if commits == 0 {
        Vec::new()
    } else {
        project.repo.touched_by_commits(&tip, commits).await?
    };
    let found = Past {
        tip,
        commits,
        files: Arc::new(files),
        history: Arc::new(history),
    };
    let past = inner.radar.memory.past.lock();
    let mut past = past.unwrap_or_else(|e| e.into_inner());
    past.insert(key, found.clone());
    Ok(found)
}

/// What each of these tasks will likely touch, or has touched.
pub(crate) async fn reaches(
    inner: &Inner,
    project: &Project,
    config: &Config,
    tasks: &[Task],
) -> Result<BTreeMap<TaskId, Reach>> {
    let published = inner.radar.of(project.id());
    let mut pasts: HashMap<String, Option<Past>> = HashMap::new();
    let mut reaches = BTreeMap::new();
    for task in tasks {
        let base = &task.spec.base;
        if !pasts.contains_key(base) {
            // A base that is gone is told where the task is started.
            let found = past(inner, project, config, base).await.ok();
            pasts.insert(base.clone(), found);
        }
        let Some(Some(past)) = pasts.get(base) else {
            continue;
        };
        let mut named = prompt_files(inner, task, past).await?.as_ref().clone();
        if let Some(side) = published.sides.get(&task.id) {
            named.extend(side.files.iter().take(REACH_MAX).cloned());
        }
        reaches.insert(task.id, past.reach(&task.spec.paths, &named));
    }
    Ok(reaches)
}

async fn prompt_files(inner: &Inner, task: &Task, past: &Past) -> Result<Arc<BTreeSet<String>>> {
    {
        let named = inner.radar.memory.named.lock();
        let named = named.unwrap_or_else(|e| e.into_inner());
        if let Some(known) = named.get(&task.id) {
            return Ok(Arc::clone(known));
        }
    }
    let words = Words::load(inner, task.id).await?;
    let found = match &words.first {
        Some(first) => past.named_in(&first.body),
        // A draft may still get its prompt.
        None => return Ok(Arc::default()),
    };
    let found = Arc::new(found);
    let named = inner.radar.memory.named.lock();
    let mut named = named.unwrap_or_else(|e| e.into_inner());
    if named.len() >= PROMPTS_MAX {
        named.clear();
    }
    named.insert(task.id, Arc::clone(&found));
    Ok(found)
}

/// Which queued tasks wait for others, where the project wants that.
pub(crate) async fn waiting(
    inner: &Inner,
    project: &Project,
    config: &Config,
    tasks: &[Task],
) -> Result<Vec<HeldBack>> {
    if config.conflicts.policy != ConflictPolicy::Serialise || tasks.len() < 2 {
        return Ok(Vec::new());
    }
    let reaches = reaches(inner, project, config, tasks).await?;
    let ignored = &config.conflicts.ignore;
    let held = held_back(tasks, &reaches, ignored, &BTreeSet::new());
    let mut freed = BTreeSet::new();
    for one in &held {
        if inner.store.load_entry(freed_key(one.task)).await?.is_some() {
            freed.insert(one.task);
        }
    }
    if freed.is_empty() {
        return Ok(held);
    }
    Ok(held_back(tasks, &reaches, ignored, &freed))
}

/// Where it is written that a person lets a task start all the same.
pub(crate) fn freed_key(task: TaskId) -> String {
    format!("reaction/{RULE}-freed/{task}")
}
