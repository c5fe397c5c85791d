//! One build of all programs and tests, and the tests that are in it.
//!
//! Everything is built by one command, so that nothing is built twice with different features. It
//! reads what cargo says it built; it never guesses a path.

use super::job::{Group, Job};
use crate::process::Cmd;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `--test '*'` also takes the tests with `test = false`, which `--tests` leaves out. Programs are
/// built for the tests of their packages.
const BUILD: &[&str] = &[
    "test",
    "--workspace",
    "--locked",
    "--no-run",
    "--lib",
    "--bins",
    "--test",
    "*",
];

/// What the build made.
#[derive(Debug, Default)]
pub(crate) struct Build {
    tests: Vec<TestBinary>,
    /// Programs by name.
    programs: BTreeMap<String, PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TestBinary {
    package: String,
    name: String,
    /// How cargo is told to run it.
    selector: String,
    path: PathBuf,
    /// The package's directory.
    directory: PathBuf,
}

/// The command that builds everything.
pub(crate) fn command() -> Cmd {
    Cmd::cargo(BUILD)
}

/// Builds everything; an error when it does not compile.
pub(crate) fn build() -> Result<Build> {
    let cmd = command().args(&["--message-format", "json-render-diagnostics"]);
    let messages = cmd
        .read()
        .with_context(|| format!("the build failed; rerun: {}", command()))?;
    Build::parse(&messages)
}

impl Build {
    fn parse(messages: &str) -> Result<Self> {
        let mut build = Self::default();
        for line in messages.lines().filter(|line| line.starts_with('{')) {
            let message: Value = serde_json::from_str(line).context("cargo wrote no JSON")?;
            if message["reason"] != "compiler-artifact" {
                continue;
            }
            let Some(path) = message["executable"].as_str().map(PathBuf::from) else {
                continue;
            };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let target = &message["target"];
            let (name, kind) = (text(&target["name"]), text(&target["kind"][0]));
            if message["profile"]["test"] != true {
                if kind == "bin" {
                    build.programs.insert(name, path);
                }
                continue;
            }
            let manifest = PathBuf::from(text(&message["manifest_path"]));
            let directory = manifest.parent().unwrap_or(Path::new("/")).to_owned();
            build.tests.push(TestBinary {
                package: package_name(&text(&message["package_id"]), &directory),
                selector: match kind.as_str() {
                    "test" => format!("--test {name}"),
                    "bin" => format!("--bin {name}"),
                    _ => "--lib".to_owned(),
                },
                name,
                path,
                directory,
            });
        }
        if build.tests.is_empty() {
            bail!("the build made no tests; look at: {}", command());
        }
        Ok(build)
    }

    /// A program of ours, such as `woodward-sim`.
    pub(crate) fn program(&self, name: &str) -> Result<&Path> {
        let path = self.programs.get(name);
        path.map(PathBuf::as_path)
            .with_context(|| format!("the build made no program `{name}`"))
    }

    /// A test binary, such as `agents` of `woodward`.
    pub(crate) fn test_binary(&self, package: &str, name: &str) -> Result<&Path> {
        let mut tests = self.tests.iter();
        let found = tests.find(|binary| binary.package == package && binary.name == name);
        found
            .map(|binary| binary.path.as_path())
            .with_context(|| format!("the build made no test `{name}` of {package}"))
    }

    /// Every test of every binary, as a job.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for binary in &self.tests {
            let tests = binary.list()?;
            jobs.extend(tests.iter().map(|test| binary.job(test)));
        }
        Ok(jobs)
    }
}

impl TestBinary {
    fn list(&self) -> Result<Vec<String>> {
        let listed = Command::new(&self.path)
            .args(["--list", "--format", "terse"])
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot run {}", self.path.display()))?;
        if !listed.status.success() {
            bail!("{} --list failed ({})", self.path.display(), listed.status);
        }
        Ok(parse_list(&String::from_utf8_lossy(&listed.stdout)))
    }

    fn job(&self, test: &str) -> Job {
        let package = &self.package;
        Job {
            id: format!("{package}::{} {test}", self.name),
            group: Group::of(package, &self.name),
            program: self.path.clone(),
            arguments: ["--exact", test].map(Into::into).to_vec(),
            directory: self.directory.clone(),
            variables: vec![
                ("CARGO_MANIFEST_DIR".into(), self.directory.clone().into()),
                ("CARGO_PKG_NAME".into(), package.into()),
                ("RUST_BACKTRACE".into(), "0".into()),
            ],
            rerun: format!(
                "cargo test -p {package} {} -- --exact '{test}'",
                self.selector
            ),
        }
    }
}

/// The names in what `--list --format terse` writes.
fn parse_list(text: &str) -> Vec<String> {
    let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
    tests.map(str::to_owned).collect()
}

/// `path+file:///clone/crates/core#woodward-core@0.1.0`, or with the directory's name for the
/// package's: `…/xtask#0.1.0`.
fn package_name(id: &str, directory: &Path) -> String {
    let fragment = id.rsplit('#').next().unwrap_or_default();
    match fragment.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => {
            let name = directory.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"
{"reason":"compiler-artifact","package_id":"path+file:///c/crates/core#woodward-core@0.1.0","manifest_path":"/c/crates/core/Cargo.toml","target":{"kind":["lib"],"name":"woodward_core"},"profile":{"test":true},"executable":"/c/target/debug/deps/woodward_core-1"}
{"reason":"compiler-artifact","package_id":"path+file:///c/xtask#0.1.0","manifest_path":"/c/xtask/Cargo.toml","target":{"kind":["bin"],"name":"xtask"},"profile":{"test":false},"executable":"/c/target/debug/xtask"}
{"reason":"compiler-artifact","package_id":"path+file:///c/xtask#0.1.0","manifest_path":"/c/xtask/Cargo.toml","target":{"kind":["test"],"name":"e2e"},"profile":{"test":true},"executable":"/c/target/debug/deps/e2e-1"}
{"reason":"build-finished","success":true}
"#;

    #[test]
    fn tests_and_programs_are_told_apart() {
        let build = Build::parse(MESSAGES).unwrap();
        let selectors: Vec<_> = build.tests.iter().map(|it| it.selector.as_str()).collect();
        assert_eq!(selectors, ["--lib", "--test e2e"]);
        assert_eq!(build.tests[0].package, "woodward-core");
        assert_eq!(build.tests[1].package, "xtask");
        assert_eq!(
            build.program("xtask").unwrap(),
            Path::new("/c/target/debug/xtask")
        );
        assert!(build.program("woodward").is_err());
    }

    #[test]
    fn a_build_without_tests_is_an_error() {
        assert!(Build::parse("").is_err());
    }

    #[test]
    fn a_test_says_how_to_run_it_alone() {
        let build = Build::parse(MESSAGES).unwrap();
        let job = build.tests[1].job("merge::it_lands");
        assert_eq!(job.id, "xtask::e2e merge::it_lands");
        assert_eq!(
            job.rerun,
            "cargo test -p xtask --test e2e -- --exact 'merge::it_lands'"
        );
    }

    #[test]
    fn only_tests_are_listed() {
        let text = "a::b: test\nc: benchmark\n\n2 tests, 1 benchmark\n";
        assert_eq!(parse_list(text), ["a::b"]);
    }
}
