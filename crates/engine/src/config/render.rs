//! The `woodward.yaml` that `init` writes: short, with a word on each part, and valid as it stands.

use std::fmt::Write;

use woodward_agents::Facts;
use woodward_agents::catalog::KNOWN;
use woodward_core::hint::{NextCommand, Word};

use super::detect::{Proposal, SetupProposal};
use super::error::printable;
use super::values::TimeSpan;

/// A proposed gate after it was run once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The gate.
    pub proposal: Proposal,
    /// Why it did not pass, in a few words, if it did not.
    pub failure: Option<String>,
}

/// A proposed setup command after it was run once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriedSetup {
    /// The command.
    pub proposal: SetupProposal,
    /// Why it failed, in a few words, if it did.
    pub failure: Option<String>,
}

/// How a new worktree is made ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorktreeSetup {
    /// Ignored files that are copied.
    pub copy: Vec<String>,
    /// Commands that are run.
    pub setup: Vec<TriedSetup>,
}

const HEAD: &str = r#"# How Woodward works on this repository. Every key: docs/configuration.md of Woodward.
# It is read from the commit that tasks start from: commit your changes to it.

"#;

/// Who works on tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers<'a> {
    /// A command that the person named.
    Command(&'a str),
    /// The known programs that are installed, best first; maybe none.
    Programs(&'a [&'static Facts]),
}

/// What the programs are called that need no command.
fn known() -> String {
    let names: Vec<&str> = tested().map(|facts| facts.name).collect();
    names.join(", ")
}

fn tested() -> impl Iterator<Item = &'static Facts> {
    KNOWN.iter().filter(|facts| facts.tested.is_some())
}

/// Any other program.
const MINE: &str = r#"
# Any command that reads the prompt on standard input and changes files in the current directory can
# be an agent too, with `agent: mine` above:
# agents:
#   mine: { command: "sh work.sh" }
"#;

/// How a task gets another agent than the first one.
fn for_one_task(agent: &Facts) -> String {
    let agent = Word::from(&agent.name);
    let task = "fix-login".parse();
    task.map_or_else(
        |_| String::new(),
        |task| NextCommand::CreateWithAgent { task, agent }.to_string(),
    )
}

/// The part that says who works on tasks.
fn workers(workers: Workers<'_>) -> String {
    let orchestrator = |note: &str, agent: &str| {
        format!("orchestrator:\n{note}  agent: {agent}\n  maxConcurrent: 4\n")
    };
    match workers {
        Workers::Command(command) => {
            let known = format!("  # Or one that needs no command: {}\n", known());
            let command = quoted(command);
            let mine = format!("\nagents:\n  mine:\n    command: {command}\n");
            orchestrator(&known, "mine") + &mine
        }
        Workers::Programs([first, others @ ..]) => {
            let mut text = orchestrator("", first.name);
            if !others.is_empty() {
                let names: Vec<&str> = others.iter().map(|facts| facts.name).collect();
                let names = names.join(", ");
                text += &format!(
                    "\n# Installed here too: {names}. For one task:\n\
                     #   {}\n\
                     # With this in place of `agent` above, each goes on where the one before it must wait:\n\
                     # agents: [{}, {names}]\n",
                    for_one_task(others[0]),
                    first.name
                );
            }
            text + MINE
        }
        Workers::Programs([]) => {
            let note = format!(
                "  # No program that Woodward knows was found here. Install this one, or name another:\n  # {}\n",
                known()
            );
            orchestrator(&note, KNOWN[0].name) + MINE
        }
    }
}

const REVIEW: &str = r#"
# always: a person approves every result · risky: only risky ones · never: what is verified lands
review: always
"#;

const NO_GATES: &str = r#"# Nothing was found that checks results. Write the commands that must pass, such as:
# gates:
#   - { name: test, command: "make test", timeout: 10m }
"#;

/// The part that makes a new worktree ready.
fn worktree(worktree_setup: &WorktreeSetup) -> String {
    let mut text = String::from(
        "\nworktree:\n  # Ignored files that every task needs, copied from this checkout; agents can read them.\n",
    );
    if worktree_setup.copy.is_empty() {
        text.push_str("  copy: []\n");
    } else {
        text.push_str("  copy:\n");
        for path in &worktree_setup.copy {
            text.push_str(&format!("    - {}\n", quoted(path)));
        }
    }
    text.push_str("  # Commands that make a new worktree ready, such as \"npm ci\".\n");
    if worktree_setup
        .setup
        .iter()
        .any(|tried| tried.failure.is_none())
    {
        text.push_str("  setup:\n");
    } else {
        text.push_str("  setup: []\n");
    }
    for TriedSetup { proposal, failure } in &worktree_setup.setup {
        let comment = match failure {
            None => "",
            Some(reason) => {
                text.push_str(&format!(
                    "    # Failed when it was tried: {}\n",
                    one_line(reason)
                ));
                "# "
            }
        };
        text.push_str(&format!("    {comment}- {}\n", quoted(&proposal.command)));
    }
    text
}

