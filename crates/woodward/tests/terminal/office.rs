//! A repository under a real daemon, with Claude Code or Codex as its agent, and people at terminals.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use woodward_api::TaskDetail;
use woodward_core::StateKind;
use woodward_testkit::agents::Programs;
use woodward_testkit::model_api::ModelApi;
use woodward_testkit::patience::AGENT_PATIENCE;
use woodward_testkit::{TestDaemon, TestProject, TestRepo, homes};

use crate::person::Person;
use crate::scene::WOODWARD;

const KEY: &str = "sk-ant-stand-in-0123456789abcdef";

/// What differs between the programs that have a terminal.
pub(crate) struct Agent {
    pub(crate) name: &'static str,
    /// What its dialog about a command says.
    pub(crate) dialog: &'static str,
    /// The key that says yes to it.
    pub(crate) yes: &'static str,
}

pub(crate) const CLAUDE: Agent = Agent {
    name: "claude-code",
    dialog: "Do you want to proceed?",
    yes: "1",
};

pub(crate) const CODEX: Agent = Agent {
    name: "codex",
    dialog: "Would you like to run the following command?",
    yes: "y",
};

/// Everything that one test works with. The daemon goes first when it is dropped.
pub(crate) struct Office {
    project: TestProject,
    pub(crate) api: ModelApi,
    agent: &'static str,
}

impl Office {
    /// An agent whose program the person has used here before.
    pub(crate) fn with(agent: &'static Agent, runtime: &str) -> Self {
        Self::of(agent, runtime, true)
    }

    /// An agent whose program asks things when it starts.
    pub(crate) fn unsettled(agent: &'static Agent, runtime: &str) -> Self {
        Self::of(agent, runtime, false)
    }

    fn of(agent: &'static Agent, runtime: &str, settled: bool) -> Self {
        let name = agent.name;
        let row = match (name, settled) {
            ("codex", true) => "{ passEnv: [STAND_IN_KEY] }",
            // Without the trust that Woodward gives it.
            ("codex", false) => "{ passEnv: [STAND_IN_KEY], args: [-c, \"projects={}\"] }",
            _ => "{}",
        };
        let config = format!(
            "orchestrator: {{ agent: {name}, runtime: {runtime} }}\nagents:\n  {name}: {row}\n"
        );
        Self::set_up(name, &config, settled)
    }

    /// Claude Code without any configuration yet. It shows its first dialogs without a network only
    /// where no login is needed, as with Bedrock.
    pub(crate) fn first_start_of_claude() -> Self {
        let config = "orchestrator: { agent: claude-code, runtime: tmux }\nagents:\n  claude-code:\n    \
                      env: { CLAUDE_CODE_USE_BEDROCK: \"1\", AWS_REGION: us-east-1 }\n";
        let office = Self::set_up("claude-code", config, false);
        std::fs::remove_file(office.daemon.home().join(".claude.json")).expect("it is there");
        office
    }

    /// Takes away the trust that Claude Code remembers.
    pub(crate) fn forget_trust(&self) {
        let file = self.daemon.home().join(".claude.json");
        let text = std::fs::read_to_string(&file).expect("a file");
        let mut settings: serde_json::Value = serde_json::from_str(&text).expect("json");
        settings["projects"] = serde_json::json!({});
        std::fs::write(file, settings.to_string()).expect("a file");
    }

    /// Any agents.
    pub(crate) fn new(config: &str) -> Self {
        Self::set_up("", config, true)
    }

    fn set_up(agent: &'static str, config: &str, settled: bool) -> Self {
        let repo = TestRepo::with(&[("woodward.yaml", config), ("README.md", "A shop.\n")]);
        // Codex's sandbox does not work where temporary files are.
        let home = homes::directory(env!("CARGO_TARGET_TMPDIR"));
        let mut daemon = TestDaemon::at_home(WOODWARD, home);
        let api = ModelApi::start();
        let programs = Programs::installed().expect("the agents are installed");
        daemon.search_first(programs.bin());
        daemon.set("LANG", "C.UTF-8");
        settle_claude(&mut daemon, &api, repo.root(), settled);
        settle_codex(&mut daemon, &api);
        let office = Self {
            project: TestProject::new(daemon, repo),
            api,
            agent,
        };
        office.ok(&["init", "-q"]);
        office
    }

