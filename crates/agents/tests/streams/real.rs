//! A stage with a stand-in for the model, for programs that are installed.

use std::ops::{Deref, DerefMut};

use woodward_agents::Kind;
use woodward_testkit::agents::Programs;
use woodward_testkit::model_api::ModelApi;

use crate::stage::Stage;

pub(crate) struct Real {
    pub(crate) api: ModelApi,
    /// The program, as a spec names it.
    pub(crate) program: Vec<String>,
    stage: Stage,
}

impl Real {
    /// For a program by its name in `cargo xtask setup`.
    pub(crate) fn new(kind: Kind, name: &str) -> anyhow::Result<Self> {
        let programs = Programs::installed()?;
        let mut real = Self {
            api: ModelApi::start(),
            program: vec![programs.of(name).path.display().to_string()],
            stage: Stage::new(kind)?,
        };
        let path = std::env::var("PATH")?;
        real.set("PATH", format!("{}:{path}", programs.bin().display()));
        Ok(real)
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.unset(name);
        self.env.push((name.to_owned(), value.into()));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.env.retain(|(known, _)| known != name);
    }
}

impl Deref for Real {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl DerefMut for Real {
    fn deref_mut(&mut self) -> &mut Stage {
        &mut self.stage
    }
}
