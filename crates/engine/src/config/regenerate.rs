//! Files that a command writes anew instead of anybody merging them: lock files and generated ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use woodward_core::Millis;
use woodward_core::reaction::pattern;

use super::FILE_NAME;
use super::check::Findings;
use super::command::Command;
use super::detect::Files;
use super::error::printable;
use super::tree::Step::{Item, Key};
use super::values::TimeSpan;

const RULES_MAX: usize = 32;
const PATHS_MAX: usize = 64;

/// Files that a command writes anew when they conflict.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Regenerate")]
pub(super) struct RegenerateFile {
    /// The files, as patterns: `Cargo.lock`, `gen/**`.
    pub(super) paths: Vec<String>,
    /// What writes them, in a clean checkout of the merged result.
    pub(super) command: Command,
    /// The longest that it may take.
    #[serde(default = "five_minutes")]
    pub(super) timeout: TimeSpan,
}

const fn five_minutes() -> TimeSpan {
    TimeSpan(Millis::from_mins(5))
}

/// Files that a command writes anew when they conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regenerate {
    /// Patterns of the files.
    pub paths: Vec<String>,
    /// What writes them.
    pub command: Command,
    /// The longest that it may take.
    pub timeout: Millis,
}

impl Regenerate {
    /// Whether it writes a file.
    pub fn names(&self, file: &str) -> bool {
        self.paths.iter().any(|it| pattern::matches(it, file))
    }
}

pub(super) fn checked(rules: Vec<RegenerateFile>, findings: &mut Findings<'_>) -> Vec<Regenerate> {
    if rules.len() > RULES_MAX {
        let what = format!("{} rules are too many: at most {RULES_MAX}", rules.len());
        findings.wrong(&[Key("regenerate")], what, "join some of them");
        return Vec::new();
    }
    for (at, rule) in rules.iter().enumerate() {
        let paths = [Key("regenerate"), Item(at), Key("paths")];
        if rule.paths.is_empty() || rule.paths.len() > PATHS_MAX {
            let what = format!("it needs from 1 to {PATHS_MAX} paths");
            findings.wrong(&paths, what, "name the files that the command writes");
        }
        for (nth, path) in rule.paths.iter().enumerate() {
            let place = [Key("regenerate"), Item(at), Key("paths"), Item(nth)];
            let odd = |part: &str| part == "." || part == "..";
            if path.is_empty() || path.starts_with('/') || path.split('/').any(odd) {
                let what = format!(
                    "`{}` is not a path inside the repository",
                    printable(path, 60)
                );
                let hint = "write it from the repository's root, such as `Cargo.lock`";
                findings.wrong(&place, what, hint);
            } else if pattern::matches(path, FILE_NAME) {
                let what = format!("`{}` names {FILE_NAME} itself", printable(path, 60));
                let hint = "name the generated files, such as `gen/**`";
                findings.wrong(&place, what, hint);
            }
        }
    }
    let rule = |rule: RegenerateFile| Regenerate {
        paths: rule.paths,
        command: rule.command,
        timeout: rule.timeout.0,
    };
    rules.into_iter().map(rule).collect()
}

/// Lock files at the root of a checkout, with what writes each of them anew and changes nothing else.
const LOCKS: [(&str, &str); 7] = [
    ("Cargo.lock", "cargo update --workspace --offline"),
    (
        "package-lock.json",
        "npm install --package-lock-only --ignore-scripts",
    ),
    (
        "pnpm-lock.yaml",
        "pnpm install --lockfile-only --ignore-scripts",
    ),
    ("uv.lock", "uv lock"),
    ("poetry.lock", "poetry lock"),
    ("Gemfile.lock", "bundle lock"),
    ("composer.lock", "composer update --lock --no-install"),
];

/// The part of `woodward.yaml` that `init` proposes for the lock files that are there; empty for none.
pub fn proposed(files: &Files) -> String {
    let there = LOCKS.iter().filter(|(lock, _)| files.names.contains(*lock));
    let rules: String = there
        .map(|(lock, command)| format!("  - {{ paths: [{lock}], command: \"{command}\" }}\n"))
        .collect();
    if rules.is_empty() {
        return rules;
    }
    format!(
        "\n# Files that nobody merges: where only these conflict, the command writes them anew.\nregenerate:\n{rules}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn refused(text: &str) -> String {
        match Config::parse(text, FILE_NAME) {
            Ok(_) => panic!("accepted: {text}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_init_proposes_reads_back() {
        let mut files = Files::default();
        assert_eq!(proposed(&files), "");
        for (lock, _) in LOCKS {
            files.names.insert(lock.to_owned());
        }
        let config = Config::parse(&proposed(&files), FILE_NAME).unwrap();
        assert_eq!(config.regenerate.len(), LOCKS.len());
        assert!(config.regenerate[0].names("tools/Cargo.lock"));
        assert_eq!(config.regenerate[0].timeout, Millis::from_mins(5));
    }

    #[test]
    fn what_would_take_too_much_is_refused_at_its_place() {
        insta::assert_snapshot!(refused("regenerate:\n  - { paths: [\"**\", /etc], command: x }\n  - { paths: [], command: x }\n"), @r#"
        woodward.yaml:2:15: regenerate[0].paths[0]: `**` names woodward.yaml itself
           |
         2 |   - { paths: ["**", /etc], command: x }
           |               ^^^^
           = hint: name the generated files, such as `gen/**`

        woodward.yaml:2:21: regenerate[0].paths[1]: `/etc` is not a path inside the repository
           |
         2 |   - { paths: ["**", /etc], command: x }
           |                     ^^^^
           = hint: write it from the repository's root, such as `Cargo.lock`

        woodward.yaml:3:14: regenerate[1].paths: it needs from 1 to 64 paths
           |
         3 |   - { paths: [], command: x }
           |              ^
           = hint: name the files that the command writes
        "#);
    }
}
