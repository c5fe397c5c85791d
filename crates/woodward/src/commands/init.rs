//! `woodward init`: a repository becomes a project with a `woodward.yaml`.
//!
//! It may be typed again at any time: a file that is there is never touched.

mod command;
mod trial;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use woodward_agents::Kind;
use woodward_api::{OpenProject, ProjectView};
use woodward_core::hint::{Hint, NextCommand};
use woodward_engine::config::FILE_NAME as CONFIG;
use woodward_engine::config::detect::{Files, installed};
use woodward_engine::config::regenerate;
use woodward_engine::config::render::{Workers, render};

use super::ask::RUN;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::session::Session;
use trial::{Trial, Tried};

/// Set this repository up: find its setup, gates and agents, try them in a fresh worktree, write woodward.yaml
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  woodward init\n  woodward init --agent-command \"sh work.sh\"\n  woodward init --no-run           propose setup and gates without running them\n  woodward init --trust-worktrees  answer trust dialogs here"
)]
pub(crate) struct Init {
    /// The command that works on tasks: its prompt is on stdin, its directory the worktree
    #[arg(long, value_name = "COMMAND")]
    agent_command: Option<String>,
    /// The branch that tasks start from and land on; the one checked out
    /// otherwise
    #[arg(long, value_name = "BRANCH")]
    base: Option<String>,
    /// Do not run the proposed setup commands and gates
    #[arg(long)]
    no_run: bool,
    /// Let Woodward answer yes when an agent's program in a terminal asks whether to trust a task's worktree. The program remembers it for the whole repository, and runs settings and hooks for it that the repository contains. Also for a project that is set up already
    #[arg(long, conflicts_with = "no_trust_worktrees")]
    trust_worktrees: bool,
    /// Take that back: a task waits for you when its agent's program asks. What a program remembers is left as it is
    #[arg(long)]
    no_trust_worktrees: bool,
}

/// What was set up.
#[derive(Serialize)]
struct SetUp {
    project: ProjectView,
    /// Whether the person said just now what is to be done about trust.
    #[serde(skip)]
    decided: bool,
    config: PathBuf,
    written: bool,
    /// The known agent programs that are installed; the first works on tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<Vec<&'static str>>,
    /// Setup commands that were tried.
    setup: Vec<Tried>,
    /// Ignored files that every worktree gets.
    copy: Vec<String>,
    gates: Vec<Tried>,
    /// Whether there is any gate to propose.
    gates_found: bool,
    notes: Vec<String>,
}

impl Init {
    /// Does it.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        let decision = self.trust_decision()?;
        let request = OpenProject {
            root: session.client().root().to_owned(),
            base: self.base.clone(),
            trust_worktrees: decision,
        };
        let mut project = session
            .call(async |client| client.open_project(&request).await)
            .await?;
        let mut decided = decision.is_some();
        if !decided && ask_for_trust(session, &project).await? {
            let agreed = OpenProject {
                trust_worktrees: Some(true),
                ..request
            };
            project = session
                .call(async |client| client.open_project(&agreed).await)
                .await?;
            decided = true;
        }
        let root = PathBuf::from(&project.root);
        let config = root.join(CONFIG);
        let written = !is_there(&config)?;
        let (agents, trial) = if written {
            self.write(session, &root, &config).await?
        } else {
            (None, Trial::default())
        };
        let set_up = SetUp {
            project,
            decided,
            config,
            written,
            agents,
            setup: trial.setup,
            copy: trial.worktree.copy,
            gates: trial.gates,
            gates_found: !trial.rendered.is_empty(),
            notes: trial.notes,
        };
        session.out.answer(&set_up, |_| told(&set_up))?;
        session.out.hints(&next(&set_up));
        Ok(())
    }

    /// What the flags say about trust, if they do. Inside of an agent's run nobody may say it.
    fn trust_decision(&self) -> Outcome<Option<bool>> {
        let decision = match (self.trust_worktrees, self.no_trust_worktrees) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        };
        if decision == Some(true) && std::env::var_os(RUN).is_some() {
            return Err(Failure::usage(
                "an agent can't agree for you that its worktree is trusted",
            ));
        }
        Ok(decision)
    }

    async fn write(
        &self,
        session: &Session,
        root: &Path,
        config: &Path,
    ) -> Outcome<(Option<Vec<&'static str>>, Trial)> {
        let unreadable =
            |error| Failure::failed(format!("{} can't be read: {error}", root.display()));
        let files = Files::load(root).map_err(unreadable)?;
        let trial = if self.no_run {
            trial::untried(root, Vec::new()).map_err(unreadable)?
        } else {
            match trial::run(session, root).await {
                Ok(trial) => trial,
                Err(failure) => {
                    let note = format!("setup and gates were not tried: {}", failure.message());
                    trial::untried(root, vec![note]).map_err(unreadable)?
                }
            }
        };
        let programs = installed(&std::env::var("PATH").unwrap_or_default());
        let (who, agents) = match &self.agent_command {
            Some(command) => (Workers::Command(command), None),
            None => {
                let names = programs.iter().map(|facts| facts.name).collect();
                (Workers::Programs(&programs), Some(names))
            }
        };
        let text = render(&trial.rendered, &trial.worktree, who) + &regenerate::proposed(&files);
        store_new(config, &text).map_err(|error| {
            Failure::failed(format!("{} can't be written: {error}", config.display()))
        })?;
        Ok((agents, trial))
    }
}

