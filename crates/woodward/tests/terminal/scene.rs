//! A workspace with a stand-in for the model, hosts with terminals, and people who look at them.

use std::ops::Deref;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use woodward_agents::adapters::command::PromptBy;
use woodward_agents::{Kind, Spec};
use woodward_testkit::agent_run::AgentRun;
use woodward_testkit::agent_workspace::{AgentWorkspace, GIT_IDENTITY};
use woodward_testkit::agents::Programs;
use woodward_testkit::homes;
use woodward_testkit::model_api::ModelApi;

use crate::person::Person;

pub(crate) const WOODWARD: &str = env!("CARGO_BIN_EXE_woodward");

pub(crate) struct Scene {
    pub(crate) api: ModelApi,
    workspace: AgentWorkspace,
}

impl Deref for Scene {
    type Target = AgentWorkspace;

    fn deref(&self) -> &AgentWorkspace {
        &self.workspace
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::in_directory(homes::directory(env!("CARGO_TARGET_TMPDIR")))
    }

    /// A scene of which everything lies in a directory.
    pub(crate) fn in_directory(directory: TempDir) -> Self {
        Self {
            api: ModelApi::start(),
            workspace: AgentWorkspace::new(directory),
        }
    }

    /// A conversation with a program in a terminal.
    pub(crate) fn spec(&self, kind: Kind, program: &[&str]) -> Spec {
        let program = program.iter().map(|&word| word.to_owned()).collect();
        Spec {
            own_config: true,
            terminal: true,
            ..self.workspace.spec(kind, program)
        }
    }

    /// A shell script that is an agent.
    pub(crate) fn script(&self, script: &str) -> Spec {
        let mut spec = self.spec(Kind::Command, &["sh", "-c", script]);
        // Its input is the terminal.
        spec.command.prompt = PromptBy::File;
        spec
    }

    fn command(&self, program: &str) -> Command {
        let programs = Programs::installed().ok();
        let path: Vec<&Path> = programs.iter().map(Programs::bin).collect();
        let mut command = self.workspace.command(program, &path);
        command.envs(GIT_IDENTITY).env("LANG", "C.UTF-8");
        command
    }

    /// Starts a host.
    pub(crate) fn start(&self, prompt: &str, spec: Spec, env: &[(&str, String)]) -> AgentRun {
        let mut host = self.command(WOODWARD);
        host.envs(env.iter().map(|(name, value)| (name, value)));
        self.workspace.start(host, prompt, spec)
    }

    /// A person who runs a client at a terminal of this size.
    pub(crate) fn person(&self, name: &str, line: &str, size: (u16, u16)) -> Person {
        Person::sit_down(self.command("tmux"), &self.directory(), name, line, size)
    }

    /// A person who looks at a run without Woodward's tmux.
    pub(crate) fn viewer(&self, name: &str, run: &AgentRun, size: (u16, u16)) -> Person {
        let directory = run.directory().display();
        let line = format!("env -u TMUX {WOODWARD} view-terminal {directory}");
        self.person(name, &line, size)
    }

    /// Whether a person's terminal is as it was.
    pub(crate) fn is_restored(&self, name: &str) -> bool {
        let read = |end: &str| {
            let file = self.directory().join(format!("{name}.{end}"));
            std::fs::read_to_string(file).expect("a file")
        };
        let (before, after) = (read("before"), read("after"));
        !before.is_empty() && before == after
    }
}
