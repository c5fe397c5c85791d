//! What a whole file means, and what is said of one that means nothing.

use std::collections::BTreeSet;

use super::*;

fn shown(agent: &Agent) -> String {
    match &agent.driving {
        Driving::Plain(command) => command.shown(),
        Driving::Hosted { kind, program } => format!("{kind:?}: {}", program.join(" ")),
    }
}

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
    let command = Command::Shell("sh work.sh".into());
    assert_eq!(agent.driving, Driving::Plain(command));
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
fn the_form_with_reactions_is_understood() {
    let config = parse(REACTIVE);
    assert_eq!(config.limits().running_max, Some(10));
    assert_eq!(config.runtime, Runtime::Tmux);
    assert_eq!(config.inactive(), []);
    let rules: Vec<_> = config.reactions().iter().map(|r| &r.rule.id).collect();
    assert_eq!(
        rules,
        ["ci-failed/send-to-agent", "changes-requested/send-to-agent"]
    );
    assert!(config.reactions().iter().all(|reaction| !reaction.built_in));
    assert_eq!(config.policy().fix.per_gate_max, 3);
    assert_eq!(config.policy().fix.total_max, 3, "its limit is the task's");
    assert_eq!(shown(config.agent(None).unwrap()), "ClaudeCode: claude");
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
        assert_eq!(shown(agent), "sh -c 'exit 0'");
    }
}

#[test]
fn keys_may_be_written_in_camel_case_and_in_snake_case() {
    let camel = r"
orchestrator: { maxConcurrent: 7, reviewMax: 9 }
agents: { snake_case: { command: x, passEnv: [A_*], stallTimeout: 5m } }
worktree: { setupTimeout: 1m, teardownTimeout: 2m }
limits: { fixCycles: 1, fixCyclesTotal: 5 }
logs: { maxBytes: 1MiB }
";
    let snake = r"
orchestrator: { max_concurrent: 7, review_max: 9 }
agents: { snake_case: { command: x, pass_env: [A_*], stall_timeout: 5m } }
worktree: { setup_timeout: 1m, teardown_timeout: 2m }
limits: { fix_cycles: 1, fix_cycles_total: 5 }
logs: { max_bytes: 1MiB }
";
    assert_eq!(parse(camel), parse(snake));
    let config = parse(snake);
    assert_eq!(config.limits().running_max, Some(7));
    assert_eq!(config.limits().review_max, Some(9));
    assert_eq!(config.policy().fix.total_max, 5);
    assert_eq!(config.log_bytes_max, 1 << 20);
    assert_eq!(config.agent(None).unwrap().name.as_str(), "snake_case");
}

#[test]
fn limits_budget_and_review_become_the_policy() {
    let config = parse(
        "limits: { attempts: 5, fixCycles: 2, conflicts: 0 }\n\
         budget: { tokens: 1000000, usd: 2.50 }\n\
         review: risky\n",
    );
    let policy = config.policy();
    assert_eq!((policy.attempts_max, policy.conflicts_max), (5, 0));
    assert_eq!((policy.fix.per_gate_max, policy.fix.total_max), (2, 4));
    assert_eq!(policy.budget.tokens_max, Some(1_000_000));
    assert_eq!(policy.budget.micro_usd_max, Some(2_500_000));
    assert_eq!(policy.review, ReviewRule::Risky);
    assert_eq!(policy.backoff, Policy::default().backoff);
    let quick = parse("limits: { backoff: 100ms, backoff_max: 2s }").policy();
    let (base, cap) = (quick.backoff.base, quick.backoff.cap);
    assert_eq!((base, cap), (Millis(100), Millis::from_secs(2)));
}

#[test]
fn scalars_are_taken_as_they_are_written() {
    let config = parse(
        "orchestrator: { base: 1.20 }\n\
         environment: { set: { VERSION: 1.20, FLAG: true, ANSWER: no, MODE: 0o17, EMPTY: \"\" } }\n\
         gates: [{ name: 1.10, command: true }, { name: list, command: [echo, 1.20, yes] }]\n",
    );
    assert_eq!(config.base.as_deref(), Some("1.20"));
    let set = &config.environment.set;
    let values: Vec<_> = ["VERSION", "FLAG", "ANSWER", "MODE", "EMPTY"]
        .iter()
        .map(|name| set[*name].as_str())
        .collect();
    assert_eq!(values, ["1.20", "true", "no", "0o17", ""]);
    assert_eq!(config.gates()[0].name.as_str(), "1.10");
    assert_eq!(config.gates()[0].command.argv(), ["sh", "-c", "true"]);
    assert_eq!(config.gates()[1].command.argv(), ["echo", "1.20", "yes"]);
}

