//! The shape of `woodward.yaml`: keys, kinds and defaults, and nothing about what they lead to.
//!
//! The JSON schema is generated from these types; what a key is for is said here, once.

use std::borrow::Cow;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use woodward_core::backoff::Backoff;
use woodward_core::name::BadName;
use woodward_core::risk::FileSizeLimits;
use woodward_core::{GateName, Millis};

use super::agent::{AgentRef, AgentsFile, PermissionsFile};
use super::command::Command;
use super::environment::{Environment, Variables};
use super::gate::{Condition, KindFile, ScopeRule};
use super::later::Section;
use super::notify::NotifyFile;
use super::reaction::ReactionFile;
use super::regenerate::RegenerateFile;
use super::values::{ByteCount, Count, TimeSpan, Usd, Written};

/// A project's policy for Woodward. Keys may be written in camelCase or in snake_case.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "woodward.yaml")]
pub(super) struct File {
    /// Who works, how many at once, and on what.
    pub(super) orchestrator: Orchestrator,
    /// The project's one agent, written in place. The same as `orchestrator.agent`.
    pub(super) agent: Option<AgentRef>,
    /// The agents, by name; or a list of programs that Woodward knows, of which the first that is
    /// installed and may be used now does the work.
    pub(super) agents: AgentsFile,
    /// What agents may do without asking you.
    pub(super) permissions: PermissionsFile,
    /// Commands that must pass on a result, in order.
    pub(super) gates: Vec<GateFile>,
    /// When a person looks at a verified result before it lands.
    pub(super) review: Review,
    /// What is done about a task that leaves the paths it was given.
    pub(super) scope: ScopeRule,
    /// How a task's working directory is made ready.
    pub(super) worktree: WorktreeFile,
    /// How results land on the main branch.
    pub(super) merge: MergeFile,
    /// What is done about tasks under way whose changes meet.
    pub(super) conflicts: ConflictsFile,
    /// Files that a command writes anew where nothing else conflicts: lock files, generated files.
    pub(super) regenerate: Vec<RegenerateFile>,
    /// How often something may go wrong before a person is asked.
    pub(super) limits: LimitsFile,
    /// What tasks may cost.
    pub(super) budget: BudgetFile,
    /// What of the environment agents, gates and setup commands see.
    pub(super) environment: Environment,
    /// What is kept of the output of agents and gates.
    pub(super) logs: LogsFile,
    /// Rules: when this happens, do that.
    pub(super) reactions: Vec<ReactionFile>,
    /// The merge queue: how approved tasks land.
    pub(super) queue: QueueFile,
    /// Who is told, and how.
    pub(super) notify: NotifyFile,
    /// Ports, databases, sandboxes. Not yet active.
    pub(super) isolation: Option<Section>,
    /// GitHub or GitLab. Not yet active.
    pub(super) forge: Option<Section>,
    /// Where tasks come from. Not yet active.
    pub(super) tracker: Option<Section>,
}

/// Who works, how many at once, and on what.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Orchestrator {
    /// The agent of tasks that name none: a name of `agents`, or an agent written in place.
    pub(super) agent: Option<AgentRef>,
    /// Most tasks that are worked on at once.
    pub(super) max_concurrent: Count<1, 256>,
    /// Where an agent's process lives.
    pub(super) runtime: Runtime,
    /// The branch that tasks start from and land on. By default the repository's main branch.
    pub(super) base: Option<String>,
    /// Most results that may wait for review; with as many, no new work starts. By default no limit.
    pub(super) review_max: Option<Count<1, 10_000>>,
}

impl Default for Orchestrator {
    fn default() -> Self {
        Self {
            agent: None,
            max_concurrent: Count::new(4),
            runtime: Runtime::default(),
            base: None,
            review_max: None,
        }
    }
}

/// Where an agent's process lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// Without a terminal, its output in a file.
    #[default]
    Process,
    /// In a terminal that a person can attach to, and type into.
    Tmux,
}

