//! Looking: status, one task in full, its story, its change.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use woodward_agents::Ending;
use woodward_api::{
    Changed, Code, DiffStat, DiffText, FileStat, Load, MessageView, Problem, QuestionView,
    RescueView, RunView, StatusFilter, StatusView, TaskDetail, Timeline, TimelineEntry,
};
use woodward_core::attention::{Attention, Level, inbox};
use woodward_core::hint::NextCommand;
use woodward_core::step::{create, step};
use woodward_core::{
    Actor, CommitId, EventSeq, Fact, RunId, State, StateKind, Task, TaskId, Timestamp,
};
use woodward_store::{Run, RunState};

use super::view::{Others, spent};
use super::{Answered, Found, TaskRef, describe, gates as gate_views};
use crate::agent::resume::resumable;
use crate::clock;
use crate::drive::{PROMPT_FILE, purpose_text};
use crate::engine::Engine;
use crate::error::Result;
use crate::git::Side;
use crate::project::Project;
use crate::removed;
use crate::supervise::{self, Cause, Seen};
use crate::words::Words;

pub(super) const PROMPT_BYTES_MAX: usize = 16 * 1024;
const MESSAGE_BYTES_MAX: usize = 2 * 1024;
const DIFF_BYTES_MAX: usize = 8 * 1024 * 1024;
const FILES_MAX: usize = 200;
/// The longest that a question about changes waits.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How much of what an agent was told the timeline shows.
const TOLD_MAX: usize = 64 << 10;

impl Engine {
    /// A project at a glance.
    ///
    /// # Errors
    /// When the directory belongs to no project.
    pub async fn status(&self, root: &Path, filter: StatusFilter) -> Answered<StatusView> {
        Ok(self.load_status(root, filter).await?)
    }

    async fn load_status(&self, root: &Path, filter: StatusFilter) -> Result<StatusView> {
        let project = self.project_of(root).await?;
        let mut notices = Vec::new();
        let config = match project.config_to_show().await {
            Ok(config) => config,
            Err(error) => {
                notices.push(format!("nothing new starts: {error}"));
                Arc::default()
            }
        };
        let seq = self.inner.tail.now();
        let (tasks, finished) = if filter.finished {
            let tasks = self.all_tasks(project.id()).await?;
            (Arc::new(tasks), 0)
        } else {
            let tasks = self.inner.open_tasks(project.id()).await?;
            let finished = self.inner.store.count_finished(project.id()).await?;
            (tasks, finished)
        };
        let archived = self.archived_dependencies(&tasks).await?;
        let mut others = Others::of(&tasks);
        let archived = archived.iter().map(|task| (task.id, &task.name));
        others.names.extend(archived);
        others.queue = self.places(&project).await?;
        for task in tasks.iter() {
            let known = self.inner.evidence.of(task.id);
            others.risks.insert(task.id, known.risks);
            if let Some(wait) = known.provider_wait {
                others.run_waits.insert(task.id, wait);
            }
        }
        others.behind = self.held_reasons(&project, &config, &tasks).await;
        let now = clock::now();
        let mut load = woodward_core::schedule::Load::default();
        for task in tasks.iter() {
            load.count(task.state.kind());
        }
        let limits = config.limits();
        if let Some(max) = limits.review_max
            && load.in_review >= max
        {
            notices.push(format!(
                "nothing new starts: {} of {max} results await your review",
                load.in_review
            ));
        }
        let views = tasks.iter().map(|task| others.view(task));
        let with_obstacles = |(task, attention)| {
            let attention = self.with_obstacles(&others, task, attention);
            (task, attention)
        };
        let mut inbox: Vec<(&Task, Attention)> =
            inbox(views, now).into_iter().map(with_obstacles).collect();
        // What holds a queued task is known only here.
        inbox.sort_by_key(|(_, attention)| attention.level);
        let unlisted = take_rest(&mut inbox, filter.limit);
        let summarise =
            |(task, attention)| self.summarise_with(&project, &config, &others, task, attention);
        let listed_tasks = inbox.into_iter().map(summarise).collect();
        Ok(StatusView {
            project: project.view(&config),
            now,
            seq,
            tasks: listed_tasks,
            unlisted,
            finished_hidden: u32::try_from(finished).unwrap_or(u32::MAX),
            load: Load {
                running: load.running,
                running_max: limits.running_max,
                in_review: load.in_review,
                review_max: limits.review_max,
            },
            notices,
        })
    }

