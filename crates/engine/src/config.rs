//! `woodward.yaml`: what a project wants, read strictly.
//!
//! A file is either understood as a whole or refused with the place and the reason: an unknown key,
//! a wrong type or a reference to nothing is never skipped. The caller says which text to read; it
//! must be the trusted base commit's, never the agent's branch's. Only [`detect::Files::load`] and a
//! person's own files ([`OwnDaemon::load`]) touch the disk.

mod agent;
mod branch;
mod check;
mod command;
mod daemon;
mod de;
pub mod detect;
mod environment;
mod error;
mod file;
mod gate;
mod later;
#[cfg(test)]
mod messages;
mod near;
mod notify;
mod reaction;
pub mod regenerate;
pub mod render;
mod schema;
#[cfg(test)]
mod tests;
mod tree;
pub mod trial;
mod values;

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;
use woodward_agents::Kind;
use woodward_agents::adapters::command::Row;
use woodward_agents::permission::Rules;
use woodward_core::budget::{Budget, Spend};
use woodward_core::fix::FixBudget;
use woodward_core::gate::GateKind;
use woodward_core::policy::ReviewRule;
use woodward_core::reaction::pattern;
use woodward_core::risk::FileSizeLimits;
use woodward_core::schedule::Limits;
use woodward_core::{AgentName, GateName, Millis, Policy};

pub use agent::PromptBy;
pub use branch::BranchPattern;
pub use command::Command;
pub use daemon::{Listen, OwnDaemon};
pub use environment::{EnvPattern, OWN_PREFIX};
pub(crate) use error::printable;
pub use error::{ConfigError, Finding};
pub use file::{ConflictPolicy, MergeAuthor, MergeStyle, Runtime};
pub use gate::ScopeRule;
pub use near::nearest;
pub use notify::{ChannelSpec, Notify, Retry, Way};
pub use reaction::Reaction;
pub use regenerate::Regenerate;
pub use schema::schema;

/// The file's name in a repository.
pub const FILE_NAME: &str = "woodward.yaml";

/// Programs that Woodward knows how to drive without a `command`.
pub const KNOWN_AGENTS: [&str; 11] = [
    "claude-code",
    "codex",
    "opencode",
    "gemini",
    "aider",
    "qwen-code",
    "copilot",
    "goose",
    "amp",
    "cursor",
    "pi",
];

/// A project's configuration, complete with defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Those that do the work by default, the preferred one first.
    default_agents: Vec<AgentName>,
    agents: BTreeMap<AgentName, Agent>,
    /// The programs that Woodward knows, as they are without a word about them.
    known: BTreeMap<AgentName, Agent>,
    gates: Vec<GateSpec>,
    /// What is done about a task that leaves the paths it was given.
    pub scope: ScopeRule,
    reactions: Vec<Reaction>,
    policy: Policy,
    limits: Limits,
    inactive: Vec<Inactive>,
    notify: notify::NotifyFile,
    /// What all tasks of a day may cost together.
    pub day_budget: Budget,
    /// What is kept free of the budgets for a run before it starts.
    pub reserve: Spend,
    /// Where agents' processes live.
    pub runtime: Runtime,
    /// The branch that tasks start from and land on; `None` is the repository's main branch.
    pub base: Option<String>,
    /// How a task's working directory is made ready.
    pub worktree: Worktree,
    /// What a landed task looks like on the main branch.
    pub merge_style: MergeStyle,
    /// Who landed commits are by.
    pub merge_author: MergeAuthor,
    /// The template of their message; the default one otherwise.
    pub merge_message: Option<String>,
    /// How approved tasks land.
    pub queue: Queue,
    /// What is done about tasks under way whose changes meet.
    pub conflicts: Conflicts,
    /// Files that are written anew instead of merged.
    pub regenerate: Vec<Regenerate>,
    /// What of the environment agents, gates and setup commands see.
    pub environment: EnvRules,
    /// The most that is kept of one run's output.
    pub log_bytes_max: u64,
    /// The sizes above which a new file is a risk signal.
    pub file_sizes: FileSizeLimits,
}

/// How approved tasks land.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Whether every task must pass its gates by itself on top of those before it.
    pub strict: bool,
    /// Most merged trees that are looked at at once.
    pub parallel: Option<u32>,
    /// Most tasks that are looked at together.
    pub batch: Option<u32>,
    /// The remote whose branch is moved; only the local one otherwise.
    pub remote: Option<String>,
}

/// What is done about tasks under way whose changes meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts {
    /// What is done, besides showing it.
    pub policy: ConflictPolicy,
    /// Files that are no reason to do anything, as patterns.
    pub ignore: Vec<String>,
    /// How many commits are looked at for files that change together.
    pub history: u32,
}