#[test]
fn an_agent_adds_to_the_environment_of_the_project() {
    let config = parse(
        "environment: { pass: [CARGO_*], set: { A: project, B: project } }\n\
         agents: { mine: { command: x, env: { B: agent }, passEnv: [TOKEN] } }\n",
    );
    let rules = &config.agent(None).unwrap().environment;
    assert!(rules.passes("CARGO_HOME") && rules.passes("TOKEN") && !rules.passes("TOKEN_2"));
    assert_eq!(
        (rules.set["A"].as_str(), rules.set["B"].as_str()),
        ("project", "agent")
    );
    assert!(!config.environment.passes("TOKEN"));
}

#[test]
fn an_agent_is_found_by_name_or_refused_with_the_nearest() {
    let config = parse("agents: { one: { command: a }, two: { command: b } }");
    let name = |text: &str| -> AgentName { text.parse().unwrap() };
    assert_eq!(shown(config.agent(Some(&name("two"))).unwrap()), "b");
    let several = config.agent(None).unwrap_err();
    assert_eq!(several, NoAgent::Several(vec!["one".into(), "two".into()]));
    let unknown = config.agent(Some(&name("tow"))).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no agent `tow`");
    assert_eq!(unknown.hint(), "did you mean `two`?");
    // A program that Woodward knows needs no word about it.
    let codex = config.agent(Some(&name("codex"))).unwrap();
    assert_eq!(shown(codex), "Codex: codex");
}

#[test]
fn known_programs_are_listed_named_and_described() {
    let config = parse("agents: [claude-code, codex]");
    let names = |config: &Config| -> Vec<String> {
        let all = config.candidates(&[]).unwrap();
        all.iter().map(|agent| agent.name.to_string()).collect()
    };
    assert_eq!(names(&config), ["claude-code", "codex"]);
    let config = parse("orchestrator: { agent: [codex, mine] }\nagents: { mine: { command: a } }");
    assert_eq!(names(&config), ["codex", "mine"]);
    let config = parse(
        "agent: deep\nagents:\n  deep: { kind: claude-code, command: [/opt/claude, --debug], \
         model: opus, args: [-x], passEnv: [TOKEN], permissions: { mode: yolo, deny: [\"rm *\"] } }\n\
         permissions: { allow: [\"make *\"] }\n",
    );
    let deep = config.agent(None).unwrap();
    assert_eq!(shown(deep), "ClaudeCode: /opt/claude --debug");
    assert_eq!(deep.model.as_deref(), Some("opus"));
    assert_eq!(deep.permissions.deny, ["rm *"]);
    assert!(deep.environment.passes("ANTHROPIC_API_KEY") && deep.environment.passes("TOKEN"));
    assert!(!deep.environment.passes("OPENAI_API_KEY"));
    let codex = config.agent(Some(&"codex".parse().unwrap())).unwrap();
    assert_eq!(codex.permissions.allow, ["make *"]);
}

#[test]
fn a_command_with_a_row_has_a_host_and_a_plain_one_has_none() {
    let config = parse(
        "agents:\n  odd: { command: [odd], prompt: argument, resume: [--resume, \"{session}\"], \
         usage: { input: /in, perStep: true } }\n",
    );
    let odd = config.agent(None).unwrap();
    assert_eq!(shown(odd), "Command: odd");
    assert_eq!(odd.row.resume, ["--resume", "{session}"]);
    assert!(odd.row.usage.as_ref().unwrap().per_step);
}

#[test]
fn a_command_with_a_prompt_file_has_a_host_where_a_terminal_is_wanted() {
    let of = |runtime: &str, prompt: &str| {
        let config = parse(&format!(
            "orchestrator: {{ runtime: {runtime} }}\n\
             agents: {{ mine: {{ command: [mine], prompt: {prompt} }} }}\n"
        ));
        shown(config.agent(None).unwrap())
    };
    assert_eq!(of("tmux", "file"), "Command: mine");
    assert_eq!(of("process", "file"), "mine");
    // It reads the terminal for its prompt: there is none.
    assert_eq!(of("tmux", "stdin"), "mine");
}