    /// Archived tasks that others still wait for: ones that were cancelled long ago.
    async fn archived_dependencies(&self, tasks: &[Task]) -> Result<Vec<Task>> {
        let listed: HashSet<TaskId> = tasks.iter().map(|task| task.id).collect();
        let awaited = tasks.iter().flat_map(|task| task.blockers.keys());
        let missing: HashSet<TaskId> = awaited.filter(|on| !listed.contains(on)).copied().collect();
        let mut archived = Vec::with_capacity(missing.len());
        for on in missing {
            archived.extend(self.inner.store.load_task(on).await?);
        }
        Ok(archived)
    }

    /// Waits until the log has gone beyond a place, or for a while.
    ///
    /// # Errors
    /// None yet; the daemon may refuse one day.
    pub async fn changes(&self, after: EventSeq, wait: Duration) -> Answered<Changed> {
        let seq = self.inner.tail.beyond(after, wait.min(WAIT_MAX)).await;
        let bells = self.inner.tail.bells();
        Ok(Changed { seq, bells })
    }

    /// One task in full, or without what git must be asked for: whoever only waits asks often.
    ///
    /// # Errors
    /// When there is no such task.
    pub async fn show(&self, wanted: &TaskRef<'_>, brief: bool) -> Answered<TaskDetail> {
        let found = self.find(wanted).await?;
        Ok(self.detail(&found, brief).await?)
    }

    async fn detail(&self, found: &Found, brief: bool) -> Result<TaskDetail> {
        let Found {
            task,
            project,
            config,
        } = found;
        let store = &self.inner.store;
        let words = Words::load(&self.inner, task.id).await?;
        let mut after = Vec::new();
        for on in &task.spec.after {
            after.extend(store.load_task(*on).await?.map(|task| task.name));
        }
        let question = match &task.state {
            woodward_core::State::Waiting { question, .. } => Some(QuestionView {
                text: question.text.to_string(),
                choices: question.choices.iter().map(ToString::to_string).collect(),
            }),
            _ => None,
        };
        let (merged, gates): (Vec<_>, Vec<_>) = store
            .load_gate_results(task.id)
            .await?
            .into_iter()
            .partition(|result| result.detail.merged);
        let newest = merged.iter().max_by_key(|result| result.at);
        let last_merged = newest.map(|result| result.commit.clone());
        // Of its result, if they have looked at that; otherwise of what they looked at last.
        let last = match &task.head {
            Some(head) if gates.iter().any(|result| result.commit == *head) => Some(head.clone()),
            _ => {
                let newest = gates.iter().max_by_key(|result| result.at);
                newest.map(|result| result.commit.clone())
            }
        };
        let result = match (&task.head, &task.worktree) {
            (Some(head), Some(worktree)) if !brief => Some((head, worktree)),
            _ => None,
        };
        let change = match result {
            Some((head, worktree)) => project.change(task, &worktree.base, head).await.ok(),
            None => None,
        };
        let risks = change.iter().flat_map(crate::project::Change::signals);
        let risks = risks.map(|signal| signal.to_string()).collect();
        let change = change.map(|change| stat_of(change.files()));
        let rescued = if brief {
            Vec::new()
        } else {
            let all = project.repo.rescues(task.name.as_str()).await;
            all.unwrap_or_default()
        };
        let conflicts = if brief || task.state.kind().is_finished() {
            Vec::new()
        } else {
            let open = self.inner.open_tasks(project.id()).await?;
            self.pairs_of(task, &open)
        };
        Ok(TaskDetail {
            labels: found.task.spec.labels.clone(),
            task: self.summary(project, config, task).await?,
            state: task.state.clone(),
            prompt: words
                .first
                .as_ref()
                .map(|message| cut(&message.body, PROMPT_BYTES_MAX)),
            after,
            question,
            messages: words
                .later
                .iter()
                .map(|message| MessageView {
                    id: message.id,
                    from: actor_text(&message.actor),
                    at: message.created_at,
                    delivery: message.delivery.as_str().into(),
                    text: cut(&message.body, MESSAGE_BYTES_MAX),
                })
                .collect(),
            runs: self.run_views(task).await?,
            gates: gates
                .iter()
                .filter(|result| Some(&result.commit) == last.as_ref())
                .map(gate_views::view)
                .collect(),
            merged_gates: merged
                .iter()
                .filter(|result| Some(&result.commit) == last_merged.as_ref())
                .map(gate_views::view)
                .collect(),
            change,
            risks,
            conflicts,
            rescued: rescued
                .into_iter()
                .map(|rescue| RescueView {
                    reference: rescue.name,
                    commit: rescue.commit,
                    at: Timestamp(rescue.time.saturating_mul(1_000)),
                    why: rescue.why,
                })
                .collect(),
        })
    }

