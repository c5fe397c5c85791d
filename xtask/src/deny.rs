//! Checks licences, duplicate crates, sources and advisories with cargo-deny, as `deny.toml` says.
//!
//! A cargo-deny on `PATH` is used as it is; otherwise one is compiled from the crates registry into
//! the user's cache, once. The checks never use the network: advisories are compared with a
//! database that the caller names, and without one the result says that they were not checked.

use crate::cache;
use crate::draft;
use crate::output;
use crate::process::{Cmd, repository_root};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The version that is compiled where none is installed.
const VERSION: Version = Version(0, 20, 2);
const PROGRAM: &str = "cargo-deny";
/// Where `deny.toml` looks for advisory databases, below the repository's root.
const DATABASES: &str = "target/advisory-db";
/// What cargo-deny calls its default database there: the last part of its address and a hash of it.
const DEFAULT_DATABASE: &str = "advisory-db-3157b0e258782691";
/// Optimisation would cost more than the checks take without it.
const PROFILE: &[&str] = &["--profile", "dev", "--config", "profile.dev.debug=false"];

/// Whether advisories were a part of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advisories {
    Checked,
    NotChecked,
}

impl Advisories {
    /// One line for the person who runs the check.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Checked => "advisories: checked",
            Self::NotChecked => "advisories: not checked (no database given)",
        }
    }
}

/// Fails when the dependencies break a rule of `deny.toml`; cargo-deny itself prints which.
///
/// `advisory_db` is a git clone of the advisory database.
pub(crate) fn check(advisory_db: Option<&Path>) -> Result<Advisories> {
    let databases = repository_root().join(DATABASES);
    let advisories = match advisory_db {
        Some(database) => {
            link_database(&databases, database)?;
            Advisories::Checked
        }
        None => Advisories::NotChecked,
    };
    let program = find_or_install()?;
    // Crates of other systems have licences too, and a build on this one does not download them.
    let fetch = Cmd::cargo(&["fetch", "--quiet", "--locked"]);
    if !fetch.run()?.is_success() {
        bail!("`{fetch}` failed");
    }
    let deny = Cmd::new(&program.display().to_string()).args(&arguments(advisories));
    if !deny.run()?.is_success() {
        bail!("`{deny}` failed; the rules and their exceptions are in deny.toml");
    }
    Ok(advisories)
}

/// An exception that is no longer needed fails as well: it would hide the next duplicate.
fn arguments(advisories: Advisories) -> Vec<&'static str> {
    let mut arguments = vec!["--workspace", "--locked", "--offline", "check"];
    arguments.extend(["--deny", "unmatched-skip", "--deny", "unnecessary-skip"]);
    arguments.extend(["bans", "licenses", "sources"]);
    if advisories == Advisories::Checked {
        arguments.push("advisories");
    }
    arguments
}

/// Shows cargo-deny the database under the name that it looks for.
fn link_database(databases: &Path, database: &Path) -> Result<()> {
    if !database.join("crates").is_dir() {
        bail!(
            "{} is not an advisory database: it has no directory `crates`; \
             give the path of a git clone of the database",
            database.display()
        );
    }
    let database = fs::canonicalize(database)?;
    fs::create_dir_all(databases)
        .with_context(|| format!("cannot create {}", databases.display()))?;
    draft::link(databases, DEFAULT_DATABASE, &database)
}

/// A released version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version(u64, u64, u64);

impl Version {
    /// Reads an answer to `--version` such as `cargo-deny 0.20.2`.
    fn parse(said: &str) -> Option<Self> {
        let numbers = said.trim().strip_prefix(PROGRAM)?.trim_start();
        let mut numbers = numbers.split('.').map(|number| number.parse().ok());
        let version = Self(numbers.next()??, numbers.next()??, numbers.next()??);
        numbers.next().is_none().then_some(version)
    }

