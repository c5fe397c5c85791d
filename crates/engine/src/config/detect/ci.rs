//! Commands of CI files that look like tests or linters.
//!
//! The text is untrusted: only single commands of known programs without any shell syntax are
//! proposed, and nothing here runs them.

use super::super::tree::{Node, Value};
use super::{Candidate, Check, Files};

/// How known commands begin, and what they check.
const KNOWN: [(&str, Check); 63] = [
    ("npm test", Check::Test),
    ("npm run test", Check::Test),
    ("npm run lint", Check::Lint),
    ("npm run typecheck", Check::Types),
    ("npm run type-check", Check::Types),
    ("npx eslint", Check::Lint),
    ("npx tsc --noEmit", Check::Types),
    ("npx vitest run", Check::Test),
    ("npx jest", Check::Test),
    ("pnpm test", Check::Test),
    ("pnpm run test", Check::Test),
    ("pnpm lint", Check::Lint),
    ("pnpm run lint", Check::Lint),
    ("pnpm typecheck", Check::Types),
    ("yarn test", Check::Test),
    ("yarn lint", Check::Lint),
    ("bun test", Check::Test),
    ("node --test", Check::Test),
    ("deno test", Check::Test),
    ("deno lint", Check::Lint),
    ("pytest", Check::Test),
    ("python -m pytest", Check::Test),
    ("python3 -m pytest", Check::Test),
    ("python -m unittest", Check::Test),
    ("python3 -m unittest", Check::Test),
    ("uv run pytest", Check::Test),
    ("uv run ruff check", Check::Lint),
    ("uv run mypy", Check::Types),
    ("poetry run pytest", Check::Test),
    ("hatch run test", Check::Test),
    ("hatch test", Check::Test),
    ("tox", Check::Test),
    ("nox", Check::Test),
    ("ruff check", Check::Lint),
    ("flake8", Check::Lint),
    ("mypy", Check::Types),
    ("pyright", Check::Types),
    ("cargo test", Check::Test),
    ("cargo nextest run", Check::Test),
    ("cargo clippy", Check::Lint),
    ("cargo fmt", Check::Format),
    ("go test", Check::Test),
    ("go vet", Check::Lint),
    ("golangci-lint run", Check::Lint),
    ("make test", Check::Test),
    ("make check", Check::Test),
    ("make lint", Check::Lint),
    ("just test", Check::Test),
    ("task test", Check::Test),
    ("bundle exec rspec", Check::Test),
    ("bundle exec rake test", Check::Test),
    ("bundle exec rubocop", Check::Lint),
    ("composer test", Check::Test),
    ("vendor/bin/phpunit", Check::Test),
    ("mix test", Check::Test),
    ("./gradlew test", Check::Test),
    ("mvn test", Check::Test),
    ("dotnet test", Check::Test),
    ("swift test", Check::Test),
    ("zig build test", Check::Test),
    ("shellcheck", Check::Lint),
    ("bats", Check::Test),
    ("prove", Check::Test),
];

/// Words of commands that change something elsewhere.
const REFUSED: [&str; 9] = [
    "publish", "deploy", "release", "push", "upload", "login", "curl", "wget", "sudo",
];

/// The longest command that is proposed, and the most lines that are looked at.
const COMMAND_MAX: usize = 120;
const LINES_MAX: usize = 2_000;

/// The first command for each check that CI files have.
pub(super) fn detect(files: &Files) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for (name, text) in files.workflows() {
        let Ok(root) = Node::read(text) else {
            continue;
        };
        for line in lines(&root, name) {
            let Some(check) = check_of(&line) else {
                continue;
            };
            if !found.iter().any(|it| it.check == check) {
                found.push(Candidate {
                    tool: "ci".to_owned(),
                    check,
                    command: line,
                    because: name.to_owned(),
                });
            }
        }
    }
    found.sort_by_key(|it| it.check);
    found
}

/// What a line checks, if it is one command that is known to check something and nothing else.
fn check_of(line: &str) -> Option<Check> {
    let plain = |c: char| c.is_ascii_alphanumeric() || " ._/=:@,+-".contains(c);
    if line.len() > COMMAND_MAX || !line.chars().all(plain) {
        return None;
    }
    let lower = line.to_ascii_lowercase();
    if REFUSED.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let begins = |known: &&(&str, Check)| {
        let rest = line.strip_prefix(known.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
    };
    KNOWN.iter().find(begins).map(|(_, check)| *check)
}

/// The lines of all commands of a CI file.
fn lines(root: &Node, name: &str) -> Vec<String> {
    let mut texts: Vec<&str> = Vec::new();
    if name == ".gitlab-ci.yml" {
        for (key, job) in entries(Some(root)) {
            if !key.starts_with('.') {
                strings(entry(job, "script"), &mut texts);
            }
        }
    } else {
        for (_, job) in entries(entry(root, "jobs")) {
            let Some(Value::List(steps)) = entry(job, "steps").map(|steps| &steps.value) else {
                continue;
            };
            for step in steps {
                // Elsewhere it may mean something else.
                if entry(step, "working-directory").is_none() {
                    strings(entry(step, "run"), &mut texts);
                }
            }
        }
    }
    let lines = texts.into_iter().flat_map(str::lines).take(LINES_MAX);
    lines.map(|line| line.trim().to_owned()).collect()
}

fn entries(node: Option<&Node>) -> impl Iterator<Item = (&str, &Node)> {
    let entries = match node.map(|node| &node.value) {
        Some(Value::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    entries
        .iter()
        .map(|(key, value)| (key.text.as_str(), value))
}

fn entry<'a>(node: &'a Node, wanted: &str) -> Option<&'a Node> {
    entries(Some(node))
        .find(|(key, _)| *key == wanted)
        .map(|(_, value)| value)
}

fn strings<'a>(node: Option<&'a Node>, into: &mut Vec<&'a str>) {
    match node.map(|node| &node.value) {
        Some(Value::Text(text)) => into.push(text),
        Some(Value::List(items)) => {
            for item in items {
                if let Value::Text(text) = &item.value {
                    into.push(text);
                }
            }
        }
        _ => {}
    }
}
