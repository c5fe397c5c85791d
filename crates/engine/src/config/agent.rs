//! The shape of agents in `woodward.yaml`: named, listed, or written in place; and what they may do.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use woodward_core::{AgentName, Millis};

use super::command::Command;
use super::de::AS_WRITTEN;
use super::environment::{EnvPattern, Variables};
use super::file::Named;
use super::values::{SpanOrOff, TimeSpan};

/// How an agent is given its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PromptBy {
    /// On its standard input.
    #[default]
    Stdin,
    /// In a file that the variable WOODWARD_PROMPT_FILE names.
    File,
    /// As its last argument. Everybody on the machine can read it there.
    Argument,
}

/// The language that a program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum KindFile {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// OpenCode.
    #[serde(rename = "opencode")]
    OpenCode,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    QwenCode,
    /// Copilot CLI.
    Copilot,
    /// Goose.
    Goose,
    /// Pi.
    Pi,
    /// Aider.
    Aider,
    /// Amp; untested.
    Amp,
    /// Cursor; untested.
    Cursor,
}

impl KindFile {
    pub(super) const fn kind(self) -> woodward_agents::Kind {
        use woodward_agents::Kind;
        match self {
            Self::ClaudeCode => Kind::ClaudeCode,
            Self::Codex => Kind::Codex,
            Self::OpenCode => Kind::OpenCode,
            Self::Gemini => Kind::Gemini,
            Self::QwenCode => Kind::Qwen,
            Self::Copilot => Kind::Copilot,
            Self::Goose => Kind::Goose,
            Self::Pi => Kind::Pi,
            Self::Aider => Kind::Aider,
            Self::Amp => Kind::Amp,
            Self::Cursor => Kind::Cursor,
        }
    }
}

/// An agent: the program that does the work.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Agent")]
pub(super) struct AgentFile {
    /// The program that Woodward knows and that this agent is; by default the one of its name. An
    /// agent that is none is any command.
    pub(super) kind: Option<KindFile>,
    /// What to run, in the task's worktree. For programs that Woodward knows: where the program is,
    /// and arguments that come first.
    pub(super) command: Option<Command>,
    /// Arguments that come after all others.
    pub(super) args: Vec<String>,
    /// The model; the program's own choice otherwise.
    pub(super) model: Option<String>,
    /// How it is given its prompt. Only for commands that Woodward does not know.
    pub(super) prompt: PromptBy,
    /// Arguments that take up an earlier conversation; `{session}` stands for its id. Only for
    /// commands that Woodward does not know, as all that follows up to `waitingLine`.
    pub(super) resume: Vec<String>,
    /// Arguments that begin a conversation with an id of ours; `{session}` stands for it.
    pub(super) session: Vec<String>,
    /// Arguments that choose a model; `{model}` stands for it.
    pub(super) model_args: Vec<String>,
    /// A line of its output that begins with this text names the conversation.
    pub(super) session_line: Option<String>,
    /// Where it says what it used, in JSON lines that it prints.
    pub(super) usage: Option<UsageFile>,
    /// A line of its output that begins with this text means that it waits for a person.
    pub(super) waiting_line: Option<String>,
    /// Whether it gets a configuration of its own, kept by Woodward, instead of yours. It must be
    /// able to log in without yours then, by variables.
    pub(super) own_config: bool,
    /// Whether it is told once, before it stops, of uncommitted work and of gates marked `quick` that
    /// fail. Only for programs that ask before they stop: Claude Code.
    pub(super) stop_check: bool,
    /// What it may do without asking; the project's rules otherwise.
    pub(super) permissions: Option<PermissionsFile>,
    /// The name and the address under which commits name it; by default those of its program.
    pub(super) identity: IdentityFile,
    /// Variables that are set for it.
    pub(super) env: Variables,
    /// Variables of the daemon's own environment that are passed on to it: names, or prefixes
    /// such as `ANTHROPIC_*`.
    pub(super) pass_env: Vec<EnvPattern>,
    /// The longest that one run may take.
    pub(super) timeout: TimeSpan,
    /// The longest that one run may go without any output; `off` for no limit.
    pub(super) stall_timeout: SpanOrOff,
}

impl Default for AgentFile {
    fn default() -> Self {
        Self {
            kind: None,
            command: None,
            args: Vec::new(),
            model: None,
            prompt: PromptBy::default(),
            resume: Vec::new(),
            session: Vec::new(),
            model_args: Vec::new(),
            session_line: None,
            usage: None,
            waiting_line: None,
            own_config: false,
            stop_check: true,
            permissions: None,
            identity: IdentityFile::default(),
            env: Variables::new(),
            pass_env: Vec::new(),
            timeout: TimeSpan(Millis::from_mins(120)),
            stall_timeout: SpanOrOff(Some(TimeSpan(Millis::from_mins(20)))),
        }
    }
}