    /// Waits until a task is in this state.
    pub(crate) fn reaches(&self, task: &str, state: &str) {
        self.comes_true(task, state, |detail| detail.task.state.as_str() == state);
    }

    /// Waits until something is true of a task, and tells its story when it never is.
    pub(crate) fn comes_true(&self, task: &str, what: &str, is: impl Fn(&TaskDetail) -> bool) {
        let found = self.poll(AGENT_PATIENCE, || is(&self.show(task)).then_some(()));
        if found.is_none() {
            panic!("timed out: {task}, {what}:\n{}", self.story(task));
        }
    }

    /// Waits until an agent has done so many turns.
    pub(crate) fn turns(&self, task: &str, turns: usize) {
        self.comes_true(task, "its turn is over", |_| {
            let logs = self.run(&["logs", task]).stdout;
            logs.lines().filter(|line| *line == "= done").count() >= turns
        });
    }

    pub(crate) fn is_running(&self, task: &str) -> bool {
        self.task(task).state == StateKind::Working
    }

    /// A file outside of every worktree and of where temporary files are: nobody writes it unasked.
    pub(crate) fn outside(&self) -> PathBuf {
        self.daemon.home().join("outside")
    }

    /// A prompt by which the agent waits for a permission to touch that file, and then does the rest.
    pub(crate) fn asking(&self, rest: &str) -> String {
        let touch = format!("touch {}", self.outside().display());
        match self.agent {
            "codex" => format!(
                "stand-in: call exec_command {{\"cmd\":\"{touch}\",\
                 \"sandbox_permissions\":\"require_escalated\",\"justification\":\"because\"}}; {rest}"
            ),
            _ => format!("stand-in: shell {touch}; {rest}"),
        }
    }

    /// A person who types a line in the repository.
    pub(crate) fn person(&self, name: &str, line: &str) -> Person {
        let mut tmux = Command::new("tmux");
        tmux.env_clear().stdin(Stdio::null());
        for (name, value) in self.daemon.command(self.repo.root()).get_envs() {
            if let Some(value) = value {
                tmux.env(name, value);
            }
        }
        let line = format!("woodward -C {} {line}", self.repo.root().display());
        Person::sit_down(tmux, self.daemon.home(), name, &line, (120, 40))
    }

    /// Asks Woodward's own tmux server.
    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        let socket = self.daemon.state().join("tmux.sock");
        command.env_remove("TMUX").arg("-S").arg(socket).args(args);
        let output = command.output().expect("tmux runs");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The one session on that server.
    pub(crate) fn session(&self) -> String {
        let names = self.tmux(&["list-sessions", "-F", "#{session_name}"]);
        format!("={}:", names.trim())
    }
}

impl Deref for Office {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.project
    }
}

fn settle_claude(daemon: &mut TestDaemon, api: &ModelApi, root: &Path, settled: bool) {
    daemon.set("ANTHROPIC_BASE_URL", api.url());
    daemon.set("ANTHROPIC_API_KEY", KEY);
    let projects = if settled {
        serde_json::json!({root.display().to_string(): {
            "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true
        }})
    } else {
        serde_json::json!({})
    };
    let settings = serde_json::json!({
        "hasCompletedOnboarding": true, "theme": "dark", "numStartups": 5,
        "customApiKeyResponses": {"approved": [KEY[KEY.len() - 20..]], "rejected": []},
        "projects": projects
    });
    let file = daemon.home().join(".claude.json");
    std::fs::write(file, settings.to_string()).expect("a file");
}

fn settle_codex(daemon: &mut TestDaemon, api: &ModelApi) {
    daemon.set("STAND_IN_KEY", KEY);
    let home = daemon.home().join(".codex");
    std::fs::create_dir_all(&home).expect("a directory");
    std::fs::write(home.join("config.toml"), api.codex_config()).expect("a file");
}
