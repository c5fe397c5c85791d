//! What `doctor` looks at: this machine, the project, and what was left behind.
//!
//! With `fix` it puts right what can be put right without risk: lock files that nobody holds, and
//! worktrees of no task, which go to the trash with all their work.

mod leftovers;
mod machine;
mod programs;
mod rules;

use std::path::Path;

use woodward_api::{Check, CheckState, Diagnosis};

use super::Answered;
use crate::engine::Engine;

impl Engine {
    /// Looks at everything that could be wrong, and with `fix` puts right what can be without risk.
    ///
    /// # Errors
    /// When the database can't be asked; everything else that is wrong is what it reports.
    pub async fn diagnose(&self, root: &Path, fix: bool) -> Answered<Diagnosis> {
        let mut checks = self.machine().await?;
        match self.project_of(root).await {
            Ok(project) => {
                checks.extend(self.rules(&project).await);
                checks.extend(self.reachable(root).await);
                checks.extend(self.leftovers(&project, fix).await?);
            }
            Err(error) => {
                let problem = woodward_api::Problem::from(error);
                checks.push(Check {
                    name: "project".into(),
                    state: CheckState::Note,
                    found: problem.message,
                    fix: problem.hints.into_iter().next(),
                });
            }
        }
        Ok(Diagnosis { checks })
    }
}

pub(super) fn good(name: &str, found: impl Into<String>) -> Check {
    Check {
        name: name.into(),
        state: CheckState::Ok,
        found: found.into(),
        fix: None,
    }
}

pub(super) fn note(name: &str, found: impl Into<String>, fix: Option<String>) -> Check {
    Check {
        name: name.into(),
        state: CheckState::Note,
        found: found.into(),
        fix,
    }
}

pub(super) fn bad(name: &str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check {
        name: name.into(),
        state: CheckState::Bad,
        found: found.into(),
        fix: Some(fix.into()),
    }
}
