//! Ecosystems for which one row says everything.

use super::{Check, Detected, Files};

/// One ecosystem: the files that tell it, what a new worktree needs, how it is tested.
struct Row {
    tool: &'static str,
    markers: &'static [&'static str],
    setup: Option<&'static str>,
    lint: Option<(&'static str, &'static str)>,
    test: &'static str,
}

const fn row(tool: &'static str, markers: &'static [&'static str], test: &'static str) -> Row {
    Row {
        tool,
        markers,
        setup: None,
        lint: None,
        test,
    }
}

const ROWS: [Row; 14] = [
    Row {
        setup: Some("mix deps.get"),
        lint: Some((".credo.exs", "mix credo")),
        ..row("elixir", &["mix.exs"], "mix test")
    },
    row("gradle", &["gradlew"], "./gradlew test"),
    row(
        "gradle",
        &["build.gradle", "build.gradle.kts"],
        "gradle test",
    ),
    row("maven", &["mvnw"], "./mvnw --batch-mode test"),
    row("maven", &["pom.xml"], "mvn --batch-mode test"),
    row("sbt", &["build.sbt"], "sbt test"),
    row("deno", &["deno.json", "deno.jsonc"], "deno test"),
    row("swift", &["Package.swift"], "swift test"),
    row("zig", &["build.zig"], "zig build test"),
    row("gleam", &["gleam.toml"], "gleam test"),
    row("dune", &["dune-project"], "dune test"),
    row("stack", &["stack.yaml"], "stack test"),
    row("cabal", &["cabal.project"], "cabal test all"),
    Row {
        setup: Some("dart pub get"),
        lint: Some(("analysis_options.yaml", "dart analyze")),
        ..row("dart", &["pubspec.yaml"], "dart test")
    },
];

pub(super) fn detect(files: &Files) -> Detected {
    let mut found = Detected::default();
    let mut tools: Vec<&str> = Vec::new();
    for row in &ROWS {
        let Some(marker) = files.first(row.markers) else {
            continue;
        };
        // The wrapper that a project brings along comes before an installed program.
        let is_wrapped = match row.tool {
            "maven" | "gradle" => tools.contains(&row.tool),
            _ => false,
        };
        if is_wrapped {
            continue;
        }
        tools.push(row.tool);
        if let Some(command) = row.setup {
            found.setup(command, marker);
        }
        if let Some((config, command)) = row.lint
            && files.has(config)
        {
            found.gate(row.tool, Check::Lint, command, config);
        }
        found.gate(row.tool, Check::Test, row.test, marker);
    }
    let dotnet = |name: &&String| name.ends_with(".sln") || name.ends_with(".csproj");
    if let Some(solution) = files.names.iter().find(dotnet) {
        found.gate("dotnet", Check::Test, "dotnet test", solution);
    }
    found
}
