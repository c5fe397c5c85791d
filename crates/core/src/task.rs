//! A task: one unit of work and everything decided about it so far.
//!
//! A task is the fold of its events. Its prompt is not part of it (a prompt may have megabytes):
//! prompts are messages.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, Spend};
use crate::fix::FixTally;
use crate::id::{CommitId, Epoch, MessageId, ProjectId, TaskId, TreeId, Version, WorkerId};
use crate::name::{AgentName, GateName, TaskName};
use crate::policy::ReviewRule;
use crate::risk::EmbeddedRepository;
use crate::state::{RejectionSource, ResumePoint, State};
use crate::text::Note;
use crate::time::Timestamp;

/// What a person asked for. Only the budget and the dependencies can be changed once the task exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskSpec {
    /// Higher goes first; each step is worth ten minutes of waiting (see [`crate::schedule`]).
    pub priority: i8,
    /// The tasks that must have landed before it starts.
    pub after: Vec<TaskId>,
    /// The branch it starts from and lands on, without `refs/heads/`.
    pub base: String,
    /// The agent; the project's default otherwise.
    pub agent: Option<AgentName>,
    /// Agents that take its place, in this order, when it is missing or must wait.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<AgentName>,
    /// The model; the agent's own choice otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether its agent may do everything that no rule denies, without asking.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub yolo: bool,
    /// The files it should keep to, as patterns; no limit if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Whether it starts even where others that touch the same are under way.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub anyway: bool,
    /// Who looks before it lands; the project's rule otherwise.
    pub review: Option<ReviewRule>,
    /// Its own budget; the project's otherwise.
    pub budget: Option<Budget>,
    /// What people and rules know it by, besides its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

impl Default for TaskSpec {
    fn default() -> Self {
        Self {
            priority: 0,
            after: Vec::new(),
            base: String::from("main"),
            agent: None,
            fallback: Vec::new(),
            model: None,
            yolo: false,
            paths: Vec::new(),
            anyway: false,
            review: None,
            budget: None,
            labels: Vec::new(),
        }
    }
}

/// A task about to be created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTask {
    /// Its id, made by the caller.
    pub id: TaskId,
    /// Where it belongs.
    pub project: ProjectId,
    /// What people type.
    pub name: TaskName,
    /// What was asked for.
    pub spec: TaskSpec,
    /// Whether it has a prompt already.
    pub prompted: bool,
    /// Those of `spec.after` that had not landed when it was created.
    pub blockers: BTreeMap<TaskId, Blocker>,
}

/// What keeps a task that comes after another from starting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// What is known of the other.
    pub standing: Standing,
    /// The version of the other that this is known from. News may overtake each other; only newer
    /// ones count.
    pub as_of: Version,
}

/// How a task that others come after stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is under way.
    Pending,
    /// It will not land as things are.
    Failed(Note),
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Task {
    /// Until when its landing is not to be tried, because it could not be just now.
    pub fn lands_after(&self, now: Timestamp) -> Option<Timestamp> {
        let State::Landing { intent: None, .. } = &self.state else {
            return None;
        };
        self.tally.land_after.filter(|after| *after > now)
    }

    /// What this task means for those that come after it; `None` once it has landed.
    pub fn standing(&self) -> Option<Standing> {
        let failed = |why: String| Some(Standing::Failed(Note::from(why)));
        match &self.state {
            State::Landed { .. } => None,
            State::Failed { failure } => failed(format!("failed: {failure}")),
            State::Cancelled { reason } if reason.as_str().is_empty() => {
                failed(String::from("was cancelled"))
            }
            State::Cancelled { reason } => failed(format!("was cancelled: {reason}")),
            State::Superseded { by } => failed(format!("was superseded by task {by}")),
            _ => Some(Standing::Pending),
        }
    }

    /// The rejected result that is up for review again because the agent made no changes.
    pub fn unchanged_result(&self) -> Option<&RejectedResult> {
        let in_review = matches!(
            self.state,
            State::Review { .. }
                | State::Paused {
                    back: ResumePoint::Review { .. },
                    ..
                }
        );
        let rejected = self.rejected.as_ref()?;
        (in_review && rejected.unchanged_runs > 0).then_some(rejected)
    }
}

/// A task's working directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Its branch, without `refs/heads/`.
    pub branch: String,
    /// The claim that made it.
    pub made_by: Epoch,
    /// The machine it is on.
    pub worker: WorkerId,
    /// The commit it started from.
    pub base: CommitId,
}

/// Runs in a row that ended because the provider was overloaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OverloadTally {
    /// How many.
    pub count: u32,
    /// When the first of them ended.
    pub since: Option<Timestamp>,
}

