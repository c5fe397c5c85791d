//! What a whole file means, and what is said of one that means nothing.

use super::*;

fn parse(text: &str) -> Config {
    Config::parse(text, FILE_NAME).unwrap_or_else(|error| panic!("{error}"))
}

const EVERYDAY: &str = r#"orchestrator: { agent: mine, maxConcurrent: 4 }
agents:
  mine: { command: "sh work.sh" }          # prompt on stdin, cwd = worktree
gates:
  - { name: test, command: "cargo test", timeout: 10m }
review: always                              # always | risky | never (verified tasks queue themselves)
worktree: { copy: [".env"], setup: ["npm ci"] }
"#;

const REACTIVE: &str = r#"orchestrator:
  runtime: tmux
  agent: claude-code
  maxConcurrent: 10
reactions:
  - trigger: ci-failed
    action: send-to-agent
    prompt: "CI failed with errors: {{errors}}. Fix the issues."
    maxRetries: 3
  - trigger: changes-requested
    action: send-to-agent
    prompt: "Address review comments: {{comments}}"
    escalate: true
"#;

#[test]
fn the_everyday_form_is_understood() {
    let config = parse(EVERYDAY);
    let agent = config.agent(None).unwrap();
    assert_eq!(agent.name.as_str(), "mine");
    assert_eq!(agent.command, Command::Shell("sh work.sh".into()));
    assert_eq!(agent.prompt, PromptBy::Stdin);
    assert_eq!(agent.timeout, Millis::from_mins(120));
    assert_eq!(agent.stall_timeout, Some(Millis::from_mins(20)));
    assert_eq!(config.limits().running_max, Some(4));
    let [gate] = config.gates() else {
        panic!("one gate")
    };
    assert_eq!(gate.name.as_str(), "test");
    assert_eq!(gate.timeout, Millis::from_mins(10));
    assert!(gate.required);
    assert_eq!(config.worktree.copy, [".env"]);
    assert_eq!(config.worktree.setup[0].shown(), "npm ci");
    assert_eq!(config.policy(), Policy::default());
    assert_eq!(config.inactive(), []);
}

#[test]
fn the_form_with_reactions_is_understood_and_reported_as_not_yet_active() {
    let config = parse(REACTIVE);
    assert_eq!(config.limits().running_max, Some(10));
    assert_eq!(config.runtime, Runtime::Tmux);
    let keys: Vec<_> = config.inactive().into_iter().map(|i| i.key).collect();
    assert_eq!(
        keys,
        ["orchestrator.runtime", "reactions", "orchestrator.agent"]
    );
    let refused = config.agent(None).unwrap_err();
    assert_eq!(
        refused,
        NoAgent::NotYetActive("claude-code".parse().unwrap())
    );
}

#[test]
fn an_empty_file_is_all_defaults() {
    for empty in [
        "",
        "\n\n",
        "# nothing yet\n",
        "---\n",
        "{}",
        "null",
        "gates:\nagents:\nworktree:\n",
    ] {
        assert_eq!(parse(empty), Config::default(), "{empty:?}");
    }
    let config = Config::default();
    assert_eq!(config.policy(), Policy::default());
    assert_eq!(config.limits().running_max, Some(4));
    assert_eq!(config.limits().review_max, None);
    assert_eq!(config.agent(None), Err(NoAgent::None));
}

#[test]
fn an_agent_can_be_written_in_place() {
    for text in [
        "agent: { command: \"sh -c 'exit 0'\" }",
        "orchestrator: { agent: { command: \"sh -c 'exit 0'\", stall_timeout: off } }",
    ] {
        let config = parse(text);
        let agent = config.agent(None).unwrap();
        assert_eq!(agent.name.as_str(), "agent");
        assert_eq!(agent.command.shown(), "sh -c 'exit 0'");
    }
}
