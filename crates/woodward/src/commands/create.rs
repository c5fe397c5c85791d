//! `woodward create`: tasks are made, from names or from a file with many.

mod plan;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCandidates;
use woodward_api::{CreateTasks, TaskDraft};
use woodward_core::TaskName;
use woodward_core::policy::ReviewRule;

use super::Dry;
use super::ask::fresh_uuid;
use crate::failure::{Failure, Outcome};
use crate::render;
use crate::session::Session;
use crate::{complete, input};

/// Create tasks: each gets a branch, a worktree and an agent of its own
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward create auth-api dashboard-ui      drafts; each waits for its prompt\n  woodward create fix-login -p \"Fix #12\"     starts at once\n  woodward create docs -p - < spec.md --after fix-login --priority 5\n  woodward create -f plan.md                 many tasks: `## name`, then its prompt\n  woodward create -f plan.yaml               a list of {name, prompt, after, …}\n  woodward create -f plan.md --check         would they get in each other's way?"
)]
pub(crate) struct Create {
    /// Names of the tasks
    #[arg(
        value_name = "NAME",
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    names: Vec<String>,
    /// What to do; `-` reads it from stdin. Without one a task is a draft
    #[arg(short, long, value_name = "TEXT", conflicts_with = "file")]
    prompt: Option<String>,
    /// A file with what to do
    #[arg(long, value_name = "PATH", conflicts_with_all = ["prompt", "file"])]
    prompt_file: Option<PathBuf>,
    /// A file with many tasks, in Markdown or YAML; `-` is stdin
    #[arg(short, long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Start only when this task has landed; may be given several times
    #[arg(long, value_name = "TASK", add = ArgValueCandidates::new(complete::tasks))]
    after: Vec<String>,
    /// Higher goes first, from -128 to 127
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i8>,
    /// The agent: a known program, or a name of woodward.yaml; of several with commas, the first that
    /// can be used now does the work
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The model, as the agent calls it
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Never ask me: the agent may do everything that no rule denies, with all rights that I have
    #[arg(long)]
    yolo: bool,
    /// Files it should keep to, as a pattern such as `src/cart/**`; may be given several times
    #[arg(long = "path", value_name = "PATTERN")]
    paths: Vec<String>,
    /// The branch to start from and land on
    #[arg(long, value_name = "BRANCH")]
    base: Option<String>,
    /// When a person looks before it lands
    #[arg(long, value_name = "RULE")]
    review: Option<Review>,
    /// What people and rules know it by; may be given several times
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Start even where others that touch the same are under way
    #[arg(long)]
    anyway: bool,
    /// Only say which of them would touch the same files, from their paths, their prompts and history
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    dry: Dry,
}

/// Who looks before a task lands: a person always, a person when it is risky, or nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Review {
    Always,
    Risky,
    Never,
}

/// The one word for a rule.
pub(crate) const fn word(rule: ReviewRule) -> &'static str {
    match rule {
        ReviewRule::Always => "always",
        ReviewRule::Risky => "risky",
        ReviewRule::Never => "never",
    }
}

impl From<Review> for ReviewRule {
    fn from(review: Review) -> Self {
        match review {
            Review::Always => Self::Always,
            Review::Risky => Self::Risky,
            Review::Never => Self::Never,
        }
    }
}

impl Create {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let mut tasks = self.drafts().await?;
        for after in tasks.iter_mut().flat_map(|task| &mut task.after) {
            *after = session.task(after)?;
        }
        let request = CreateTasks {
            tasks: checked(tasks)?,
            key: Some(fresh_uuid().to_string()),
        };
        if self.check {
            let found = session
                .call(async |client| client.check_overlap(&request).await)
                .await?;
            return session
                .out
                .answer(&found, |look| render::conflicts::check(&found, look));
        }
        if self.dry.dry_run {
            let checked = session
                .call(async |client| client.check_create(&request).await)
                .await?;
            return session
                .out
                .answer(&checked, |_| render::create::would_create(&checked));
        }
        let names: Vec<String> = request.tasks.iter().map(|task| task.name.clone()).collect();
        session.hand_over(&names, true).await;
        let made = session
            .call(async |client| client.create(&request).await)
            .await?;
        if let Some(last) = made.last() {
            session.remember(&last.task.name);
        }
        session.out.answer(&made, |look| {
            render::create::created(&made, &request.tasks, look)
        })?;
        session.out.hints(&render::create::next(&made));
        Ok(())
    }

    /// The tasks as they were asked for. Flags hold for all of them, where a file does not say
    /// otherwise.
    async fn drafts(&self) -> Outcome<Vec<TaskDraft>> {
        let mut tasks = match &self.file {
            Some(path) => plan::parse(&path.display().to_string(), &input::file(path).await?)?,
            None => {
                let prompt = self.given_prompt().await?;
                let draft = |name: &String| TaskDraft {
                    name: name.clone(),
                    prompt: prompt.clone(),
                    ..TaskDraft::default()
                };
                self.names.iter().map(draft).collect()
            }
        };
        for task in &mut tasks {
            task.after.extend(self.after.iter().cloned());
            if task.priority == 0 {
                task.priority = self.priority.unwrap_or(0);
            }
            task.agent = task.agent.take().or_else(|| self.agent.clone());
            task.model = task.model.take().or_else(|| self.model.clone());
            task.yolo |= self.yolo;
            task.anyway |= self.anyway;
            task.paths.extend(self.paths.iter().cloned());
            task.base = task.base.take().or_else(|| self.base.clone());
            task.review = task.review.or(self.review.map(Into::into));
            task.labels.extend(self.labels.iter().cloned());
        }
        Ok(tasks)
    }

    async fn given_prompt(&self) -> Outcome<Option<String>> {
        let text = match (&self.prompt, &self.prompt_file) {
            (Some(text), _) if text == "-" => input::stdin().await?,
            (Some(text), _) => text.clone(),
            (None, Some(path)) => input::file(path).await?,
            (None, None) => return Ok(None),
        };
        input::not_blank(text, "the prompt").map(Some)
    }
}

/// Refuses what the daemon would refuse too, before anything is sent.
fn checked(tasks: Vec<TaskDraft>) -> Outcome<Vec<TaskDraft>> {
    for (at, task) in tasks.iter().enumerate() {
        let _: TaskName = task.name.parse()?;
        if tasks[..at].iter().any(|earlier| earlier.name == task.name) {
            return Err(Failure::usage(format!("`{}` is named twice", task.name)));
        }
        if task
            .prompt
            .as_ref()
            .is_some_and(|prompt| prompt.trim().is_empty())
        {
            return Err(
                Failure::usage(format!("the prompt of `{}` is empty", task.name))
                    .hint("leave it out for a draft that waits for its prompt"),
            );
        }
    }
    Ok(tasks)
}
