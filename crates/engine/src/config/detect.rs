//! Which gates a project is likely to want, seen from the names and a few small files at its root,
//! and which agents can work on it.
//!
//! It only proposes. Whoever asks runs each proposal once and keeps those that pass.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::Path;

use woodward_agents::Facts;
use woodward_agents::catalog::KNOWN;
use woodward_core::{GateName, Millis};

use super::{Command, GateSpec};
use crate::agent::available::find;

/// The files whose text says more than their name.
const READ: [&str; 9] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "Makefile",
    "makefile",
];

/// The most that is read of one file.
const FILE_MAX: u64 = 256 << 10;

/// The most names that are looked at.
const NAMES_MAX: usize = 10_000;

/// The most gates that are proposed.
const GATES_MAX: usize = 4;

/// What is at the root of a checkout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The names of files and directories.
    pub names: BTreeSet<String>,
    /// The text of those that matter.
    pub texts: BTreeMap<String, String>,
}

impl Files {
    /// Looks at a directory. Files that can't be read count by their name only.
    pub fn load(root: &Path) -> io::Result<Self> {
        let mut files = Self::default();
        for entry in std::fs::read_dir(root)?.take(NAMES_MAX) {
            if let Ok(name) = entry?.file_name().into_string() {
                files.names.insert(name);
            }
        }
        for name in READ.into_iter().filter(|name| files.names.contains(*name)) {
            let path = root.join(name);
            // A pipe of that name would never end.
            if !path.is_file() {
                continue;
            }
            let mut text = String::new();
            let file = std::fs::File::open(path);
            if file.is_ok_and(|file| file.take(FILE_MAX).read_to_string(&mut text).is_ok()) {
                files.texts.insert(name.to_owned(), text);
            }
        }
        Ok(files)
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    fn says(&self, name: &str, words: &str) -> bool {
        self.text(name).contains(words)
    }
}

/// The known agent programs on a search path, best first: those that were tested before others.
pub fn installed(path: &str) -> Vec<&'static Facts> {
    let there = |facts: &&&'static Facts| find(facts.program, path).is_some();
    let (tested, others): (Vec<_>, Vec<_>) = KNOWN.iter().partition(|facts| facts.tested.is_some());
    tested
        .iter()
        .chain(&others)
        .filter(|facts| there(facts))
        .copied()
        .collect()
}

/// A gate that a project is likely to want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The gate.
    pub gate: GateSpec,
    /// What made it likely, such as `Cargo.toml`.
    pub because: String,
}

/// A gate on its way to be proposed.
struct Idea {
    tool: &'static str,
    name: &'static str,
    command: String,
    because: String,
}

/// The gates that a project is likely to want: cheap ones first, at most four, tests before others.
pub fn propose(files: &Files) -> Vec<Proposal> {
    let mut ideas = cargo(files);
    ideas.extend(node(files));
    ideas.extend(python(files));
    ideas.extend(go(files));
    if !ideas.iter().any(|idea| idea.name == "test") {
        ideas.extend(make(files));
    }
    while ideas.len() > GATES_MAX {
        let spare = ideas.iter().rposition(|idea| idea.name != "test");
        ideas.remove(spare.unwrap_or(ideas.len() - 1));
    }
    let mut taken: BTreeSet<GateName> = BTreeSet::new();
    let mut proposals = Vec::new();
    for idea in ideas {
        let name = |text: String| text.parse::<GateName>().ok();
        let gate = name(idea.name.to_owned())
            .filter(|plain| !taken.contains(plain))
            .or_else(|| name(format!("{}-{}", idea.tool, idea.name)));
        let Some(gate) = gate.filter(|gate| taken.insert(gate.clone())) else {
            continue;
        };
        proposals.push(Proposal {
            gate: GateSpec::new(gate, Command::Shell(idea.command), Millis::from_mins(10)),
            because: idea.because,
        });
    }
    proposals
}

fn cargo(files: &Files) -> Vec<Idea> {
    if !files.has("Cargo.toml") {
        return Vec::new();
    }
    let is_workspace = files.says("Cargo.toml", "[workspace");
    let workspace = if is_workspace { " --workspace" } else { "" };
    let idea = |name, command, because: &str| Idea {
        tool: "cargo",
        name,
        command,
        because: because.to_owned(),
    };
    let mut ideas = Vec::new();
    if let Some(style) = ["rustfmt.toml", ".rustfmt.toml"]
        .iter()
        .find(|n| files.has(n))
    {
        ideas.push(idea("format", "cargo fmt --all --check".to_owned(), style));
    }
    let linted = ["clippy.toml", ".clippy.toml"]
        .into_iter()
        .find(|name| files.has(name));
    let lints = files
        .says("Cargo.toml", "lints")
        .then_some("lints in Cargo.toml");
    if let Some(because) = linted.or(lints) {
        let command = format!("cargo clippy{workspace} --all-targets -- -D warnings");
        ideas.push(idea("lint", command, because));
    }
    let because = if is_workspace {
        "a workspace in Cargo.toml"
    } else {
        "Cargo.toml"
    };
    ideas.push(idea("test", format!("cargo test{workspace}"), because));
    ideas
}

