//! `reactions`: rules as the file has them, and as the engine goes by them.
//!
//! What can be wrong with a rule is found here, when the file is read: an unknown trigger, a command
//! that is missing, a cron expression or a template that makes no sense.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use woodward_core::reaction::cron::Cron;
use woodward_core::reaction::{self as core, Deed, Escalation, Rule, When};
use woodward_core::{Millis, Policy};

use super::check::Findings;
use super::command::Command;
use super::de::AS_WRITTEN;
use super::tree::{Step, Step::Item, Step::Key};
use super::values::{Count, TimeSpan};
use crate::reaction::template;

/// The most rules.
const RULES_MAX: usize = 100;
/// The longest that a rule's command may take, unless it says otherwise.
const RUN_TIMEOUT: Millis = Millis::from_mins(10);

/// A rule with what the engine needs to go by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaction {
    /// When, for whom, how often.
    pub rule: Rule,
    /// Whether nobody wrote it: what is done where a project has no rule for the trigger.
    pub built_in: bool,
    /// The text, as a template that was checked.
    pub prompt: Option<String>,
    /// What to run.
    pub command: Option<Command>,
    /// The longest that it may take.
    pub timeout: Millis,
    /// The name of the task to be made, as a template that was checked.
    pub name: Option<String>,
    /// When its time comes.
    pub cron: Option<Cron>,
    /// The same as it is written.
    pub schedule: Option<String>,
}

