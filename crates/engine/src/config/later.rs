//! The shape of keys that are understood and checked, but that nothing acts on yet.
//!
//! Whatever is written with them is reported by [`super::Config::inactive`]: a key that is silently
//! without effect would be a lie.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

use super::command::Command;
use super::de::AS_WRITTEN;
use super::values::{Count, TimeSpan};

/// A section whose keys are not settled yet: any mapping.
pub(super) type Section = BTreeMap<String, serde_json::Value>;

/// A rule: when this happens, do that.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Reaction {
    /// What happens.
    pub(super) trigger: Trigger,
    /// What is done about it.
    pub(super) action: ReactionAction,
    /// The text for the agent; `{{errors}}`, `{{comments}}`, `{{files}}` and `{{log}}` are filled in.
    #[serde(default)]
    pub(super) prompt: Option<String>,
    /// Most times that it is done for one task.
    #[serde(default)]
    pub(super) max_retries: Option<Count<0, 100>>,
    /// Whether a person is asked when it did not help: `true`, or after so many times, or after
    /// such a time.
    #[serde(default)]
    pub(super) escalate: Option<Escalate>,
    /// The first wait between two times; it doubles.
    #[serde(default)]
    pub(super) backoff: Option<TimeSpan>,
    /// What to run, for the action `run`.
    #[serde(default)]
    pub(super) command: Option<Command>,
    /// When, for the trigger `schedule`: a cron expression.
    #[serde(default)]
    pub(super) cron: Option<String>,
    /// Only for tasks like this.
    #[serde(default)]
    pub(super) when: Option<When>,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Trigger {
    CiFailed,
    ChangesRequested,
    ReviewComment,
    MergeConflict,
    GateFailed,
    AgentStuck,
    AgentWaiting,
    AgentExited,
    ApprovedAndGreen,
    TaskLanded,
    TaskFailed,
    BudgetReached,
    RateLimited,
    DependencyLanded,
    AllDone,
    Schedule,
}

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ReactionAction {
    SendToAgent,
    Retry,
    Merge,
    Approve,
    Notify,
    Escalate,
    Run,
    Create,
    Pause,
    Cancel,
}

/// Which tasks a rule is for.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct When {
    /// With one of these labels.
    pub(super) labels: Vec<String>,
    /// That change files which match these patterns.
    pub(super) paths: Vec<String>,
    /// Of this agent.
    pub(super) agent: Option<String>,
    /// After so many attempts.
    pub(super) attempts: Option<Count<1, 100>>,
    /// With or without a risk signal.
    pub(super) risk: Option<bool>,
}

/// When a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Escalate {
    WhenSpent(bool),
    AfterTimes(Count<1, 100>),
    AfterTime(TimeSpan),
}

impl<'de> Deserialize<'de> for Escalate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EscalateVisitor;

        impl Visitor<'_> for EscalateVisitor {
            type Value = Escalate;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, `false`, a number of times or a length of time")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Escalate, E> {
                let scalar = de::value::StrDeserializer::<E>::new(text);
                match text {
                    "true" => Ok(Escalate::WhenSpent(true)),
                    "false" => Ok(Escalate::WhenSpent(false)),
                    _ if text.bytes().all(|b| b.is_ascii_digit()) => {
                        Count::deserialize(scalar).map(Escalate::AfterTimes)
                    }
                    _ => TimeSpan::deserialize(scalar).map(Escalate::AfterTime),
                }
            }
        }

        deserializer.deserialize_newtype_struct(AS_WRITTEN, EscalateVisitor)
    }
}

impl JsonSchema for Escalate {
    fn schema_name() -> Cow<'static, str> {
        "Escalate".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let times = generator.subschema_for::<Count<1, 100>>();
        let time = generator.subschema_for::<TimeSpan>();
        json_schema!({ "anyOf": [{ "type": "boolean" }, times, time] })
    }
}
