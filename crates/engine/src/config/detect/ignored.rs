//! Files that git ignores: those that every worktree needs, and those that it may need.

/// Ignored entries that a command makes anew, or that belong to an editor or a machine.
const REBUILT: [&str; 30] = [
    ".DS_Store",
    ".cache",
    ".coverage",
    ".direnv",
    ".eggs",
    ".eslintcache",
    ".gradle",
    ".idea",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nyc_output",
    ".parcel-cache",
    ".pytest_cache",
    ".ruff_cache",
    ".svelte-kit",
    ".tox",
    ".turbo",
    ".vscode",
    "__pycache__",
    "_build",
    "build",
    "coverage",
    "dist",
    "htmlcov",
    "log",
    "logs",
    "out",
    "target",
    "tmp",
];
/// Directories that a package manager fills.
const DEPENDENCIES: [&str; 5] = [".venv", "deps", "node_modules", "vendor", "venv"];
/// The most entries that are proposed.
const COPIED_MAX: usize = 20;

/// The environment files among ignored entries, such as `.env` and `apps/web/.env.local`. Every
/// worktree needs them.
pub fn env_files(ignored: &[String]) -> Vec<String> {
    let is_env = |path: &&String| {
        let name = last(path);
        name == ".env" || name == ".envrc" || name.starts_with(".env.")
    };
    let found = ignored.iter().filter(is_env).filter(|path| is_plain(path));
    found.take(COPIED_MAX).cloned().collect()
}

/// The ignored entries that a gate may need besides. Directories of package managers only where
/// `dependencies` says so: where setup makes them, a copy would be in its way.
pub fn may_be_needed(ignored: &[String], dependencies: bool) -> Vec<String> {
    let env = env_files(ignored);
    let is_rebuilt = |path: &str| {
        path.split('/').any(|part| {
            REBUILT.contains(&part)
                || part.ends_with(".log")
                || part.ends_with(".pyc")
                || part.ends_with(".egg-info")
                || part.ends_with(".tsbuildinfo")
        })
    };
    let is_dependency = |path: &str| path.split('/').any(|part| DEPENDENCIES.contains(&part));
    ignored
        .iter()
        .map(|path| path.trim_end_matches('/'))
        .filter(|path| !is_rebuilt(path) && is_plain(path))
        .filter(|path| dependencies || !is_dependency(path))
        .filter(|path| !env.iter().any(|env| env == path))
        .take(COPIED_MAX)
        .map(str::to_owned)
        .collect()
}

fn last(path: &str) -> &str {
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path)
}

/// Whether `worktree.copy` takes a name literally.
fn is_plain(path: &str) -> bool {
    !path.contains('*') && !path.chars().any(char::is_control)
}