/// An agent: the command that does the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: AgentName,
    /// How it is run.
    pub driving: Driving,
    /// Arguments that come after all others.
    pub args: Vec<String>,
    /// The model; the program's own choice otherwise.
    pub model: Option<String>,
    /// How a plain command is given its prompt.
    pub prompt: PromptBy,
    /// How a hosted command is fed and read.
    pub row: Row,
    /// Whether it gets a configuration of its own, kept by Woodward.
    pub own_config: bool,
    /// Whether it is told once, before it stops, of uncommitted work and of quick gates that fail.
    pub stop_check: bool,
    /// What it may do without asking; the worktree and the checks are still to be filled in.
    pub permissions: Rules,
    /// The name and the address under which commits name it.
    pub identity: CommitIdentity,
    /// What of the environment it sees, the project's own rules included.
    pub environment: EnvRules,
    /// The longest that one run may take.
    pub timeout: Millis,
    /// The longest that one run may go without output; `None` is no limit.
    pub stall_timeout: Option<Millis>,
}

/// Under which name and address commits name an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitIdentity {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

impl Agent {
    /// Whether it can be told which model to use.
    pub fn takes_model(&self) -> bool {
        match self.driving {
            Driving::Plain(_)
            | Driving::Hosted {
                kind: Kind::Amp, ..
            } => false,
            Driving::Hosted {
                kind: Kind::Command,
                ..
            } => !self.row.model.is_empty(),
            Driving::Hosted { .. } => true,
        }
    }

    /// Whether its permissions hold it: whether it asks before it does something.
    pub fn asks_permission(&self) -> bool {
        match self.driving {
            Driving::Plain(_) => false,
            Driving::Hosted { kind, .. } => kind.facts().asks_permission,
        }
    }
}

/// How an agent is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driving {
    /// A command that is started, fed once, and waited for.
    Plain(Command),
    /// A program that a host holds a conversation with.
    Hosted {
        /// The language it speaks.
        kind: Kind,
        /// The program, and arguments that come before all others.
        program: Vec<String>,
    },
}

/// A gate: a command that must pass on a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateSpec {
    /// Its name.
    pub name: GateName,
    /// What to run.
    pub command: Command,
    /// The longest that it may take.
    pub timeout: Millis,
    /// Whether a result that fails it is sent back.
    pub required: bool,
    /// What kind of check it is.
    pub kind: GateKind,
    /// Only for changes to files that match one of these patterns; for every change if there is none.
    pub paths: Vec<String>,
    /// Gates that must have passed before.
    pub needs: Vec<GateName>,
    /// Variables that are set for it.
    pub env: BTreeMap<String, String>,
    /// Where it writes reports in JUnit's form: patterns of paths.
    pub junit: Vec<String>,
    /// Whether a failure is looked at once more on the same tree.
    pub rerun: bool,
    /// Whether it is so quick that the agent is told of its failure before it stops.
    pub quick: bool,
    /// Whether its make may run jobs side by side, within what all gates share.
    pub make_jobs: bool,
    /// Of how many cores it makes use; by default one, and half of all for tests and builds.
    pub cores: Option<u32>,
}

impl GateSpec {
    /// A gate that is only a command.
    pub fn new(name: GateName, command: Command, timeout: Millis) -> Self {
        let kind = gate::kind_of(&name, &command);
        Self {
            name,
            command,
            timeout,
            required: true,
            kind,
            paths: Vec::new(),
            needs: Vec::new(),
            env: BTreeMap::new(),
            junit: Vec::new(),
            rerun: gate::is_rerun(kind),
            quick: false,
            make_jobs: false,
            cores: None,
        }
    }

    /// Whether it looks at a change of these files.
    pub fn covers(&self, changed: &[String]) -> bool {
        let matches = |path: &String| self.paths.iter().any(|it| pattern::matches(it, path));
        self.paths.is_empty() || changed.iter().any(matches)
    }
}

/// How a task's working directory is made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// Ignored files and directories that are copied from the main checkout: relative paths that
    /// stay inside it and out of `.git`.
    pub copy: Vec<String>,
    /// Commands that make it ready, in order.
    pub setup: Vec<Command>,
    /// Commands that run before it is removed, in order.
    pub teardown: Vec<Command>,
    /// The longest that each setup command may take.
    pub setup_timeout: Millis,
    /// The longest that each teardown command may take.
    pub teardown_timeout: Millis,
    /// The pattern of branch names.
    pub branch: BranchPattern,
    /// The directory that holds the worktrees, absolute or from the repository's root; `None` is
    /// `<repository>.worktrees` beside it.
    pub directory: Option<String>,
}

