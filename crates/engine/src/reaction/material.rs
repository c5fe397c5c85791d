//! What rules look at and templates are filled with: gathered here, bounded, and only when a rule
//! wants it.

use serde::{Deserialize, Serialize};
use woodward_core::Task;
use woodward_core::reaction::{Case, Hand, Occurrence, Trigger};

use super::remarks::unsent;
use super::signal::Signal;
use super::template::Values;
use crate::config::Config;
use crate::engine::Inner;
use crate::error::Result;
use crate::project::Project;
use crate::{drive, prompt};

/// The most files that are named.
const FILES_MAX: usize = 200;

/// A remark on a task's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Comment {
    /// Who made it.
    #[serde(default)]
    pub(crate) author: String,
    /// The file, where it is about one.
    #[serde(default)]
    pub(crate) file: Option<String>,
    /// The line.
    #[serde(default)]
    pub(crate) line: Option<u32>,
    /// What it says.
    pub(crate) text: String,
    /// Whether the person made it here. What comes from elsewhere, such as a forge, is data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_person: bool,
}

impl Comment {
    /// Where it is, and what it says.
    pub(crate) fn shown(&self) -> String {
        let place = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            (None, _) => String::new(),
        };
        format!("{place}{}", self.text.trim_end())
    }
}

/// Everything around an occurrence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Material {
    pub(crate) agent: Option<String>,
    pub(crate) risk: bool,
    pub(crate) files: Vec<String>,
    pub(crate) errors: String,
    pub(crate) log: String,
    pub(crate) url: String,
    /// Remarks that the agent has not been sent yet, oldest first, with their keys.
    pub(crate) comments: Vec<(String, Comment)>,
    /// What was said besides them.
    pub(crate) said: String,
    /// Whether the person said that, and not somebody elsewhere.
    pub(crate) said_by_person: bool,
}

impl Material {
    /// Gathers what is known of a task and what happened to it.
    pub(crate) async fn of(
        inner: &Inner,
        project: &Project,
        config: &Config,
        task: Option<&Task>,
        occurrence: &Occurrence,
        signal: Option<&Signal>,
    ) -> Result<Self> {
        let mut material = Self {
            said_by_person: occurrence.hand == Hand::Person,
            ..Self::default()
        };
        if let Some(signal) = signal {
            material.errors = signal.errors();
            material.log.clone_from(&signal.log);
            material.url.clone_from(&signal.url);
            material.said.clone_from(&signal.text);
            material.files.clone_from(&signal.files);
        }
        let Some(task) = task else {
            return Ok(material);
        };
        material.agent = agent(inner, config, task).await?;
        material.touched(project, task).await?;
        material.comments = unsent(inner, task.id).await?;
        match occurrence.trigger {
            Trigger::MergeConflict => material.files.clone_from(&occurrence.evidence),
            Trigger::GateFailed | Trigger::CiFailed if signal.is_none() => {
                material.errors = prompt::of_failures(&drive::prompt::failures(inner, task));
            }
            _ => {}
        }
        material.files.truncate(FILES_MAX);
        Ok(material)
    }

    /// The files that the task changes, and whether they deserve a closer look.
    async fn touched(&mut self, project: &Project, task: &Task) -> Result<()> {
        let (Some(worktree), Some(head)) = (&task.worktree, &task.head) else {
            return Ok(());
        };
        let change = project.change(task, &worktree.base, head).await?;
        self.risk = !change.signals().is_empty();
        if self.files.is_empty() {
            let files = change.files().iter();
            self.files = files.map(|file| file.path.clone()).collect();
        }
        Ok(())
    }

    /// What conditions are judged by.
    pub(crate) fn case<'a>(&'a self, task: Option<&'a Task>, done: u32) -> Case<'a> {
        let attempts = task.map_or(0, |task| {
            let tally = &task.tally;
            tally.failures + tally.fixes.total + tally.conflicts
        });
        Case {
            labels: task.map_or(&[], |task| &task.spec.labels),
            agent: self.agent.as_deref(),
            attempts,
            risk: self.risk,
            files: &self.files,
            done,
        }
    }

    /// What templates are filled with.
    pub(crate) fn values(
        &self,
        project: &Project,
        task: Option<&Task>,
        occurrence: &Occurrence,
        time: u32,
    ) -> Values {
        let mut values = Values::default();
        values.set("project", project.record.name.to_string());
        values.set("trigger", occurrence.trigger.as_str());
        values.set("reason", occurrence.note.as_str());
        values.set("time", time.to_string());
        values.set("errors", self.errors.as_str());
        values.set("log", self.log.as_str());
        values.set("url", self.url.as_str());
        values.set("files", self.files.join("\n"));
        values.set_comments(&self.remarks(true), &self.remarks(false));
        if let Some(agent) = &self.agent {
            values.set("agent", agent.as_str());
        }
        if let Some(commit) = &occurrence.head {
            values.set("commit", commit.as_str());
        }
        if let Some(task) = task {
            values.set("task", task.name.as_str());
            if let Some(worktree) = &task.worktree {
                values.set("branch", worktree.branch.as_str());
            }
        }
        values
    }

    /// What the person said, or what others did.
    fn remarks(&self, by_person: bool) -> String {
        let said = Some(self.said.trim_end().to_owned());
        let said = said.filter(|said| self.said_by_person == by_person && !said.is_empty());
        let comments = self.comments.iter().map(|(_, comment)| comment);
        let comments = comments.filter(|comment| comment.by_person == by_person);
        let all: Vec<String> = said
            .into_iter()
            .chain(comments.map(Comment::shown))
            .collect();
        all.join("\n")
    }
}

/// Who works on a task: who did last, else who would.
async fn agent(inner: &Inner, config: &Config, task: &Task) -> Result<Option<String>> {
    let runs = inner.store.load_runs(task.id).await?;
    if let Some(last) = runs.last() {
        return Ok(Some(last.agent.to_string()));
    }
    let agent = config.agent(task.spec.agent.as_ref());
    Ok(agent.ok().map(|agent| agent.name.to_string()))
}
