//! Python: uv, Poetry, PDM, Pipenv or a virtual environment; pytest; linters and type checkers where
//! configured.

use super::{Check, Detected, Files};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    Uv,
    Poetry,
    Pdm,
    Pipenv,
    /// `pip` in a virtual environment of the worktree.
    Venv,
    /// Nothing is declared, so what is installed must suffice.
    System,
}

impl Manager {
    /// The beginning of a command that runs a module's program.
    const fn run(self) -> &'static str {
        match self {
            Self::Uv => "uv run ",
            Self::Poetry => "poetry run ",
            Self::Pdm => "pdm run ",
            Self::Pipenv => "pipenv run ",
            Self::Venv => ".venv/bin/python -m ",
            Self::System => "python3 -m ",
        }
    }
}

/// Lists of requirements that `pip` reads.
const REQUIREMENTS: [&str; 8] = [
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "test-requirements.txt",
    "requirements/dev.txt",
    "requirements/test.txt",
    "requirements/tests.txt",
];
/// The files that may mention pytest.
const MENTIONS: [&str; 4] = ["pyproject.toml", "setup.cfg", "tox.ini", "setup.py"];
/// Names of extras and groups with what tests need.
const TEST_GROUPS: [&str; 5] = ["test", "tests", "testing", "dev", "develop"];

/// A linter or type checker: its module, what it checks, the files that configure it, the words in
/// other files that do so, and its command.
type Tool = (
    &'static str,
    Check,
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
    &'static str,
);

const TOOLS: [Tool; 4] = [
    (
        "ruff",
        Check::Lint,
        &["ruff.toml", ".ruff.toml"],
        &[("pyproject.toml", "[tool.ruff")],
        "ruff check .",
    ),
    (
        "flake8",
        Check::Lint,
        &[".flake8"],
        &[("setup.cfg", "[flake8]"), ("tox.ini", "[flake8]")],
        "flake8",
    ),
    (
        "mypy",
        Check::Types,
        &["mypy.ini", ".mypy.ini"],
        &[("pyproject.toml", "[tool.mypy]"), ("setup.cfg", "[mypy]")],
        "mypy",
    ),
    (
        "pyright",
        Check::Types,
        &["pyrightconfig.json"],
        &[("pyproject.toml", "[tool.pyright]")],
        "pyright",
    ),
];

pub(super) fn detect(files: &Files) -> Detected {
    let mut found = Detected::default();
    let manager = manager(files);
    let mut wanted: Vec<&str> = Vec::new();
    for (name, check, configs, words, command) in TOOLS {
        let by_name = files.first(configs);
        let by_words = || words.iter().find(|(file, words)| files.says(file, words));
        let because = by_name.or_else(|| by_words().map(|(file, _)| *file));
        let Some(because) = because else { continue };
        if found.gates.iter().any(|gate| gate.check == check) {
            continue;
        }
        let command = match name {
            "mypy" => mypy(files),
            _ => command.to_owned(),
        };
        // A program that the lock file does not have is run from an environment of its own.
        let is_alone = manager == Manager::Uv && !mentions(files, name);
        let run = if is_alone { "uvx " } else { manager.run() };
        found.gate("python", check, format!("{run}{command}"), because);
        wanted.push(name);
    }
    if let Some(because) = tested_by(files) {
        let all = manager == Manager::Uv && files.says("pyproject.toml", "[tool.uv.workspace]");
        let command = match all {
            true => "uv run --all-packages pytest".to_owned(),
            false => format!("{}pytest", manager.run()),
        };
        found.gate("python", Check::Test, command, because);
        wanted.push("pytest");
    }
    if !found.gates.is_empty() {
        install(&mut found, files, manager, &wanted);
    }
    found
}

fn manager(files: &Files) -> Manager {
    let pyproject = |words| files.says("pyproject.toml", words);
    if files.has("uv.lock") || pyproject("[tool.uv") {
        Manager::Uv
    } else if files.has("poetry.lock") || pyproject("[tool.poetry]") {
        Manager::Poetry
    } else if files.has("pdm.lock") || pyproject("[tool.pdm") {
        Manager::Pdm
    } else if files.has("Pipfile") {
        Manager::Pipenv
    } else if is_package(files) || !requirements(files).is_empty() {
        Manager::Venv
    } else {
        Manager::System
    }
}

/// Whether pip can install the directory itself.
fn is_package(files: &Files) -> bool {
    let pyproject = |words| files.says("pyproject.toml", words);
    files.has("setup.py") || pyproject("[project]") || pyproject("[build-system]")
}

fn requirements(files: &Files) -> Vec<&'static str> {
    let is_there = |name: &&str| files.texts.contains_key(*name);
    REQUIREMENTS.into_iter().filter(is_there).collect()
}

/// The file that says that there are tests for pytest.
fn tested_by(files: &Files) -> Option<&'static str> {
    let by_name = files.first(&["pytest.ini", "conftest.py"]);
    let mentioned = |name: &&str| files.says(name, "pytest");
    let texts = MENTIONS.into_iter().chain(REQUIREMENTS).chain(["Pipfile"]);
    let by_text = || texts.into_iter().find(mentioned);
    let has_tests = files.has("tests") || files.has("test");
    let packaged = || files.first(&["pyproject.toml", "setup.py", "requirements.txt"]);
    by_name
        .or_else(by_text)
        .or_else(|| packaged().filter(|_| has_tests))
}

