//! Words about gates: what kind of check one is, and when it runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use woodward_core::GateName;
use woodward_core::gate::GateKind;

use super::command::Command;

/// What kind of check a gate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KindFile {
    /// Runs tests.
    Test,
    /// Reads the code.
    Lint,
    /// Builds it.
    Build,
    /// Anything else.
    Custom,
}

impl From<KindFile> for GateKind {
    fn from(kind: KindFile) -> Self {
        match kind {
            KindFile::Test => Self::Test,
            KindFile::Lint => Self::Lint,
            KindFile::Build => Self::Build,
            KindFile::Custom => Self::Custom,
        }
    }
}

/// When a gate runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Condition {
    /// For every change.
    Always,
    /// For changes to its `paths`.
    Paths,
}

/// What is done about a task that leaves the paths it was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeRule {
    /// It is pointed out on the review.
    #[default]
    Report,
    /// It goes back to the agent like a failing gate.
    Refuse,
}

/// Whether a failure of such a gate is looked at once more: compilers and linters do not flake.
pub(super) const fn is_rerun(kind: GateKind) -> bool {
    matches!(kind, GateKind::Test | GateKind::Custom)
}

const TEST_WORDS: &[&str] = &[
    "test", "tests", "nextest", "pytest", "jest", "vitest", "mocha", "tox", "rspec", "phpunit",
    "ctest",
];
const LINT_WORDS: &[&str] = &[
    "lint",
    "clippy",
    "fmt",
    "eslint",
    "ruff",
    "mypy",
    "pyright",
    "tsc",
    "vet",
    "prettier",
    "golangci-lint",
    "shellcheck",
    "black",
    "flake8",
    "biome",
];
const BUILD_WORDS: &[&str] = &["build", "compile", "check"];

/// What kind of check a gate is by the look of its name and its command.
pub(super) fn kind_of(name: &GateName, command: &Command) -> GateKind {
    let shown = command.shown();
    let text = format!("{name} {shown}");
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || matches!(c, '/' | ';' | '&' | '|' | ':' | '"' | '\''))
        .collect();
    let any = |known: &[&str]| words.iter().any(|word| known.contains(word));
    if any(TEST_WORDS) {
        GateKind::Test
    } else if any(LINT_WORDS) {
        GateKind::Lint
    } else if any(BUILD_WORDS) {
        GateKind::Build
    } else {
        GateKind::Custom
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_guessed_from_what_is_said() {
        let kind = |name: &str, command: &str| {
            let name = name.parse().unwrap();
            kind_of(&name, &Command::Shell(command.into()))
        };
        assert_eq!(kind("unit", "cargo test --workspace"), GateKind::Test);
        assert_eq!(kind("js", "npm run test:unit"), GateKind::Test);
        assert_eq!(kind("style", "cargo clippy -- -D warnings"), GateKind::Lint);
        assert_eq!(kind("compile", "cargo build"), GateKind::Build);
        assert_eq!(kind("proof", "sh check.sh"), GateKind::Custom);
        assert_eq!(kind("contest", "./attestation"), GateKind::Custom);
    }
}
