//! Projects, the daemon's health, and what `doctor` finds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use woodward_core::{ProjectId, ProjectName, Timestamp};

/// A project as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectView {
    /// Its identity.
    pub id: ProjectId,
    /// What people type.
    pub name: ProjectName,
    /// The person's checkout.
    pub root: String,
    /// The branch tasks start from and land on.
    pub base: String,
    /// Where its worktrees are.
    pub worktrees: String,
    /// What the person agreed to about trust, where the project was opened just now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<WorktreeTrust>,
}

/// Whether Woodward may confirm that agent programs trust a project's worktrees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeTrust {
    /// The person has agreed.
    pub agreed: bool,
    /// The programs of its configuration that ask in their terminal.
    pub asked_by: Vec<String>,
}

/// Makes the repository at `root` a project, or finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenProject {
    /// A directory of the person's checkout.
    pub root: String,
    /// The branch that tasks start from and land on; the one checked out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Whether Woodward may confirm that agent programs trust its worktrees; as before otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_worktrees: Option<bool>,
}

impl OpenProject {
    /// The repository around a directory, with the base that it has or finds.
    pub fn at(root: impl Into<String>) -> Self {
        Self {
            root: root.into(),
            base: None,
            trust_worktrees: None,
        }
    }
}

/// Asks for a fresh worktree in which setup commands and gates are tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTrial {
    /// A directory of the person's checkout.
    pub root: String,
    /// The process that tries them. When it has ended, the worktree is removed.
    pub pid: u32,
}

/// A fresh worktree of the commit that tasks start from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialWorktree {
    /// Where it is.
    pub path: String,
    /// The commit.
    pub commit: String,
    /// The environment of setup commands and gates.
    pub env: BTreeMap<String, String>,
    /// What git ignores in the person's checkout, relative to it; bounded.
    #[serde(default)]
    pub ignored: Vec<String>,
}

/// Removes a trial's worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloseTrial {
    /// A directory of the person's checkout.
    pub root: String,
    /// The process that asked for it.
    pub pid: u32,
}

/// What setup commands and gates left behind in a trial's worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialLeftovers {
    /// Files that git neither tracks nor ignores; bounded.
    pub untracked: Vec<String>,
}

/// How the daemon is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// `sqlite` or `postgres`.
    pub database: String,
    /// Where its state is.
    pub state_dir: String,
    /// Whether recovery is over and work is taken up.
    pub ready: bool,
    /// How many agents run.
    pub running: u32,
    /// Where news from outside is taken over TCP, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
}

/// What `doctor` found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// One line each.
    pub checks: Vec<Check>,
}

/// One line of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it stands.
    pub state: CheckState,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// How a check stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// As it should be.
    Ok,
    /// Works, but a person may want to know.
    Note,
    /// Wrong.
    Bad,
    /// Was wrong and has been put right.
    Fixed,
}
