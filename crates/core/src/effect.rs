//! Effects: what is to be done to the world, as data.
//!
//! They are written in the same transaction as the event that caused them and performed afterwards,
//! at least once. Each carries a key, and performing the same key twice must do what performing it
//! once does.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{CommitId, Epoch, MessageId, RunId, TaskId, Version, WorkerId};
use crate::state::Purpose;
use crate::task::Worktree;
use crate::text::Note;

/// One thing to be done to the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The same key is the same effect.
    pub key: EffectKey,
    /// The task it is done for.
    pub task: TaskId,
    /// The claim it belongs to.
    pub epoch: Epoch,
    /// Who must do it; `None` is anybody.
    pub worker: Option<WorkerId>,
    /// What to do.
    pub action: Action,
}

/// Task, version and verb: one transition never asks for the same verb twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectKey(String);

impl EffectKey {
    /// The key of what `task`'s transition to `version` asks for.
    pub fn new(task: TaskId, version: Version, action: &Action) -> Self {
        Self(format!("{task}/{version}/{}", action.verb()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EffectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Make or find the task's worktree for this run, then report that it is ready.
    PrepareWorktree {
        /// The run it is for.
        run: RunId,
        /// What that run is for.
        purpose: Purpose,
    },
    /// Start the agent, with the messages that are unread.
    StartRun {
        /// The run.
        run: RunId,
        /// What it is for.
        purpose: Purpose,
        /// The messages.
        messages: Vec<MessageId>,
    },
    /// Hand a stored message to the running agent.
    DeliverMessage {
        /// The run.
        run: RunId,
        /// The message.
        message: MessageId,
    },
    /// End all processes of a run, then save what it left uncommitted.
    StopRun {
        /// The run.
        run: RunId,
    },
    /// Run the gates on a commit.
    RunGates {
        /// The commit.
        commit: CommitId,
    },
    /// End the gates that run on a commit.
    StopGates {
        /// The commit.
        commit: CommitId,
    },
    /// Move this worktree to the trash, its unlanded work saved first. It names the claim that made
    /// the worktree, so that a late delivery can't take a newer one.
    RemoveWorktree {
        /// The worktree.
        worktree: Worktree,
    },
    /// Tell the tasks that come after this one.
    TellDependents {
        /// What became of it.
        news: DependencyNews,
        /// The version of the task that this is true of.
        as_of: Version,
    },
}

/// What dependents are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependencyNews {
    /// It has landed.
    Landed,
    /// It will not land as things are.
    Failed(Note),
    /// It is being worked on again.
    Reopened,
}

impl Action {
    /// The one word for it.
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::PrepareWorktree { .. } => "prepare_worktree",
            Self::StartRun { .. } => "start_run",
            Self::DeliverMessage { .. } => "deliver_message",
            Self::StopRun { .. } => "stop_run",
            Self::RunGates { .. } => "run_gates",
            Self::StopGates { .. } => "stop_gates",
            Self::RemoveWorktree { .. } => "remove_worktree",
            Self::TellDependents { .. } => "tell_dependents",
        }
    }

    /// Whether it is only worth doing while the claim it belongs to is current. Cleaning up and
    /// telling others stay due whatever happens to the claim.
    pub const fn needs_current_claim(&self) -> bool {
        matches!(
            self,
            Self::PrepareWorktree { .. }
                | Self::StartRun { .. }
                | Self::DeliverMessage { .. }
                | Self::RunGates { .. }
        )
    }
}