    /// Before 1.0 each minor version may change the command line.
    fn is_compatible(self) -> bool {
        (self.0, self.1) == (VERSION.0, VERSION.1)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

fn version_of(program: &Path) -> Option<Version> {
    let cmd = Cmd::new(&program.display().to_string()).args(&["--version"]);
    Version::parse(&cmd.run_quietly().ok()?)
}

/// Returns a cargo-deny that can be started, and compiles it first where there is none.
fn find_or_install() -> Result<PathBuf> {
    let on_path = Path::new(PROGRAM);
    if version_of(on_path).is_some_and(Version::is_compatible) {
        return Ok(on_path.to_owned());
    }
    let tools = cache::directory("tools")
        .context("cannot install cargo-deny: neither HOME nor XDG_CACHE_HOME is set")?;
    install(&tools, compile)
}

/// Returns the program in `tools`. It appears there by a rename, after `build` has put it into the
/// directory that `build` gets: what is there is complete.
fn install(tools: &Path, build: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let name = format!("{PROGRAM}-{VERSION}");
    let program = tools.join(&name).join("bin").join(PROGRAM);
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(tools).with_context(|| format!("cannot create {}", tools.display()))?;
    let _lock = draft::lock(tools, "waiting for another installation of cargo-deny")?;
    // Another process may have installed it while this one waited.
    if program.is_file() {
        return Ok(program);
    }
    draft::remove_leftovers(tools)?;
    let start = Instant::now();
    output::narrate(&format!("compiling {name} into {} (once)", tools.display()));
    let draft = draft::path(tools, &name);
    build(&draft).with_context(|| format!("cannot install {name}"))?;
    let built = draft.join("bin").join(PROGRAM);
    if version_of(&built) != Some(VERSION) {
        bail!("{} is not {name}", built.display());
    }
    fs::rename(&draft, tools.join(&name))
        .with_context(|| format!("cannot rename {}", draft.display()))?;
    let took_s = start.elapsed().as_secs_f64();
    output::narrate(&format!("compiled {name} in {took_s:.0} s"));
    Ok(program)
}

fn compile(draft: &Path) -> Result<()> {
    let objects = draft.join("target");
    let cargo = Cmd::cargo(&["install", "--quiet", "--locked", "--no-track"])
        .args(PROFILE)
        .args(&["--version", &format!("={VERSION}"), "--root"])
        .args(&[draft])
        .args(&["--target-dir"])
        .args(&[&objects])
        .args(&[PROGRAM])
        .without("CARGO_BUILD_TARGET");
    cargo.run_quietly()?;
    Ok(fs::remove_dir_all(&objects)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::os::unix::fs::PermissionsExt as _;

    /// What is in a directory besides its lock.
    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name != ".lock").collect();
        names.sort();
        names
    }

    /// Puts a program into a draft that prints this for its version.
    fn build_program(said: &'static str) -> impl FnOnce(&Path) -> Result<()> {
        move |draft| {
            let program = draft.join("bin").join(PROGRAM);
            fs::create_dir_all(draft.join("bin"))?;
            fs::write(&program, format!("#!/bin/sh\necho {said}\n"))?;
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
            Ok(())
        }
    }

    #[test]
    fn only_versions_with_the_same_command_line_are_used() {
        let is_used = |said| Version::parse(said).is_some_and(Version::is_compatible);
        assert!(is_used("cargo-deny 0.20.2\n"));
        assert!(is_used("cargo-deny 0.20.0"));
        for said in [
            "cargo-deny 0.19.9",
            "cargo-deny 0.21.0",
            "cargo-deny 1.20.2",
            "cargo-deny 0.20",
            "cargo-deny 0.20.2.1",
            "cargo 0.20.2",
            "",
        ] {
            assert!(!is_used(said), "{said}");
        }
    }

    #[test]
    fn every_check_is_offline_and_keeps_the_lock_file() {
        for advisories in [Advisories::Checked, Advisories::NotChecked] {
            let arguments = arguments(advisories);
            for needed in ["--offline", "--locked", "bans", "licenses", "sources"] {
                assert!(arguments.contains(&needed), "{needed}");
            }
            let checks_advisories = arguments.contains(&"advisories");
            assert_eq!(checks_advisories, advisories == Advisories::Checked);
        }
    }

    #[test]
    fn a_check_without_database_says_so() {
        let said = Advisories::NotChecked.describe();
        assert_eq!(said, "advisories: not checked (no database given)");
    }

    #[test]
    fn the_program_is_installed_once() {
        let tools = Scratch::new("deny-once");
        fs::create_dir(tools.join(".new-killed")).unwrap();
        let program = install(&tools, build_program("cargo-deny 0.20.2")).unwrap();
        let again = install(&tools, |_| bail!("was built twice")).unwrap();
        assert_eq!(program, again);
        assert_eq!(version_of(&program), Some(VERSION));
        assert_eq!(names(&tools), ["cargo-deny-0.20.2"]);
    }

    #[test]
    fn a_program_of_another_version_does_not_appear() {
        let tools = Scratch::new("deny-other");
        let error = install(&tools, build_program("cargo-deny 0.20.1")).unwrap_err();
        assert!(
            error.to_string().ends_with("is not cargo-deny-0.20.2"),
            "{error}"
        );
        assert!(!names(&tools).contains(&"cargo-deny-0.20.2".to_owned()));
    }

    #[test]
    fn a_failed_compilation_leaves_no_program() {
        let tools = Scratch::new("deny-failed");
        let error = install(&tools, |_| bail!("no such version")).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "cannot install cargo-deny-0.20.2: no such version"
        );
        assert_eq!(names(&tools), [""; 0]);
    }

    #[test]
    fn the_database_is_linked_under_the_name_that_is_looked_for() {
        let scratch = Scratch::new("deny-database");
        let databases = scratch.join("databases");
        for name in ["first", "second"] {
            let database = scratch.join(name);
            fs::create_dir_all(database.join("crates")).unwrap();
            link_database(&databases, &database).unwrap();
            let linked = fs::canonicalize(databases.join(DEFAULT_DATABASE)).unwrap();
            assert_eq!(linked, fs::canonicalize(&database).unwrap());
        }
    }

    #[test]
    fn a_directory_without_advisories_is_refused() {
        let scratch = Scratch::new("deny-refused");
        let error = link_database(&scratch.join("databases"), &scratch).unwrap_err();
        assert!(
            error.to_string().contains("no directory `crates`"),
            "{error}"
        );
    }

    #[test]
    fn the_rules_look_for_databases_where_they_are_linked() {
        let rules = fs::read_to_string(repository_root().join("deny.toml")).unwrap();
        let line = format!("db-path = \"{DATABASES}\"");
        assert!(rules.lines().any(|found| found == line), "{line}");
    }
}