/// Where a program says what it used: JSON pointers into the lines that it prints.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Usage")]
pub(super) struct UsageFile {
    /// Tokens read, such as `/usage/input_tokens`.
    pub(super) input: Option<String>,
    /// Tokens written.
    pub(super) output: Option<String>,
    /// US dollars.
    pub(super) usd: Option<String>,
    /// Whether each figure is one step, to be added; otherwise the last one counts.
    pub(super) per_step: bool,
}

/// Under which name and address commits name an agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Identity")]
pub(super) struct IdentityFile {
    /// The name, such as `Claude Code`.
    pub(super) name: Option<String>,
    /// The address.
    pub(super) email: Option<String>,
}

/// How much agents are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Trust {
    /// Edits and the project's checks inside the worktree; anything else asks you.
    #[default]
    Careful,
    /// Everything that is not denied, without asking: the agent has all rights that you have.
    Yolo,
}

/// What agents may do without asking you.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Permissions")]
pub(super) struct PermissionsFile {
    /// What is allowed where no rule says anything.
    pub(super) mode: Trust,
    /// What is allowed: command lines such as `cargo test *`, or `tool:NAME`.
    pub(super) allow: Vec<String>,
    /// What is refused; this wins over everything.
    pub(super) deny: Vec<String>,
}

/// The agents of a project.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum AgentsFile {
    /// By name.
    Map(BTreeMap<Named<AgentName>, AgentFile>),
    /// Programs that Woodward knows, the preferred one first.
    List(Vec<Named<AgentName>>),
}

impl Default for AgentsFile {
    fn default() -> Self {
        Self::Map(BTreeMap::new())
    }
}

impl<'de> Deserialize<'de> for AgentsFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AgentsVisitor;

        impl<'de> Visitor<'de> for AgentsVisitor {
            type Value = AgentsFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("agents by name, or a list of known agents")
            }

            fn visit_unit<E: de::Error>(self) -> Result<AgentsFile, E> {
                Ok(AgentsFile::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<AgentsFile, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element()? {
                    names.push(name);
                }
                Ok(AgentsFile::List(names))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                mapping: D,
            ) -> Result<AgentsFile, D::Error> {
                BTreeMap::deserialize(mapping).map(AgentsFile::Map)
            }
        }

        deserializer.deserialize_newtype_struct(AS_WRITTEN, AgentsVisitor)
    }
}

impl JsonSchema for AgentsFile {
    fn schema_name() -> Cow<'static, str> {
        "Agents".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let map = generator.subschema_for::<BTreeMap<String, AgentFile>>();
        let list = generator.subschema_for::<Vec<Named<AgentName>>>();
        json_schema!({
            "description": "The agents, by name; or a list of programs that Woodward knows, the preferred one first.",
            "anyOf": [map, list],
        })
    }
}

/// An agent by name, several of which the first that can be used is taken, or one written in place.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum AgentRef {
    Names(Vec<Named<AgentName>>),
    Inline(Box<AgentFile>),
}

impl<'de> Deserialize<'de> for AgentRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RefVisitor;

        impl<'de> Visitor<'de> for RefVisitor {
            type Value = AgentRef;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an agent's name, a list of names, or `{ command: … }`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<AgentRef, E> {
                Named::parse(text)
                    .map(|name| AgentRef::Names(vec![name]))
                    .map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<AgentRef, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = list.next_element()? {
                    names.push(name);
                }
                if names.is_empty() {
                    return Err(de::Error::custom("the list is empty\nname an agent"));
                }
                Ok(AgentRef::Names(names))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                mapping: D,
            ) -> Result<AgentRef, D::Error> {
                AgentFile::deserialize(mapping).map(|agent| AgentRef::Inline(Box::new(agent)))
            }
        }

        deserializer.deserialize_newtype_struct(AS_WRITTEN, RefVisitor)
    }
}

impl JsonSchema for AgentRef {
    fn schema_name() -> Cow<'static, str> {
        "AgentRef".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<Named<AgentName>>();
        let names = generator.subschema_for::<Vec<Named<AgentName>>>();
        let inline = generator.subschema_for::<AgentFile>();
        json_schema!({
            "description": "An agent by name, several in order of preference, or one written in place.",
            "anyOf": [name, names, inline],
        })
    }
}
