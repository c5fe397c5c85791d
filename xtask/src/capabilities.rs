//! The table of what each real agent program was seen to do.
//!
//! The tests with real agents run in processes of their own and append what they see to one file. The
//! test binary itself knows the columns and prints the table; nothing is judged here.

use crate::runner::Build;
use anyhow::{Context as _, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the file; `crates/woodward/tests/agents/table.rs` reads it.
const VARIABLE: &str = "WOODWARD_TEST_CAPABILITIES";

/// The file of one run.
pub(crate) struct Capabilities {
    file: PathBuf,
}

impl Capabilities {
    /// An empty file in `directory`.
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)?;
        let file = directory.join("capabilities.tsv");
        fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self { file })
    }

    /// The variable for the tests' environment.
    pub(crate) fn variable(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.file.clone().into())
    }

    /// The table, printed by the test binary when it is told to run no test.
    pub(crate) fn table(&self, build: &Build) -> Result<String> {
        let binary = build.test_binary("woodward", "agents")?;
        let printed = Command::new(binary)
            .args(["--exact", "no test has this name"])
            .envs([self.variable()])
            .output()
            .with_context(|| format!("cannot run {}", binary.display()))?;
        let text = String::from_utf8_lossy(&printed.stdout);
        let start = text.find("agent ").filter(|_| printed.status.success());
        match start {
            Some(start) => Ok(text[start..].trim_end().to_owned()),
            None => bail!("{} printed no table: {text}", binary.display()),
        }
    }
}
