//! `woodward attach`, with a daemon.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use woodward_testkit::agents::Programs;
use woodward_testkit::model_api::ModelApi;
use woodward_testkit::patience::until;
use woodward_testkit::{Ran, TestDaemon, TestRepo};

use crate::scene::{Person, WOODWARD, long_text};

const KEY: &str = "sk-ant-stand-in-0123456789abcdef";

struct Office {
    daemon: TestDaemon,
    repo: TestRepo,
    api: ModelApi,
}

impl Office {
    fn new(config: &str) -> Self {
        let repo = TestRepo::with(&[("woodward.yaml", config), ("README.md", "A shop.\n")]);
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let mut daemon = TestDaemon::at_home(WOODWARD, home);
        let api = ModelApi::start();
        let programs = Programs::installed().expect("the agents are installed");
        let own = std::path::Path::new(WOODWARD)
            .parent()
            .expect("a directory");
        let path = std::env::var("PATH").expect("a path");
        let path = format!("{}:{}:{path}", own.display(), programs.bin().display());
        daemon.set("PATH", path);
        daemon.set("LANG", "C.UTF-8");
        daemon.set("ANTHROPIC_BASE_URL", api.url());
        daemon.set("ANTHROPIC_API_KEY", KEY);
        // As a person has it who has used it here before.
        let settings = serde_json::json!({
            "hasCompletedOnboarding": true, "theme": "dark", "numStartups": 5,
            "customApiKeyResponses": {"approved": [KEY[KEY.len() - 20..]], "rejected": []},
            "projects": {repo.root().display().to_string(): {
                "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true
            }}
        });
        let file = daemon.home().join(".claude.json");
        std::fs::write(file, settings.to_string()).expect("a file");
        let office = Self { daemon, repo, api };
        office.ok(&["init", "-q"]);
        office
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.daemon.run(self.repo.root(), args)
    }

    fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "woodward {args:?}: {ran:#?}");
        ran
    }

    /// A person who types a line in the repository.
    fn person(&self, name: &str, line: &str) -> Person {
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

    fn is_running(&self, task: &str) -> bool {
        self.run(&["show", task]).stdout.contains("working")
    }
}

const SHELL: &str = "orchestrator: { agent: shell }\nagents:\n  shell: { command: sh }\n";

#[test]
fn an_agent_without_a_terminal_is_looked_at_until_it_ends() {
    let office = Office::new(SHELL);
    let go = office.daemon.home().join("go");
    let script = format!(
        "echo hello; while [ ! -e {} ]; do sleep 0.1; done; echo bye; echo x > x; exit 0",
        go.display()
    );
    office.ok(&["create", "one", "-p", &script]);
    until("it runs", || office.is_running("one"));
    let ada = office.person("ada", "attach one");
    ada.until_sees("you can only look");
    ada.until_sees("hello");
    ada.presses("C-q");
    ada.until_sees("left one; its agent goes on");
    ada.until_sees("LEFT 0");
    let bob = office.person("bob", "attach one");
    bob.until_sees("hello");
    std::fs::write(&go, "").unwrap();
    bob.until_sees("bye");
    bob.until_sees("LEFT 0");
    // Afterwards there is nothing to attach to, and it says what to do instead.
    until("it is over", || !office.is_running("one"));
    let ran = office.run(&["attach", "one"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("no agent of one runs now"), "{ran:?}");
    ran.hinted("logs");
    let none = office.run(&["attach", "nobody"]);
    assert!(!none.hints().is_empty(), "{none:?}");
}

#[test]
fn what_has_no_conversation_is_not_taken_over() {
    let office = Office::new(SHELL);
    office.ok(&["create", "one", "-p", "echo hello; exec sleep 1000"]);
    until("it runs", || office.is_running("one"));
    let ran = office.run(&["attach", "one", "--takeover"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("no conversation"), "{ran:?}");
    ran.hinted("logs");
    office.ok(&["cancel", "one"]);
}

#[test]
fn with_tmux_a_person_joins_types_and_leaves_and_messages_arrive_meanwhile() {
    let config = "orchestrator: { agent: claude-code, runtime: tmux }\n";
    let office = Office::new(config);
    let prompt = "stand-in: slow 8; say First.";
    office.ok(&["create", "one", "-p", prompt]);
    until("it works in a terminal", || {
        office
            .api
            .find(|request| request.user_says("say First."))
            .is_some()
    });
    let ada = office.person("ada", "attach one");
    ada.until_sees("First.");
    ada.until_sees("❯");
    // Its session is on a server of our own.
    let socket = office.daemon.state().join("tmux.sock");
    let tmux = |args: &[&str]| {
        let mut command = Command::new("tmux");
        let output = command.arg("-S").arg(&socket).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let sessions = tmux(&["list-sessions", "-F", "#{session_name}"]);
    assert!(sessions.starts_with("one-"), "{sessions:?}");
    let target = format!("={}:", sessions.trim());
    tmux(&["copy-mode", "-t", &target]);
    let text = long_text("stand-in: write b.txt=second; say Second.");
    office.ok(&["prompt", "one", &text]);
    office
        .api
        .expect("every word", |request| request.user_says(text.trim()));
    let worktree = office.repo.around().join("shop.worktrees/one");
    until("it did it", || worktree.join("b.txt").exists());
    // The daemon and tmux may die; the agent does not.
    let health: serde_json::Value =
        serde_json::from_str(&office.ok(&["up", "--json"]).stdout).unwrap();
    let daemon = i32::try_from(health["data"]["pid"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(daemon).unwrap(), Signal::KILL).unwrap();
    let server: i32 = tmux(&["display-message", "-p", "#{pid}"])
        .trim()
        .parse()
        .unwrap();
    kill_process(Pid::from_raw(server).unwrap(), Signal::KILL).unwrap();
    // Who had joined stays, without tmux.
    until("she has a client of her own", || {
        let client = ada.client().as_raw_nonzero().get();
        let line = std::fs::read(format!("/proc/{client}/cmdline")).unwrap_or_default();
        let children = format!("/proc/{client}/task/{client}/children");
        let alone = std::fs::read_to_string(children).is_ok_and(|all| all.trim().is_empty());
        alone && String::from_utf8_lossy(&line).contains("attach")
    });
    ada.until_sees("Second.");
    ada.presses("C-q");
    ada.until_sees("LEFT 0");
    let bob = office.person("bob", "attach one");
    bob.until_sees("Second.");
    bob.types("stand-in: write c.txt=third; say Third.");
    bob.until_sees("say Third.");
    bob.presses("Enter");
    until("it did it", || worktree.join("c.txt").exists());
    bob.presses("C-q");
    bob.until_sees("LEFT 0");
    office.ok(&["wait", "one", "--until", "review", "--timeout", "60s"]);
}
