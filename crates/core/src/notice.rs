//! What a person is told, and how loudly.
//!
//! A notice is about an edge: a task came to where a person matters. It is named by its evidence
//! (the question, the commit, the moment it failed), so looking at the same task again, on another
//! machine or after a restart, gives the same notice and not another one. When each channel is told
//! is decided by [`plan`]; nothing here sends anything.

mod plan;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::attention::{TaskView, attention};
use crate::hint::NextCommand;
use crate::id::{ProjectId, TaskId};
use crate::state::{PauseReason, State};
use crate::task::Task;
use crate::text::Note;
use crate::time::Timestamp;

pub use plan::{Digest, Plan, QuietHours, Rules, TimeOfDay, Wait, Waiting, plan};

/// How loudly a person is told; the last is the loudest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Good to know.
    Low,
    /// It waits for the person, and harms nobody meanwhile.
    Normal,
    /// Work has stopped.
    High,
    /// An agent stands idle until it is answered.
    Urgent,
}

impl Level {
    /// All of them, the loudest first.
    pub const ALL: [Self; 4] = [Self::Urgent, Self::High, Self::Normal, Self::Low];

    /// The one word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Urgent => "urgent",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a person is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// An agent asks something, or for a permission.
    Question,
    /// A rule gave up and hands over.
    Escalation,
    /// A task can't go on by itself.
    Failed,
    /// A budget stopped a task.
    Budget,
    /// An approved result can't land.
    Held,
    /// A result is ready to be looked at.
    Review,
    /// No task of the project is open any more.
    AllDone,
    /// A result is on its target branch.
    Landed,
    /// A rule wants it said.
    Rule,
    /// A person tries a channel.
    Test,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Question,
        Self::Escalation,
        Self::Failed,
        Self::Budget,
        Self::Held,
        Self::Review,
        Self::AllDone,
        Self::Landed,
        Self::Rule,
        Self::Test,
    ];

    /// The one word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Escalation => "escalation",
            Self::Failed => "failed",
            Self::Budget => "budget",
            Self::Held => "held",
            Self::Review => "review",
            Self::AllDone => "all-done",
            Self::Landed => "landed",
            Self::Rule => "rule",
            Self::Test => "test",
        }
    }

    /// How loudly it is told.
    pub const fn level(self) -> Level {
        match self {
            Self::Question | Self::Escalation => Level::Urgent,
            Self::Failed | Self::Budget | Self::Held => Level::High,
            Self::Review | Self::AllDone | Self::Rule | Self::Test => Level::Normal,
            Self::Landed => Level::Low,
        }
    }

    /// Whether it is about a state that a person can end; the others are said for their own sake.
    pub const fn can_be_answered(self) -> bool {
        matches!(
            self,
            Self::Question | Self::Failed | Self::Budget | Self::Held | Self::Review
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One thing that a person is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Its evidence: the same key is the same notice.
    pub key: String,
    /// The project.
    pub project: ProjectId,
    /// The task it is about, where there is one.
    pub task: Option<TaskId>,
    /// That task's name.
    pub name: Option<String>,
    /// Why.
    pub reason: Reason,
    /// How loudly.
    pub level: Level,
    /// What, in one or two sentences.
    pub text: Note,
    /// The answers that a question offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Note>,
    /// The one command to type, where there is one.
    pub command: Option<String>,
    /// Since when it is so.
    pub at: Timestamp,
}

impl Notice {
    /// A notice about a task.
    pub fn about(
        task: &Task,
        reason: Reason,
        evidence: &str,
        text: impl Into<Note>,
        command: Option<String>,
    ) -> Self {
        Self {
            key: format!("{}/{reason}/{}", task.id, cut(evidence)),
            project: task.project,
            task: Some(task.id),
            name: Some(task.name.to_string()),
            reason,
            level: reason.level(),
            text: text.into(),
            choices: Vec::new(),
            command,
            at: task.since,
        }
    }

    /// What is said when the last open task of a project is over; `last` is that task.
    pub fn all_done(last: &Task) -> Self {
        let text = format!(
            "all tasks are over; the last one, {}, is {}",
            last.name,
            last.state.kind()
        );
        let evidence = format!("{}/{}", last.id, last.since.0);
        let command = Some(NextCommand::StatusAll.to_string());
        Self {
            key: format!("{}/{}/{evidence}", last.project, Reason::AllDone),
            task: None,
            name: None,
            ..Self::about(last, Reason::AllDone, &evidence, text, command)
        }
    }

    /// One line that says who and why.
    pub fn title(&self) -> String {
        let name = self.name.as_deref().unwrap_or("Woodward");
        match self.reason {
            Reason::Question => format!("{name} asks you"),
            Reason::Escalation => format!("{name} needs you"),
            Reason::Failed => format!("{name} failed"),
            Reason::Budget => format!("{name} has used up its budget"),
            Reason::Held => format!("{name} can't land"),
            Reason::Review => format!("{name} is ready for review"),
            Reason::AllDone => String::from("All tasks are over"),
            Reason::Landed => format!("{name} has landed"),
            Reason::Rule => format!("{name}: a rule of the project"),
            Reason::Test => String::from("Woodward can reach you"),
        }
    }
}

/// The most of a text that is part of a key.
const EVIDENCE_CHARS_MAX: usize = 120;

fn cut(evidence: &str) -> String {
    evidence
        .chars()
        .filter(|c| !c.is_control())
        .take(EVIDENCE_CHARS_MAX)
        .collect()
}

/// What a person is told about a task as it is now, if anything.
///
/// `hold` is why its queue entry is held back. The words and the command are those of
/// [`attention`], so that a notice and `woodward status` never disagree.
pub fn notice_of(task: &Task, hold: Option<&Note>) -> Option<Notice> {
    let since = || task.since.0.to_string();
    let (reason, evidence) = match &task.state {
        State::Waiting { question, .. } => (Reason::Question, question.id.to_string()),
        State::Review { commit, .. } => {
            // The same commit again is news if the agent was asked to change it.
            let evidence = match task.unchanged_result() {
                Some(rejected) => format!("{commit}/unchanged-{}", rejected.unchanged_runs),
                None => commit.to_string(),
            };
            (Reason::Review, evidence)
        }
        State::Failed { .. }
        | State::Paused {
            reason: PauseReason::MovedBranch(_),
            ..
        } => (Reason::Failed, since()),
        State::Paused {
            reason: PauseReason::Budget(_),
            ..
        } => (Reason::Budget, since()),
        State::Landed { commit, .. } => (Reason::Landed, commit.to_string()),
        State::Landing { approval, .. } => {
            return hold.map(|hold| held(task, &approval.commit, hold));
        }
        _ => return None,
    };
    let view = TaskView {
        task,
        dependents: 0,
        risk: 0,
        blockers: Vec::new(),
        run_waits: None,
        local_offset_ms: 0,
    };
    // Nothing that is told here is worded by the clock.
    let said = attention(&view, task.since);
    let text = match &task.state {
        State::Landed { commit, .. } => {
            let short: String = commit.as_str().chars().take(10).collect();
            format!("it is on {} as {short}", task.spec.base)
        }
        State::Waiting { question, .. } => question.text.as_str().to_string(),
        _ => said.reason,
    };
    let mut notice = Notice::about(task, reason, &evidence, text, said.command);
    if let State::Waiting { question, .. } = &task.state {
        notice.choices.clone_from(&question.choices);
    }
    Some(notice)
}

fn held(task: &Task, commit: &crate::id::CommitId, hold: &Note) -> Notice {
    // Which files are in the way may change; that something is in the way is told once a result.
    let what = hold.as_str().split(':').next().unwrap_or_default();
    let evidence = format!("{commit}/{what}");
    let command = NextCommand::Show {
        task: task.name.clone(),
    }
    .to_string();
    Notice::about(task, Reason::Held, &evidence, hold.clone(), Some(command))
}