/// A rule: when this happens, do that.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Reaction")]
pub(super) struct ReactionFile {
    /// What happens.
    pub(super) trigger: Trigger,
    /// What is done about it.
    pub(super) action: ReactionAction,
    /// The text for the agent, for a person or of the new task; `{{errors}}`, `{{comments}}`,
    /// `{{files}}`, `{{log}}` and others are filled in.
    #[serde(default)]
    pub(super) prompt: Option<String>,
    /// Most times that it is done for one task. By default 3 for `send-to-agent` and `retry`, and no
    /// limit for the others.
    #[serde(default)]
    pub(super) max_retries: Option<Count<0, 100>>,
    /// Whether a person is asked when it did not help: `true` (the default) when it was done as often
    /// as it may be, or after so many times, or after such a time; `false` for never.
    #[serde(default)]
    pub(super) escalate: Option<Escalate>,
    /// The longest first wait between two times; it doubles. By default there is none.
    #[serde(default)]
    pub(super) backoff: Option<TimeSpan>,
    /// What to run, for the action `run`, in the repository's root.
    #[serde(default)]
    pub(super) command: Option<Command>,
    /// The longest that the command may take. By default 10m.
    #[serde(default)]
    pub(super) timeout: Option<TimeSpan>,
    /// The name of the new task, for the action `create`; `{{task}}` and others are filled in. By default the trigger and a number.
    #[serde(default)]
    pub(super) name: Option<String>,
    /// When, for the trigger `schedule`: a cron expression, in UTC.
    #[serde(default)]
    pub(super) cron: Option<String>,
    /// Only for tasks like this.
    #[serde(default)]
    pub(super) when: Option<WhenFile>,
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
#[schemars(rename = "When")]
pub(super) struct WhenFile {
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

impl From<Trigger> for core::Trigger {
    fn from(trigger: Trigger) -> Self {
        match trigger {
            Trigger::CiFailed => Self::CiFailed,
            Trigger::ChangesRequested => Self::ChangesRequested,
            Trigger::ReviewComment => Self::ReviewComment,
            Trigger::MergeConflict => Self::MergeConflict,
            Trigger::GateFailed => Self::GateFailed,
            Trigger::AgentStuck => Self::AgentStuck,
            Trigger::AgentWaiting => Self::AgentWaiting,
            Trigger::AgentExited => Self::AgentExited,
            Trigger::ApprovedAndGreen => Self::ApprovedAndGreen,
            Trigger::TaskLanded => Self::TaskLanded,
            Trigger::TaskFailed => Self::TaskFailed,
            Trigger::BudgetReached => Self::BudgetReached,
            Trigger::RateLimited => Self::RateLimited,
            Trigger::DependencyLanded => Self::DependencyLanded,
            Trigger::AllDone => Self::AllDone,
            Trigger::Schedule => Self::Schedule,
        }
    }
}

impl From<ReactionAction> for Deed {
    fn from(action: ReactionAction) -> Self {
        match action {
            ReactionAction::SendToAgent => Self::SendToAgent,
            ReactionAction::Retry => Self::Retry,
            ReactionAction::Merge => Self::Merge,
            ReactionAction::Approve => Self::Approve,
            ReactionAction::Notify => Self::Notify,
            ReactionAction::Escalate => Self::Escalate,
            ReactionAction::Run => Self::Run,
            ReactionAction::Create => Self::Create,
            ReactionAction::Pause => Self::Pause,
            ReactionAction::Cancel => Self::Cancel,
        }
    }
}

/// The rules of a file, checked; those that are built in come last.
pub(super) fn checked(file: Vec<ReactionFile>, findings: &mut Findings<'_>) -> Vec<Reaction> {
    if file.len() > RULES_MAX {
        let what = format!(
            "{} rules are too many: at most {RULES_MAX} are allowed",
            file.len()
        );
        findings.wrong(&[Key("reactions")], what, "join some of them");
        return Vec::new();
    }
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut rules: Vec<Reaction> = Vec::with_capacity(file.len() + BUILT_IN.len());
    for (at, written) in file.into_iter().enumerate() {
        let cron = examine(&written, at, findings);
        rules.push(reaction(written, cron, &mut names));
    }
    for (trigger, prompt) in BUILT_IN {
        if !rules.iter().any(|known| known.rule.trigger == *trigger) {
            rules.push(built_in(*trigger, prompt));
        }
    }
    rules
}

/// What is done about news from outside where a project has no rule of its own for it.
const BUILT_IN: &[(core::Trigger, &str)] = &[
    (
        core::Trigger::CiFailed,
        "CI failed on your work. Repair it without weakening the check.\n{{errors}}{{log}}",
    ),
    (
        core::Trigger::ChangesRequested,
        "Changes to your work were asked for. Make them.\n{{comments}}",
    ),
];

fn built_in(trigger: core::Trigger, prompt: &str) -> Reaction {
    Reaction {
        rule: Rule {
            id: format!("{trigger}/{}", Deed::SendToAgent),
            trigger,
            deed: Deed::SendToAgent,
            when: When::default(),
            times_max: None,
            backoff: None,
            escalation: Escalation::WhenSpent,
        },
        built_in: true,
        prompt: Some(prompt.to_owned()),
        command: None,
        timeout: RUN_TIMEOUT,
        name: None,
        cron: None,
        schedule: None,
    }
}

fn reaction(
    written: ReactionFile,
    cron: Option<Cron>,
    names: &mut BTreeMap<String, u32>,
) -> Reaction {
    let (trigger, deed) = (written.trigger.into(), Deed::from(written.action));
    let name = format!("{trigger}/{deed}");
    let nth = names.entry(name.clone()).or_default();
    *nth += 1;
    let id = match *nth {
        1 => name,
        nth => format!("{name}#{nth}"),
    };
    let when = written.when.unwrap_or_default();
    Reaction {
        rule: Rule {
            id,
            trigger,
            deed,
            when: When {
                labels: when.labels,
                paths: when.paths,
                agent: when.agent,
                attempts: when.attempts.map(|attempts| attempts.value()),
                risk: when.risk,
            },
            times_max: written.max_retries.map(|times| times.value()),
            backoff: written.backoff.map(|wait| wait.0),
            escalation: match written.escalate {
                None | Some(Escalate::WhenSpent(true)) => Escalation::WhenSpent,
                Some(Escalate::WhenSpent(false)) => Escalation::Never,
                Some(Escalate::AfterTimes(times)) => Escalation::AfterTimes(times.value()),
                Some(Escalate::AfterTime(time)) => Escalation::AfterTime(time.0),
            },
        },
        built_in: false,
        prompt: written.prompt,
        command: written.command,
        timeout: written.timeout.map_or(RUN_TIMEOUT, |timeout| timeout.0),
        name: written.name,
        cron,
        schedule: written.cron,
    }
}

/// Finds what is wrong with one rule; its time, if it has one.
fn examine(rule: &ReactionFile, at: usize, findings: &mut Findings<'_>) -> Option<Cron> {
    let path = |key: &'static str| -> [Step<'static>; 3] { [Key("reactions"), Item(at), Key(key)] };
    let (trigger, deed) = (core::Trigger::from(rule.trigger), Deed::from(rule.action));
    if trigger == core::Trigger::Schedule && rule.cron.is_none() {
        let hint = "add `cron: \"0 6 * * 1-5\"`";
        findings.wrong(&path("trigger"), "a schedule needs `cron`", hint);
    }
    if trigger != core::Trigger::Schedule && rule.cron.is_some() {
        let what = "only the trigger `schedule` has `cron`";
        findings.wrong(&path("cron"), what, "remove it");
    }
    if deed == Deed::Run && rule.command.is_none() {
        findings.wrong(
            &path("action"),
            "`run` needs a `command`",
            "add `command: …`",
        );
    }
    if deed == Deed::Create && rule.prompt.is_none() {
        let hint = "add `prompt: …`, what the new task is about";
        findings.wrong(&path("action"), "`create` needs a `prompt`", hint);
    }
    for (given, key, only) in [
        (rule.command.is_some(), "command", Deed::Run),
        (rule.timeout.is_some(), "timeout", Deed::Run),
        (rule.name.is_some(), "name", Deed::Create),
    ] {
        if given && deed != only {
            let what = format!("only the action `{only}` has a `{key}`");
            findings.wrong(&path(key), what, "remove it");
        }
    }
    let speaks = matches!(
        deed,
        Deed::SendToAgent | Deed::Create | Deed::Notify | Deed::Escalate
    );
    if rule.prompt.is_some() && !speaks {
        let what = format!("the action `{deed}` says nothing, so it has no `prompt`");
        findings.wrong(&path("prompt"), what, "remove it");
    }
    if trigger.is_of_project() {
        if !deed.suits_project() {
            let what = format!("`{trigger}` is about no task, so there is nothing to {deed}");
            let hint = "use `notify`, `run` or `create`";
            findings.wrong(&path("action"), what, hint);
        }
        if rule.when.is_some() {
            let what = format!("`{trigger}` is about no task, so there is nothing to look at");
            findings.wrong(&path("when"), what, "remove it");
        }
    }
    for (key, text) in [("prompt", &rule.prompt), ("name", &rule.name)] {
        if let Some(text) = text
            && let Err(refused) = template::check(text)
        {
            findings.wrong(&path(key), refused.what, refused.hint);
        }
    }
    match rule.cron.as_deref().map(Cron::parse) {
        Some(Ok(cron)) => Some(cron),
        Some(Err(why)) => {
            let hint =
                "five fields: minute, hour, day, month, day of the week, such as `0 6 * * 1-5`";
            findings.wrong(
                &path("cron"),
                format!("the cron expression makes no sense: {why}"),
                hint,
            );
            None
        }
        None => None,
    }
}

/// A rule that sends what gates find, or a conflict, back to the agent is how the task itself goes
/// back: it says how often.
pub(super) fn limit(policy: &mut Policy, rules: &[Reaction]) {
    let times = |trigger| {
        rules
            .iter()
            .map(|reaction| &reaction.rule)
            .filter(|rule| rule.trigger == trigger && rule.deed == Deed::SendToAgent)
            .find(|rule| rule.when == When::default())
            .and_then(|rule| rule.times_max)
    };
    let fixes = times(core::Trigger::GateFailed).or_else(|| times(core::Trigger::CiFailed));
    if let Some(times) = fixes {
        policy.fix.per_gate_max = times;
        policy.fix.total_max = times;
    }
    if let Some(times) = times(core::Trigger::MergeConflict) {
        policy.conflicts_max = times;
    }
}
