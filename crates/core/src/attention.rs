//! What a person should do next: one function, one ordering.
//!
//! The CLI, the terminal UI, the dashboard and notifications all ask here, so they never disagree.
//! Every entry has one reason and one next command.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::hint::{Dependencies, NextCommand, Word};
use crate::id::CommitId;
use crate::name::{GateName, TaskName};
use crate::provider::{ProviderWait, ProviderWaitReason};
use crate::risk::embedded_text;
use crate::state::{AnswerVia, Delay, Evidence, Failure, PauseReason, State};
use crate::task::{Blocker, RejectedResult, ReturnCause, Standing, Task};
use crate::text::Note;
use crate::time::{Millis, Timestamp};

/// The most blockers that a reason names.
const BLOCKERS_SHOWN_MAX: usize = 5;
/// The most names of files or gates, and the most of each, that a reason has.
const NAMES_SHOWN_MAX: usize = 2;
const NAME_BYTES_MAX: usize = 50;

/// How much a minute of the person's time is worth here; the first is worth most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// An agent stands idle until it is answered.
    Answer,
    /// Verified and green: it needs a yes.
    Merge,
    /// It needs a closer look.
    Review,
    /// It can't go on by itself.
    Broken,
    /// It waits for something that is not the person, or for a prompt.
    Waiting,
    /// It is being worked on.
    Working,
    /// It is over.
    Done,
}

impl Level {
    /// Whether the person is what it waits for.
    pub const fn needs_person(self) -> bool {
        matches!(
            self,
            Self::Answer | Self::Merge | Self::Review | Self::Broken
        )
    }
}

/// One entry of the list of what needs a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    /// How urgent.
    pub level: Level,
    /// Why, in one sentence.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// The one command to type next, where there is one.
    pub command: Option<String>,
    /// Other commands that fit, the most likely one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
}

/// A task with the facts around it that attention depends on.
#[derive(Clone, Debug)]
pub struct TaskView<'a> {
    /// The task.
    pub task: &'a Task,
    /// How many open tasks wait for it.
    pub dependents: u32,
    /// How many risk signals its change shows.
    pub risk: u32,
    /// The names of what it waits for.
    pub blockers: Vec<(&'a TaskName, &'a Blocker)>,
    /// What the program of its current run waits for.
    pub run_waits: Option<ProviderWait>,
    /// How far the person's clock is ahead of UTC, in milliseconds.
    pub local_offset_ms: i64,
}

impl TaskView<'_> {
    /// Whether the task waits for a model's provider, in a run or between two.
    pub fn provider_wait(&self) -> Option<ProviderWait> {
        let wait = |reason, resets_at, retries_at| ProviderWait {
            reason,
            resets_at,
            retries_at,
        };
        match &self.task.state {
            State::Working { .. } => self.run_waits,
            State::Queued { run_at, delay, .. } => match delay.as_ref()? {
                Delay::RateLimit => Some(wait(ProviderWaitReason::RateLimit, Some(*run_at), None)),
                Delay::Overloaded { .. } => {
                    Some(wait(ProviderWaitReason::Overloaded, None, Some(*run_at)))
                }
                Delay::Backoff { .. } | Delay::TargetRewritten | Delay::DiskFull(_) => None,
            },
            _ => None,
        }
    }
}

