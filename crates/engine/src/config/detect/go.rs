//! Go: `go test`, `go vet`, golangci-lint where it is configured. A worktree needs no setup.

use super::{Check, Detected, Files};

const GOLANGCI: [&str; 4] = [
    ".golangci.yml",
    ".golangci.yaml",
    ".golangci.toml",
    ".golangci.json",
];

pub(super) fn detect(files: &Files) -> Detected {
    let mut found = Detected::default();
    let (because, packages) = if files.has("go.work") {
        // `./...` stops at the borders of modules.
        ("go.work", "$(go list -f '{{.Dir}}/...' -m)")
    } else if files.has("go.mod") {
        ("go.mod", "./...")
    } else {
        return found;
    };
    match files.first(&GOLANGCI) {
        Some(config) => found.gate("go", Check::Lint, "golangci-lint run", config),
        None => found.gate("go", Check::Lint, format!("go vet {packages}"), because),
    }
    found.gate("go", Check::Test, format!("go test {packages}"), because);
    found
}