/// mypy with what it is to check, where its configuration does not say so.
fn mypy(files: &Files) -> String {
    let text = files.text("pyproject.toml");
    let section = text.split("[tool.mypy]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let ini = files.text("mypy.ini");
    let names = |line: &str| {
        ["files", "packages", "modules"].iter().any(|key| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        })
    };
    if section.lines().chain(ini.lines()).any(names) {
        "mypy".to_owned()
    } else if files.has("src") {
        "mypy src".to_owned()
    } else {
        "mypy .".to_owned()
    }
}

/// Whether the project declares a program among what it needs.
fn mentions(files: &Files, name: &str) -> bool {
    let declared = |text: &str| {
        ["\"", "'", "\n"].iter().any(|before| {
            text.match_indices(&format!("{before}{name}"))
                .any(|(at, found)| {
                    let rest = &text[at + found.len()..];
                    !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.')
                })
        })
    };
    declared(files.text("pyproject.toml"))
        || declared(files.text("setup.cfg"))
        || declared(files.text("setup.py"))
        || requirements(files)
            .into_iter()
            .any(|file| declared(&format!("\n{}", files.text(file))))
}

/// The names in a section of `pyproject.toml` whose list has a word in it.
fn lists_with(files: &Files, section: &str, word: &str) -> Vec<String> {
    let text = files.text("pyproject.toml");
    let Some(body) = text.split(&format!("{section}\n")).nth(1) else {
        return Vec::new();
    };
    let mut lists: Vec<(String, bool)> = Vec::new();
    for line in body.lines().take_while(|line| !line.starts_with('[')) {
        let key = line
            .split_once('=')
            .map(|(key, _)| key.trim().trim_matches('"'));
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match key {
            Some(key) if !line.starts_with([' ', '\t', '"']) && key.chars().all(plain) => {
                lists.push((key.to_owned(), false));
            }
            _ => {}
        }
        if let Some((_, has)) = lists.last_mut() {
            *has |= line.contains(word);
        }
    }
    let has = |(name, has): (String, bool)| has.then_some(name);
    lists.into_iter().filter_map(has).collect()
}

/// The list that tests are likely to need: one of a conventional name before others.
fn best(mut names: Vec<String>) -> Option<String> {
    let rank = |name: &String| {
        let known = TEST_GROUPS.iter().position(|group| group == name);
        known.unwrap_or(TEST_GROUPS.len())
    };
    names.sort_by_key(rank);
    names.into_iter().next()
}

fn install(found: &mut Detected, files: &Files, manager: Manager, wanted: &[&str]) {
    let extra = best(lists_with(
        files,
        "[project.optional-dependencies]",
        "pytest",
    ));
    let group = best(lists_with(files, "[dependency-groups]", "pytest"));
    match manager {
        Manager::Uv => {
            let mut command = "uv sync".to_owned();
            let because = match files.has("uv.lock") {
                true => "uv.lock",
                false => "[tool.uv] in pyproject.toml",
            };
            if files.has("uv.lock") {
                command += " --frozen";
            }
            if files.says("pyproject.toml", "[tool.uv.workspace]") {
                command += " --all-packages";
            }
            match (group, extra) {
                // The group `dev` is there by default.
                (Some(group), _) if group != "dev" => command += &format!(" --group {group}"),
                (None, Some(extra)) => command += &format!(" --extra {extra}"),
                _ => {}
            }
            found.setup(command, because);
        }
        Manager::Poetry => {
            let extras = if extra.is_some() { " --all-extras" } else { "" };
            let because = match files.has("poetry.lock") {
                true => "poetry.lock",
                false => "[tool.poetry] in pyproject.toml",
            };
            found.setup(format!("poetry install --no-interaction{extras}"), because);
        }
        Manager::Pdm => found.setup("pdm install --frozen-lockfile", "pdm in pyproject.toml"),
        Manager::Pipenv if files.has("Pipfile.lock") => {
            found.setup("pipenv sync --dev", "Pipfile.lock");
        }
        Manager::Pipenv => found.setup("pipenv install --dev --skip-lock", "Pipfile"),
        Manager::Venv => venv(found, files, wanted, extra, group),
        Manager::System => {}
    }
}

/// A virtual environment that git ignores, with everything that the project and its gates need.
fn venv(
    found: &mut Detected,
    files: &Files,
    wanted: &[&str],
    extra: Option<String>,
    group: Option<String>,
) {
    let mut parts = Vec::new();
    let mut because = None;
    for file in requirements(files) {
        parts.push(format!("-r {file}"));
        because.get_or_insert(file);
    }
    if is_package(files) {
        let named = ["pyproject.toml", "setup.py"];
        because = files.first(&named).or(because);
        parts.push(match &extra {
            Some(extra) => format!("-e '.[{extra}]'"),
            None => "-e .".to_owned(),
        });
    }
    let mut pip = String::new();
    if let Some(group) = &group {
        // Groups need a newer pip than many virtual environments start with.
        pip = ".venv/bin/pip install --quiet --upgrade pip && ".to_owned();
        parts.push(format!("--group {group}"));
    }
    let has_list = extra.is_some() || group.is_some();
    let in_requirements = |name: &str| {
        let texts = requirements(files).into_iter();
        texts.into_iter().any(|file| files.says(file, name))
    };
    for name in wanted {
        let is_listed = in_requirements(name) || (*name == "pytest" && has_list);
        if !is_listed {
            parts.push((*name).to_owned());
        }
    }
    let command = format!(
        "python3 -m venv .venv && echo '*' > .venv/.gitignore && {pip}.venv/bin/pip install --quiet {}",
        parts.join(" ")
    );
    found.setup(command, because.unwrap_or("requirements.txt"));
}