/// What a person should do about one task.
pub fn attention(view: &TaskView<'_>, now: Timestamp) -> Attention {
    let task = view.task;
    let name = &task.name;
    let (level, reason, command) = match &task.state {
        State::Draft => (
            Level::Waiting,
            "it has no prompt yet".to_string(),
            Some(NextCommand::Prompt { task: name.clone() }),
        ),
        State::Queued { run_at, delay, .. } => queued(view, *run_at, delay.as_ref(), now),
        State::Preparing { .. } => working("its worktree is being made"),
        State::Working { .. } => match view.provider_wait() {
            Some(wait) => waiting(&wait.text(now, view.local_offset_ms)),
            None => working("an agent works on it"),
        },
        State::Waiting { question, .. } => (
            Level::Answer,
            format!("the agent asks: {}", question.text),
            Some(match question.via {
                AnswerVia::Command => NextCommand::Answer { task: name.clone() },
                AnswerVia::Terminal => NextCommand::Attach { task: name.clone() },
            }),
        ),
        State::Verifying { .. } => working("its gates run"),
        State::Review { commit, evidence } => {
            match (embedded_text(&task.embedded), task.unchanged_result()) {
                (Some(contained), _) => embedded(task, &contained, *evidence),
                (None, Some(rejected)) => unchanged(name, rejected, *evidence),
                (None, None) => again(task, commit, review(name, *evidence)),
            }
        }
        State::Landing { intent: None, .. } => match task.lands_after(now) {
            Some(after) => waiting(&format!(
                "it could not land; tries again in {}",
                after.since(now)
            )),
            None => waiting("it is in the merge queue"),
        },
        State::Landing { .. } => working("it is landing"),
        State::Paused { reason, .. } => paused(view.task, reason),
        State::Failed { failure } => failed(name, failure),
        State::Landed { .. } => (Level::Done, "it has landed".to_string(), None),
        State::Cancelled { reason } => (
            Level::Done,
            format!("cancelled{}", after_colon(reason)),
            None,
        ),
        State::Superseded { .. } => (Level::Done, "another task took its place".to_string(), None),
    };
    Attention {
        level,
        reason,
        since: task.since,
        command: command.map(|command| command.to_string()),
        alternatives: alternatives(task).iter().map(ToString::to_string).collect(),
    }
}

/// What a person may want to do instead of the one command.
fn alternatives(task: &Task) -> Vec<NextCommand> {
    let name = || task.name.clone();
    match &task.state {
        State::Review { .. } if !task.embedded.is_empty() => {
            let mut commands = embedded_commands(task);
            commands.drain(..1);
            commands.push(NextCommand::Diff { task: name() });
            commands.push(NextCommand::Reject { task: name() });
            commands
        }
        State::Review { .. } if task.unchanged_result().is_some() => alloc::vec![
            NextCommand::Reject { task: name() },
            NextCommand::Merge { task: name() },
        ],
        State::Failed {
            failure: Failure::SetupFailed { .. },
        } => alloc::vec![NextCommand::Retry { task: name() }],
        // The commits stay where the agent made them.
        State::Paused {
            reason: PauseReason::MovedBranch(_),
            ..
        } => alloc::vec![NextCommand::Resume { task: name() }],
        _ => Vec::new(),
    }
}

type Said = (Level, String, Option<NextCommand>);

fn working(reason: &str) -> Said {
    (Level::Working, reason.to_string(), None)
}

fn waiting(reason: &str) -> Said {
    (Level::Waiting, reason.to_string(), None)
}

fn queued(view: &TaskView<'_>, run_at: Timestamp, delay: Option<&Delay>, now: Timestamp) -> Said {
    let failed: Vec<(&TaskName, &Note)> = view
        .blockers
        .iter()
        .filter_map(|(on, blocker)| match &blocker.standing {
            Standing::Failed(reason) => Some((*on, reason)),
            Standing::Pending => None,
        })
        .collect();
    if !failed.is_empty() {
        return blocked(&view.task.name, &failed);
    }
    if !view.blockers.is_empty() {
        let shown = view.blockers.iter().take(BLOCKERS_SHOWN_MAX);
        let names: Vec<&str> = shown.map(|(on, _)| on.as_str()).collect();
        let more = match view.blockers.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return waiting(&format!("it comes after {}{more}", names.join(", ")));
    }
    if let Some(Delay::DiskFull(disk)) = delay {
        return (Level::Waiting, disk.to_string(), Some(NextCommand::Doctor));
    }
    if run_at > now {
        let left: Millis = run_at.since(now);
        let retry = || NextCommand::Retry {
            task: view.task.name.clone(),
        };
        if let Some(wait) = view.provider_wait() {
            let text = wait.text(now, view.local_offset_ms);
            return (Level::Waiting, text, Some(retry()));
        }
        return match delay {
            Some(Delay::Backoff { failures, last }) => (
                Level::Waiting,
                format!("attempt {} in {left}; the last one: {last}", failures + 1),
                Some(retry()),
            ),
            Some(Delay::TargetRewritten) => {
                waiting(&format!("{}; starts in {left}", rewritten(view.task)))
            }
            _ => waiting(&format!("starts in {left}")),
        };
    }
    if delay == Some(&Delay::TargetRewritten) {
        let task = view.task.name.clone();
        let diff = NextCommand::Diff { task };
        return (Level::Waiting, rewritten(view.task), Some(diff));
    }
    waiting("it waits for its turn")
}