    async fn run_views(&self, task: &Task) -> Result<Vec<RunView>> {
        let runs = self.inner.store.load_runs(task.id).await?;
        let mut views: Vec<RunView> = runs.iter().map(|run| self.run_view(run)).collect();
        if task.state.kind().is_finished() {
            return Ok(views);
        }
        let dir = |run| self.inner.options.paths.run(run);
        for (run, view) in runs.iter().zip(&mut views) {
            let over = matches!(view.state.as_str(), "lost" | "finished");
            let found = resumable(&runs, &run.agent, dir);
            view.resumable = over && found.is_some_and(|found| found.run == run.id);
        }
        Ok(views)
    }

    fn run_view(&self, run: &Run) -> RunView {
        let dir = self.inner.options.paths.run(run.id);
        let seen = supervise::look(&dir);
        let state = match (run.state, &seen) {
            (RunState::Finished, _) | (RunState::Running, Ok(Seen::Ended(_))) => "finished",
            (RunState::Starting | RunState::Running, Ok(Seen::Lost)) => "lost",
            (RunState::Starting, _) => "starting",
            (RunState::Running, _) => "running",
        };
        let exit = match seen {
            Ok(Seen::Ended(exit)) => Some(exit),
            _ => None,
        };
        let talk = woodward_agents::files::load_conversation(&dir);
        RunView {
            id: run.id,
            purpose: purpose_text(&run.purpose),
            agent: run.agent.to_string(),
            logged_out: matches!(
                talk.as_ref().and_then(|talk| talk.ending.as_ref()),
                Some(Ending::LoggedOut { .. })
            ),
            model: talk.and_then(|talk| talk.model),
            session: run.session.clone(),
            spent: spent(run.spend),
            state: state.into(),
            resumable: false,
            started_at: run.started_at,
            finished_at: run.finished_at,
            note: run.note.as_ref().map(ToString::to_string),
            exit_code: match exit.as_ref().map(|exit| &exit.cause) {
                Some(Cause::Exited(code)) => Some(*code),
                _ => None,
            },
            cpu_ms: exit.as_ref().map(|exit| exit.cpu_ms),
            memory_peak_bytes: exit.as_ref().map(|exit| exit.memory_peak_bytes),
            output_bytes: exit.as_ref().map(|exit| exit.output_bytes),
        }
    }

    /// A task's story.
    ///
    /// # Errors
    /// When there is no such task.
    pub async fn timeline(&self, wanted: &TaskRef<'_>) -> Answered<Timeline> {
        let found = self.find(wanted).await?;
        Ok(self.story(&found).await?)
    }

