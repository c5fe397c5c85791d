//! Rust: `cargo`. A worktree needs no setup.

use super::{Check, Detected, Files};

pub(super) fn detect(files: &Files) -> Detected {
    let mut found = Detected::default();
    if !files.has("Cargo.toml") {
        return found;
    }
    let is_workspace = files.says("Cargo.toml", "[workspace");
    let workspace = if is_workspace { " --workspace" } else { "" };
    if let Some(style) = files.first(&["rustfmt.toml", ".rustfmt.toml"]) {
        found.gate("cargo", Check::Format, "cargo fmt --all --check", style);
    }
    let linted = files.first(&["clippy.toml", ".clippy.toml"]);
    let lints = files
        .says("Cargo.toml", "lints")
        .then_some("lints in Cargo.toml");
    if let Some(because) = linted.or(lints) {
        let command = format!("cargo clippy{workspace} --all-targets -- -D warnings");
        found.gate("cargo", Check::Lint, command, because);
    }
    let because = match is_workspace {
        true => "a workspace in Cargo.toml",
        false => "Cargo.toml",
    };
    let command = format!("cargo test{workspace}");
    found.gate("cargo", Check::Test, command, because);
    found
}