/// A task that depends on others which will not land as things are.
fn blocked(name: &TaskName, failed: &[(&TaskName, &Note)]) -> Said {
    let reason = match failed {
        [] => String::from("blocked"),
        [(on, reason)] => format!("blocked: {on} {reason}"),
        [(on, reason), more @ ..] => {
            let names: Vec<&str> = more
                .iter()
                .take(BLOCKERS_SHOWN_MAX)
                .map(|(on, _)| on.as_str())
                .collect();
            let more = match more.len() - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("blocked: {on} {reason}; also by {}{more}", names.join(", "))
        }
    };
    let named = failed.iter().take(BLOCKERS_SHOWN_MAX);
    let command = NextCommand::ResumeWithout {
        task: name.clone(),
        without: Dependencies(named.map(|(on, _)| TaskName::clone(on)).collect()),
    };
    (Level::Broken, reason, Some(command))
}

fn rewritten(task: &Task) -> String {
    format!(
        "{} was rewritten; its change is rebuilt there, and its gates run again",
        task.spec.base
    )
}

/// The first names of a list, each without its beginning where it is long.
fn first_of<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN_MAX);
    let short = |name: &'a str| {
        let from = name.len().saturating_sub(NAME_BYTES_MAX);
        &name[name.ceil_char_boundary(from)..]
    };
    let shown: Vec<&str> = names.take(NAMES_SHOWN_MAX).map(short).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// What a person approved before and is to approve again begins with why, and with what is different.
fn again(task: &Task, commit: &CommitId, (level, reason, command): Said) -> Said {
    let returned = task.tally.returned.as_ref();
    let Some(returned) = returned.filter(|returned| returned.commit != *commit) else {
        return (level, reason, command);
    };
    let why = match &returned.cause {
        ReturnCause::Conflict { files } => {
            let target = &task.spec.base;
            let files = first_of(files.iter().map(String::as_str));
            format!("the conflict with {target} in {files} was resolved")
        }
        ReturnCause::Gates { gates } => {
            let gates = first_of(gates.iter().map(GateName::as_str));
            format!("it was changed because {gates} failed on the merge result")
        }
        ReturnCause::HeadMoved => "its branch has new commits".to_string(),
        ReturnCause::TargetRewritten => {
            format!(
                "{} was rewritten and the change was rebuilt on it",
                task.spec.base
            )
        }
        ReturnCause::ChangesRequested => "it was changed as you asked".to_string(),
    };
    let approved = returned.commit.as_str().get(..7).unwrap_or_default();
    (
        level,
        format!("back for review: {why} since you approved {approved}; {reason}"),
        Some(NextCommand::DiffSinceApproved {
            task: task.name.clone(),
        }),
    )
}

/// A result with a git repository of its own begins with that: it can't land before a person decides
/// what becomes of it.
fn embedded(task: &Task, contained: &str, evidence: Evidence) -> Said {
    let gates = gates_text(evidence);
    (
        Level::Review,
        format!("contains {contained}: add its files, drop it, or make it a submodule; {gates}"),
        embedded_commands(task).into_iter().next(),
    )
}

/// The choices for the first embedded repository of a task.
pub fn embedded_commands(task: &Task) -> Vec<NextCommand> {
    let Some(first) = task.embedded.first() else {
        return Vec::new();
    };
    let name = || task.name.clone();
    // A path that begins with `-` is not an option.
    let path = || match first.path.starts_with('-') {
        true => Word(format!("./{}", first.path)),
        false => Word(first.path.clone()),
    };
    let mut commands = alloc::vec![
        NextCommand::EmbeddedAddFiles {
            task: name(),
            path: path(),
        },
        NextCommand::EmbeddedDrop {
            task: name(),
            path: path(),
        },
    ];
    if first.has_commit {
        commands.push(NextCommand::EmbeddedSubmodule {
            task: name(),
            path: path(),
        });
    }
    commands
}

