//! What about a change deserves a closer look, judged by what it touches.
//!
//! A signal is a reason for a person to look, never a verdict on the change.

mod embedded;
mod weakened;

pub use embedded::{
    EMBEDDED_MAX, EmbeddedChoice, EmbeddedRepository, SubmoduleUrlError, check_submodule_url,
    declared_submodules, embedded_repositories, embedded_text,
};
use weakened::is_test_file;
pub use weakened::{may_hold_tests, weakened};

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::reaction::pattern;
use crate::text::ByteSize;

/// More lines than this are much to review.
pub const LINES_MANY: u64 = 500;
/// More files than this are much to review.
pub const FILES_MANY: usize = 20;

/// The sizes above which a new file is a risk signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSizeLimits {
    /// For text files, in bytes.
    pub text: u64,
    /// For all files, in bytes.
    pub any: u64,
}

impl Default for FileSizeLimits {
    fn default() -> Self {
        Self {
            text: 1 << 20,
            any: 5 << 20,
        }
    }
}

impl FileSizeLimits {
    /// Whether a file of so many bytes is above the limit that applies to it.
    pub fn exceeded_by(&self, bytes: u64, is_text: bool) -> bool {
        bytes > self.any || (is_text && bytes > self.text)
    }
}

/// One changed file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Its path.
    pub path: String,
    /// What it was called before, if it was moved.
    pub was: Option<String>,
    /// Lines added and removed; `None` for a binary file.
    pub lines: Option<(u64, u64)>,
    /// Its size in bytes, if this change made it exceed the project's limit.
    pub oversize: Option<u64>,
    /// The target of a symbolic link that the change adds or redirects.
    pub link: Option<String>,
}

/// A reason to look closer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// A git repository of its own that is not a declared submodule. There may be several.
    EmbeddedRepository(String),
    /// The project's own rules: gates, agents, review.
    Rules(String),
    /// How the project is built and tested elsewhere.
    Ci(String),
    /// What a gate's command runs.
    Gate(String),
    /// How its tests are run.
    TestRules(String),
    /// Tests that are gone.
    TestsRemoved(String),
    /// Tests that are no longer run.
    TestsSkipped(String),
    /// A file outside of what the task should touch.
    Outside(String),
    /// What the project depends on.
    Dependencies(String),
    /// Who may do what, and what must stay secret.
    Security(String),
    /// The form of stored data.
    Migration(String),
    /// A file that can't be read as text.
    Binary(String),
    /// A file that this change made larger than the project's limit.
    LargeFile {
        /// Its path.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// A symbolic link whose target is not part of the repository's files.
    LinkOutside {
        /// The link.
        path: String,
        /// Where it points.
        target: String,
    },
    /// There is much of it.
    Large {
        /// Lines added and removed.
        lines: u64,
        /// Files.
        files: usize,
    },
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmbeddedRepository(path) => {
                write!(f, "contains a git repository of its own ({path}/)")
            }
            Self::Rules(path) => write!(f, "changes Woodward's own rules ({path})"),
            Self::Ci(path) => write!(f, "changes CI ({path})"),
            Self::Gate(path) => write!(f, "changes what a gate runs ({path})"),
            Self::TestRules(path) => write!(f, "changes how tests are run ({path})"),
            Self::TestsRemoved(what) => write!(f, "removes tests ({what})"),
            Self::TestsSkipped(what) => write!(f, "skips tests ({what})"),
            Self::Outside(path) => write!(f, "leaves the paths it was given ({path})"),
            Self::Dependencies(path) => write!(f, "changes dependencies ({path})"),
            Self::Security(path) => write!(f, "touches access or secrets ({path})"),
            Self::Migration(path) => write!(f, "touches a migration ({path})"),
            Self::Binary(path) => write!(f, "has a binary file ({path})"),
            Self::LargeFile { path, bytes } => {
                write!(f, "has a large file ({path}, {})", ByteSize(*bytes))
            }
            Self::LinkOutside { path, target } => {
                write!(f, "links out of the repository ({path} -> {target})")
            }
            Self::Large { lines, files } => write!(f, "is large ({lines} lines, {files} files)"),
        }
    }
}

