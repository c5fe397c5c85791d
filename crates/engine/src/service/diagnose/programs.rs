//! The agent programs: which are installed, which version, logged in or not, and what was tested.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use woodward_agents::catalog::KNOWN;
use woodward_agents::permission::Mode;
use woodward_agents::{Facts, Kind, fits_terminal};
use woodward_api::Check;

use super::{bad, good, note};
use crate::agent::available::{find, find_from};
use crate::agent::version;
use crate::config::{Agent, Command, Config, Driving, Runtime};
use crate::environment;

/// What shows that a person has logged in: variables, or files in the home directory.
const LOGINS: &[(Kind, &[&str], &[&str])] = &[
    (
        Kind::ClaudeCode,
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        &[".claude/.credentials.json", ".claude.json"],
    ),
    (
        Kind::Codex,
        &["OPENAI_API_KEY", "CODEX_API_KEY"],
        &[".codex/auth.json"],
    ),
    (
        Kind::OpenCode,
        &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
        &[".local/share/opencode/auth.json"],
    ),
    (
        Kind::Gemini,
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        &[".gemini/oauth_creds.json"],
    ),
    (
        Kind::Qwen,
        &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"],
        &[".qwen/oauth_creds.json"],
    ),
    (
        Kind::Copilot,
        &["COPILOT_PROVIDER_API_KEY", "GH_TOKEN", "GITHUB_TOKEN"],
        &[".copilot/config.json"],
    ),
    (
        Kind::Goose,
        &["GOOSE_PROVIDER"],
        &[".config/goose/config.yaml"],
    ),
    (
        Kind::Pi,
        &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"],
        &[".pi/agent/auth.json", ".pi/agent/models.json"],
    ),
    (
        Kind::Aider,
        &[
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "DEEPSEEK_API_KEY",
            "OPENROUTER_API_KEY",
        ],
        &[".aider.conf.yml"],
    ),
    (
        Kind::Amp,
        &["AMP_API_KEY"],
        &[".local/share/amp/secrets.json"],
    ),
    (
        Kind::Cursor,
        &["CURSOR_API_KEY"],
        &[".cursor/cli-config.json"],
    ),
];

/// The checks of a project's agents, and what else is installed.
pub(super) async fn agents(config: &Config, root: &Path) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut named = Vec::new();
    for agent in config.agents() {
        let title = format!("agent {}", agent.name);
        checks.push(match &agent.driving {
            Driving::Plain(command) => plain(&title, command, root),
            Driving::Hosted { kind, program } => {
                named.push(*kind);
                let name = program.first().map(String::as_str).unwrap_or_default();
                let env = environment::passed(&agent.environment);
                hosted(&title, kind.facts(), name, root, &env).await
            }
        });
    }
    checks.extend(unruled(config));
    checks.extend(without_terminal(config));
    if let Err(none) = config.agent(None) {
        checks.push(bad("agent", none.to_string(), none.hint()));
    }
    let others = KNOWN.iter().filter(|facts| !named.contains(&facts.kind));
    let (installed, missing): (Vec<&Facts>, Vec<&Facts>) =
        others.partition(|facts| find(facts.program, &search_path()).is_some());
    for facts in installed {
        let env = std::env::vars().collect();
        checks.push(hosted(facts.name, facts, facts.program, root, &env).await);
    }
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|facts| facts.name).collect();
        checks.push(note(
            "not installed",
            format!("known agents that are not here: {}", names.join(", ")),
            None,
        ));
    }
    checks
}

/// The agents that do not ask before they do something, where somebody may rely on it: known programs
/// are expected to, and commands where rules were written for them.
fn unruled(config: &Config) -> Option<Check> {
    let relied_on = |agent: &&Agent| {
        let rules = &agent.permissions;
        let known = match agent.driving {
            Driving::Plain(_) => false,
            Driving::Hosted { kind, .. } => !matches!(kind, Kind::Command | Kind::Aider),
        };
        let written = !(rules.allow.is_empty() && rules.deny.is_empty());
        written || known && rules.mode == Mode::Careful
    };
    let names = named(config, |agent| {
        !agent.asks_permission() && relied_on(&agent)
    })?;
    Some(note(
        "permissions",
        format!("they do not hold {names}, which can't ask before doing something"),
        Some(String::from(
            "an agent that asks can be held: see docs/agents.md",
        )),
    ))
}

