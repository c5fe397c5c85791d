//! A workspace with a stand-in for the model, for one agent program.

use std::ops::Deref;

use woodward_agents::{Ending, Kind, Spec};
use woodward_testkit::agent_run::{AgentRun, FinishedRun};
use woodward_testkit::agent_workspace::{AgentWorkspace, GIT_IDENTITY};
use woodward_testkit::homes;
use woodward_testkit::model_api::ModelApi;

/// How an agent program is told where the stand-in is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) kind: Kind,
    /// Arguments that a person would have given.
    pub(crate) args: &'static [&'static str],
    /// The model.
    pub(crate) model: Option<&'static str>,
    /// Variables for it.
    pub(crate) env: fn(&Scene) -> Vec<(&'static str, String)>,
    /// Writes its settings.
    pub(crate) settle: fn(&Scene),
}

pub(crate) struct Scene {
    pub(crate) api: ModelApi,
    pub(crate) agent: Agent,
    workspace: AgentWorkspace,
}

impl Deref for Scene {
    type Target = AgentWorkspace;

    fn deref(&self) -> &AgentWorkspace {
        &self.workspace
    }
}

impl Scene {
    pub(crate) fn new(agent: Agent) -> Self {
        let scene = Self {
            api: ModelApi::start(),
            agent,
            // Codex's sandbox lets everybody write below the directory for temporary files.
            workspace: AgentWorkspace::new(homes::directory(env!("CARGO_TARGET_TMPDIR"))),
        };
        (agent.settle)(&scene);
        scene
    }

    pub(crate) fn spec(&self) -> Spec {
        let program = vec![self.agent.kind.facts().program.to_owned()];
        Spec {
            args: self.agent.args.iter().map(|&arg| arg.to_owned()).collect(),
            model: self.agent.model.map(str::to_owned),
            ..self.workspace.spec(self.agent.kind, program)
        }
    }

    /// Starts a host.
    pub(crate) fn start(&self, prompt: &str, spec: Spec) -> AgentRun {
        let host = std::env::current_exe().unwrap();
        let mut host = self.command(host, &[&crate::programs()]);
        host.envs(GIT_IDENTITY)
            .envs((self.agent.env)(self))
            .envs(self.cheap_start());
        self.workspace.start(host, prompt, spec)
    }

    fn cheap_start(&self) -> Option<(&'static str, String)> {
        let programs = crate::installed();
        let name = self.agent.kind.facts().name;
        let mut all = programs.all().iter();
        all.find(|program| program.name == name)?.cheap_start()
    }

    /// Runs an agent to its end, without questions and messages.
    pub(crate) fn run(&self, prompt: &str, spec: Spec) -> FinishedRun {
        self.start(prompt, spec).finish()
    }
}

/// Fails with everything that is known unless a run ended like this.
#[track_caller]
pub(crate) fn assert_ended(run: &FinishedRun, is_wanted: impl Fn(&Ending) -> bool) {
    assert!(is_wanted(run.ending()), "{run:#?}");
}

pub(crate) fn was_completed(ending: &Ending) -> bool {
    *ending == Ending::Completed
}
