//! Taking back what has landed: a new task whose result is the reverse, gated and landed like any other.
//!
//! Nothing is removed from a branch's history, and nothing that came later is lost: where it is in the
//! way, that is said, and nothing is done.

use std::path::Path;

use woodward_api::{Code, CreateTasks, Done, Problem, TaskDraft};
use woodward_core::hint::{NextCommand, Word};
use woodward_core::{CommitId, Fact, IntentId, State, StateKind, Task, TaskName};

use super::act::{hint, short};
use super::{Answered, Found, TaskRef};
use crate::clock;
use crate::engine::Engine;
use crate::error::Result;
use crate::git::{Reverse, Reversed, Side, Signature, Trailers};
use crate::words::Words;

/// Names that are tried for the task that takes back.
const NAMES_MAX: u32 = 50;
const FILES_SHOWN: usize = 5;
/// How long such a name may be, without a number.
const NAME_BYTES_MAX: usize = 59;

/// What came after a landing and builds on it.
#[derive(PartialEq)]
enum Later {
    /// What a task landed.
    Task(TaskName),
    /// A commit of somebody else's.
    Commit(CommitId),
}

impl std::fmt::Display for Later {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Task(name) => name.fmt(f),
            Self::Commit(commit) => f.write_str(short(commit)),
        }
    }
}

impl Engine {
    /// Queues the reverse of what a task landed.
    ///
    /// # Errors
    /// When later changes are in the way, or nothing of it is left.
    pub(super) async fn take_back(
        &self,
        found: Found,
        commit: &CommitId,
        intent: IntentId,
    ) -> Answered<Done> {
        let name = found.task.name.clone();
        let reverse = self.reverse(&found, commit, intent).await?;
        let Some((reverse, onto)) = reverse else {
            let what = format!(
                "what {name} landed is not on {} any more",
                found.task.spec.base
            );
            return Err(Problem::new(Code::WrongState, what));
        };
        let (made, last) = match reverse {
            (Reversed::Built(made), last) => (made, last),
            (Reversed::Nothing, _) => {
                let what = format!("nothing of {name} is left on {}", found.task.spec.base);
                return Err(Problem::new(Code::WrongState, what)
                    .hint("it was taken back already, or all of it was changed since"));
            }
            (Reversed::Conflict(files), last) => {
                let refused = self.why_not(&found, &last, &onto, &files).await?;
                return Err(refused);
            }
        };
        if let Some(back) = self.taken_back_by(&found.task, &last).await? {
            let said = format!("{back} takes {name} back already");
            let done = self.done(found, said).await?;
            return Ok(hint(
                done,
                NextCommand::WaitLanded { task: back }.purpose("wait for it"),
            ));
        }
        let root = found.project.record.root.clone();
        let back = self.draft_for(root.as_ref(), &found.task).await?;
        let text = format!(
            "Take back what the task `{name}` has landed (commit {last}), and nothing else. It is taken back on this branch already; what came later must go on working without it."
        );
        let wanted = TaskRef {
            root: root.as_ref(),
            name: back.as_str(),
            cwd: None,
        };
        let draft = self.find(&wanted).await?;
        let message = self.post(&draft.task, text, "the reason").await?;
        let fact = Fact::Brought {
            commit: made.clone(),
            message,
        };
        let said = format!(
            "{back} takes {name} back ({}) and is queued for landing",
            short(&made)
        );
        let done = self.tell(draft, fact, said).await?;
        Ok(hint(
            done,
            NextCommand::WaitLanded { task: back }.purpose("wait for it"),
        ))
    }

    /// The reverse of what a task landed, which commit that was, and where the branch is.
    async fn reverse(
        &self,
        found: &Found,
        commit: &CommitId,
        intent: IntentId,
    ) -> Result<Option<((Reversed, CommitId), CommitId)>> {
        let repo = &found.project.repo;
        let base = &found.task.spec.base;
        let config = found.project.config().await?;
        let onto = found.project.ground(&config, base).await?;
        if !repo.is_ancestor(commit, &onto).await? {
            return Ok(None);
        }
        let recorded = self.inner.store.load_intent(intent).await?;
        let Some(recorded) = recorded else {
            return Ok(None);
        };
        let name = found.task.name.as_str();
        let old = &recorded.intent.old;
        let Some((last, before)) = repo.landing_of(old, commit, name).await? else {
            return Ok(None);
        };
        let reversed = repo
            .reverse(&Reverse {
                onto: onto.clone(),
                last: last.clone(),
                before,
                message: format!("Take back {name}\n\nThis takes back commit {last}."),
                trailers: Trailers::default(),
                who: Signature::new("Woodward", "woodward@localhost"),
                date: clock::now(),
            })
            .await?;
        Ok(Some(((reversed, last), onto)))
    }

