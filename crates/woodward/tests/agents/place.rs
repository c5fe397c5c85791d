//! A repository under a daemon, with agents that are pointed at the stand-in for the model's API.

use std::ops::{Deref, DerefMut};

use woodward_testkit::agents::Programs;
use woodward_testkit::model_api::ModelApi;
pub(crate) use woodward_testkit::patience::AGENT_PATIENCE;
use woodward_testkit::{TestDaemon, TestProject, TestRepo, homes};

/// Long and random-looking: Copilot masks its key wherever the letters occur.
pub(crate) const KEY: &str = "stand-in-9f8b6c1e7d2a4053b1c6";

/// Everything that one test works with. The daemon goes first when it is dropped.
pub(crate) struct Place {
    project: TestProject,
    pub(crate) api: ModelApi,
}

impl Place {
    /// A project whose agents are these, under the names that `cargo xtask setup` has for them.
    pub(crate) fn new(programs: &Programs, agents: &[&str], rules: &str) -> Self {
        Self::with(programs, agents, "process", rules, |daemon| {
            for agent in agents {
                programs.of(agent).skip_unpacking(daemon.home());
            }
        })
    }

    /// The same on a machine where none of the programs was ever started.
    pub(crate) fn before_first_start(programs: &Programs, agents: &[&str], rules: &str) -> Self {
        Self::with(programs, agents, "process", rules, |_| {})
    }

    /// The same under a runtime; `settled` may change what the daemon is started with.
    pub(crate) fn with(
        programs: &Programs,
        agents: &[&str],
        runtime: &str,
        rules: &str,
        settled: impl FnOnce(&mut TestDaemon),
    ) -> Self {
        let api = ModelApi::start();
        let rows: String = agents
            .iter()
            .map(|agent| format!("  {}: {}\n", named(agent), row(agent, &api)))
            .collect();
        let config = format!(
            "orchestrator: {{ agent: {}, maxConcurrent: 16, runtime: {runtime} }}\nagents:\n{rows}{rules}",
            named(agents[0])
        );
        let repo = TestRepo::with(&[("woodward.yaml", &config), ("README.md", "# Shop\n")]);
        // Gemini gives the commands it runs no other git configuration than the repository's.
        repo.git(&["config", "user.name", "Ada"]);
        repo.git(&["config", "user.email", "ada@example.org"]);
        // Codex's sandbox does not work for a home below the directory for temporary files.
        let home = homes::directory(env!("CARGO_TARGET_TMPDIR"));
        let mut daemon = TestDaemon::at_home(env!("CARGO_BIN_EXE_woodward"), home);
        daemon.search_first(programs.bin());
        for agent in agents {
            settle(agent, &api, &mut daemon);
            if let Some((name, value)) = programs.of(agent).cheap_start() {
                daemon.set(name, value);
            }
        }
        settled(&mut daemon);
        let project = TestProject::new(daemon, repo);
        let place = Self { project, api };
        place.ok(&["init", "-q"]);
        place
    }

    /// Waits until a task is in one of these states, and says which.
    pub(crate) fn reaches(&self, task: &str, states: &[&str]) -> String {
        let found = self.poll(AGENT_PATIENCE, || {
            let state = self.task(task).state;
            states.contains(&state.as_str()).then(|| state.to_string())
        });
        found.unwrap_or_else(|| {
            let state = self.task(task).state;
            panic!("{task} is {state}, not {states:?}:\n{}", self.story(task))
        })
    }

    /// How many entries of a task's timeline have these words.
    pub(crate) fn count_in_timeline(&self, task: &str, words: &str) -> usize {
        let entries = self.timeline(task).entries;
        let has_words = entries.iter().filter(|entry| entry.text.contains(words));
        has_words.count()
    }

    /// All that is known of a task, for a person who wonders.
    pub(crate) fn story(&self, task: &str) -> String {
        let story = self.project.story(task);
        let asked: Vec<String> = self
            .api
            .requests()
            .iter()
            .map(|request| format!("{} {} => {}", request.method, request.path, request.answer))
            .collect();
        format!("{story}\n{}", asked.join("\n"))
    }
}

impl Deref for Place {
    type Target = TestProject;

    fn deref(&self) -> &TestProject {
        &self.project
    }
}

impl DerefMut for Place {
    fn deref_mut(&mut self) -> &mut TestProject {
        &mut self.project
    }
}