/// The agents that have no terminal although the project wants one.
fn without_terminal(config: &Config) -> Option<Check> {
    let is_headless = |agent: &Agent| match agent.driving {
        Driving::Plain(_) => true,
        Driving::Hosted { kind, .. } => !fits_terminal(kind, &agent.row),
    };
    let names = named(config, is_headless).filter(|_| config.runtime == Runtime::Tmux)?;
    let found = format!("`runtime: tmux` does nothing for {names}: it runs without a terminal");
    Some(note("terminal", found, None))
}

/// The names of the project's agents of a kind, if there are any.
fn named(config: &Config, is: impl Fn(&Agent) -> bool) -> Option<String> {
    let names = config.agents().filter(|agent| is(agent));
    let names: Vec<String> = names.map(|agent| format!("`{}`", agent.name)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn plain(title: &str, command: &Command, root: &Path) -> Check {
    let program = match command {
        Command::Argv(argv) => argv.first().cloned().unwrap_or_default(),
        Command::Shell(text) => text
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    match find_from(root, &program, &search_path()) {
        Some(_) => good(title, command.shown()),
        // A shell may know it as a function or from the worktree.
        None => note(
            title,
            format!("`{program}` is not a program on PATH"),
            Some("fine if it is part of the repository".into()),
        ),
    }
}

async fn hosted(
    title: &str,
    facts: &Facts,
    program: &str,
    root: &Path,
    env: &BTreeMap<String, String>,
) -> Check {
    let Some(path) = find_from(root, program, &search_path()) else {
        return match facts.kind {
            Kind::Command => note(title, format!("`{program}` is not a program on PATH"), None),
            _ => bad(
                title,
                format!("{} is not installed", facts.title),
                facts.install,
            ),
        };
    };
    if facts.kind == Kind::Command {
        return good(title, path.display().to_string());
    }
    let Some(said) = version::ask(&path).await else {
        return bad(
            title,
            format!("{} is there, but does not say its version", path.display()),
            format!("{} --version", path.display()),
        );
    };
    if let Some(old) = version::too_old(facts, &said) {
        let found = format!("{}: {old}; it may lack what is needed", facts.title);
        return note(title, found, Some(facts.install.to_owned()));
    }
    let tested = match facts.tested {
        Some(tested) if said.contains(tested) => String::from("the version it was tested with"),
        Some(tested) => format!("tested with {tested}"),
        None => String::from("never tested with it"),
    };
    let found = format!("{} {said} ({tested})", facts.title);
    if is_logged_in(facts.kind, env) {
        good(title, format!("{found}, logged in or with a key"))
    } else {
        let fix = Some(facts.login.to_owned());
        note(title, format!("{found}, no login found"), fix)
    }
}

/// Whether a program finds a login, with the variables that it gets.
fn is_logged_in(kind: Kind, env: &BTreeMap<String, String>) -> bool {
    let Some((_, variables, files)) = LOGINS.iter().find(|(known, ..)| *known == kind) else {
        return false;
    };
    let home = env.get("HOME").map(PathBuf::from).unwrap_or_default();
    variables
        .iter()
        .any(|name| env.get(*name).is_some_and(|value| !value.is_empty()))
        || files.iter().any(|file| home.join(file).is_file())
}

fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_the_configuration_sets_is_a_login() {
        let home = tempfile::tempdir().unwrap();
        let home = ("HOME".to_owned(), home.path().display().to_string());
        let text = "agents: { claude-code: { env: { ANTHROPIC_API_KEY: k } } }";
        let config = Config::parse(text, "test").unwrap();
        let set = &config.agent(None).unwrap().environment.set;
        let mut env = BTreeMap::from([home]);
        assert!(!is_logged_in(Kind::ClaudeCode, &env));
        env.extend(set.clone());
        assert!(is_logged_in(Kind::ClaudeCode, &env));
    }
}