    /// The task that is about to take a commit back, if there is one.
    async fn taken_back_by(&self, task: &Task, last: &CommitId) -> Result<Option<TaskName>> {
        let mut wanted = format!("revert-{}", task.name);
        wanted.truncate(NAME_BYTES_MAX);
        for known in self.all_tasks(task.project).await? {
            let kind = known.state.kind();
            let is_one = known.name.as_str().starts_with(&wanted);
            if !is_one || kind == StateKind::Draft || kind.is_finished() {
                continue;
            }
            let words = Words::load(&self.inner, known.id).await?;
            let about = words.first.map(|message| message.body).unwrap_or_default();
            if about.contains(last.as_str()) {
                return Ok(Some(known.name));
            }
        }
        Ok(None)
    }

    /// What is in the way, and who put it there.
    async fn why_not(
        &self,
        found: &Found,
        last: &CommitId,
        onto: &CommitId,
        files: &[String],
    ) -> Result<Problem> {
        let repo = &found.project.repo;
        let name = &found.task.name;
        let mut by: Vec<Later> = Vec::new();
        for landed in repo.landed(last, onto, 50, files).await? {
            let side = Side::Commit(&landed.commit);
            let changed = repo.numstat(&landed.parent, side).await?;
            if changed.iter().any(|file| files.contains(&file.path)) {
                let task = landed.task.and_then(|name| name.parse().ok());
                by.push(task.map_or(Later::Commit(landed.commit), Later::Task));
            }
        }
        by.dedup();
        let shown: Vec<&str> = files.iter().take(FILES_SHOWN).map(String::as_str).collect();
        let mut what = format!(
            "{name} can't be taken back by itself: later changes build on it in {}",
            shown.join(", ")
        );
        if !by.is_empty() {
            let names: Vec<String> = by.iter().map(ToString::to_string).collect();
            what += &format!(" ({})", names.join(", "));
        }
        let problem = Problem::new(Code::Conflict, what);
        let create = NextCommand::CreateRevert {
            task: self
                .free_task_name(&found.task, &format!("revert-{name}"))
                .await?,
            commit: Word(short(last).to_owned()),
        };
        let problem = problem.hint(create.purpose("have an agent do it"));
        let purpose = "or take back what came later first";
        Ok(match by.into_iter().next() {
            Some(Later::Task(task)) => problem.hint(NextCommand::Undo { task }.purpose(purpose)),
            // No task of Woodward's made it, so `undo` does not know it.
            Some(Later::Commit(commit)) => {
                let commit = Word(short(&commit).to_owned());
                problem.hint(NextCommand::GitRevert { commit }.purpose(purpose))
            }
            None => problem,
        })
    }

    /// A name for a new task that begins with `wanted` and that no open task has.
    pub(super) async fn free_task_name(&self, task: &Task, wanted: &str) -> Result<TaskName> {
        let known = self.all_tasks(task.project).await?;
        let is_open = |name: &TaskName| {
            known
                .iter()
                .any(|task| task.name == *name && !task.state.kind().is_finished())
        };
        let mut stem = wanted.to_owned();
        stem.truncate(NAME_BYTES_MAX);
        let numbered = (2..=NAMES_MAX).map(|number| format!("{stem}-{number}"));
        let plain = (wanted != task.name.as_str()).then(|| stem.clone());
        let mut names = plain.into_iter().chain(numbered);
        let free = names.find_map(|name| name.parse().ok().filter(|name| !is_open(name)));
        Ok(free.unwrap_or_else(|| task.name.clone()))
    }

    /// A draft for the task that takes back: one that a crash left, or a new one.
    async fn draft_for(&self, root: &Path, task: &Task) -> Answered<TaskName> {
        let known = self.all_tasks(task.project).await?;
        for number in 1..=NAMES_MAX {
            let mut wanted = format!("revert-{}", task.name);
            wanted.truncate(NAME_BYTES_MAX);
            if number > 1 {
                wanted = format!("{wanted}-{number}");
            }
            let Ok(name) = wanted.parse::<TaskName>() else {
                break;
            };
            match known.iter().find(|known| known.name == name) {
                Some(known) if known.state.kind() == StateKind::Draft => return Ok(name),
                Some(_) => {}
                None => {
                    let draft = TaskDraft {
                        name: name.to_string(),
                        base: Some(task.spec.base.clone()),
                        priority: task.spec.priority,
                        ..TaskDraft::default()
                    };
                    let request = CreateTasks {
                        tasks: vec![draft],
                        key: None,
                    };
                    self.create(root, request).await?;
                    return Ok(name);
                }
            }
        }
        let what = format!("there are too many tasks that take {} back", task.name);
        Err(Problem::new(Code::WrongState, what))
    }
}

/// Whether a task has landed, and as what.
pub(super) const fn landed(task: &Task) -> Option<(&CommitId, IntentId)> {
    match &task.state {
        State::Landed { commit, intent } => Some((commit, *intent)),
        _ => None,
    }
}