/// A result that was rejected and is back without any change.
fn unchanged(name: &TaskName, rejected: &RejectedResult, evidence: Evidence) -> Said {
    let gates = gates_text(evidence);
    let times = match rejected.unchanged_runs {
        1 => String::new(),
        many => format!(" ({many} attempts)"),
    };
    (
        Level::Review,
        format!(
            "the agent made no changes after {}{times}; {gates}",
            rejected.source
        ),
        Some(NextCommand::Prompt { task: name.clone() }),
    )
}

const fn gates_text(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Pass => "all gates passed",
        Evidence::Flaky => "a gate passed only on its second try",
        Evidence::Baseline => "a gate fails as it does on its base",
        Evidence::Unverified => "not verified by any gate",
    }
}

fn review(name: &TaskName, evidence: Evidence) -> Said {
    match evidence {
        Evidence::Pass => (
            Level::Merge,
            "all gates passed; it needs your yes".to_string(),
            Some(NextCommand::Merge { task: name.clone() }),
        ),
        Evidence::Flaky => (
            Level::Review,
            "a gate passed only on its second try".to_string(),
            Some(NextCommand::Diff { task: name.clone() }),
        ),
        Evidence::Baseline => (
            Level::Review,
            "a gate fails as it does on its base; nothing new fails".to_string(),
            Some(NextCommand::Diff { task: name.clone() }),
        ),
        Evidence::Unverified => (
            Level::Review,
            "no gate has looked at it".to_string(),
            Some(NextCommand::Diff { task: name.clone() }),
        ),
    }
}

fn paused(task: &Task, reason: &PauseReason) -> Said {
    let name = &task.name;
    let resume = Some(NextCommand::Resume { task: name.clone() });
    match reason {
        PauseReason::Person(note) => (
            Level::Waiting,
            format!("paused{}", after_colon(note)),
            resume,
        ),
        PauseReason::Rule(note) => (
            Level::Broken,
            format!("a rule stopped it{}", after_colon(note)),
            resume,
        ),
        PauseReason::MovedBranch(moved) => (
            Level::Broken,
            moved.to_string(),
            Some(NextCommand::ResumeMovingCommits { task: name.clone() }),
        ),
        PauseReason::Budget(limit) => (
            Level::Broken,
            format!("its budget is used up: {limit}"),
            // A day's limit is over with the day; the task's own must be raised first.
            Some(if limit.is_of(task.tally.spent) {
                NextCommand::ResumeWithBudget {
                    task: name.clone(),
                    budget: Word(limit.raised()),
                }
            } else {
                NextCommand::Resume { task: name.clone() }
            }),
        ),
    }
}

fn failed(name: &TaskName, failure: &Failure) -> Said {
    let task = name.clone();
    let command = match failure {
        Failure::SetupFailed { .. } => NextCommand::LogsSetup { task },
        Failure::GateTimedOut { gate, .. } | Failure::FixesSpent { gate: Some(gate) } => {
            NextCommand::LogsGate {
                task,
                gate: gate.clone(),
            }
        }
        // Trying the same again would end the same way: the agent must be told something new.
        Failure::Empty
        | Failure::NoChanges { .. }
        | Failure::FixesSpent { gate: None }
        | Failure::Circle { .. }
        | Failure::ConflictsSpent { .. } => NextCommand::Prompt { task },
        _ => NextCommand::Retry { task },
    };
    (Level::Broken, failure.to_string(), Some(command))
}

fn after_colon(note: &Note) -> String {
    if note.as_str().is_empty() {
        String::new()
    } else {
        format!(": {note}")
    }
}

/// The list a person sees: most valuable minute first; within a level what others wait for, then
/// what is riskier, then what has waited longer.
pub fn inbox<'a>(
    views: impl IntoIterator<Item = TaskView<'a>>,
    now: Timestamp,
) -> Vec<(&'a Task, Attention)> {
    let mut list: Vec<(TaskView<'a>, Attention)> = views
        .into_iter()
        .map(|view| {
            let attention = attention(&view, now);
            (view, attention)
        })
        .collect();
    list.sort_by_key(|(view, attention)| {
        (
            attention.level,
            Reverse(view.dependents),
            Reverse(view.risk),
            attention.since,
            view.task.id,
        )
    });
    list.into_iter()
        .map(|(view, attention)| (view.task, attention))
        .collect()
}