#[test]
fn budgets_of_a_day_and_reserves_are_read() {
    let config = parse("budget: { usd: 5, day: { usd: 50 }, reserve: { usd: 0.5 } }");
    assert_eq!(config.day_budget.micro_usd_max, Some(50_000_000));
    assert_eq!(config.reserve.micro_usd, 500_000);
    assert_eq!(config.policy().budget.micro_usd_max, Some(5_000_000));
}

#[test]
fn everything_of_later_is_reported() {
    let config = parse(
        "orchestrator: { runtime: tmux }\n\
         agents: { codex: {}, amp: { timeout: 1h } }\n\
         gates:\n\
         - { name: a, command: a, kind: lint, paths: [src/**], when: paths, env: { A: 1 } }\n\
         - { name: b, command: b, needs: [a] }\n\
         reactions: [{ trigger: schedule, cron: 0 6 * * *, action: run, command: x, escalate: 2h }]\n\
         queue: { batch: 4 }\nnotify: {}\nisolation: { ports: [1] }\nforge: { kind: github }\n\
         tracker: {}\n",
    );
    let keys: Vec<_> = config.inactive().into_iter().map(|i| i.key).collect();
    assert_eq!(keys, ["isolation", "forge", "tracker"]);
}

#[test]
fn aliases_work_and_bombs_do_not() {
    let config = parse(
        "agents:\n  one: &it { command: x, timeout: 1h }\n  two: *it\n  three: { <<: *it, command: y }\n\
         orchestrator: { agent: two }\n",
    );
    assert_eq!(config.agent(None).unwrap().timeout, Millis::from_mins(60));
    let three = "three".parse().unwrap();
    assert_eq!(
        config.agent(Some(&three)).unwrap().timeout,
        Millis::from_mins(60)
    );

    let mut bomb = "forge:\n  l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let before = format!("*l{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("  l{level}: &l{level} [{before}]\n"));
    }
    let repeats = "nests or repeats more than any configuration needs";
    for (bad, why) in [
        (bomb, repeats),
        ("forge: &a { b: *a }".to_owned(), "not valid YAML"),
        (format!("forge: {}", "[".repeat(100_000)), repeats),
        (format!("forge: {}", "{a: ".repeat(17)), repeats),
        ("- ".repeat(100), repeats),
        (
            format!("# {}", "x".repeat(tree::TEXT_MAX)),
            "larger than 1024 KiB",
        ),
        (
            format!("forge: {{ a: [{}] }}", "1, ".repeat(300)),
            "300 entries are too many",
        ),
        (
            format!("forge: {{ a: [{}] }}", "1, ".repeat(30_000)),
            repeats,
        ),
        (
            format!("gates:\n{}", "- { name: a, command: b }\n".repeat(65)),
            "65 gates are too many",
        ),
    ] {
        let error = Config::parse(&bad, FILE_NAME).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
        assert!(error.chars().count() < 1_000, "{}", error.len());
    }
}

#[test]
fn the_schema_in_the_docs_is_the_one_of_the_code() {
    let path = std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo tells"))
        .join("../../docs/woodward.schema.json");
    if std::env::var_os("WOODWARD_REGENERATE").is_some() {
        std::fs::write(&path, schema()).unwrap();
    }
    // Compared as values: the order of keys is up to features of the JSON library.
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        value(&stored) == value(&schema()),
        "docs/woodward.schema.json is out of date; regenerate it with\n  \
         WOODWARD_REGENERATE=1 cargo test -p woodward-engine schema_in_the_docs"
    );
}

fn configuration_doc() -> String {
    let path = std::path::Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo tells"))
        .join("../../docs/configuration.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_example_in_the_docs_is_valid_and_the_defaults_are_the_defaults() {
    let doc = configuration_doc();
    let blocks = doc.split("```yaml\n").skip(1);
    let examples: Vec<_> = blocks.filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 6, "{}", examples.len());
    for example in &examples {
        parse(example);
    }
    let defaults = examples.iter().find(|text| text.starts_with("# defaults"));
    assert_eq!(parse(defaults.unwrap()), Config::default());
}