/// What Woodward calls an agent.
pub(crate) fn named(agent: &str) -> &str {
    agent.strip_suffix("-cli").unwrap_or(agent)
}

/// What `woodward.yaml` says of an agent.
fn row(agent: &str, api: &ModelApi) -> String {
    let passed = "passEnv: [GIT_CONFIG_NOSYSTEM]";
    match agent {
        "codex" => String::from("{ passEnv: [STAND_IN_KEY] }"),
        "qwen-code" => String::from(
            "{ args: [--auth-type, openai], passEnv: [GIT_CONFIG_NOSYSTEM, NODE_OPTIONS] }",
        ),
        "gemini-cli" => format!("{{ model: gemini-2.5-flash, {passed} }}"),
        "pi" => {
            String::from("{ args: [--provider, stand-in], model: stand-in, passEnv: [PI_OFFLINE] }")
        }
        "aider" => format!(
            "{{ model: openai/stand-in, args: [--openai-api-base, \"{}\", --edit-format, diff] }}",
            api.openai_url()
        ),
        _ => format!("{{ {passed} }}"),
    }
}

/// The settings and variables that point an agent at the stand-in.
fn settle(agent: &str, api: &ModelApi, daemon: &mut TestDaemon) {
    let home = daemon.home().to_owned();
    let write = |file: &str, text: &str| {
        let path = home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    match agent {
        "claude-code" => {
            daemon.set("ANTHROPIC_BASE_URL", api.url());
            daemon.set("ANTHROPIC_API_KEY", KEY);
            daemon.set("CLAUDE_CODE_MAX_RETRIES", "1");
        }
        "codex" => {
            daemon.set("STAND_IN_KEY", KEY);
            write(".codex/config.toml", &api.codex_config());
        }
        "opencode" => {
            let settings = serde_json::json!({
                "provider": {"stand-in": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": api.openai_url(), "apiKey": KEY},
                    "models": {"stand-in": {
                        "limit": {"context": 200_000, "output": 8_000},
                        "cost": {"input": 1, "output": 2}
                    }}
                }},
                "model": "stand-in/stand-in", "small_model": "stand-in/stand-in"
            });
            write(".config/opencode/opencode.json", &settings.to_string());
            daemon.set("OPENCODE_DISABLE_MODELS_FETCH", "1");
            daemon.set("OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
        }
        "gemini-cli" => {
            daemon.set("GEMINI_API_KEY", KEY);
            daemon.set("GOOGLE_GEMINI_BASE_URL", api.url());
            let settings = serde_json::json!({
                "security": {
                    "auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}
                },
                "general": {"enableAutoUpdate": false, "maxAttempts": 1, "retryFetchErrors": false},
                "privacy": {"usageStatisticsEnabled": false}
            });
            write(".gemini/settings.json", &settings.to_string());
        }
        "qwen-code" => {
            daemon.set("OPENAI_API_KEY", KEY);
            daemon.set("OPENAI_BASE_URL", api.openai_url());
            daemon.set("OPENAI_MODEL", "stand-in");
            let settings = serde_json::json!({
                "model": {"generationConfig": {"maxRetries": 0}}
            });
            write(".qwen/settings.json", &settings.to_string());
        }
        "copilot-cli" => {
            daemon.set("COPILOT_PROVIDER_BASE_URL", api.openai_url());
            daemon.set("COPILOT_PROVIDER_API_KEY", KEY);
            daemon.set("COPILOT_MODEL", "gpt-4.1");
            daemon.set("COPILOT_OFFLINE", "true");
        }
        "goose" => {
            daemon.set("GOOSE_PROVIDER", "openai");
            daemon.set("GOOSE_MODEL", "gpt-4o");
            daemon.set("GOOSE_DISABLE_KEYRING", "1");
            daemon.set("OPENAI_HOST", api.url());
            daemon.set("OPENAI_API_KEY", KEY);
        }
        "pi" => {
            let settings = serde_json::json!({"providers": {"stand-in": {
                "baseUrl": api.openai_url(), "api": "openai-completions", "apiKey": KEY,
                "models": [{
                    "id": "stand-in", "name": "stand-in", "reasoning": false, "input": ["text"],
                    "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
                    "contextWindow": 200_000, "maxTokens": 8_000
                }]
            }}});
            write(".pi/agent/models.json", &settings.to_string());
            daemon.set("PI_OFFLINE", "1");
        }
        "aider" => daemon.set("OPENAI_API_KEY", KEY),
        other => panic!("no test knows how to settle {other}"),
    }
}
