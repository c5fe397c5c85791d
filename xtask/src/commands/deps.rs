//! `cargo xtask deps`: loads the facts about our dependencies and reports what breaks a rule.
//!
//! It decides nothing: the rules are in `crate::deps`.

use crate::deps::{Facts, Metadata, Source, Tree, examine};
use crate::output;
use crate::process::{Cmd, repository_root};
use crate::sources::rust_files;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Check dependency direction, the core's purity and licences
///
/// The rules are tables in xtask/src/deps/rules.rs.
#[derive(clap::Args)]
pub(crate) struct Deps {}

impl Deps {
    pub(crate) fn run(&self) -> Result<ExitCode> {
        check()?;
        output::answer("dependencies keep the rules");
        Ok(ExitCode::SUCCESS)
    }
}

/// Fails with one line for every broken rule.
pub(crate) fn check() -> Result<()> {
    let findings = examine(&load_facts()?);
    if findings.is_empty() {
        return Ok(());
    }
    bail!(
        "{} dependency rule(s) broken:\n- {}",
        findings.len(),
        findings.join("\n- ")
    )
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
