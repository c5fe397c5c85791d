//! The files of a checkout that say which gates it needs: names, a few texts, nested packages.
//!
//! It reads and never follows a directory out of the checkout; everything is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;

/// The files whose text matters besides their name.
const READ: [&str; 25] = [
    ".flake8",
    ".gitlab-ci.yml",
    "Cargo.toml",
    "GNUmakefile",
    "Gemfile",
    "Makefile",
    "Pipfile",
    "Rakefile",
    "composer.json",
    "dev-requirements.txt",
    "makefile",
    "mypy.ini",
    "package.json",
    "poetry.lock",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements-test.txt",
    "requirements.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
    "requirements/tests.txt",
    "setup.cfg",
    "setup.py",
    "test-requirements.txt",
    "tox.ini",
];

/// The files that make a directory a package.
const MANIFESTS: [&str; 12] = [
    "Cargo.toml",
    "Gemfile",
    "composer.json",
    "go.mod",
    "mix.exs",
    "package.json",
    "pom.xml",
    "pubspec.yaml",
    "pyproject.toml",
    "pytest.ini",
    "requirements.txt",
    "setup.py",
];

/// Directories in which no package of the project is.
const SKIPPED: [&str; 16] = [
    "build",
    "dist",
    "docs",
    "example",
    "examples",
    "fixture",
    "fixtures",
    "node_modules",
    "spec",
    "target",
    "templates",
    "test",
    "testdata",
    "tests",
    "third_party",
    "vendor",
];

/// The most that is read of one file.
const FILE_MAX: u64 = 256 << 10;
/// The most names that are read of one directory.
const NAMES_MAX: usize = 10_000;
/// The most directories that are searched for packages, how deep, and the most packages.
const DIRECTORIES_MAX: usize = 2_000;
const DEPTH_MAX: usize = 3;
const PACKAGES_MAX: usize = 8;
/// The most CI files that are read.
const WORKFLOWS_MAX: usize = 20;
const WORKFLOWS: &str = ".github/workflows";

/// What is in a directory of a checkout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The names of files and directories.
    pub names: BTreeSet<String>,
    /// The text of those that matter.
    pub texts: BTreeMap<String, String>,
    /// Directories below it that have a manifest of their own, by their path from here.
    pub packages: Vec<(String, Self)>,
}

impl Files {
    /// Reads a directory. Files that can't be read count by their name only.
    ///
    /// # Errors
    /// When the directory itself can't be read.
    pub fn load(root: &Path) -> io::Result<Self> {
        let mut files = Self::load_one(root)?;
        let mut workflows = names(&root.join(WORKFLOWS)).unwrap_or_default();
        workflows.retain(|name| name.ends_with(".yml") || name.ends_with(".yaml"));
        for name in workflows.into_iter().take(WORKFLOWS_MAX) {
            files.read(root, &format!("{WORKFLOWS}/{name}"));
        }
        files.packages = packages(root);
        Ok(files)
    }

    fn load_one(root: &Path) -> io::Result<Self> {
        let mut files = Self {
            names: names(root)?,
            ..Self::default()
        };
        for name in READ {
            let first = name.split('/').next().unwrap_or(name);
            if files.names.contains(first) {
                files.read(root, name);
            }
        }
        Ok(files)
    }

    fn read(&mut self, root: &Path, name: &str) {
        let path = root.join(name);
        // A pipe of that name would never end.
        if !path.is_file() {
            return;
        }
        let mut text = String::new();
        let file = std::fs::File::open(path);
        if file.is_ok_and(|file| file.take(FILE_MAX).read_to_string(&mut text).is_ok()) {
            self.texts.insert(name.to_owned(), text);
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The first of these names that is there.
    pub(super) fn first(&self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.has(name))
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    pub(super) fn says(&self, name: &str, words: &str) -> bool {
        self.text(name).contains(words)
    }

    /// The texts of CI files.
    pub(super) fn workflows(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_ci = |name: &str| name.starts_with(WORKFLOWS) || name == ".gitlab-ci.yml";
        let texts = self.texts.iter();
        texts
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .filter(move |(name, _)| is_ci(name))
    }
}

fn names(dir: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(dir)?.take(NAMES_MAX) {
        if let Ok(name) = entry?.file_name().into_string() {
            names.insert(name);
        }
    }
    Ok(names)
}

/// The packages below a directory, breadth first. The inside of a package is searched no further.
fn packages(root: &Path) -> Vec<(String, Files)> {
    let mut found = Vec::new();
    let mut level = vec![String::new()];
    let mut visited = 0;
    for _ in 0..DEPTH_MAX {
        let mut next = Vec::new();
        for parent in &level {
            for name in names(&root.join(parent)).unwrap_or_default() {
                let dir = match parent.is_empty() {
                    true => name.clone(),
                    false => format!("{parent}/{name}"),
                };
                let is_dir =
                    || std::fs::symlink_metadata(root.join(&dir)).is_ok_and(|meta| meta.is_dir());
                if SKIPPED.contains(&name.as_str()) || !is_plain(&name) || !is_dir() {
                    continue;
                }
                visited += 1;
                if visited > DIRECTORIES_MAX || found.len() >= PACKAGES_MAX {
                    return found;
                }
                match Files::load_one(&root.join(&dir)) {
                    Ok(files) if MANIFESTS.iter().any(|name| files.has(name)) => {
                        found.push((dir, files));
                    }
                    Ok(_) => next.push(dir),
                    Err(_) => {}
                }
            }
        }
        level = next;
    }
    found
}

/// Whether a name can stand in a shell command without quotes, and is not hidden.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && name.chars().all(plain)
}