/// Which variables a process sees besides those that Woodward sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvRules {
    /// Variables of the daemon's own environment that are passed on.
    pub pass: Vec<EnvPattern>,
    /// Variables that are set; they win over passed ones.
    pub set: BTreeMap<String, String>,
}

impl EnvRules {
    /// Whether a variable of the daemon's own environment is passed on.
    pub fn passes(&self, name: &str) -> bool {
        self.pass.iter().any(|pattern| pattern.matches(name))
    }
}

/// Something in the file that is understood but that nothing acts on yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inactive {
    /// The key, as a path.
    pub key: String,
    /// What it will do, and what happens until then.
    pub what: String,
}

/// No agent can be had under a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoAgent {
    /// The project has none.
    #[error("no agent is configured")]
    None,
    /// It has several, and none is the default.
    #[error("there are several agents and none is the default: {}", .0.join(", "))]
    Several(Vec<String>),
    /// It has none of that name.
    #[error("there is no agent `{name}`")]
    Unknown {
        /// The name that was asked for.
        name: AgentName,
        /// The name that was likely meant.
        nearest: Option<String>,
    },
}

impl NoAgent {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::None => format!(
                "add one to {FILE_NAME}: `agents: {{ mine: {{ command: \"sh work.sh\" }} }}`"
            ),
            Self::Several(names) => format!(
                "set `orchestrator: {{ agent: {} }}` in {FILE_NAME}, or name one with --agent",
                names.first().map_or("…", String::as_str)
            ),
            Self::Unknown {
                nearest: Some(near),
                ..
            } => format!("did you mean `{near}`?"),
            Self::Unknown { nearest: None, .. } => format!("`agents` in {FILE_NAME} lists them"),
        }
    }
}

impl Config {
    /// Reads a file's text. `origin` is what errors call it, such as `woodward.yaml`.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let refuse = |problems| ConfigError::new(text, origin, problems);
        let tree = tree::Node::read(text).map_err(|problem| refuse(vec![problem]))?;
        let file = file::File::deserialize(&tree).map_err(|refused| refuse(refused.0))?;
        check::checked(file, &tree).map_err(refuse)
    }

    /// The limits under which a task is driven.
    pub fn policy(&self) -> Policy {
        self.policy.clone()
    }

    /// How many tasks may be in a state at once.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The gates, in order.
    pub fn gates(&self) -> &[GateSpec] {
        &self.gates
    }

    /// The rules, in order; those that are built in come last.
    pub fn reactions(&self) -> &[Reaction] {
        &self.reactions
    }

    /// The agents that can be run, by name.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// The agent of that name, or the preferred one of the defaults.
    pub fn agent(&self, name: Option<&AgentName>) -> Result<&Agent, NoAgent> {
        let candidates = self.candidates(name.map(std::slice::from_ref).unwrap_or_default())?;
        candidates.first().copied().ok_or(NoAgent::None)
    }

    /// The agents of these names, or the default ones, the preferred one first. Never none.
    pub fn candidates(&self, names: &[AgentName]) -> Result<Vec<&Agent>, NoAgent> {
        let names = if names.is_empty() {
            &self.default_agents
        } else {
            names
        };
        if names.is_empty() {
            let own: Vec<String> = self.agents.keys().map(ToString::to_string).collect();
            return match (self.agents.values().next(), own.len()) {
                (None, _) => Err(NoAgent::None),
                (Some(only), 1) => Ok(vec![only]),
                _ => Err(NoAgent::Several(own)),
            };
        }
        let find = |name: &AgentName| {
            let found = self.agents.get(name).or_else(|| self.known.get(name));
            found.ok_or_else(|| {
                let own = self.agents.keys().map(AgentName::as_str);
                NoAgent::Unknown {
                    name: name.clone(),
                    nearest: nearest(name.as_str(), own.chain(KNOWN_AGENTS)).map(str::to_owned),
                }
            })
        };
        names.iter().map(find).collect()
    }

    /// Who is told, and how: as the project says, with a person's own wishes over it.
    pub fn notify(&self, own: &OwnNotify) -> Notify {
        self.notify.clone().under(own.0.clone()).settled()
    }

    /// Whether this or a person's own file names any channel, switched off or not.
    pub fn names_channels(&self, own: &OwnNotify) -> bool {
        self.notify.names_channels() || own.0.names_channels()
    }

    /// What the file says that nothing acts on yet, for `doctor`.
    pub fn inactive(&self) -> Vec<Inactive> {
        self.inactive.clone()
    }
}

/// How a person wants to be told, whatever the project: a file of the same shape as the section
/// `notify`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnNotify(notify::NotifyFile);

impl OwnNotify {
    /// Reads a file's text. `origin` is what errors call it.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        notify::NotifyFile::parse(text, origin).map(Self)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::parse("", FILE_NAME).expect("an empty file is all defaults")
    }
}
