//! Each program by itself, in its headless form, without Woodward: proves that the installation
//! and the stand-in are good.

use crate::table::Table;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use woodward_testkit::TestRepo;
use woodward_testkit::agents::Programs;
use woodward_testkit::model_api::ModelApi;
use woodward_testkit::patience::within;

/// Long and random-looking: Copilot masks its key wherever the letters occur.
const KEY: &str = "stand-in-9f8b6c1e7d2a4053b1c6";
const PROMPT: &str = "Please do it.\nstand-in: write hello.txt=hello; commit add hello; say Bye";

/// Starts the program, has it write a file and commit, and looks into the repository.
pub(crate) fn writes_and_commits(programs: &Programs, agent: &str, table: &Table) {
    let api = ModelApi::start();
    let repo = TestRepo::with(&[("README.md", "# Shop\n")]);
    // Gemini gives the commands it runs no other git configuration than the repository's.
    repo.git(&["config", "user.name", "Ada"]);
    repo.git(&["config", "user.email", "ada@example.org"]);
    let home = repo.around().join("home");
    std::fs::create_dir(&home).unwrap();

    let scene = Scene {
        programs,
        api: &api,
        repo: repo.root(),
        home: &home,
    };
    let output = repo.around().join("output");
    let status = run(scene.command(agent), &output);

    let is_written = repo.root().join("hello.txt").is_file();
    let subject = repo.git(&["log", "-1", "--format=%s"]);
    table.note(agent, "write", is_written);
    table.note(agent, "commit", subject == "add hello");
    let told = || {
        let answers: Vec<_> = api
            .requests()
            .into_iter()
            .map(|request| format!("{} {} => {}", request.method, request.path, request.answer))
            .collect();
        let said = std::fs::read_to_string(&output).unwrap_or_default();
        format!(
            "{agent} ended with {status}\n{}\n{said}",
            answers.join("\n")
        )
    };
    assert!(is_written, "no file: {}", told());
    assert_eq!(repo.read("hello.txt").trim_end(), "hello", "{}", told());
    assert_eq!(subject, "add hello", "{}", told());
    assert!(status.success(), "{}", told());
    assert_eq!(repo.git(&["show", "--format=", "--name-only"]), "hello.txt");
    let request = api.expect("the task", |request| request.user_says(PROMPT));
    assert!(request.dialect.is_some());
}

struct Scene<'a> {
    programs: &'a Programs,
    api: &'a ModelApi,
    repo: &'a Path,
    home: &'a Path,
}