/// Asks a person who sits there, where an agent's program would ask in every worktree.
async fn ask_for_trust(session: &Session, project: &ProjectView) -> Outcome<bool> {
    let Some(trust) = &project.trust else {
        return Ok(false);
    };
    let is_agent = std::env::var_os(RUN).is_some();
    if trust.agreed
        || trust.asked_by.is_empty()
        || is_agent
        || session.out.json()
        || !input::is_interactive()
    {
        return Ok(false);
    }
    let titles = trust.asked_by.join(" and ");
    session.out.ask(&format!(
        "{titles} asks before it starts whether to trust a task's worktree, and remembers a yes for the \
         whole repository.\nA trusted repository's own settings and hooks for it are run. May Woodward \
         answer yes for {}? [y/N] ",
        project.root
    ));
    let answer = input::line().await?.unwrap_or_default();
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn is_there(config: &Path) -> Outcome<bool> {
    config
        .try_exists()
        .map_err(|error| Failure::failed(format!("{} can't be read: {error}", config.display())))
}

/// Whole or not at all, and never over a file that is there: Ctrl-C leaves no half of it.
fn store_new(config: &Path, text: &str) -> std::io::Result<()> {
    let draft = config.with_extension(format!("yaml.{}", std::process::id()));
    std::fs::write(&draft, text)?;
    let linked = std::fs::hard_link(&draft, config);
    std::fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

fn told(set_up: &SetUp) -> String {
    let ProjectView {
        name, root, base, ..
    } = &set_up.project;
    let mut text = format!("project {name}: {root}, tasks start from and land on {base}\n");
    let verb = if set_up.written {
        "written"
    } else {
        "there already, left as it is"
    };
    text += &format!("{CONFIG}: {verb}\n");
    match &set_up.project.trust {
        Some(trust) if trust.agreed => {
            text += "trust: Woodward confirms that agents trust this repository's worktrees\n";
        }
        Some(_) if set_up.decided => {
            text +=
                "trust: a task waits for you when its agent asks whether to trust its worktree\n";
        }
        _ => {}
    }
    match set_up.agents.as_deref() {
        Some([]) => text += "agent: none that Woodward knows is installed here\n",
        Some([first]) => text += &format!("agent: {first}\n"),
        Some([first, others @ ..]) => {
            text += &format!("agent: {first}; installed too: {}\n", others.join(", "));
        }
        None => {}
    }
    if !set_up.copy.is_empty() {
        let names = set_up.copy.join(", ");
        text += &format!("copy: {names} (ignored by git, copied into every worktree)\n");
    }
    for tried in set_up.setup.iter().chain(&set_up.gates) {
        text += &format!("{}\n", tried.told());
    }
    if set_up.written && !set_up.gates_found {
        text += "gates: nothing was found that checks results\n";
    }
    for note in &set_up.notes {
        text += &format!("note: {note}\n");
    }
    text
}

fn next(set_up: &SetUp) -> Vec<Hint> {
    let mut hints = Vec::new();
    if set_up.agents.as_ref().is_some_and(Vec::is_empty) {
        let install = Kind::ClaudeCode.facts().install;
        hints.push(format!("install one, such as: {install}").into());
        hints.push(format!("or name any command under `agents` in {CONFIG}").into());
    }
    if set_up.written && !set_up.gates_found {
        let example = "- { name: test, command: \"make test\" }";
        let advice =
            format!("write the commands that must pass under `gates` in {CONFIG}: {example}");
        hints.push(advice.into());
    }
    if set_up.written {
        let commit = format!("git add {CONFIG} && git commit -m \"Set up Woodward\"");
        hints.push(format!("look at it, then: {commit}").into());
    }
    if let Some(trust) = set_up.project.trust.as_ref().filter(|_| set_up.decided) {
        hints.push(match trust.agreed {
            true => NextCommand::NoTrustWorktrees.purpose("take the agreement back"),
            false => NextCommand::TrustWorktrees.purpose("agree again"),
        });
    }
    let example = "fix-login".parse().map(|task| NextCommand::Create { task });
    hints.extend(example.ok().map(Hint::from));
    hints.push(NextCommand::Status.into());
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_is_never_touched() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join(CONFIG);
        store_new(&config, "mine").unwrap();
        store_new(&config, "yours").unwrap();
        assert_eq!(std::fs::read_to_string(&config).unwrap(), "mine");
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            1,
            "no draft is left"
        );
    }
}