const RULES: &[&str] = &["woodward.yaml"];
const CI: &[&str] = &[
    ".github",
    ".gitlab-ci.yml",
    ".circleci",
    ".ci",
    ".buildkite",
    "Jenkinsfile",
    "azure-pipelines.yml",
    ".travis.yml",
    ".drone.yml",
    "bitbucket-pipelines.yml",
    ".woodpecker.yml",
    ".woodpecker",
];
const TEST_RULES: &[&str] = &[
    "pytest.ini",
    "tox.ini",
    "conftest.py",
    "nextest.toml",
    "phpunit.xml",
    ".mocharc.json",
    ".mocharc.yml",
    "karma.conf.js",
    "playwright.config.ts",
    "cypress.config.ts",
];
/// Beginnings of names: `jest.config.js`, `vitest.config.mts` …
const TEST_RULES_STEMS: &[&str] = &["jest.config.", "vitest.config.", "vitest.workspace."];
const DEPENDENCIES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "package.json",
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "pyproject.toml",
    "requirements.txt",
    "uv.lock",
    "poetry.lock",
    "go.mod",
    "go.sum",
    "Gemfile",
    "Gemfile.lock",
];
const SECURITY: &[&str] = &[
    "auth",
    "crypto",
    "password",
    "secret",
    "permission",
    "session",
    "token",
    ".env",
];

/// The reasons that a change gives, one of a kind, in a fixed order.
pub fn signals(change: &[Touched]) -> Vec<Signal> {
    let mut found: Vec<Signal> = Vec::new();
    for file in change {
        // What was moved away is gone from where it was.
        let was = file.was.as_deref();
        let moved = was.filter(|was| is_test_file(was) && !is_test_file(&file.path));
        let moved = moved.map(|was| Signal::TestsRemoved(was.into()));
        let before = was.and_then(|was| of(was, file.lines));
        let now = of(&file.path, file.lines);
        let large = file.oversize.map(|bytes| Signal::LargeFile {
            path: file.path.clone(),
            bytes,
        });
        let link = file.link.as_ref();
        let link = link.filter(|target| leaves_repository(&file.path, target));
        let link = link.map(|target| Signal::LinkOutside {
            path: file.path.clone(),
            target: target.clone(),
        });
        for signal in [before, now, moved, large, link].into_iter().flatten() {
            if !found.iter().any(|other| same_kind(other, &signal)) {
                found.push(signal);
            }
        }
    }
    let lines = change
        .iter()
        .filter_map(|file| file.lines)
        .map(|(added, removed)| added.saturating_add(removed))
        .fold(0, u64::saturating_add);
    if lines > LINES_MANY || change.len() > FILES_MANY {
        found.push(Signal::Large {
            lines,
            files: change.len(),
        });
    }
    found.sort();
    found
}

/// What of a change the command of a gate runs: files that it names, and the rules of `make` and `just`.
/// Words are taken as the shell would, as far as that is plain.
pub fn runs(command: &str, paths: &[String]) -> Option<Signal> {
    let cut = |c: char| c.is_whitespace() || ";&|()<>\"'`=".contains(c);
    let words: Vec<&str> = command.split(cut).filter(|word| !word.is_empty()).collect();
    let names = |tool: &str| {
        words
            .iter()
            .any(|word| word.rsplit('/').next() == Some(tool))
    };
    let (make, just) = (names("make") || names("gmake"), names("just"));
    let elsewhere = words.contains(&"cd");
    let is_run = |path: &&String| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let lower = name.to_ascii_lowercase();
        let is_named = words.iter().any(|word| {
            let word = word.trim_start_matches("./");
            let inside = path.strip_suffix(word).is_some_and(|it| it.ends_with('/'));
            path.as_str() == word || (elsewhere && !word.is_empty() && inside)
        });
        is_named
            || (make && (matches!(&*lower, "makefile" | "gnumakefile") || lower.ends_with(".mk")))
            || (just && (matches!(&*lower, "justfile" | ".justfile") || lower.ends_with(".just")))
    };
    paths
        .iter()
        .find(is_run)
        .map(|path| Signal::Gate(path.clone()))
}