impl Scene<'_> {
    /// The headless command of an agent, with the settings that point it at the stand-in.
    fn command(&self, agent: &str) -> Command {
        let mut command = Command::new(&self.programs.of(agent).path);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all =
            std::iter::once(self.programs.bin().to_owned()).chain(std::env::split_paths(&path));
        command
            .current_dir(self.repo)
            .env_clear()
            .env("HOME", self.home)
            .env("TMPDIR", std::env::temp_dir())
            .env("PATH", std::env::join_paths(all).unwrap())
            .env("TERM", "dumb")
            .stdin(Stdio::null());
        match agent {
            "claude-code" => self.claude(&mut command),
            "codex" => self.codex(&mut command),
            "opencode" => self.opencode(&mut command),
            "gemini-cli" => self.gemini(&mut command),
            "qwen-code" => self.qwen(&mut command),
            "copilot-cli" => self.copilot(&mut command),
            "goose" => self.goose(&mut command),
            "pi" => self.pi(&mut command),
            "aider" => self.aider(&mut command),
            _ => panic!("no test knows how to start {agent}"),
        }
        command
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn claude(&self, command: &mut Command) {
        command
            .env("ANTHROPIC_BASE_URL", self.api.url())
            .env("ANTHROPIC_API_KEY", KEY)
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("IS_SANDBOX", "1")
            .args(["-p", PROMPT, "--output-format", "stream-json", "--verbose"])
            .arg("--dangerously-skip-permissions");
    }

    fn codex(&self, command: &mut Command) {
        let settings = format!(
            r#"
            model = "gpt-5-codex"
            model_provider = "stand-in"
            approval_policy = "never"
            sandbox_mode = "danger-full-access"
            check_for_update_on_startup = false
            [model_providers.stand-in]
            name = "stand-in"
            base_url = "{}"
            env_key = "STAND_IN_KEY"
            wire_api = "responses"
            request_max_retries = 1
            stream_max_retries = 1
            [analytics]
            enabled = false
            "#,
            self.api.openai_url()
        );
        self.write(".codex/config.toml", &settings);
        command
            .env("STAND_IN_KEY", KEY)
            .args(["exec", "--json", PROMPT]);
    }

    fn opencode(&self, command: &mut Command) {
        let settings = serde_json::json!({
            "provider": {"stand-in": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": self.api.openai_url(), "apiKey": KEY},
                "models": {"stand-in": {"limit": {"context": 200_000, "output": 8_000}}}
            }},
            "model": "stand-in/stand-in", "small_model": "stand-in/stand-in",
            "permission": "allow", "share": "disabled", "autoupdate": false
        });
        self.write("opencode.json", &settings.to_string());
        command
            .env("OPENCODE_CONFIG", self.home.join("opencode.json"))
            .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
            .env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1")
            .args(["run", "--format", "json", PROMPT]);
    }

    fn gemini(&self, command: &mut Command) {
        let settings = serde_json::json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
            "general": {"enableAutoUpdate": false},
            "privacy": {"usageStatisticsEnabled": false}
        });
        self.write(".gemini/settings.json", &settings.to_string());
        command
            .env("GEMINI_API_KEY", KEY)
            .env("GOOGLE_GEMINI_BASE_URL", self.api.url())
            .args([
                "-m",
                "gemini-2.5-flash",
                "-p",
                PROMPT,
                "-o",
                "stream-json",
                "--yolo",
            ]);
    }

    fn qwen(&self, command: &mut Command) {
        command
            .env("OPENAI_API_KEY", KEY)
            .env("OPENAI_BASE_URL", self.api.openai_url())
            .env("OPENAI_MODEL", "stand-in")
            .args([
                "--auth-type",
                "openai",
                "-p",
                PROMPT,
                "-o",
                "stream-json",
                "--yolo",
            ]);
    }

    fn copilot(&self, command: &mut Command) {
        command
            .env("COPILOT_PROVIDER_BASE_URL", self.api.openai_url())
            .env("COPILOT_PROVIDER_API_KEY", KEY)
            .env("COPILOT_MODEL", "gpt-4.1")
            .env("COPILOT_OFFLINE", "true")
            .args(["-p", PROMPT, "--allow-all", "--output-format", "json"])
            .arg("--no-auto-update");
    }

    fn goose(&self, command: &mut Command) {
        command
            .env("GOOSE_PROVIDER", "openai")
            .env("GOOSE_MODEL", "gpt-4o")
            .env("OPENAI_HOST", self.api.url())
            .env("OPENAI_API_KEY", KEY)
            .env("GOOSE_MODE", "auto")
            .env("GOOSE_DISABLE_KEYRING", "1")
            .args(["run", "-t", PROMPT, "--output-format", "stream-json", "-q"]);
    }

    fn pi(&self, command: &mut Command) {
        let settings = serde_json::json!({"providers": {"stand-in": {
            "baseUrl": self.api.openai_url(), "api": "openai-completions", "apiKey": KEY,
            "models": [{
                "id": "stand-in", "name": "stand-in", "reasoning": false, "input": ["text"],
                "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": 200_000, "maxTokens": 8_000
            }]
        }}});
        self.write(".pi/agent/models.json", &settings.to_string());
        command.env("PI_OFFLINE", "1").args([
            "--provider",
            "stand-in",
            "--model",
            "stand-in",
            "--mode",
            "json",
            "-p",
            PROMPT,
        ]);
    }

    fn aider(&self, command: &mut Command) {
        command
            .env("OPENAI_API_KEY", KEY)
            .args([
                "--model",
                "openai/stand-in",
                "--openai-api-base",
                &self.api.openai_url(),
            ])
            .args([
                "--message",
                PROMPT,
                "--yes-always",
                "--edit-format",
                "diff",
                "--no-pretty",
            ])
            .args([
                "--no-check-update",
                "--no-show-release-notes",
                "--analytics-disable",
            ])
            .args(["--no-gitignore", "--no-show-model-warnings"]);
    }
}

/// Runs a command to its end, with all that it says in a file.
fn run(mut command: Command, output: &Path) -> ExitStatus {
    let file = File::create(output).unwrap();
    command
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .process_group(0);
    let mut running = Running(command.spawn().expect("the agent starts"));
    within(crate::place::AGENT_PATIENCE, "the agent ends", || {
        running.0.try_wait().unwrap()
    })
}

/// An agent that is not left behind by a test that gives up.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Once it is waited for, its number may be another's.
        if let Ok(None) = self.0.try_wait() {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}