    async fn story(&self, found: &Found) -> Result<Timeline> {
        let history = self.inner.store.load_history(found.task.id).await?;
        let mut entries = Vec::with_capacity(history.len());
        let mut task: Option<Task> = None;
        for (event, policy) in &history {
            let ran = task.as_ref().and_then(|task| run_of(&task.state));
            task = match (&task, &event.fact) {
                (None, Fact::Created(new)) => Some(create(new, event).next),
                (Some(task), _) => step(task, event, policy).ok().map(|done| done.next),
                (None, _) => None,
            };
            entries.push(TimelineEntry {
                at: event.at,
                actor: actor_text(&event.actor),
                fact: event.fact.as_str().into(),
                state: task.as_ref().map_or(StateKind::Draft, |t| t.state.kind()),
                text: format!(
                    "{}{}",
                    describe::fact(&event.fact),
                    task.as_ref()
                        .and_then(|task| describe::wait(task, &event.fact, event.at, policy))
                        .unwrap_or_default()
                ),
                told: task
                    .as_ref()
                    .and_then(|task| run_of(&task.state))
                    .filter(|run| Some(*run) != ran)
                    .and_then(|run| self.told(run)),
            });
        }
        Ok(Timeline {
            task: self
                .summary(&found.project, &found.config, &found.task)
                .await?,
            entries,
        })
    }

    /// What a run's agent was told, cut where it is long.
    fn told(&self, run: RunId) -> Option<String> {
        let file = self.inner.options.paths.run(run).join(PROMPT_FILE);
        let mut text = std::fs::read_to_string(file).ok()?;
        if text.len() > TOLD_MAX {
            let mut cut = TOLD_MAX;
            while !text.is_char_boundary(cut) {
                cut -= 1;
            }
            text.truncate(cut);
            text.push('…');
        }
        Some(text)
    }

    /// A task's change against where it started: its result, or with `working` its directory as it
    /// is.
    ///
    /// # Errors
    /// When there is no such task, or it has changed nothing yet.
    pub async fn diff(
        &self,
        wanted: &TaskRef<'_>,
        stat: bool,
        working: bool,
    ) -> Answered<DiffText> {
        let found = self.find(wanted).await?;
        Ok(self.change(&found, stat, working).await?)
    }

    /// How a task's result differs from what a person approved last: change against change, so that
    /// what came from the target branch meanwhile does not show.
    ///
    /// # Errors
    /// When nothing was approved before.
    pub async fn diff_since_approved(
        &self,
        wanted: &TaskRef<'_>,
        stat: bool,
    ) -> Answered<DiffText> {
        let found = self.find(wanted).await?;
        let Found { task, project, .. } = &found;
        let returned = task.tally.returned.as_ref();
        let (Some(returned), Some(head)) = (returned, &task.head) else {
            let what = format!("you have not approved an earlier result of {}", task.name);
            let diff = NextCommand::Diff {
                task: task.name.clone(),
            };
            let hint = diff.purpose("see the whole change");
            return Err(Problem::new(Code::WrongState, what).hint(hint));
        };
        Ok(self
            .interdiff(project, task, &returned.commit, head, stat)
            .await?)
    }

    async fn interdiff(
        &self,
        project: &Project,
        task: &Task,
        approved: &CommitId,
        head: &CommitId,
        stat: bool,
    ) -> Result<DiffText> {
        let repo = &project.repo;
        let recorded = task.worktree.as_ref().map(|worktree| &worktree.base);
        let approved_base = project.change_base(task, recorded, approved).await?.commit;
        let base = project.change_base(task, recorded, head).await?.commit;
        let before = repo.rebuilt_on(approved, &approved_base, &base).await?;
        let side = Side::Commit(head);
        let stats = stat_of(&repo.numstat(&before, side).await?);
        let (text, truncated) = if stat {
            (String::new(), false)
        } else {
            let patch = repo.diff(&before, side, DIFF_BYTES_MAX).await?;
            (String::from_utf8_lossy(&patch.text).into_owned(), patch.cut)
        };
        Ok(DiffText {
            base: approved.clone(),
            head: Some(head.clone()),
            stat: stats,
            text,
            truncated,
        })
    }

