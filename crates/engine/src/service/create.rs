//! Creating tasks, all or none.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use woodward_api::{Code, CreateTasks, CreatedTask, Problem, TaskDraft};
use woodward_core::reaction::pattern;
use woodward_core::{AgentName, EventId, MessageId, Task, TaskId, TaskName, TaskSpec};
use woodward_store::{self as store, CreateTask, NewMessage, StoreError, fresh_uuid};

use super::find::{here, named};
use super::{Answered, person};
use crate::clock;
use crate::config::{Config, nearest};
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::project::Project;

/// The longest label.
const LABEL_BYTES_MAX: usize = 64;
/// The most labels of a task.
const LABELS_MAX: usize = 16;

/// Tasks that passed every check that needs no transaction.
struct Creation {
    project: Arc<Project>,
    config: Arc<Config>,
    /// The tasks that are there already.
    known: Vec<Task>,
    tasks: store::CreateTasks,
}

impl Engine {
    /// Creates tasks in the project of `root`, all or none.
    ///
    /// # Errors
    /// When a name, a prompt, an agent, a base or an order makes no sense.
    pub async fn create(&self, root: &Path, request: CreateTasks) -> Answered<Vec<CreatedTask>> {
        let Creation {
            project,
            config,
            tasks,
            ..
        } = self.prepare_creation(root, request).await?;
        let created = self
            .inner
            .store
            .create_tasks(tasks)
            .await
            .map_err(EngineError::from)?;
        self.inner.look.notify_one();
        let mut answer = Vec::with_capacity(created.len());
        for one in created {
            answer.push(CreatedTask {
                task: self.summary(&project, &config, &one.task).await?,
                existed: one.existed,
            });
        }
        Ok(answer)
    }

    /// Checks everything that [`Engine::create`] would refuse, and creates nothing. Gives the tasks
    /// back with the full names of those that they come after.
    ///
    /// # Errors
    /// The same as for creating them.
    pub async fn check_create(
        &self,
        root: &Path,
        request: CreateTasks,
    ) -> Answered<Vec<TaskDraft>> {
        let mut drafts = request.tasks.clone();
        let Creation { tasks, known, .. } = self.prepare_creation(root, request).await?;
        tasks.check().map_err(EngineError::from)?;
        let is_open = |task: &Task| !task.state.kind().is_finished();
        for (draft, new) in drafts.iter_mut().zip(&tasks.tasks) {
            if known
                .iter()
                .any(|task| task.name == new.name && is_open(task))
            {
                let name = new.name.clone();
                return Err(EngineError::from(StoreError::NameTaken { name }).into());
            }
            let name_of = |id: &TaskId| {
                let together = tasks.tasks.iter().find(|task| task.id == *id);
                let before = || known.iter().find(|task| task.id == *id);
                let name = together.map(|task| &task.name);
                name.or_else(|| before().map(|task| &task.name))
            };
            let after = new.spec.after.iter().filter_map(name_of);
            draft.after = after.map(ToString::to_string).collect();
        }
        Ok(drafts)
    }

    /// Everything about a request that can be checked before something is written.
    async fn prepare_creation(&self, root: &Path, request: CreateTasks) -> Answered<Creation> {
        if request.tasks.is_empty() {
            return Err(Problem::new(Code::Usage, "no task is named").hint("name at least one"));
        }
        let project = self.project_of(root).await?;
        let config = project.load_config().await?;
        let known = self.all_tasks(project.id()).await?;
        let mut names = HashMap::new();
        for draft in &request.tasks {
            let name = task_name(&draft.name)?;
            let id = TaskId::new(fresh_uuid());
            if names.insert(name.clone(), id).is_some() {
                return Err(Problem::new(
                    Code::Usage,
                    format!("`{name}` is named twice"),
                ));
            }
        }
        let mut tasks = Vec::with_capacity(request.tasks.len());
        for draft in request.tasks {
            tasks.push(
                self.new_task(
                    &project,
                    &config,
                    draft,
                    &names,
                    &known,
                    root,
                    request.key.as_deref(),
                )
                .await?,
            );
        }
        Ok(Creation {
            project,
            config,
            known,
            tasks: store::CreateTasks {
                tasks,
                actor: person(),
                at: clock::now(),
            },
        })
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing that a new task is made of"
    )]
    async fn new_task(
        &self,
        project: &Project,
        config: &Config,
        draft: TaskDraft,
        names: &HashMap<TaskName, TaskId>,
        known: &[Task],
        cwd: &Path,
        key: Option<&str>,
    ) -> Result<CreateTask> {
        let name = task_name(&draft.name)?;
        path_patterns(&draft.paths)?;
        let prompt = draft.prompt.map(|text| prompt(&name, text)).transpose()?;
        let mut agents = match &draft.agent {
            Some(names) => agent_names(config, names)?,
            None => Vec::new(),
        };
        let model = draft.model.filter(|model| !model.trim().is_empty());
        if model.is_some() {
            all_take_model(config, &agents)?;
        }
        let fallback = agents.split_off(agents.len().min(1));
        let base = match draft.base {
            Some(base) => {
                if project.repo.tip(&base).await?.is_none() {
                    return Err(no_branch(&base).into());
                }
                base
            }
            None => project.base(config),
        };
        let after = draft
            .after
            .iter()
            .map(|after| task_after(after, names, known, &project.worktrees(), cwd))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(CreateTask {
            id: names
                .get(&name)
                .copied()
                .unwrap_or_else(|| TaskId::new(fresh_uuid())),
            event: EventId::new(fresh_uuid()),
            project: project.id(),
            idempotency_key: key.map(|key| format!("{key}/{name}")),
            spec: TaskSpec {
                priority: draft.priority,
                after,
                base,
                agent: agents.pop(),
                fallback,
                model,
                yolo: draft.yolo,
                review: draft.review,
                budget: None,
                paths: draft.paths,
                anyway: draft.anyway,
                labels: labels(draft.labels)?,
            },
            name,
            prompt,
        })
    }
}

