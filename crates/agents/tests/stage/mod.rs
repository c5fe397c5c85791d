//! A workspace for one agent program, and the main function of test binaries that start themselves as
//! hosts.

use std::fs;
use std::ops::Deref;
use std::process::ExitCode;

use anyhow::Context as _;
use libtest_mimic::{Arguments, Trial};
use woodward_agents::{Kind, Spec};
use woodward_testkit::agent_run::{AgentRun, FinishedRun, new_message_id, run_hidden_command};
use woodward_testkit::agent_workspace::AgentWorkspace;
use woodward_testkit::homes;

/// The person's configuration of git.
const IDENTITY: &str = "[user]\n\tname = A Person\n\temail = person@example.org\n";

/// One fact.
pub(crate) type Fact = (&'static str, fn() -> anyhow::Result<()>);

/// The whole of a test binary.
pub(crate) fn main(facts: Vec<Fact>) -> ExitCode {
    if let Some(code) = run_hidden_command() {
        return code;
    }
    let trials = facts.into_iter().map(|(name, fact)| {
        Trial::test(name, move || {
            fact().map_err(|error| format!("{error:#}").into())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

pub(crate) struct Stage {
    workspace: AgentWorkspace,
    kind: Kind,
    /// Variables for the program.
    pub(crate) env: Vec<(String, String)>,
}

impl Deref for Stage {
    type Target = AgentWorkspace;

    fn deref(&self) -> &AgentWorkspace {
        &self.workspace
    }
}

impl Stage {
    pub(crate) fn new(kind: Kind) -> anyhow::Result<Self> {
        let workspace = AgentWorkspace::new(homes::directory(env!("CARGO_TARGET_TMPDIR")));
        fs::write(workspace.home().join(".gitconfig"), IDENTITY)?;
        Ok(Self {
            workspace,
            kind,
            env: Vec::new(),
        })
    }

    /// A file of the worktree.
    pub(crate) fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = self.tree().join(file);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    /// A new conversation with a program, whose prompt is one message.
    pub(crate) fn spec(&self, program: Vec<String>) -> Spec {
        Spec {
            messages: vec![new_message_id()],
            own_config: true,
            ..self.workspace.spec(self.kind, program)
        }
    }

    /// Starts a host.
    pub(crate) fn start(&self, spec: &Spec, prompt: &str) -> anyhow::Result<AgentRun> {
        let mut host = self.command(std::env::current_exe()?, &[]);
        host.envs(self.env.iter().map(|(name, value)| (name, value)));
        Ok(self.workspace.start(host, prompt, spec.clone()))
    }

    /// Runs a prompt to its end.
    pub(crate) fn run(&self, spec: &Spec, prompt: &str) -> anyhow::Result<FinishedRun> {
        Ok(self.start(spec, prompt)?.finish())
    }
}
