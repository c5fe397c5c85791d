//! JavaScript: npm, pnpm, Yarn and Bun; workspaces; ESLint, Biome and TypeScript where configured.

use serde_json::Value;

use super::{Check, Detected, Files};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    Npm,
    Pnpm,
    Yarn,
    Bun,
}

const LOCKS: [(&str, Manager); 6] = [
    ("pnpm-lock.yaml", Manager::Pnpm),
    ("yarn.lock", Manager::Yarn),
    ("bun.lock", Manager::Bun),
    ("bun.lockb", Manager::Bun),
    ("package-lock.json", Manager::Npm),
    ("npm-shrinkwrap.json", Manager::Npm),
];

const ESLINT: [&str; 12] = [
    "eslint.config.js",
    "eslint.config.mjs",
    "eslint.config.cjs",
    "eslint.config.ts",
    "eslint.config.mts",
    ".eslintrc",
    ".eslintrc.js",
    ".eslintrc.cjs",
    ".eslintrc.mjs",
    ".eslintrc.json",
    ".eslintrc.yml",
    ".eslintrc.yaml",
];

/// Scripts by what they check, the best name first.
const SCRIPTS: [(Check, &[&str]); 4] = [
    (
        Check::Format,
        &["format:check", "check:format", "check-format", "fmt:check"],
    ),
    (Check::Lint, &["lint", "lint:js", "eslint"]),
    (
        Check::Types,
        &[
            "typecheck",
            "type-check",
            "check-types",
            "types:check",
            "tsc",
        ],
    ),
    (Check::Test, &["test", "test:ci", "test:unit", "tests"]),
];

impl Manager {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Bun => "bun",
        }
    }

    /// Runs a program of the project's dependencies.
    const fn exec(self) -> &'static str {
        match self {
            Self::Npm => "npx --no-install",
            Self::Pnpm => "pnpm exec",
            Self::Yarn => "yarn run",
            Self::Bun => "bunx",
        }
    }

    /// Installs the dependencies and writes no lock file.
    const fn install(self, is_locked: bool, is_berry: bool) -> &'static str {
        match (self, is_locked) {
            (Self::Npm, true) => "npm ci",
            (Self::Npm, false) => "npm install --no-package-lock",
            (Self::Pnpm, true) => "pnpm install --frozen-lockfile",
            (Self::Pnpm, false) => "pnpm install --no-lockfile",
            (Self::Yarn, true) if is_berry => "yarn install --immutable",
            (Self::Yarn, true) => "yarn install --frozen-lockfile",
            (Self::Yarn, false) if is_berry => "yarn install",
            (Self::Yarn, false) => "yarn install --no-lockfile",
            (Self::Bun, true) => "bun install --frozen-lockfile",
            (Self::Bun, false) => "bun install --no-save",
        }
    }
}

pub(super) fn detect(files: &Files) -> Detected {
    let mut found = Detected::default();
    let Ok(package) = serde_json::from_str::<Value>(files.text("package.json")) else {
        return found;
    };
    if !package.is_object() {
        return found;
    }
    let manager = manager(files, &package);
    let is_workspace = files.has("pnpm-workspace.yaml") || !package["workspaces"].is_null();
    install(&mut found, files, &package, manager, is_workspace);
    let tool = manager.as_str();
    for (check, names) in SCRIPTS {
        if let Some(name) = names.iter().find(|name| is_usable(&package, name)) {
            let text = package["scripts"][*name].as_str().unwrap_or_default();
            // These ask for a key where they do not know that nobody is there.
            let asks = text.contains("react-scripts test") || text.contains("ng test");
            let ci = if asks { "CI=true " } else { "" };
            let because = format!("scripts.{name} in package.json");
            found.gate(tool, check, format!("{ci}{tool} run {name}"), because);
        }
    }
    configured(&mut found, files, &package, manager);
    if is_workspace && !found.tests() {
        let command = match manager {
            Manager::Pnpm => "pnpm -r --if-present run test",
            Manager::Yarn if files.has(".yarnrc.yml") => "yarn workspaces foreach -A run test",
            Manager::Yarn => "yarn workspaces run test",
            Manager::Bun => "bun run --filter '*' test",
            Manager::Npm => "npm run test --workspaces --if-present",
        };
        let because = match package["workspaces"].is_null() {
            true => "pnpm-workspace.yaml",
            false => "workspaces in package.json",
        };
        found.gate(tool, Check::Test, command, because);
    }
    found.gates.sort_by_key(|gate| gate.check);
    found
}

