//! Projects.

use woodward_core::{ProjectId, ProjectName, Timestamp};

use crate::conn::{Conn, Op, Param, Row};
use crate::error::{Result, StoreError};
use crate::records::Project;

fn read(row: &Row) -> Result<Project> {
    Ok(Project {
        id: ProjectId::new(row.id(0)?),
        name: row.parse::<ProjectName>(1, "project name")?,
        root: row.text(2)?.to_owned(),
        created_at: Timestamp(row.int(3)?),
    })
}

/// Makes a project known, or moves a known one.
#[derive(Debug)]
pub(crate) struct SaveProject(pub(crate) Project);

impl Op for SaveProject {
    type Out = Project;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Project> {
        let project = &self.0;
        let rows = conn
            .query(
                "INSERT INTO projects (id, name, root, created_at) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (name) DO UPDATE SET root = excluded.root
                 RETURNING id, name, root, created_at",
                &[
                    project.id.into(),
                    Param::Text(project.name.as_str()),
                    (&project.root).into(),
                    project.created_at.into(),
                ],
            )
            .await?;
        rows.first()
            .map(read)
            .transpose()?
            .ok_or_else(|| StoreError::corrupt("project", "an upsert returned nothing"))
    }
}

/// All projects, by name.
#[derive(Debug)]
pub(crate) struct LoadProjects;

impl Op for LoadProjects {
    type Out = Vec<Project>;
    const READ: bool = true;

    async fn run<C: Conn>(&self, conn: &mut C, _again: bool) -> Result<Vec<Project>> {
        let rows = conn
            .query(
                "SELECT id, name, root, created_at FROM projects ORDER BY name",
                &[],
            )
            .await?;
        rows.iter().map(read).collect()
    }
}