pub(super) fn task_name(given: &str) -> Result<TaskName, Problem> {
    given
        .parse()
        .map_err(|refused: woodward_core::name::BadName| {
            let problem = Problem::new(Code::Usage, refused.to_string());
            match refused.suggestion {
                Some(better) => problem.hint(format!("this one would do: {better}")),
                None => problem.hint("use small letters, digits, `-`, `_` and `.`"),
            }
        })
}

/// Patterns of paths that can match something.
pub(super) fn path_patterns(given: &[String]) -> Result<(), Problem> {
    for given in given {
        pattern::validate(given).map_err(|invalid| {
            Problem::new(Code::Usage, invalid.to_string()).hint(invalid.advice)
        })?;
    }
    Ok(())
}

/// Labels without doubles, in order.
fn labels(given: Vec<String>) -> Result<Vec<String>, Problem> {
    let mut labels = Vec::new();
    for label in given {
        let label = label.trim();
        let bad = label.is_empty() || label.len() > LABEL_BYTES_MAX;
        if bad || label.chars().any(char::is_control) {
            let what = format!("`{}` is no label", label.escape_debug());
            return Err(Problem::new(Code::Usage, what)
                .hint(format!("write 1 to {LABEL_BYTES_MAX} printable characters")));
        }
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    }
    if labels.len() > LABELS_MAX {
        let what = format!("{} labels are too many", labels.len());
        return Err(Problem::new(Code::Usage, what).hint(format!("at most {LABELS_MAX}")));
    }
    Ok(labels)
}

fn prompt(name: &TaskName, text: String) -> Result<NewMessage, Problem> {
    if text.trim().is_empty() {
        return Err(empty_text(&format!("the prompt of `{name}`")));
    }
    Ok(NewMessage {
        id: MessageId::new(fresh_uuid()),
        body: text,
    })
}

/// A text that says nothing.
pub(super) fn empty_text(what: &str) -> Problem {
    Problem::new(Code::Usage, format!("{what} is empty"))
        .hint("say what to do, or leave it out to create a draft")
}

/// Agents by name, with commas between them, the preferred one first.
fn agent_names(config: &Config, given: &str) -> Result<Vec<AgentName>, Problem> {
    let parse = |name: &str| {
        let name: Result<AgentName, woodward_core::name::BadName> = name.trim().parse();
        name.map_err(|refused| Problem::new(Code::Usage, refused.to_string()))
    };
    let names = given.split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
    match config.candidates(&names) {
        Ok(_) => Ok(names),
        Err(error) => Err(Problem::new(Code::Usage, error.to_string()).hint(error.hint())),
    }
}

/// A model that an agent can't be told of would be dropped without a word.
fn all_take_model(config: &Config, agents: &[AgentName]) -> Result<(), Problem> {
    // That there is no agent at all is said when one is needed.
    let candidates = config.candidates(agents).unwrap_or_default();
    let Some(agent) = candidates.iter().find(|agent| !agent.takes_model()) else {
        return Ok(());
    };
    let name = &agent.name;
    let what = format!("nothing says how the agent `{name}` is told its model");
    let mut problem = Problem::new(Code::Usage, what);
    if config.agents().any(|own| own.name == *name) {
        let how = "modelArgs: [--model, \"{model}\"]";
        problem = problem.hint(format!("for `{name}` in woodward.yaml: {how}"));
    }
    Err(problem.hint("leave out --model, or choose another agent with --agent"))
}

pub(super) fn no_branch(base: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no branch `{base}`"))
        .hint("list them: git branch")
}

/// A task that another one comes after: one created with it by its name, or one that is known, by
/// whatever names a task.
fn task_after(
    given: &str,
    names: &HashMap<TaskName, TaskId>,
    known: &[Task],
    worktrees: &Path,
    cwd: &Path,
) -> Result<TaskId, Problem> {
    let together = given.parse::<TaskName>().ok();
    if let Some(id) = together.and_then(|name| names.get(&name)) {
        return Ok(*id);
    }
    let found = match given {
        "." => here(known, worktrees, cwd),
        _ => named(known, given),
    };
    found.map(|task| task.id).map_err(|refused| {
        let near = nearest(given, names.keys().map(TaskName::as_str));
        let problem = Problem {
            message: format!("{}, so nothing can come after it", refused.message),
            ..refused
        };
        match near {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem,
        }
    })
}
