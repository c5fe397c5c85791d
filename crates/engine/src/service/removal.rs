//! Giving tasks up, and taking that back. Nothing is lost by either.

use std::path::Path;
use std::time::Duration;

use woodward_api::{Code, Done, Problem, Undo};
use woodward_core::hint::NextCommand;
use woodward_core::{Fact, Note, State, StateKind, Task};

use super::act::{hint, over};
use super::{Answered, Found, TaskRef, revert};
use crate::engine::Engine;
use crate::error::Result;
use crate::{effects, refused, removed};

/// How long a removal that is under way is waited for.
const SETTLED_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Engine {
    /// Gives a task up. Its work is saved first.
    ///
    /// # Errors
    /// When it is over, or landing at this moment.
    pub async fn cancel(&self, wanted: &TaskRef<'_>, reason: String) -> Answered<Done> {
        let found = self.find(wanted).await?;
        let name = found.task.name.clone();
        match found.task.state.kind() {
            StateKind::Cancelled => Ok(self
                .done(found, format!("{name} is cancelled already"))
                .await?),
            kind @ (StateKind::Landed | StateKind::Superseded) => {
                Err(over(&found.task).hint(refused::next(&name, kind)))
            }
            _ => Ok(self.give_up(found, reason, "is cancelled").await?),
        }
    }

    /// Removes a task with its worktree and branch. Its work is saved first.
    ///
    /// # Errors
    /// When it is landing at this moment.
    pub async fn remove(&self, wanted: &TaskRef<'_>) -> Answered<Done> {
        let found = self.find(wanted).await?;
        let name = found.task.name.clone();
        if found.task.state.kind().is_finished() {
            let message = format!(
                "{name} is {} already; its worktree is gone",
                found.task.state.kind()
            );
            return Ok(self.done(found, message).await?);
        }
        Ok(self.give_up(found, "removed".into(), "is removed").await?)
    }

    async fn give_up(&self, found: Found, reason: String, said: &str) -> Result<Done> {
        let name = found.task.name.clone();
        let had_work = found.task.worktree.is_some();
        let fact = Fact::Cancelled {
            reason: Note::from(reason),
        };
        let saved = if had_work { "; its work is saved" } else { "" };
        let done = self
            .tell(found, fact, format!("{name} {said}{saved}"))
            .await?;
        Ok(hint(
            done,
            NextCommand::Undo { task: name }.purpose("take it back"),
        ))
    }

    /// Takes back that a task was given up: its directory with everything in it, its branch, and
    /// the task itself, which then lies still. What has landed is taken back by a task of its own.
    ///
    /// # Errors
    /// When nothing was given up, or later changes are in the way.
    pub async fn undo(&self, root: &Path, undo: &Undo) -> Answered<Done> {
        let found = match &undo.task {
            Some(name) => {
                self.find(&TaskRef {
                    root,
                    name,
                    cwd: None,
                })
                .await?
            }
            None => self.last_given_up(root).await?,
        };
        if let Some((commit, intent)) = revert::landed(&found.task) {
            let commit = commit.clone();
            return self.take_back(found, &commit, intent).await;
        }
        let name = found.task.name.clone();
        let State::Cancelled { .. } = found.task.state else {
            let kind = found.task.state.kind();
            return Err(Problem::new(
                Code::WrongState,
                format!("{name} is {kind}: there is nothing to take back"),
            )
            .hint(NextCommand::StatusAll.purpose("what can be taken back")));
        };
        Ok(self.bring_back(found).await?)
    }

    async fn last_given_up(&self, root: &Path) -> Result<Found> {
        let project = self.project_of(root).await?;
        let config = project.config().await?;
        let tasks = self.all_tasks(project.id()).await?;
        let last = tasks
            .into_iter()
            .filter(|task| task.state.kind() == StateKind::Cancelled)
            .max_by_key(|task| task.since);
        match last {
            Some(task) => Ok(Found {
                task,
                project,
                config,
            }),
            None => Err(Problem::new(
                Code::NotFound,
                "nothing was given up that could be taken back",
            )
            .hint(NextCommand::StatusAll.purpose("what has landed is taken back by name; list it"))
            .into()),
        }
    }

    async fn bring_back(&self, found: Found) -> Result<Done> {
        let name = found.task.name.clone();
        self.settled(&found.task).await?;
        let worktree = match removed::load(&self.inner.options.paths, found.task.id) {
            Some(worktree) => {
                let repo = &found.project.repo;
                let ours = found.task.id.to_string();
                let trash = repo.trash(&found.project.worktrees());
                let entry = trash
                    .iter()
                    .find(|entry| entry.branch == worktree.branch && entry.id.starts_with(&ours));
                match entry {
                    Some(entry) => repo.restore_worktree(entry).await.map(|_| Some(worktree))?,
                    // Brought back before, but a crash came before it was said.
                    None => {
                        let path = found.project.worktree(&name);
                        let there = path.is_dir() && repo.worktree(&path, &worktree.branch).is_ok();
                        there.then_some(worktree)
                    }
                }
            }
            None => None,
        };
        let with = if worktree.is_some() {
            " with its worktree and branch"
        } else {
            ""
        };
        let done = self
            .tell(
                found,
                Fact::Restored { worktree },
                format!("{name} is back{with}"),
            )
            .await?;
        Ok(match done.task.state {
            StateKind::Draft => hint(
                done,
                NextCommand::Prompt { task: name }.purpose("say what to do"),
            ),
            _ => hint(
                done,
                NextCommand::Resume { task: name }.purpose("let it go on"),
            ),
        })
    }

    /// Waits until what was asked for when the task was given up has been done.
    async fn settled(&self, task: &Task) -> Result<()> {
        let deadline = tokio::time::Instant::now() + SETTLED_WITHIN;
        loop {
            if effects::is_tidied(&self.inner, task.id).await? {
                return Ok(());
            }
            if tokio::time::Instant::now() > deadline {
                return Err(Problem::new(
                    Code::Unavailable,
                    format!("{} is still being tidied up", task.name),
                )
                .hint("try again in a moment")
                .into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
