//! What the outside may ask of the engine: one method a wish.
//!
//! The server knows this and nothing else of the engine. Every refusal is a [`Problem`] with the next
//! thing to type. What a person says is recorded as that person's.

mod act;
mod answers;
mod blame;
mod comments;
mod conflicts;
mod cost;
mod create;
mod describe;
mod diagnose;
mod embedded;
mod environment;
mod find;
mod gates;
mod give_answer;
mod look;
mod move_commits;
mod notify;
mod output;
mod projects;
mod questions;
mod queue;
mod reactions;
mod removal;
mod revert;
mod signals;
mod terminal;
mod trial;
mod view;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use woodward_api::{Health, Problem};
use woodward_core::{Actor, Task};

use crate::config::Config;
use crate::engine::Engine;
use crate::error::Result;
use crate::project::{self, Project};

pub use output::LogWish;
pub use signals::Proof;

/// An answer, or why there is none.
pub type Answered<T> = std::result::Result<T, Problem>;

/// A task as somebody names it.
#[derive(Clone, Debug)]
pub struct TaskRef<'a> {
    /// A directory of the project.
    pub root: &'a Path,
    /// A name, a unique beginning of one, an id, a branch, or `.` for the task of `cwd`.
    pub name: &'a str,
    /// Where the one who asks is.
    pub cwd: Option<&'a Path>,
}

/// A task with what it belongs to.
struct Found {
    task: Task,
    project: Arc<Project>,
    config: Arc<Config>,
}

impl Engine {
    /// How the engine is.
    pub fn health(&self) -> Health {
        let inner = &self.inner;
        Health {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            started_at: inner.started_at,
            database: inner.options.database.kind().into(),
            state_dir: inner.options.paths.state().display().to_string(),
            ready: inner.ready.load(Ordering::Acquire),
            running: u32::try_from(inner.drivers.count()).unwrap_or(u32::MAX),
            listen: inner.listen.get().map(ToString::to_string),
        }
    }

    /// The project that a directory belongs to, as itself or as one of its worktrees.
    pub(crate) async fn project_of(&self, directory: &Path) -> Result<Arc<Project>> {
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        let projects = self.inner.all_projects();
        let holds = |project: &&Arc<Project>| {
            directory.starts_with(project.root()) || directory.starts_with(project.worktrees())
        };
        // A repository inside another one is the nearer of the two.
        let nearest = projects
            .iter()
            .filter(holds)
            .max_by_key(|project| project.root().as_os_str().len());
        match nearest {
            Some(project) => Ok(Arc::clone(project)),
            None => self
                .known_by_repository(&directory)
                .await?
                .ok_or_else(|| project::unknown(&directory)),
        }
    }
}

/// Who speaks through the socket: only the user that the daemon belongs to can.
pub(crate) fn person() -> Actor {
    let name = ["USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok())
        .filter(|name| !name.is_empty());
    Actor::Person(name.unwrap_or_else(|| "you".into()))
}