/// What a task has used up. Durable, so that a restart forgives nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// Runs and preparations that failed since the last one that did not.
    pub failures: u32,
    /// Claims lost.
    pub lease_losses: u32,
    /// Landing conflicts.
    pub conflicts: u32,
    /// Times that the merge queue sent it back because it fails on top of what landed before it.
    #[serde(skip_serializing_if = "is_default")]
    pub returns: u32,
    /// When landing it may be tried again after it could not be; only while it waits to land.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub land_after: Option<Timestamp>,
    /// Rate limits met. They are no attempts; the count is for people.
    pub rate_limits: u32,
    /// Runs in a row that a full disk ended. They are no attempts.
    #[serde(skip_serializing_if = "is_default")]
    pub disk_waits: u32,
    /// Times in a row that the provider was overloaded, and since when. They are no attempts until
    /// it has lasted for hours.
    #[serde(skip_serializing_if = "is_default")]
    pub overloads: OverloadTally,
    /// Fix cycles.
    pub fixes: FixTally,
    /// Tokens and money, of all runs.
    pub spent: Spend,
    /// What of it is the current run's, so that a report repeated after a restart counts once.
    pub spent_by_run: Spend,
    /// A person's approval that led to no landing: why the task comes back for review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<ReturnedApproval>,
}

/// What a person approved before the task had to be changed again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnedApproval {
    /// The commit that was approved.
    pub commit: CommitId,
    /// Why it did not land.
    pub cause: ReturnCause,
}

/// Why something approved had to be changed again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnCause {
    /// It conflicted with the target branch.
    Conflict {
        /// In these files.
        files: Vec<String>,
    },
    /// Gates failed on the merge result.
    Gates {
        /// These.
        gates: Vec<GateName>,
    },
    /// Commits were added to its branch.
    HeadMoved,
    /// The target branch was rewritten, and its change was rebuilt on it.
    TargetRewritten,
    /// The person asked for changes after all.
    ChangesRequested,
}

/// A result that was sent back to the agent for changes, until there is another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedResult {
    /// Its commit.
    pub commit: CommitId,
    /// Its content, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// What asked for changes.
    #[serde(default)]
    pub source: RejectionSource,
    /// Whether a run has ended that the gates have not verified yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub run_ended: bool,
    /// Runs since then that ended with the same content.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unchanged_runs: u32,
}

impl RejectedResult {
    /// Whether a result has the same content. An empty commit or a change that the agent reverted
    /// itself makes no difference.
    pub fn has_content_of(&self, commit: &CommitId, tree: Option<&TreeId>) -> bool {
        match (&self.tree, tree) {
            (Some(rejected), Some(tree)) => rejected == tree,
            _ => self.commit == *commit,
        }
    }
}

/// One unit of work.
///
/// What is absent is not written: a task is stored with every change, and most have little to say. It
/// also means that a record from before a field existed can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its identity.
    pub id: TaskId,
    /// Where it belongs.
    pub project: ProjectId,
    /// What people type.
    pub name: TaskName,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spec: TaskSpec,
    /// When it was created.
    pub created_at: Timestamp,
    /// The fencing token: grows with every claim and every revocation.
    pub epoch: Epoch,
    /// How many events shaped it.
    pub version: Version,
    /// Who holds its claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<WorkerId>,
    /// Where it is.
    pub state: State,
    /// Since when.
    pub since: Timestamp,
    /// Whether it has a prompt.
    pub prompted: bool,
    /// Messages that no agent has provably taken yet, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<MessageId>,
    /// Messages that an agent has taken and no run has come to an end with yet: if the run is lost,
    /// the next one is told again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<MessageId>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub blockers: BTreeMap<TaskId, Blocker>,
    /// Its working directory, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The last commit a run produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// The content of the commit that the gates verified last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_tree: Option<TreeId>,
    /// The result that was sent back for changes, while there is no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<RejectedResult>,
    /// Git repositories in its verified result that are not declared submodules. It does not land while
    /// there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub embedded: Vec<EmbeddedRepository>,
    /// What it has used up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tally: Tally,
}

/// The task of a project that finished last, once all is done: no task is open but drafts, which nobody
/// has begun, and at least one is finished. Rules and notices go by this alike.
pub fn all_done(tasks: &[Task]) -> Option<&Task> {
    let is_over = |task: &Task| task.state.kind().is_finished();
    let is_draft = |task: &Task| matches!(task.state, State::Draft);
    if !tasks.iter().all(|task| is_over(task) || is_draft(task)) {
        return None;
    }
    let finished = tasks.iter().filter(|task| is_over(task));
    finished.max_by_key(|task| (task.since, task.id))
}
