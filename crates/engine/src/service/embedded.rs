//! What becomes of a git repository that an agent left inside its worktree: a person decides, and the
//! choice is committed on the task's branch. The task is verified again then; nothing lands from here.

use tokio::sync::Mutex;
use woodward_api::{Code, DecideEmbedded, Done, Problem};
use woodward_core::attention::embedded_commands;
use woodward_core::hint::{NextCommand, shell_word};
use woodward_core::risk::{EmbeddedChoice, EmbeddedRepository, check_submodule_url, embedded_text};
use woodward_core::{Fact, State, Task};

use super::act::{hint, over};
use super::{Answered, TaskRef};
use crate::clock;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::git::{CommitWith, Signature, Trailers, compose};
use crate::refused;

/// One choice is carried out at a time: each moves files and a branch.
static DECIDING: Mutex<()> = Mutex::const_new(());

impl Engine {
    /// Carries out what a person decided about an embedded git repository of a task in review.
    ///
    /// # Errors
    /// When the task is not in review, has no such repository, or the choice does not fit it.
    pub async fn decide_embedded(
        &self,
        wanted: &TaskRef<'_>,
        decision: DecideEmbedded,
    ) -> Answered<Done> {
        if let EmbeddedChoice::Submodule { url } = &decision.choice
            && let Err(error) = check_submodule_url(url)
        {
            return Err(Problem::new(
                Code::Usage,
                format!(
                    "`{}` can't be a submodule's URL: {error}",
                    url.escape_debug()
                ),
            )
            .hint("for example --url https://example.com/lib.git, or --url ../lib.git"));
        }
        let _one_at_a_time = DECIDING.lock().await;
        let found = self.find(wanted).await?;
        let name = found.task.name.clone();
        let State::Review { commit, .. } = &found.task.state else {
            let kind = found.task.state.kind();
            return Err(over(&found.task).hint(refused::next(&name, kind)));
        };
        let repository = named(&found.task, decision.path.as_deref())?;
        let path = repository.path.as_str();
        if !repository.has_commit && matches!(decision.choice, EmbeddedChoice::Submodule { .. }) {
            let problem = Problem::new(
                Code::WrongState,
                format!("{path}/ has no commit that a submodule could point to"),
            );
            return Err(with_choices(problem, &found.task));
        }
        let made = found.task.worktree.as_ref();
        let Some(made) = made.filter(|made| made.worker == self.inner.worker) else {
            let show = NextCommand::Show { task: name };
            return Err(Problem::new(
                Code::WrongState,
                format!("the worktree with {path}/ is not on this machine"),
            )
            .hint(show.purpose("see how it stands")));
        };
        let repo = &found.project.repo;
        let directory = found.project.worktree(&name);
        let worktree = (repo.worktree(&directory, &made.branch)).map_err(EngineError::from)?;
        let person = repo.person_config().await.map_err(EngineError::from)?;
        let trailers = Trailers {
            task: Some(name.to_string()),
            ..Trailers::default()
        };
        let with = CommitWith {
            task: name.to_string(),
            message: compose(
                &subject(&name.to_string(), path, &decision.choice),
                &trailers,
            ),
            author: (person.author())
                .unwrap_or_else(|| Signature::new("Woodward", "woodward@localhost")),
            now: clock::now(),
            is_from_run: false,
        };
        let done = repo
            .decide_embedded(&worktree, path, &decision.choice, commit, &with)
            .await
            .map_err(EngineError::from)?;
        let kept = |what: &str| match &done.kept {
            Some(kept) => format!("; {what} is kept in {}", kept.display()),
            None => String::new(),
        };
        let message = match &decision.choice {
            EmbeddedChoice::AddFiles => format!(
                "the files of {path}/ are part of {name} now{}",
                kept("its own history")
            ),
            EmbeddedChoice::Drop => {
                format!(
                    "{path}/ is no longer part of {name}{}",
                    kept("the directory")
                )
            }
            EmbeddedChoice::Submodule { url } => {
                format!(
                    "{path}/ is a submodule of {name} now, fetched from {url}{}",
                    kept("its history")
                )
            }
        };
        let pushes = match (&decision.choice, &done.kept) {
            // In a clone, since the configuration and hooks of the repository itself are the agent's.
            (EmbeddedChoice::Submodule { url }, Some(kept)) => Some(format!(
                "others can fetch it only after you push it: git clone {} pushed && git -C pushed push {} HEAD",
                shell_word(&kept.display().to_string()),
                shell_word(url)
            )),
            _ => None,
        };
        let fact = Fact::HeadMoved { commit: done.head };
        let mut done = self.tell(found, fact, message).await?;
        if let Some(pushes) = pushes {
            done = hint(done, pushes);
        }
        let show = NextCommand::Show { task: name };
        Ok(hint(done, show.purpose("its gates run again")))
    }
}

/// Why a task with an undecided embedded repository can't be approved.
pub(super) fn undecided(task: &Task) -> Option<Problem> {
    let contained = embedded_text(&task.embedded)?;
    let problem = Problem::new(
        Code::WrongState,
        format!(
            "{} contains {contained}, which would land without files",
            task.name
        ),
    );
    Some(with_choices(problem, task))
}

fn with_choices(mut problem: Problem, task: &Task) -> Problem {
    for command in embedded_commands(task) {
        let purpose = match &command {
            NextCommand::EmbeddedAddFiles { .. } => "add its files",
            NextCommand::EmbeddedDrop { .. } => "drop it",
            _ => "make it a submodule",
        };
        problem = problem.hint(command.purpose(purpose));
    }
    problem
}

/// The embedded repository that somebody names; the only one where nothing is named.
fn named<'a>(task: &'a Task, path: Option<&str>) -> Answered<&'a EmbeddedRepository> {
    let show = || NextCommand::Show {
        task: task.name.clone(),
    };
    let wanted = path.map(|path| path.trim_start_matches("./").trim_end_matches('/'));
    match (&task.embedded[..], wanted) {
        ([], _) => Err(Problem::new(
            Code::WrongState,
            format!("{} contains no git repository to decide about", task.name),
        )
        .hint(show().purpose("see how it stands"))),
        ([only], None) => Ok(only),
        (all, None) => {
            let problem = Problem::new(
                Code::Usage,
                format!(
                    "{} contains {} git repositories: name one",
                    task.name,
                    all.len()
                ),
            );
            Err(with_choices(problem, task))
        }
        (all, Some(wanted)) => all.iter().find(|it| it.path == wanted).ok_or_else(|| {
            let problem = Problem::new(
                Code::NotFound,
                format!(
                    "{} contains no git repository in `{}`",
                    task.name,
                    wanted.escape_debug()
                ),
            );
            with_choices(problem, task)
        }),
    }
}

fn subject(task: &str, path: &str, choice: &EmbeddedChoice) -> String {
    let path = path.escape_debug();
    match choice {
        EmbeddedChoice::AddFiles => format!("{task}: add the files of the repository {path}"),
        EmbeddedChoice::Drop => format!("{task}: drop the repository {path}"),
        EmbeddedChoice::Submodule { .. } => format!("{task}: declare the submodule {path}"),
    }
}