/// A gate: a command that must pass on a result.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Gate")]
pub(super) struct GateFile {
    /// Its name, unique among the gates.
    pub(super) name: Named<GateName>,
    /// What to run, in the worktree of the commit that is verified.
    pub(super) command: Command,
    /// The longest that it may take.
    #[serde(default = "ten_minutes")]
    pub(super) timeout: TimeSpan,
    /// Whether a result that fails it is sent back; `false` only reports.
    #[serde(default = "yes")]
    pub(super) required: bool,
    /// Only for changes to files that match these patterns.
    #[serde(default)]
    pub(super) paths: Vec<String>,
    /// Whether it always runs, or only for changes to its `paths`. Unwritten, having `paths` decides.
    #[serde(default)]
    pub(super) when: Option<Condition>,
    /// Gates that must have passed before: it does not run on what they refuse.
    #[serde(default)]
    pub(super) needs: Vec<Named<GateName>>,
    /// What kind of check it is; guessed from name and command otherwise. A `test` that runs no test
    /// is broken.
    #[serde(default)]
    pub(super) kind: Option<KindFile>,
    /// Variables that are set for it.
    #[serde(default)]
    pub(super) env: Variables,
    /// Files in which it reports in JUnit's XML form, as patterns: `reports/*.xml`.
    #[serde(default)]
    pub(super) junit: Vec<String>,
    /// Whether a failure is looked at once more on the same tree: what then passes is flaky. By default
    /// for tests and custom gates.
    #[serde(default)]
    pub(super) rerun: Option<bool>,
    /// Whether it is so quick that an agent that can be told is told of its failure before it stops.
    #[serde(default)]
    pub(super) quick: bool,
    /// Whether make, where it runs it, may run jobs side by side: it then shares job tokens with all
    /// other gates. Cargo shares them by itself.
    #[serde(default)]
    pub(super) make_jobs: bool,
    /// Of how many cores it makes use. All gates together use no more than there are. By default one;
    /// half of all for tests and builds.
    #[serde(default)]
    pub(super) cores: Option<Count<1, 1024>>,
}

const fn ten_minutes() -> TimeSpan {
    TimeSpan(Millis::from_mins(10))
}

const fn yes() -> bool {
    true
}

/// Limits for gates of a kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct KindLimitsFile {
    /// Tests.
    pub(super) test: Option<Count<0, 100>>,
    /// Lints.
    pub(super) lint: Option<Count<0, 100>>,
    /// Builds.
    pub(super) build: Option<Count<0, 100>>,
    /// All else.
    pub(super) custom: Option<Count<0, 100>>,
}

/// When a person looks at a verified result before it lands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Review {
    /// Always.
    #[default]
    Always,
    /// Only when the change shows a risk signal.
    Risky,
    /// Never: verified tasks queue themselves.
    Never,
}

/// How a task's working directory is made ready.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Worktree")]
pub(super) struct WorktreeFile {
    /// Ignored files and directories that are copied from the main checkout, such as `.env`.
    pub(super) copy: Vec<String>,
    /// Commands that make a new worktree ready, in order.
    pub(super) setup: Vec<Command>,
    /// Commands that run before a worktree is removed, in order.
    pub(super) teardown: Vec<Command>,
    /// The longest that each setup command may take.
    pub(super) setup_timeout: TimeSpan,
    /// The longest that each teardown command may take.
    pub(super) teardown_timeout: TimeSpan,
    /// The pattern of branch names; `{task}` is the task's name, `{n}` the number of the worktree.
    pub(super) branch: String,
    /// The directory that holds the worktrees, from the repository's root. By default
    /// `<repository>.worktrees` beside it. Never inside the repository.
    pub(super) directory: Option<String>,
}

impl Default for WorktreeFile {
    fn default() -> Self {
        Self {
            copy: Vec::new(),
            setup: Vec::new(),
            teardown: Vec::new(),
            setup_timeout: ten_minutes(),
            teardown_timeout: TimeSpan(Millis::from_mins(2)),
            branch: "woodward/{task}/{n}".to_owned(),
            directory: None,
        }
    }
}

/// How results land.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Merge")]
pub(super) struct MergeFile {
    /// What a landed task looks like on the main branch.
    pub(super) style: MergeStyle,
    /// Who landed commits are by. The committer is always you, as your global git configuration says.
    pub(super) author: MergeAuthor,
    /// The message of a landed commit: a template with `{{task}}`, `{{title}}` and `{{description}}`
    /// (what was asked for), `{{prompt}}`, `{{messages}}` (the agent's own commit messages),
    /// `{{agent}}` and `{{branch}}`. By default the task's name and title, then the agent's messages.
    pub(super) message: Option<String>,
}

/// The merge queue: how approved tasks land.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Queue")]
pub(super) struct QueueFile {
    /// Whether every task must pass its gates by itself on top of those before it. Otherwise tasks that
    /// only passed together may land as consecutive commits in one update when many wait.
    pub(super) strict: bool,
    /// Most merged trees that are looked at at once. By default as many as the machine has cores; fewer
    /// are used where more would not be faster.
    pub(super) parallel: Option<Count<1, 8>>,
    /// Most tasks that are looked at together. By default as many as is best for how often tasks fail.
    pub(super) batch: Option<Count<1, 64>>,
    /// The remote whose branch is moved, such as `origin`: fetched before, pushed to, looked at
    /// afterwards. By default only the local branch moves.
    pub(super) remote: Option<String>,
}

/// What a landed task looks like on the main branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MergeStyle {
    /// One commit.
    #[default]
    Squash,
    /// The task's commits, and a merge commit.
    Merge,
    /// The task's commits, on top of the main branch.
    Rebase,
}