#[test]
fn every_key_and_word_is_in_the_docs() {
    fn words(schema: &serde_json::Value, found: &mut Vec<String>) {
        match schema {
            serde_json::Value::Object(map) => {
                if let Some(serde_json::Value::Object(properties)) = map.get("properties") {
                    let own = properties.keys().filter(|key| !key.contains('_'));
                    found.extend(own.cloned());
                }
                if let Some(word) = map.get("const").and_then(|word| word.as_str()) {
                    found.push(word.to_owned());
                }
                if let Some(serde_json::Value::Array(listed)) = map.get("enum") {
                    let listed = listed.iter().filter_map(|word| word.as_str());
                    found.extend(listed.map(str::to_owned));
                }
                map.values().for_each(|value| words(value, found));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| words(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    words(&serde_json::from_str(&schema()).unwrap(), &mut found);
    assert!(found.len() > 100, "{}", found.len());
    let doc = configuration_doc();
    let is_word = |c: char| c.is_alphanumeric() || c == '-';
    let said: BTreeSet<&str> = doc.split(|c| !is_word(c)).collect();
    let silent: Vec<_> = found
        .iter()
        .filter(|word| !said.contains(word.as_str()))
        .collect();
    assert!(
        silent.is_empty(),
        "not in docs/configuration.md: {silent:?}"
    );
}

mod mutations {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 400,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_mutilated_file_is_read_or_refused_and_nothing_else(
            which in 0..2usize,
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0..8usize, ".{0,4}"), 1..6),
        ) {
            let mut text: Vec<char> = [EVERYDAY, REACTIVE][which].chars().collect();
            for (at, cut, insert) in edits {
                let at = at.index(text.len() + 1);
                let end = (at + cut).min(text.len());
                text.splice(at..end, insert.chars());
            }
            let text: String = text.into_iter().collect();
            if let Err(error) = Config::parse(&text, FILE_NAME) {
                let lines = text.split('\n').count();
                for finding in error.findings() {
                    prop_assert!((1..=lines).contains(&finding.line), "{error}");
                    prop_assert!(finding.column >= 1, "{error}");
                }
                prop_assert!(!error.findings().is_empty());
                let is_clean = !error.to_string().contains(|c: char| c.is_control() && c != '\n');
                prop_assert!(is_clean, "a control character in a message");
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
            let _ = Config::parse(&text, FILE_NAME);
        }
    }
}

#[test]
fn odd_but_valid_texts_are_understood() {
    let plain = parse("limits: { attempts: 5 }\nreview: never\n");
    for text in [
        "\u{feff}limits: { attempts: 5 }\nreview: never\n",
        "limits: { attempts: 5 }\r\nreview: never\r\n",
        "limits: { attempts: 5 }\nreview: never",
        "---\nlimits: { attempts: 5 }\nreview: never\n...\n",
        "%YAML 1.2\n---\nlimits: { attempts: 5 }\nreview: never\n",
        "{\"limits\": {\"attempts\": 5}, \"review\": \"never\"}",
        "limits: { attempts: &n 5, conflicts: 3 }\nreview: !!str never\n",
        "limits:\n  conflicts: &n 3\n  attempts: 5\n  fixCycles: *n\nreview: >-\n  never\n",
        "limits: { attempts: '5' }\nreview: 'never'\n",
    ] {
        match Config::parse(text, FILE_NAME) {
            Ok(config) => assert_eq!(config, plain, "{text}"),
            Err(error) => panic!("{text:?}\n{error}"),
        }
    }
}

#[test]
fn the_place_is_right_after_wide_characters_and_returns() {
    let text = "# grüße 日本\r\nagents: { mine: { command: \"é\", tmeout: 1m } }\r\n";
    let error = Config::parse(text, "x.yaml").unwrap_err();
    let finding = &error.findings()[0];
    assert_eq!((finding.line, finding.column), (2, 33));
    assert_eq!(error.hint(), Some("did you mean `timeout`?"));
}

#[test]
fn a_model_that_nobody_is_told_of_is_refused() {
    let refused = |text: &str| Config::parse(text, "test").err().map(|e| e.to_string());
    for agent in [
        "{ command: x, model: big }",
        "{ command: x, prompt: argument, model: big }",
        "{ kind: amp, model: big }",
    ] {
        let said = refused(&format!("agents: {{ own: {agent} }}\n")).expect(agent);
        assert!(said.contains("is told its model"), "{said}");
    }
    for agent in [
        "{ command: x, modelArgs: [--model, \"{model}\"], model: big }",
        "{ kind: codex, model: big }",
    ] {
        assert_eq!(refused(&format!("agents: {{ own: {agent} }}\n")), None);
    }
}
