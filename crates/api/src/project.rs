//! Projects, the daemon's health, and what `doctor` finds.

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
}

/// Makes the repository at `root` a project, or finds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenProject {
    /// A directory of the person's checkout.
    pub root: String,
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