/// The package manager that the manifest names, or else the one whose lock file is there.
fn manager(files: &Files, package: &Value) -> Manager {
    let named = package["packageManager"].as_str().unwrap_or_default();
    let named = named.split('@').next().unwrap_or_default();
    let all = [Manager::Npm, Manager::Pnpm, Manager::Yarn, Manager::Bun];
    let by_lock = || {
        let lock = LOCKS.into_iter().find(|(lock, _)| files.has(lock));
        lock.map(|(_, manager)| manager)
    };
    let by_workspace = || files.has("pnpm-workspace.yaml").then_some(Manager::Pnpm);
    all.into_iter()
        .find(|manager| manager.as_str() == named)
        .or_else(by_lock)
        .or_else(by_workspace)
        .unwrap_or(Manager::Npm)
}

fn install(
    found: &mut Detected,
    files: &Files,
    package: &Value,
    manager: Manager,
    is_workspace: bool,
) {
    let lock = LOCKS
        .into_iter()
        .find(|(lock, of)| *of == manager && files.has(lock));
    let needs = |key: &&str| package[*key].as_object().is_some_and(|it| !it.is_empty());
    let kinds = ["dependencies", "devDependencies", "optionalDependencies"];
    let listed = kinds.iter().find(|key| needs(key));
    let because = match (lock, listed) {
        (Some((lock, _)), _) => lock.to_owned(),
        (None, Some(key)) => format!("{key} in package.json"),
        (None, None) if is_workspace => "the workspace's packages".to_owned(),
        (None, None) => return,
    };
    let is_berry = files.has(".yarnrc.yml");
    found.setup(manager.install(lock.is_some(), is_berry), because);
}

/// Whether a script is there and ends by itself.
fn is_usable(package: &Value, name: &str) -> bool {
    let text = package["scripts"][name].as_str().unwrap_or_default();
    let watches = text
        .split_whitespace()
        .any(|word| matches!(word, "--watch" | "--watchAll" | "watch" | "--ui"));
    // What `npm init` writes is no test.
    !text.trim().is_empty() && !text.contains("no test specified") && !watches
}

/// Checks that are configured and depended on, and that no script runs.
fn configured(found: &mut Detected, files: &Files, package: &Value, manager: Manager) {
    let depends = |name: &str| {
        let kinds = ["devDependencies", "dependencies"];
        kinds.iter().any(|kind| !package[*kind][name].is_null())
    };
    let exec = manager.exec();
    let tool = manager.as_str();
    let is_checked = |found: &Detected, check| found.gates.iter().any(|gate| gate.check == check);
    let in_a_script = |program: &str| {
        let scripts = package["scripts"].as_object();
        let runs = |script: &Value| {
            let words = script.as_str().unwrap_or_default();
            words.split_whitespace().any(|word| word == program)
        };
        scripts.is_some_and(|scripts| scripts.values().any(runs))
    };
    if !is_checked(found, Check::Lint) {
        let biome = files.first(&["biome.json", "biome.jsonc"]);
        let eslint = files.first(&ESLINT);
        if let Some(config) = biome.filter(|_| depends("@biomejs/biome")) {
            found.gate(tool, Check::Lint, format!("{exec} biome ci ."), config);
        } else if let Some(config) = eslint.filter(|_| depends("eslint") && !in_a_script("eslint"))
        {
            found.gate(tool, Check::Lint, format!("{exec} eslint ."), config);
        }
    }
    let typescript = files.has("tsconfig.json") && depends("typescript") && !in_a_script("tsc");
    if !is_checked(found, Check::Types) && typescript {
        let command = format!("{exec} tsc --noEmit");
        found.gate(tool, Check::Types, command, "tsconfig.json");
    }
}