    async fn change(&self, found: &Found, stat: bool, working: bool) -> Result<DiffText> {
        let Found { task, project, .. } = found;
        let path = project.worktree(&task.name);
        let unchanged = || {
            let what = format!("{} has changed nothing yet", task.name);
            Problem::new(Code::WrongState, what)
        };
        let worktree = task
            .worktree
            .clone()
            .or_else(|| removed::load(&self.inner.options.paths, task.id))
            .ok_or_else(unchanged)?;
        let place = project.repo.worktree(&path, &worktree.branch).ok();
        let here = place.filter(|_| task.worktree.is_some() && path.is_dir());
        let running = working || task.state.kind().is_held() || task.head.is_none();
        let side = match (&here, &task.head) {
            (Some(place), _) if running => Side::Worktree(place),
            (_, Some(head)) => Side::Commit(head),
            _ => return Err(unchanged().into()),
        };
        let tip = match side {
            Side::Commit(head) => Some(head.clone()),
            Side::Worktree(_) => project.repo.tip(&worktree.branch).await?,
        };
        let base = match tip {
            Some(tip) => {
                let recorded = Some(&worktree.base);
                project.change_base(task, recorded, &tip).await?.commit
            }
            None => worktree.base,
        };
        let stats = stat_of(&project.repo.numstat(&base, side).await?);
        let (text, truncated) = if stat {
            (String::new(), false)
        } else {
            let patch = project.repo.diff(&base, side, DIFF_BYTES_MAX).await?;
            (String::from_utf8_lossy(&patch.text).into_owned(), patch.cut)
        };
        Ok(DiffText {
            base,
            head: match side {
                Side::Commit(commit) => Some(commit.clone()),
                Side::Worktree(_) => None,
            },
            stat: stats,
            text,
            truncated,
        })
    }
}

/// The size of a change: totals of all files, the first files by name.
fn stat_of(files: &[crate::git::FileStat]) -> DiffStat {
    let sum = |side: fn(&(u64, u64)) -> u64| {
        files
            .iter()
            .filter_map(|f| f.lines.as_ref().map(side))
            .sum()
    };
    DiffStat {
        files: files
            .iter()
            .take(FILES_MAX)
            .map(|file| FileStat {
                path: file.path.clone(),
                added: file.lines.map(|(added, _)| added),
                removed: file.lines.map(|(_, removed)| removed),
            })
            .collect(),
        files_total: u32::try_from(files.len()).unwrap_or(u32::MAX),
        added: sum(|(added, _)| *added),
        removed: sum(|(_, removed)| *removed),
    }
}

/// Cuts a list that may be long, and says what was cut off.
fn take_rest(inbox: &mut Vec<(&Task, Attention)>, limit: Option<u32>) -> BTreeMap<Level, u32> {
    let mut rest = BTreeMap::new();
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    let from = limit.unwrap_or(usize::MAX).min(inbox.len());
    for (_, attention) in inbox.drain(from..) {
        *rest.entry(attention.level).or_default() += 1;
    }
    rest
}

/// The first part of a text that may be long.
pub(super) fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

/// By whose hand, in words.
pub(super) fn actor_text(actor: &Actor) -> String {
    match actor {
        Actor::Person(name) => name.clone(),
        Actor::Claim { .. } => "worker".into(),
        Actor::Lander { .. } => "queue".into(),
        Actor::Woodward => "woodward".into(),
    }
}

/// The run that works in a state.
const fn run_of(state: &State) -> Option<RunId> {
    match state {
        State::Working { run, .. } | State::Waiting { run, .. } => Some(*run),
        _ => None,
    }
}
