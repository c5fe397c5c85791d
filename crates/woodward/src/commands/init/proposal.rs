//! What a first `woodward.yaml` says: gates by the files that lie in the repository.

use std::fmt::Write as _;
use std::path::Path;

use super::gates::Tried;

/// A gate worth having.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gate {
    pub(super) name: &'static str,
    pub(super) command: String,
}

/// A first policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proposal {
    pub(super) gates: Vec<Gate>,
    agent_command: Option<String>,
}

impl Proposal {
    /// What fits a repository.
    pub(super) fn for_repository(root: &Path, agent_command: Option<String>) -> Self {
        let has = |name: &str| root.join(name).is_file();
        let holds = |name: &str, needle: &str| {
            std::fs::read_to_string(root.join(name)).is_ok_and(|text| text.contains(needle))
        };
        let command = if has("Cargo.toml") {
            Some("cargo test")
        } else if has("package.json") && holds("package.json", "\"test\"") {
            Some("npm test")
        } else if has("pyproject.toml") || has("pytest.ini") || has("setup.py") {
            Some("python -m pytest")
        } else if has("go.mod") {
            Some("go test ./...")
        } else if has("Makefile") && holds("Makefile", "\ntest:") {
            Some("make test")
        } else {
            None
        };
        let gates = command
            .map(|command| Gate {
                name: "test",
                command: command.to_owned(),
            })
            .into_iter()
            .collect();
        Self {
            gates,
            agent_command,
        }
    }

    /// The file. A gate that failed when it was tried is written as a comment: it could never pass.
    pub(super) fn render(&self, tried: &[Tried]) -> String {
        let mut text = String::from(
            "# What Woodward does in this repository. Read from the branch that tasks start\n# from: commit it. All keys: woodward help config\n\n",
        );
        match &self.agent_command {
            Some(command) => {
                let command = quoted(command);
                write!(text, "orchestrator: {{ agent: mine, maxConcurrent: 4 }}\nagents:\n  mine: {{ command: {command} }}\n")
            }
            None => write!(text, "# The command that works on tasks: its prompt is on stdin.\n# orchestrator: {{ agent: mine, maxConcurrent: 4 }}\n# agents:\n#   mine: {{ command: \"sh work.sh\" }}\n"),
        }
        .expect("a string takes any text");
        let failed = |gate: &&Gate| tried.iter().any(|t| t.name == gate.name && !t.passed);
        let line = |gate: &Gate| {
            format!(
                "  - {{ name: {}, command: {}, timeout: 10m }}\n",
                gate.name,
                quoted(&gate.command)
            )
        };
        let active: String = self
            .gates
            .iter()
            .filter(|gate| !failed(gate))
            .map(line)
            .collect();
        text += if active.is_empty() {
            "\n# gates:\n"
        } else {
            "\ngates:\n"
        };
        text += &active;
        for gate in self.gates.iter().filter(failed) {
            text += &format!("#{} # failed when init ran it\n", line(gate).trim_end());
        }
        if self.gates.is_empty() {
            text += "#   - { name: test, command: \"make test\", timeout: 10m }\n";
        }
        text + "\n# Who looks before a verified task lands: always | risky | never\nreview: always\n"
    }
}

/// A text in double quotes, as YAML and JSON read it alike.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is plain data")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn proposal(files: &[(&str, &str)], agent: Option<&str>) -> Proposal {
        let dir = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).expect("a file");
        }
        Proposal::for_repository(dir.path(), agent.map(Into::into))
    }

    #[test]
    fn gates_follow_the_files() {
        for (files, command) in [
            (
                vec![("Cargo.toml", ""), ("Makefile", "a:\ntest:\n")],
                Some("cargo test"),
            ),
            (
                vec![("package.json", "{\"scripts\":{\"test\":\"x\"}}")],
                Some("npm test"),
            ),
            (vec![("package.json", "{}")], None),
            (vec![("pytest.ini", "")], Some("python -m pytest")),
            (vec![("go.mod", "")], Some("go test ./...")),
            (
                vec![("Makefile", "all:\n\ntest:\n\ttrue\n")],
                Some("make test"),
            ),
            (vec![], None),
        ] {
            let gates = proposal(&files, None).gates;
            assert_eq!(
                gates.first().map(|g| g.command.as_str()),
                command,
                "{files:?}"
            );
        }
    }

    #[test]
    fn a_first_file_is_ready_to_use() {
        let text = proposal(&[("Cargo.toml", "")], Some("sh -c \"work\"")).render(&[]);
        assert_snapshot!(text, @r#"
        # What Woodward does in this repository. Read from the branch that tasks start
        # from: commit it. All keys: woodward help config

        orchestrator: { agent: mine, maxConcurrent: 4 }
        agents:
          mine: { command: "sh -c \"work\"" }

        gates:
          - { name: test, command: "cargo test", timeout: 10m }

        # Who looks before a verified task lands: always | risky | never
        review: always
        "#);
    }

    #[test]
    fn a_gate_that_fails_is_a_comment() {
        let found = proposal(&[("go.mod", "")], None);
        let tried = Tried {
            name: "test".into(),
            command: "go test ./...".into(),
            passed: false,
            how: "exit 1".into(),
            took_ms: 1,
        };
        assert_snapshot!(found.render(&[tried]), @r#"
        # What Woodward does in this repository. Read from the branch that tasks start
        # from: commit it. All keys: woodward help config

        # The command that works on tasks: its prompt is on stdin.
        # orchestrator: { agent: mine, maxConcurrent: 4 }
        # agents:
        #   mine: { command: "sh work.sh" }

        # gates:
        #  - { name: test, command: "go test ./...", timeout: 10m } # failed when init ran it

        # Who looks before a verified task lands: always | risky | never
        review: always
        "#);
    }
}