/// The files that match none of the patterns; none where there is no pattern.
pub fn outside(scope: &[String], paths: &[String]) -> Vec<String> {
    let inside = |path: &&String| scope.iter().any(|it| pattern::matches(it, path));
    if scope.is_empty() {
        return Vec::new();
    }
    paths.iter().filter(|path| !inside(path)).cloned().collect()
}

/// Whether a symbolic link points at something that is not one of the repository's files: an absolute
/// path, a path above the root, or git's own directory.
pub fn leaves_repository(link: &str, target: &str) -> bool {
    if target.starts_with('/') {
        return true;
    }
    let mut depth = link.split('/').filter(|part| !part.is_empty()).count();
    // The link's own name is replaced by its target.
    depth = depth.saturating_sub(1);
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            name if name.eq_ignore_ascii_case(".git") => return true,
            _ => depth += 1,
        }
    }
    false
}

/// Whether a file says what a project depends on.
pub fn is_about_dependencies(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    DEPENDENCIES.contains(&name)
}

fn same_kind(a: &Signal, b: &Signal) -> bool {
    core::mem::discriminant(a) == core::mem::discriminant(b)
}

fn of(path: &str, lines: Option<(u64, u64)>) -> Option<Signal> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let first = path.split('/').next().unwrap_or(path);
    let lower = path.to_ascii_lowercase();
    let mut parts = lower.split(['/', '-', '_', '.']);
    let given = || String::from(path);
    Some(if RULES.contains(&path) {
        Signal::Rules(given())
    } else if CI.contains(&first) {
        Signal::Ci(given())
    } else if TEST_RULES.contains(&name) || TEST_RULES_STEMS.iter().any(|it| name.starts_with(it)) {
        Signal::TestRules(given())
    } else if DEPENDENCIES.contains(&name) {
        Signal::Dependencies(given())
    } else if parts.clone().any(|part| part.starts_with("migration")) {
        Signal::Migration(given())
    } else if name.starts_with(".env")
        || parts.any(|part| SECURITY.iter().any(|word| part.starts_with(word)))
    {
        Signal::Security(given())
    } else if lines.is_none() {
        Signal::Binary(given())
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn touched(path: &str) -> Touched {
        Touched {
            path: path.into(),
            lines: Some((3, 1)),
            ..Touched::default()
        }
    }

    fn said(paths: &[&str]) -> Vec<String> {
        let change: Vec<Touched> = paths.iter().map(|path| touched(path)).collect();
        signals(&change).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_ordinary_change_gives_no_reason() {
        assert_eq!(said(&["src/main.rs", "docs/tour.md"]), [""; 0]);
    }

    #[test]
    fn what_needs_care_is_named_once_a_kind() {
        assert_eq!(
            said(&[
                "src/auth/login.rs",
                "src/auth/logout.rs",
                "Cargo.lock",
                ".github/workflows/ci.yml",
                "woodward.yaml",
                "db/migrations/0001.sql",
            ]),
            [
                "changes Woodward's own rules (woodward.yaml)",
                "changes CI (.github/workflows/ci.yml)",
                "changes dependencies (Cargo.lock)",
                "touches access or secrets (src/auth/login.rs)",
                "touches a migration (db/migrations/0001.sql)",
            ]
        );
    }

    #[test]
    fn what_was_moved_is_judged_by_its_old_name_too() {
        let moved = |was: &str, path: &str| {
            let file = Touched {
                was: Some(was.into()),
                lines: Some((0, 0)),
                ..touched(path)
            };
            let said = signals(&[file]);
            said.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            moved(".github/workflows/ci.yml", "old/ci.yml"),
            ["changes CI (.github/workflows/ci.yml)"]
        );
        assert_eq!(
            moved("conftest.py", "conftest.py.bak"),
            ["changes how tests are run (conftest.py)"]
        );
        for (was, path) in [
            ("test_a.py", "test_a.py.bak"),
            ("tests/cart.rs", "attic/cart.rs"),
            ("src/cart.spec.ts", "src/cart.ts"),
        ] {
            assert_eq!(moved(was, path), [alloc::format!("removes tests ({was})")]);
        }
        assert_eq!(moved("tests/a.rs", "tests/b.rs"), [""; 0]);
        assert_eq!(moved("src/a.rs", "src/b.rs"), [""; 0]);
    }

    #[test]
    fn every_usual_ci_is_known() {
        for path in [
            ".travis.yml",
            ".drone.yml",
            "bitbucket-pipelines.yml",
            ".woodpecker.yml",
        ] {
            assert_eq!(said(&[path]), [alloc::format!("changes CI ({path})")]);
        }
    }

    #[test]
    fn what_a_gate_runs_is_what_its_command_names() {
        let run = |command: &str, path: &str| runs(command, &[path.into()]).is_some();
        for (command, path) in [
            ("sh check.sh", "check.sh"),
            ("./ci/check --all", "ci/check"),
            ("FAST=1 sh -c 'bash ci/check.sh && true'", "ci/check.sh"),
            ("cd web && sh check.sh", "web/check.sh"),
            ("make test", "Makefile"),
            ("cd web; make -j2", "web/rules.mk"),
            ("just test", ".justfile"),
        ] {
            assert!(run(command, path), "{command}: {path}");
        }
        for (command, path) in [
            ("sh check.sh", "web/check.sh"),
            ("cargo test", "src/test"),
            ("cargo test", "Makefile"),
            ("pytest tests", "tests/test_a.py"),
            ("cd web && npm test", "web/index.ts"),
        ] {
            assert!(!run(command, path), "{command}: {path}");
        }
    }

    #[test]
    fn only_what_matches_no_pattern_is_outside() {
        let paths = ["src/cart/add.rs", "docs/cart.md", "Cargo.toml"].map(String::from);
        let scope = ["src/cart/".to_string(), "*.md".to_string()];
        assert_eq!(outside(&scope, &paths), ["Cargo.toml"]);
        assert_eq!(outside(&[], &paths), [""; 0]);
    }

    #[test]
    fn a_large_file_is_a_risk_with_its_path_and_size() {
        let file = Touched {
            oversize: Some((12 << 20) + (300 << 10)),
            ..touched("assets/film.txt")
        };
        let found = signals(&[file]);
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["has a large file (assets/film.txt, 12 MB)"]);
    }

    #[test]
    fn size_limits_are_lower_for_text() {
        let limits = FileSizeLimits::default();
        assert!(!limits.exceeded_by(1 << 20, true));
        assert!(limits.exceeded_by((1 << 20) + 1, true));
        assert!(!limits.exceeded_by(5 << 20, false));
        assert!(limits.exceeded_by((5 << 20) + 1, false));
    }

    #[test]
    fn only_links_out_of_the_repository_are_a_risk() {
        for (link, target) in [
            ("passwd", "/etc/passwd"),
            ("a/b", "../../secret"),
            ("a", ".."),
            ("docs/x", "../src/../../x"),
            ("hooks", ".git/hooks"),
            ("a/b/c", "../../.GIT/config"),
        ] {
            assert!(leaves_repository(link, target), "{link} -> {target}");
        }
        for (link, target) in [
            ("a", "b"),
            ("a/b/c", "../../d"),
            ("a/b", "./../c//d"),
            ("a", "b/../c"),
            ("a", ".github/x"),
        ] {
            assert!(!leaves_repository(link, target), "{link} -> {target}");
        }
        let file = Touched {
            link: Some("../../etc/passwd".into()),
            ..touched("docs/notes")
        };
        let found = signals(&[file]);
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            ["links out of the repository (docs/notes -> ../../etc/passwd)"]
        );
    }

    #[test]
    fn much_and_binary_are_reasons() {
        let logo = Touched {
            path: "logo.png".into(),
            ..Touched::default()
        };
        assert_eq!(signals(&[logo]), [Signal::Binary("logo.png".into())]);
        let much = Touched {
            path: "src/main.rs".into(),
            lines: Some((LINES_MANY, 1)),
            ..Touched::default()
        };
        assert_eq!(
            signals(&[much]),
            vec![Signal::Large {
                lines: LINES_MANY + 1,
                files: 1
            }]
        );
    }
}