fn node(files: &Files) -> Vec<Idea> {
    let Ok(package) = serde_json::from_str::<serde_json::Value>(files.text("package.json")) else {
        return Vec::new();
    };
    let named = package["packageManager"].as_str().unwrap_or_default();
    let named = named.split('@').next().unwrap_or_default();
    let locks = [
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
        ("package-lock.json", "npm"),
    ];
    let by_lock = || {
        locks
            .into_iter()
            .find(|(lock, _)| files.has(lock))
            .map(|(_, tool)| tool)
    };
    let tool = ["npm", "pnpm", "yarn", "bun"]
        .into_iter()
        .find(|tool| *tool == named)
        .or_else(by_lock)
        .unwrap_or("npm");
    let script = |name: &str| {
        let text = package["scripts"][name].as_str().unwrap_or_default();
        // What `npm init` writes is no test.
        !text.trim().is_empty() && !text.contains("no test specified")
    };
    let idea = |name, command, because| Idea {
        tool,
        name,
        command,
        because,
    };
    let mut ideas = Vec::new();
    for (name, wanted) in [("lint", "lint"), ("types", "typecheck"), ("test", "test")] {
        if script(wanted) {
            let command = format!("{tool} run {wanted}");
            let because = format!("scripts.{wanted} in package.json");
            ideas.push(idea(name, command, because));
        }
    }
    let is_workspace = files.has("pnpm-workspace.yaml") || !package["workspaces"].is_null();
    if is_workspace && !script("test") {
        let command = match tool {
            "pnpm" => "pnpm -r --if-present run test",
            "yarn" if files.has(".yarnrc.yml") => "yarn workspaces foreach -A run test",
            "yarn" => "yarn workspaces run test",
            "bun" => "bun run --filter '*' test",
            _ => "npm run test --workspaces --if-present",
        };
        let because = "workspaces in package.json".to_owned();
        ideas.push(idea("test", command.to_owned(), because));
    }
    ideas
}

fn python(files: &Files) -> Vec<Idea> {
    let by_name = ["pytest.ini", "conftest.py"]
        .into_iter()
        .find(|name| files.has(name));
    let by_text = READ
        .into_iter()
        .filter(|name| !name.ends_with("akefile"))
        .find(|name| files.says(name, "pytest"));
    let packaged = ["pyproject.toml", "setup.py"]
        .into_iter()
        .find(|name| files.has(name));
    let by_tests = packaged.filter(|_| files.has("tests") || files.has("test"));
    let Some(because) = by_name.or(by_text).or(by_tests) else {
        return Vec::new();
    };
    let command = if files.has("uv.lock") || files.says("pyproject.toml", "[tool.uv") {
        match files.says("pyproject.toml", "[tool.uv.workspace]") {
            true => "uv run --all-packages pytest",
            false => "uv run pytest",
        }
    } else if files.has("poetry.lock") {
        "poetry run pytest"
    } else {
        "python3 -m pytest"
    };
    vec![Idea {
        tool: "python",
        name: "test",
        command: command.to_owned(),
        because: because.to_owned(),
    }]
}

fn go(files: &Files) -> Vec<Idea> {
    let (because, packages) = if files.has("go.work") {
        // `./...` stops at the borders of modules.
        ("go.work", "$(go list -f '{{.Dir}}/...' -m)")
    } else if files.has("go.mod") {
        ("go.mod", "./...")
    } else {
        return Vec::new();
    };
    ["vet", "test"]
        .map(|name| Idea {
            tool: "go",
            name,
            command: format!("go {name} {packages}"),
            because: because.to_owned(),
        })
        .into()
}

