//! Which gates and which setup a project needs, derived from the files of a checkout, and which
//! agent programs are installed.
//!
//! It only proposes and never runs anything: the caller tries each proposal once in a fresh worktree
//! and keeps those that pass. All text of a repository is untrusted.

mod cargo;
mod ci;
mod files;
mod go;
mod ignored;
mod make;
mod node;
mod php;
mod python;
mod ruby;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use woodward_agents::Facts;
use woodward_agents::catalog::KNOWN;
use woodward_core::{GateName, Millis};

use super::{Command, GateSpec};
use crate::agent::available::find;

pub use files::Files;
pub use ignored::{env_files, may_be_needed};

/// The most gates that are proposed.
const GATES_MAX: usize = 6;
/// The most setup commands that are proposed.
const SETUP_MAX: usize = 8;

/// The known agent programs on a search path, best first: those that were tested before others.
pub fn installed(path: &str) -> Vec<&'static Facts> {
    let there = |facts: &&&'static Facts| find(facts.program, path).is_some();
    let (tested, others): (Vec<_>, Vec<_>) = KNOWN.iter().partition(|facts| facts.tested.is_some());
    tested
        .iter()
        .chain(&others)
        .filter(|facts| there(facts))
        .copied()
        .collect()
}

/// A gate that a project is likely to want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The gate.
    pub gate: GateSpec,
    /// What made it likely, such as `Cargo.toml`.
    pub because: String,
}

/// A command that a new worktree is likely to need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupProposal {
    /// What to run.
    pub command: String,
    /// What made it likely, such as `package-lock.json`.
    pub because: String,
}

/// Everything that is proposed for a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proposals {
    /// Commands that make a new worktree ready, in order.
    pub setup: Vec<SetupProposal>,
    /// Gates, cheap ones first.
    pub gates: Vec<Proposal>,
    /// Test gates to try where no test gate of the list above passes, best first.
    pub fallbacks: Vec<Proposal>,
}

/// What a gate checks. Its name is the gate's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Check {
    Format,
    Lint,
    Types,
    Build,
    Test,
}

impl Check {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Lint => "lint",
            Self::Types => "types",
            Self::Build => "build",
            Self::Test => "test",
        }
    }
}

/// A gate before it has a unique name.
#[derive(Clone, Debug)]
struct Candidate {
    /// What makes its name unique where several gates check the same.
    tool: String,
    check: Check,
    command: String,
    because: String,
}

/// What one ecosystem finds in one directory.
#[derive(Clone, Debug, Default)]
struct Detected {
    setup: Vec<SetupProposal>,
    gates: Vec<Candidate>,
}

impl Detected {
    fn setup(&mut self, command: impl Into<String>, because: impl Into<String>) {
        self.setup.push(SetupProposal {
            command: command.into(),
            because: because.into(),
        });
    }

    fn gate(
        &mut self,
        tool: &str,
        check: Check,
        command: impl Into<String>,
        because: impl Into<String>,
    ) {
        self.gates.push(Candidate {
            tool: tool.to_owned(),
            check,
            command: command.into(),
            because: because.into(),
        });
    }

    fn tests(&self) -> bool {
        self.gates.iter().any(|gate| gate.check == Check::Test)
    }

    /// The same, run in a directory of the repository.
    fn below(mut self, dir: &str) -> Self {
        let name: String = dir
            .to_ascii_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        for setup in &mut self.setup {
            setup.command = format!("cd {dir} && {}", setup.command);
            setup.because = format!("{} in {dir}", setup.because);
        }
        for gate in &mut self.gates {
            gate.command = format!("cd {dir} && {}", gate.command);
            gate.because = format!("{} in {dir}", gate.because);
            gate.tool.clone_from(&name);
        }
        self
    }
}

/// One function for each ecosystem, in the order in which their gates are proposed.
const ECOSYSTEMS: [fn(&Files) -> Detected; 7] = [
    cargo::detect,
    node::detect,
    python::detect,
    go::detect,
    ruby::detect,
    php::detect,
    table::detect,
];

/// The gates and the setup that a project is likely to want. Tests are kept before other checks.
pub fn propose(files: &Files) -> Proposals {
    let mut found = Detected::default();
    for detect in ECOSYSTEMS {
        let root = detect(files);
        let is_covered = root.tests();
        found.setup.extend(root.setup);
        found.gates.extend(root.gates);
        if !is_covered {
            for (dir, package) in &files.packages {
                let nested = detect(package);
                // Without a gate of its own, its setup has no use either.
                if !nested.gates.is_empty() {
                    let nested = nested.below(dir);
                    found.setup.extend(nested.setup);
                    found.gates.extend(nested.gates);
                }
            }
        }
    }
    let mut fallbacks = Vec::new();
    for candidate in make::detect(files)
        .gates
        .into_iter()
        .chain(ci::detect(files))
    {
        let same = |gate: &Candidate| gate.command == candidate.command;
        let is_known = found.gates.iter().chain(&fallbacks).any(same);
        // Tests build what they test.
        if is_known || (candidate.check == Check::Build && found.tests()) {
            continue;
        }
        if !found.gates.iter().any(|it| it.check == candidate.check) {
            found.gates.push(candidate);
        } else if candidate.check == Check::Test {
            fallbacks.push(candidate);
        }
    }
    while found.gates.len() > GATES_MAX {
        let spare = found.gates.iter().rposition(|it| it.check != Check::Test);
        found.gates.remove(spare.unwrap_or(found.gates.len() - 1));
    }
    let mut seen = BTreeSet::new();
    found.setup.retain(|it| seen.insert(it.command.clone()));
    found.setup.truncate(SETUP_MAX);
    fallbacks.truncate(GATES_MAX);
    let mut taken = BTreeSet::new();
    Proposals {
        setup: found.setup,
        gates: named(found.gates, &mut taken),
        fallbacks: named(fallbacks, &mut taken),
    }
}

/// Candidates with names of which each occurs once.
fn named(candidates: Vec<Candidate>, taken: &mut BTreeSet<GateName>) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    for candidate in candidates {
        let (tool, check) = (candidate.tool.trim_matches('-'), candidate.check.as_str());
        let numbered = (2..100).map(|number| format!("{tool}-{check}-{number}"));
        let mut names = [check.to_owned(), format!("{tool}-{check}")]
            .into_iter()
            .chain(numbered)
            .filter_map(|name| name.parse::<GateName>().ok());
        let Some(name) = names.find(|name| !taken.contains(name)) else {
            continue;
        };
        taken.insert(name.clone());
        let command = Command::Shell(candidate.command);
        proposals.push(Proposal {
            gate: GateSpec::new(name, command, Millis::from_mins(10)),
            because: candidate.because,
        });
    }
    proposals
}