/// Who landed commits are by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MergeAuthor {
    /// You; the agent is a co-author.
    #[default]
    Person,
    /// The agent.
    Agent,
}

/// What is done about tasks under way whose changes meet.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Conflicts")]
pub(super) struct ConflictsFile {
    /// What is done, besides showing it in `woodward conflicts`.
    pub(super) policy: ConflictPolicy,
    /// Files that are no reason to warn, to hold or to wait, as patterns, such as `CHANGELOG.md`.
    pub(super) ignore: Vec<String>,
    /// How many commits are looked at for files that change together.
    pub(super) history: Count<0, 10_000>,
}

impl Default for ConflictsFile {
    fn default() -> Self {
        Self {
            policy: ConflictPolicy::default(),
            ignore: Vec::new(),
            history: Count::new(500),
        }
    }
}

/// What is done about tasks under way whose changes meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictPolicy {
    /// Nothing: it is only shown.
    #[default]
    Show,
    /// Both agents are told of the other's change, once for each set of files and names.
    Warn,
    /// The younger of two that conflict is paused until the older has landed.
    Hold,
    /// Tasks that are foreseen to touch the same files start one after the other; those that meet all
    /// the same are warned.
    Serialise,
}

/// How often something may go wrong before a person is asked.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Limits")]
pub(super) struct LimitsFile {
    /// Runs that may fail in a row before the task does.
    pub(super) attempts: Count<1, 100>,
    /// Times that one failing gate goes back to the agent.
    pub(super) fix_cycles: Count<0, 100>,
    /// Times that failing gates go back to the agent, all gates together. By default twice
    /// `fixCycles`.
    pub(super) fix_cycles_total: Option<Count<0, 1000>>,
    /// Times that one failing gate of a kind goes back to the agent, instead of `fixCycles`:
    /// `{ lint: 1 }`.
    pub(super) fix_cycles_by_kind: KindLimitsFile,
    /// Landing conflicts that go back to the agent.
    pub(super) conflicts: Count<0, 100>,
    /// The longest wait after a first failed run; it doubles with every further one.
    pub(super) backoff: TimeSpan,
    /// The longest wait after any failed run.
    pub(super) backoff_max: TimeSpan,
    /// The size above which a new text file is a risk signal.
    pub(super) text_file_size: ByteCount,
    /// The size above which any new file is a risk signal.
    pub(super) file_size: ByteCount,
}

impl Default for LimitsFile {
    fn default() -> Self {
        Self {
            attempts: Count::new(3),
            fix_cycles: Count::new(3),
            fix_cycles_total: None,
            fix_cycles_by_kind: KindLimitsFile::default(),
            conflicts: Count::new(3),
            backoff: TimeSpan(Backoff::default().base),
            backoff_max: TimeSpan(Backoff::default().cap),
            text_file_size: ByteCount(FileSizeLimits::default().text),
            file_size: ByteCount(FileSizeLimits::default().any),
        }
    }
}

/// What tasks may cost. By default there is no limit.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Budget")]
pub(super) struct BudgetFile {
    /// Most tokens.
    pub(super) tokens: Option<Count<1, 4_000_000_000>>,
    /// Most US dollars.
    pub(super) usd: Option<Usd>,
    /// What all tasks of a day may cost together, midnight to midnight UTC.
    pub(super) day: DayBudget,
    /// What a run is taken to cost as long as it has not said what it really costs: so much of the
    /// budgets is kept free for it before it starts.
    pub(super) reserve: DayBudget,
}

/// A limit in tokens, in US dollars, or in both.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct DayBudget {
    /// Most tokens.
    pub(super) tokens: Option<Count<1, 4_000_000_000>>,
    /// Most US dollars.
    pub(super) usd: Option<Usd>,
}

/// What is kept of the output of agents and gates.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Logs")]
pub(super) struct LogsFile {
    /// The most that is kept of one run's output; the oldest goes first.
    pub(super) max_bytes: ByteCount,
}

impl Default for LogsFile {
    fn default() -> Self {
        Self {
            max_bytes: ByteCount(64 << 20),
        }
    }
}

/// A name that people type, with the nearest good one in the error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(super) struct Named<T>(pub(super) T);

impl<T: FromStr<Err = BadName>> Named<T> {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|bad: BadName| {
            let hint = bad.suggestion.as_ref();
            let hint = hint.map_or(String::new(), |near| format!("\ntry `{near}`"));
            format!("{bad}{hint}")
        })
    }
}

impl<'de, T: FromStr<Err = BadName>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Written {
            expected: "a name",
            parse: Self::parse,
        })
    }
}

impl<T> JsonSchema for Named<T> {
    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A name: a-z, 0-9, `-`, `_` and `.`, at most 63 characters.",
            "type": "string",
            "pattern": "^[a-z0-9][a-z0-9._-]*$",
            "maxLength": 63,
        })
    }
}