/// A reason that stays inside its comment, whatever a program printed.
fn one_line(reason: &str) -> String {
    let reason = printable(&reason.replace(['\n', '\r'], " "), 200);
    reason.trim().to_owned()
}

/// The text of the file. Gates that did not pass are there as comments, with the reason.
pub fn render(tried: &[Tried], worktree_setup: &WorktreeSetup, who: Workers<'_>) -> String {
    let mut text = HEAD.to_owned();
    text.push_str(&workers(who));
    text.push_str("\n# Commands that must pass on every result, in order.\n");
    if tried.is_empty() {
        text.push_str(NO_GATES);
    }
    if tried.iter().any(|tried| tried.failure.is_none()) {
        text.push_str("gates:\n");
    } else {
        text.push_str("gates: []\n");
    }
    for Tried { proposal, failure } in tried {
        let gate = &proposal.gate;
        let comment = match failure {
            None => "",
            Some(reason) => {
                text.push_str(&format!(
                    "  # Did not pass when it was tried: {}\n",
                    one_line(reason)
                ));
                "# "
            }
        };
        let command = gate.command.shown();
        let entry = [
            format!("- name: {}", gate.name),
            format!("  command: {}", quoted(&command)),
            format!("  timeout: {}", TimeSpan(gate.timeout)),
        ];
        for line in entry {
            writeln!(text, "  {comment}{line}").expect("writing to a string");
        }
    }
    text.push_str(REVIEW);
    text.push_str(&worktree(worktree_setup));
    text
}