fn make(files: &Files) -> Vec<Idea> {
    let text = ["Makefile", "makefile"]
        .map(|name| files.text(name))
        .concat();
    let has_target = |target: &str| {
        text.lines().any(|line| {
            let rest = line.strip_prefix(target).map(str::trim_start);
            rest.is_some_and(|rest| rest.starts_with(':') && !rest.starts_with(":="))
        })
    };
    let target = ["test", "check"]
        .into_iter()
        .find(|target| has_target(target));
    let idea = |target| Idea {
        tool: "make",
        name: "test",
        command: format!("make {target}"),
        because: format!("the target {target} in the Makefile"),
    };
    target.map(idea).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        let mut files = Files::default();
        for (name, text) in entries {
            files.names.insert((*name).to_owned());
            files.texts.insert((*name).to_owned(), (*text).to_owned());
        }
        files
    }

    #[test]
    fn programs_that_were_tested_come_before_others() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        assert!(installed(path).is_empty());
        for program in ["amp", "pi", "claude"] {
            let file = dir.path().join(program);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let names: Vec<_> = installed(path).iter().map(|facts| facts.name).collect();
        assert_eq!(names, ["claude-code", "pi", "amp"]);
    }

    fn proposed(entries: &[(&str, &str)]) -> Vec<String> {
        let shown = |p: Proposal| format!("{}: {}", p.gate.name, p.gate.command.shown());
        propose(&files(entries)).into_iter().map(shown).collect()
    }

    #[test]
    fn a_cargo_project_is_tested_as_a_whole() {
        assert_eq!(
            proposed(&[("Cargo.toml", "[package]")]),
            ["test: cargo test"]
        );
        let workspace = "[workspace]\nmembers = []\n[workspace.lints.rust]\n";
        assert_eq!(
            proposed(&[("Cargo.toml", workspace), ("rustfmt.toml", "")]),
            [
                "format: cargo fmt --all --check",
                "lint: cargo clippy --workspace --all-targets -- -D warnings",
                "test: cargo test --workspace",
            ]
        );
    }

    #[test]
    fn the_lock_file_tells_the_package_manager() {
        let package = r#"{ "scripts": { "test": "vitest", "lint": "eslint ." } }"#;
        for (lock, tool) in [
            ("package-lock.json", "npm"),
            ("pnpm-lock.yaml", "pnpm"),
            ("yarn.lock", "yarn"),
            ("bun.lock", "bun"),
            ("README.md", "npm"),
        ] {
            let lines = proposed(&[("package.json", package), (lock, "")]);
            let expected = [
                format!("lint: {tool} run lint"),
                format!("test: {tool} run test"),
            ];
            assert_eq!(lines, expected);
        }
        let named = r#"{ "packageManager": "pnpm@9.1.0", "scripts": { "test": "x" } }"#;
        let lines = proposed(&[("package.json", named), ("yarn.lock", "")]);
        assert_eq!(lines, ["test: pnpm run test"]);
    }

    #[test]
    fn a_package_without_tests_has_no_test_gate() {
        let fresh = r#"{ "scripts": { "test": "echo \"Error: no test specified\" && exit 1" } }"#;
        for package in [
            fresh,
            "{}",
            "not json",
            "[]",
            r#"{ "scripts": { "test": 3 } }"#,
        ] {
            assert_eq!(proposed(&[("package.json", package)]), [""; 0], "{package}");
        }
        let workspace = r#"{ "workspaces": ["packages/*"] }"#;
        let lines = proposed(&[("package.json", workspace)]);
        assert_eq!(lines, ["test: npm run test --workspaces --if-present"]);
    }

    #[test]
    fn pytest_runs_where_the_project_keeps_it() {
        let pyproject = ("pyproject.toml", "[tool.pytest.ini_options]");
        assert_eq!(proposed(&[pyproject]), ["test: python3 -m pytest"]);
        assert_eq!(
            proposed(&[pyproject, ("uv.lock", "")]),
            ["test: uv run pytest"]
        );
        assert_eq!(
            proposed(&[pyproject, ("poetry.lock", "")]),
            ["test: poetry run pytest"]
        );
        assert_eq!(
            proposed(&[("setup.py", ""), ("tests", "")]),
            ["test: python3 -m pytest"]
        );
        assert_eq!(proposed(&[("pyproject.toml", "[project]")]), [""; 0]);
    }

    #[test]
    fn go_and_make_have_their_words() {
        let go = ["vet: go vet ./...", "test: go test ./..."];
        assert_eq!(proposed(&[("go.mod", "")]), go);
        let makefile = "all: test\ntest: build\n\tcc x.c\n";
        assert_eq!(proposed(&[("Makefile", makefile)]), ["test: make test"]);
        assert_eq!(proposed(&[("Makefile", "check:\n")]), ["test: make check"]);
        assert_eq!(proposed(&[("Makefile", "test := 3\ntests:\n")]), [""; 0]);
        let both = [("Makefile", makefile), ("go.mod", "")];
        assert_eq!(proposed(&both), go, "make would only run the same again");
    }

    #[test]
    fn a_project_of_many_kinds_keeps_its_tests() {
        let package = r#"{ "scripts": { "test": "x", "lint": "x", "typecheck": "x" } }"#;
        let lines = proposed(&[
            ("Cargo.toml", "[lints.rust]"),
            ("rustfmt.toml", ""),
            ("package.json", package),
            ("pytest.ini", ""),
        ]);
        assert_eq!(
            lines,
            [
                "format: cargo fmt --all --check",
                "test: cargo test",
                "npm-test: npm run test",
                "python-test: python3 -m pytest",
            ]
        );
    }

    #[test]
    fn a_directory_is_looked_at_without_being_stopped_by_odd_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("Makefile"), "test:\n\ttrue\n").unwrap();
        std::fs::write(dir.path().join("package.json"), [0xff, 0xfe]).unwrap();
        std::fs::create_dir(dir.path().join("Cargo.toml")).unwrap();
        let seen = Files::load(dir.path()).unwrap();
        assert_eq!(seen.texts.keys().collect::<Vec<_>>(), ["Makefile"]);
        assert!(seen.has("package.json") && seen.has("Cargo.toml"));
        assert!(Files::load(&dir.path().join("absent")).is_err());
    }
}
