//! `cargo xtask deps`: loads the facts about our dependencies and reports what breaks a rule.
//!
//! It decides nothing: the rules are in `crate::deps` and in `deny.toml`.

use crate::deny;
use crate::deps::{Facts, Metadata, Source, Tree, examine};
use crate::output;
use crate::process::{Cmd, repository_root};
use crate::sources::rust_files;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The variable that names the advisory database where no argument does.
const ADVISORY_DB: &str = "WOODWARD_ADVISORY_DB";

/// Check dependency direction, the core's purity, licences, duplicates, sources and advisories
///
/// The rules are tables in xtask/src/deps/rules.rs and, for cargo-deny, in deny.toml. cargo-deny is
/// compiled into the user's cache where it is not installed.
#[derive(clap::Args)]
pub(crate) struct Deps {
    /// A git clone of the advisory database, to check dependencies for known vulnerabilities
    /// [default: the value of WOODWARD_ADVISORY_DB]
    #[arg(long, value_name = "PATH")]
    advisory_db: Option<PathBuf>,
}

impl Deps {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        check(self.advisory_db())?;
        output::answer("dependencies keep the rules");
        Ok(ExitCode::SUCCESS)
    }

    pub(crate) fn advisory_db(&self) -> Option<&Path> {
        self.advisory_db.as_deref()
    }
}

/// Fails with one line for every broken rule.
pub(crate) fn check(advisory_db: Option<&Path>) -> Result<()> {
    let findings = examine(&load_facts()?);
    if !findings.is_empty() {
        bail!(
            "{} dependency rule(s) broken:\n- {}",
            findings.len(),
            findings.join("\n- ")
        )
    }
    let variable = std::env::var_os(ADVISORY_DB).filter(|value| !value.is_empty());
    let by_variable = variable.map(PathBuf::from);
    let advisories = deny::check(advisory_db.or(by_variable.as_deref()))?;
    output::narrate(advisories.describe());
    Ok(())
}

fn load_facts() -> Result<Facts> {
    let metadata = Cmd::cargo(&["metadata", "--format-version", "1", "--locked"]).read()?;
    // `cargo metadata` merges the features that all our crates ask for. Only `cargo tree`
    // says what the core gets when it is built for itself.
    let tree = Cmd::cargo(&["tree", "--locked", "-p", "woodward-core"])
        .args(&["--edges", "normal,no-proc-macro", "--target", "all"])
        .args(&["--prefix", "depth", "--format", "{p}"])
        .read()?;
    Ok(Facts {
        metadata: Metadata::parse(&metadata)?,
        core_tree: Tree::parse(&tree)?,
        core_sources: load_sources(&repository_root().join("crates/core/src"))?,
    })
}

fn load_sources(directory: &Path) -> Result<Vec<Source>> {
    let load = |path: PathBuf| {
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let shown = path.strip_prefix(repository_root()).unwrap_or(&path);
        Ok(Source {
            path: shown.display().to_string(),
            text,
        })
    };
    rust_files(directory)?.into_iter().map(load).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_keeps_the_rules() {
        let findings = examine(&load_facts().unwrap());
        assert!(findings.is_empty(), "{findings:#?}");
    }
}
