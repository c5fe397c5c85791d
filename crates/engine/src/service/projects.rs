//! Projects: making a repository one, and finding it again.

use std::path::Path;
use std::sync::Arc;

use woodward_api::{Code, OpenProject, Problem, ProjectView};
use woodward_core::{ProjectId, ProjectName};
use woodward_store::{self as store, fresh_uuid};

use super::Answered;
use super::create::no_branch;
use crate::clock;
use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::git::Repo;
use crate::project::Project;
use crate::worktree_trust;

/// Names that are tried for a project before giving up.
const NAMES_MAX: u32 = 1_000;

impl Engine {
    /// Makes the repository that holds a directory a project, or finds it.
    ///
    /// # Errors
    /// When there is no usable repository.
    pub async fn open_project(&self, request: &OpenProject) -> Answered<ProjectView> {
        let project = self
            .open(Path::new(&request.root), request.base.as_deref())
            .await?;
        let paths = &self.inner.options.paths;
        if let Some(trust_worktrees) = request.trust_worktrees {
            worktree_trust::decide(paths, &project, trust_worktrees)
                .map_err(EngineError::file("what you agreed to can't be saved"))?;
        }
        let config = project.load_config().await?;
        let trust = worktree_trust::view(paths, &project, &config);
        Ok(ProjectView {
            trust: Some(trust),
            ..project.view(&config)
        })
    }

    async fn open(&self, directory: &Path, base: Option<&str>) -> Result<Arc<Project>> {
        let repo = Repo::discover(&self.inner.git, directory).await?;
        if let Some(base) = base
            && repo.tip(base).await?.is_none()
        {
            return Err(no_branch(base).into());
        }
        if let Some(known) = self
            .inner
            .all_projects()
            .into_iter()
            .find(|project| project.root() == repo.root())
        {
            return match base {
                Some(base) if !known.starts_from(base) => Err(base_is_set(base).into()),
                _ => Ok(known),
            };
        }
        let taken = self.inner.store.load_projects().await?;
        let root = repo.root().display().to_string();
        let known = taken.iter().find(|project| project.root == root);
        let record = match known {
            Some(record) => record.clone(),
            None => store::Project {
                id: ProjectId::new(fresh_uuid()),
                name: free_name(repo.root(), &taken)?,
                root,
                created_at: clock::now(),
            },
        };
        let project = Project::open(
            record.clone(),
            &self.inner.options.paths,
            &self.inner.git,
            base,
        )
        .await?;
        self.inner.store.save_project(record).await?;
        let project = Arc::new(project);
        let id = project.id();
        let mut projects = self
            .inner
            .projects
            .write()
            .unwrap_or_else(|e| e.into_inner());
        let project = Arc::clone(projects.entry(id).or_insert(project));
        drop(projects);
        let mut absent = self.inner.absent.lock().unwrap_or_else(|e| e.into_inner());
        absent.remove(&id);
        drop(absent);
        // Whoever follows projects begins with it at once.
        self.inner.settings.send_modify(|count| *count += 1);
        self.inner.look.notify_one();
        Ok(project)
    }

    /// The project of a repository that was known before, for instance under a path with a link.
    pub(super) async fn known_by_repository(
        &self,
        directory: &Path,
    ) -> Result<Option<Arc<Project>>> {
        let repo = Repo::discover(&self.inner.git, directory).await?;
        let projects = self.inner.all_projects();
        Ok(projects
            .into_iter()
            .find(|project| project.root() == repo.root()))
    }
}

/// A project keeps the base that it was made with; its rules may name another.
fn base_is_set(base: &str) -> Problem {
    let what = "this project has another base branch already";
    Problem::new(Code::WrongState, what).hint(format!(
        "write `base: {base}` in woodward.yaml and commit it"
    ))
}

/// The directory's name, with a number if another project has it.
fn free_name(root: &Path, taken: &[store::Project]) -> Result<ProjectName> {
    let given = root.file_name().unwrap_or_default().to_string_lossy();
    let plain = match given.parse::<ProjectName>() {
        Ok(name) => name.to_string(),
        Err(refused) => refused.suggestion.unwrap_or_else(|| "project".into()),
    };
    (1..NAMES_MAX)
        .map(|number| match number {
            1 => plain.clone(),
            _ => format!("{plain}-{number}"),
        })
        .filter_map(|name| name.parse::<ProjectName>().ok())
        .find(|name| taken.iter().all(|project| project.name != *name))
        .ok_or_else(|| {
            Problem::new(
                Code::Usage,
                format!("no name is free for a project like `{plain}`"),
            )
            .into()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_directories_of_one_name_are_two_projects() {
        let first = store::Project {
            id: ProjectId::new(fresh_uuid()),
            name: "shop".parse().unwrap(),
            root: "/a/shop".into(),
            created_at: clock::now(),
        };
        let name = |root: &str, taken: &[store::Project]| {
            free_name(Path::new(root), taken).unwrap().to_string()
        };
        assert_eq!(name("/a/shop", &[]), "shop");
        assert_eq!(name("/b/shop", std::slice::from_ref(&first)), "shop-2");
        assert_eq!(name("/b/My Shop", &[first]), "my-shop");
        assert_eq!(name("/b/日本", &[]), "project");
    }
}
