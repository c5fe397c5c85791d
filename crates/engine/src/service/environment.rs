//! What of a person's environment agents may get, and taking it over for tasks.
//!
//! Values pass through here into memory only.

use std::path::Path;

use woodward_api::{EnvironmentRules, HandOver};

use super::create::task_name;
use super::{Answered, TaskRef};
use crate::engine::Engine;

impl Engine {
    /// Which variables the agents of a project may get from a person's shell.
    ///
    /// # Errors
    /// When there is no such project, or its configuration can't be read.
    pub async fn environment_rules(&self, root: &Path) -> Answered<EnvironmentRules> {
        let project = self.project_of(root).await?;
        let config = project.load_config().await?;
        let agents = config.agents();
        let mut pass: Vec<String> = agents
            .flat_map(|agent| &agent.environment.pass)
            .map(ToString::to_string)
            .collect();
        pass.sort();
        pass.dedup();
        Ok(EnvironmentRules { pass })
    }

    /// Keeps variables for the next runs of tasks, which may not exist yet.
    ///
    /// # Errors
    /// When there is no such project, or a name is none of a task's.
    pub async fn hand_over(&self, root: &Path, wish: HandOver) -> Answered<EnvironmentRules> {
        let project = self.project_of(root).await?;
        for name in &wish.tasks {
            let task = if wish.new {
                task_name(name)?
            } else {
                let wanted = TaskRef {
                    root,
                    name,
                    cwd: wish.cwd.as_deref(),
                };
                self.find(&wanted).await?.task.name
            };
            self.inner
                .handover
                .keep(project.id(), &task, &wish.variables);
        }
        Ok(EnvironmentRules::default())
    }
}