/// A text in YAML's double quotes: as JSON has it, with what YAML does not take literally escaped.
fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    let mut quoted = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') {
            quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            quoted.push(c);
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::super::detect::{Files, propose};
    use super::super::{Command, Config, FILE_NAME};
    use super::*;

    const NONE: Workers<'static> = Workers::Programs(&[]);

    #[test]
    fn the_best_installed_program_works_and_the_others_are_named() {
        let of = |name| Facts::by_name(name).unwrap();
        let text = render(
            &[],
            &WorktreeSetup::default(),
            Workers::Programs(&[of("codex"), of("pi")]),
        );
        let config = Config::parse(&text, FILE_NAME).unwrap();
        assert_eq!(config.agent(None).unwrap().name.as_str(), "codex");
        let more = text
            .replace("  agent: codex\n", "")
            .replace("# agents: [codex", "agents: [codex");
        let config = Config::parse(&more, FILE_NAME).unwrap();
        assert_eq!(config.candidates(&[]).unwrap().len(), 2);
        let head = text.split("# Commands that must").next().unwrap();
        insta::assert_snapshot!(head.trim_end(), @r#"
        # How Woodward works on this repository. Every key: docs/configuration.md of Woodward.
        # It is read from the commit that tasks start from: commit your changes to it.

        orchestrator:
          agent: codex
          maxConcurrent: 4

        # Installed here too: pi. For one task:
        #   woodward create fix-login --agent pi -p "what to do"
        # With this in place of `agent` above, each goes on where the one before it must wait:
        # agents: [codex, pi]

        # Any command that reads the prompt on standard input and changes files in the current directory can
        # be an agent too, with `agent: mine` above:
        # agents:
        #   mine: { command: "sh work.sh" }
        "#);
    }

    fn proposals() -> Vec<Proposal> {
        let mut files = Files::default();
        for name in ["Cargo.toml", "go.mod"] {
            files.names.insert(name.to_owned());
        }
        propose(&files).gates
    }

    fn tried(failure: impl Fn(usize) -> Option<String>) -> Vec<Tried> {
        let one = |(at, proposal)| Tried {
            proposal,
            failure: failure(at),
        };
        proposals().into_iter().enumerate().map(one).collect()
    }

    #[test]
    fn the_file_reads_back_as_what_was_proposed() {
        let tried = tried(|_| None);
        let config =
            Config::parse(&render(&tried, &WorktreeSetup::default(), NONE), FILE_NAME).unwrap();
        let wanted: Vec<_> = tried.into_iter().map(|tried| tried.proposal.gate).collect();
        assert_eq!(config.gates(), wanted);
        assert_eq!(config.agent(None).unwrap().name.as_str(), "claude-code");
        assert_eq!(config.inactive(), []);
        Config::parse(&render(&[], &WorktreeSetup::default(), NONE), FILE_NAME).unwrap();
    }

    #[test]
    fn a_gate_that_failed_is_a_comment_whatever_it_printed() {
        let hostile = "exit 1\ngates: [{ name: evil, command: rm }]\r\u{1b}[31m\u{85}- name: x";
        let tried = tried(|at| (at == 0).then(|| hostile.to_owned()));
        let text = render(&tried, &WorktreeSetup::default(), NONE);
        assert!(!text.contains('\u{1b}'));
        let config = Config::parse(&text, FILE_NAME).unwrap();
        let names: Vec<_> = config
            .gates()
            .iter()
            .map(|gate| gate.name.as_str())
            .collect();
        assert_eq!(names, ["lint", "go-test"]);
        let all_failed: Vec<_> = tried
            .into_iter()
            .map(|tried| Tried {
                failure: Some(hostile.to_owned()),
                ..tried
            })
            .collect();
        let config = Config::parse(
            &render(&all_failed, &WorktreeSetup::default(), NONE),
            FILE_NAME,
        )
        .unwrap();
        assert_eq!(config.gates(), []);
    }

    #[test]
    fn uncommenting_a_failed_gate_is_all_it_takes() {
        let text = render(
            &tried(|at| (at == 1).then(|| "exit 1".to_owned())),
            &WorktreeSetup::default(),
            NONE,
        );
        let kept = text.lines().filter(|line| !line.contains("Did not pass"));
        let text: String = kept
            .map(|line| match line.strip_prefix("  # ") {
                Some(rest) if rest.starts_with(['-', ' ']) => format!("  {rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        assert_eq!(Config::parse(&text, FILE_NAME).unwrap().gates().len(), 3);
    }

    #[test]
    fn quotes_in_commands_survive() {
        let mut one = tried(|_| None).remove(0);
        let odd = "echo \"a\\b\" 'c' # d: {e}\t\u{7f}é\u{2028}\nnext";
        one.proposal.gate.command = Command::Shell(odd.to_owned());
        let config =
            Config::parse(&render(&[one], &WorktreeSetup::default(), NONE), FILE_NAME).unwrap();
        assert_eq!(config.gates()[0].command.shown(), odd);
    }

    #[test]
    fn setup_reads_back_and_what_failed_is_a_comment() {
        let setup = |command: &str, failure: Option<&str>| TriedSetup {
            proposal: SetupProposal {
                command: command.to_owned(),
                because: String::new(),
            },
            failure: failure.map(str::to_owned),
        };
        let mut worktree_setup = WorktreeSetup {
            copy: vec![".env".into(), "a \"b\"".into()],
            setup: vec![
                setup("npm ci", None),
                setup("uv sync", Some("exit 1\nsetup: [x]")),
            ],
        };
        let text = render(&[], &worktree_setup, NONE);
        let config = Config::parse(&text, FILE_NAME).unwrap();
        assert_eq!(config.worktree.copy, worktree_setup.copy);
        let shown: Vec<_> = config.worktree.setup.iter().map(Command::shown).collect();
        assert_eq!(shown, ["npm ci"]);
        assert!(
            text.contains("# Nothing was found that checks results."),
            "{text}"
        );
        worktree_setup.setup.remove(0);
        let config = Config::parse(&render(&[], &worktree_setup, NONE), FILE_NAME).unwrap();
        assert!(config.worktree.setup.is_empty());
    }

    #[test]
    fn a_named_agent_is_the_one_that_works() {
        let odd = "sh -c \"work 'hard'\" # really";
        let config = Config::parse(
            &render(&[], &WorktreeSetup::default(), Workers::Command(odd)),
            FILE_NAME,
        )
        .unwrap();
        let crate::config::Driving::Plain(command) = &config.agent(None).unwrap().driving else {
            panic!("a plain command");
        };
        assert_eq!(command.shown(), odd);
    }

    #[test]
    fn the_file_looks_like_this() {
        let tried = tried(|at| (at == 1).then(|| "exit 127: go: not found".to_owned()));
        let text = render(&tried, &WorktreeSetup::default(), NONE);
        let gates = text.split("in order.\n").nth(1).unwrap();
        insta::assert_snapshot!(gates.split("\n\n").next().unwrap(), @r#"
        gates:
          - name: test
            command: "cargo test"
            timeout: 10m
          # Did not pass when it was tried: exit 127: go: not found
          # - name: lint
          #   command: "go vet ./..."
          #   timeout: 10m
          - name: go-test
            command: "go test ./..."
            timeout: 10m
        "#);
    }
}
