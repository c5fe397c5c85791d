//! Who is told, and how: the section `notify` of `woodward.yaml`, and a person's own file of the same
//! shape.
//!
//! A project says what its people share; addresses and habits are a person's own, so a person's file
//! wins, channel by channel and key by key. Nothing here reads a secret.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use woodward_core::backoff::Backoff;
use woodward_core::notice::{Digest, Level, QuietHours, Rules, TimeOfDay};
use woodward_core::{ChannelName, Millis};
use woodward_notify::Secret;

use super::command::Command;
use super::de::AS_WRITTEN;
use super::error::{ConfigError, Problem, printable};
use super::file::Named;
use super::tree::{Node, Step, Step::Item, Step::Key};
use super::values::{Count, TimeSpan, Written};

/// The most channels.
const CHANNELS_MAX: usize = 32;
/// The longest that a hook may be let run.
const HOOK_MAX: Millis = Millis::from_mins(10);

/// Who is told, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Notify")]
pub(super) struct NotifyFile {
    /// The ways to reach you, by name. A channel of your own file replaces the project's of that name.
    channels: BTreeMap<Named<ChannelName>, ChannelFile>,
    /// When you do not want to be told.
    quiet_hours: Option<QuietFile>,
    /// When notices are put together.
    digest: Option<DigestFile>,
    /// What happens when a channel fails.
    retry: Option<RetryFile>,
    /// Whether this machine is kept from sleeping while agents work. By default it is.
    keep_awake: Option<bool>,
}

/// A way to reach you.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Channel")]
struct ChannelFile {
    /// What it is; by default what its name says.
    kind: Option<ChannelKind>,
    /// The address, for `slack`, `discord`, `ntfy` and `webhook`.
    url: Option<SecretFile>,
    /// The access token, for `ntfy`.
    token: Option<SecretFile>,
    /// What signs the requests, for `webhook`.
    secret: Option<SecretFile>,
    /// What to run, for `command`: it gets the notice as JSON on its standard input and in
    /// variables.
    command: Option<Command>,
    /// The longest that the command may take.
    timeout: Option<TimeSpan>,
    /// What it is told: `urgent` (questions, escalations), `high` (failed, out of budget, held),
    /// `normal` (ready for review, all done), `low` (landed). By default all but `low`.
    levels: Option<Vec<LevelFile>>,
    /// Only what nobody has answered for so long: the next channel when the others did not help.
    after: Option<TimeSpan>,
    /// `false` switches it off.
    enabled: bool,
}

impl Default for ChannelFile {
    fn default() -> Self {
        Self {
            kind: None,
            url: None,
            token: None,
            secret: None,
            command: None,
            timeout: None,
            levels: None,
            after: None,
            enabled: true,
        }
    }
}

/// What a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ChannelKind {
    /// This machine's desktop.
    Desktop,
    /// A Slack incoming webhook.
    Slack,
    /// A Discord webhook.
    Discord,
    /// A topic of an ntfy server.
    Ntfy,
    /// Any HTTP receiver; requests are signed.
    Webhook,
    /// A command of yours.
    Command,
    /// The bell of terminals where `woodward wait` or `woodward status --watch` runs.
    Bell,
}

impl ChannelKind {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Desktop, "desktop"),
        (Self::Slack, "slack"),
        (Self::Discord, "discord"),
        (Self::Ntfy, "ntfy"),
        (Self::Webhook, "webhook"),
        (Self::Command, "command"),
        (Self::Bell, "bell"),
    ];

    fn named(name: &str) -> Option<Self> {
        let known = Self::ALL.iter().find(|(_, word)| *word == name);
        known.map(|(kind, _)| *kind)
    }

    fn word(self) -> &'static str {
        let known = Self::ALL.iter().find(|(kind, _)| *kind == self);
        known.map_or("", |(_, word)| word)
    }
}

/// How loud something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum LevelFile {
    /// An agent stands idle until it is answered.
    Urgent,
    /// Work has stopped.
    High,
    /// It waits for you, and harms nobody meanwhile.
    Normal,
    /// Good to know.
    Low,
}

impl LevelFile {
    const fn level(self) -> Level {
        match self {
            Self::Urgent => Level::Urgent,
            Self::High => Level::High,
            Self::Normal => Level::Normal,
            Self::Low => Level::Low,
        }
    }
}

/// An address or a key: as it is, or where it is found.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum SecretFile {
    Plain(String),
    Elsewhere(Elsewhere),
}

/// Where a secret is found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "SecretPlace")]
struct Elsewhere {
    /// In this environment variable of the daemon.
    env: Option<String>,
    /// In this file; its path is absolute.
    file: Option<String>,
}

impl fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(_) => f.write_str("Plain(…)"),
            Self::Elsewhere(place) => write!(f, "{place:?}"),
        }
    }
}

impl<'de> Deserialize<'de> for SecretFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SecretVisitor;

        impl<'de> Visitor<'de> for SecretVisitor {
            type Value = SecretFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, `{ env: NAME }` or `{ file: PATH }`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<SecretFile, E> {
                Ok(SecretFile::Plain(text.to_owned()))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                mapping: D,
            ) -> Result<SecretFile, D::Error> {
                Elsewhere::deserialize(mapping).map(SecretFile::Elsewhere)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SecretFile, A::Error> {
                Elsewhere::deserialize(de::value::MapAccessDeserializer::new(map))
                    .map(SecretFile::Elsewhere)
            }
        }

        deserializer.deserialize_newtype_struct(AS_WRITTEN, SecretVisitor)
    }
}

impl JsonSchema for SecretFile {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let place = generator.subschema_for::<Elsewhere>();
        json_schema!({
            "description": "An address or a key: as text, or where it is found. It is never printed.",
            "anyOf": [{ "type": "string", "minLength": 1 }, place],
        })
    }
}

/// When you do not want to be told. The end may be on the next day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "QuietHours")]
struct QuietFile {
    /// The beginning, where the daemon runs: `22:00`.
    from: TimeFile,
    /// The end: `07:00`.
    to: TimeFile,
    /// Whether what is urgent comes through. By default it does not.
    #[serde(default)]
    urgent: bool,
}

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeFile(TimeOfDay);

impl TimeFile {
    fn parse(text: &str) -> Result<Self, String> {
        let parts = || {
            let (hour, minute) = text.split_once(':')?;
            let digits = |part: &str| {
                let plain = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
                plain.then(|| part.parse::<u16>().ok()).flatten()
            };
            TimeOfDay::new(digits(hour)?, digits(minute)?)
        };
        parts().map(Self).ok_or_else(|| {
            let shown = printable(text, 40);
            format!("`{shown}` is no time of day\nwrite hours and minutes: `\"22:00\"`")
        })
    }
}

impl Serialize for TimeFile {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (hour, minute) = self.0.parts();
        serializer.collect_str(&format_args!("{hour:02}:{minute:02}"))
    }
}

impl<'de> Deserialize<'de> for TimeFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = Written {
            expected: "a time of day",
            parse: Self::parse,
        };
        deserializer.deserialize_newtype_struct(AS_WRITTEN, visitor)
    }
}

impl JsonSchema for TimeFile {
    fn schema_name() -> Cow<'static, str> {
        "TimeOfDay".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A time of day: `22:00`.",
            "type": "string",
            "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$",
        })
    }
}

/// When notices are put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Digest")]
struct DigestFile {
    /// So many come one by one within the time; what follows comes as one.
    singles: Count<1, 1000>,
    /// The time.
    within: TimeSpan,
}

impl Default for DigestFile {
    fn default() -> Self {
        Self {
            singles: Count::new(Digest::default().singles_max),
            within: TimeSpan(Digest::default().within),
        }
    }
}

/// What happens when a channel fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "NotifyRetry")]
struct RetryFile {
    /// The longest wait after a first failure; it doubles with every further one.
    backoff: TimeSpan,
    /// The longest wait after any failure.
    backoff_max: TimeSpan,
    /// After so long a notice is given up.
    give_up_after: TimeSpan,
}

impl Default for RetryFile {
    fn default() -> Self {
        let usual = Retry::default();
        Self {
            backoff: TimeSpan(usual.backoff.base),
            backoff_max: TimeSpan(usual.backoff.cap),
            give_up_after: TimeSpan(usual.give_up_after),
        }
    }
}

/// Who is told, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// The channels, by name.
    pub channels: Vec<ChannelSpec>,
    /// When.
    pub rules: Rules,
    /// What happens when a channel fails.
    pub retry: Retry,
    /// Whether the machine is kept from sleeping while agents work.
    pub keep_awake: bool,
}

/// A way to reach a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSpec {
    /// Its name.
    pub name: ChannelName,
    /// What it is.
    pub way: Way,
    /// What it is told.
    pub levels: Vec<Level>,
    /// Only what nobody has answered for so long.
    pub after: Option<Millis>,
}

impl ChannelSpec {
    /// The desktop, told only of what can't go on without the person: what there is without a word
    /// of configuration, where there is a desktop.
    pub fn unconfigured_desktop() -> Option<Self> {
        Some(Self {
            name: "desktop".parse().ok()?,
            way: Way::Desktop,
            levels: vec![Level::Urgent, Level::High],
            after: None,
        })
    }
}

/// How a person is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// This machine's desktop.
    Desktop,
    /// A Slack incoming webhook.
    Slack(Secret),
    /// A Discord webhook.
    Discord(Secret),
    /// A topic of an ntfy server, and its token.
    Ntfy(Secret, Option<Secret>),
    /// Any HTTP receiver, and what signs the requests.
    Webhook(Secret, Option<Secret>),
    /// A command, and how long it may take.
    Command(Command, Millis),
    /// Terminals.
    Bell,
}

impl Way {
    /// The one word for it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Slack(_) => "slack",
            Self::Discord(_) => "discord",
            Self::Ntfy(..) => "ntfy",
            Self::Webhook(..) => "webhook",
            Self::Command(..) => "command",
            Self::Bell => "bell",
        }
    }
}

/// What happens when a channel fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How long to wait before the next try.
    pub backoff: Backoff,
    /// After so long a notice is given up.
    pub give_up_after: Millis,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            backoff: Backoff {
                base: Millis::from_secs(2),
                cap: Millis::from_mins(5),
                ..Backoff::default()
            },
            give_up_after: Millis::from_days(1),
        }
    }
}

impl Default for Notify {
    fn default() -> Self {
        NotifyFile::default().settled()
    }
}

impl NotifyFile {
    /// A person's own file.
    pub(super) fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let refuse = |problems| ConfigError::new(text, origin, problems);
        let tree = Node::read(text).map_err(|problem| refuse(vec![problem]))?;
        let file = Self::deserialize(&tree).map_err(|refused| refuse(refused.0))?;
        let problems = file.problems(&tree, &[]);
        if problems.is_empty() {
            Ok(file)
        } else {
            Err(refuse(problems))
        }
    }

    /// What about it makes no sense. `at` is where it stands in the file.
    pub(super) fn problems(&self, tree: &Node, at: &[Step<'_>]) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |path: &[Step<'_>], what: String, hint: &str| {
            let path = [at, path].concat();
            problems.push(Problem {
                path: super::check::shown(&path),
                place: tree.at(&path).map(|node| node.place),
                ..Problem::new(what, Some(hint.to_owned()))
            });
        };
        if self.channels.len() > CHANNELS_MAX {
            let what = format!("at most {CHANNELS_MAX} channels are allowed");
            wrong(&[Key("channels")], what, "remove some");
        }
        for (name, channel) in &self.channels {
            let name = name.0.as_str();
            for (path, what, hint) in channel.problems(name) {
                let path = [&[Key("channels"), Key(name)], path.as_slice()].concat();
                wrong(&path, what, hint);
            }
        }
        problems
    }

    /// This, with another's wishes over it.
    pub(super) fn under(mut self, over: Self) -> Self {
        self.channels.extend(over.channels);
        Self {
            channels: self.channels,
            quiet_hours: over.quiet_hours.or(self.quiet_hours),
            digest: over.digest.or(self.digest),
            retry: over.retry.or(self.retry),
            keep_awake: over.keep_awake.or(self.keep_awake),
        }
    }

    /// What it means. What [`Self::problems`] finds fault with is left out.
    pub(super) fn settled(self) -> Notify {
        let digest = self.digest.unwrap_or_default();
        let retry = self.retry.unwrap_or_default();
        let settled = |(name, channel): (Named<ChannelName>, ChannelFile)| channel.settled(name.0);
        Notify {
            channels: self.channels.into_iter().filter_map(settled).collect(),
            rules: Rules {
                quiet: self.quiet_hours.map(|quiet| QuietHours {
                    from: quiet.from.0,
                    to: quiet.to.0,
                    urgent: quiet.urgent,
                }),
                digest: Digest {
                    singles_max: digest.singles.value(),
                    within: digest.within.0,
                    ..Digest::default()
                },
            },
            retry: Retry {
                backoff: Backoff {
                    base: retry.backoff.0,
                    cap: retry.backoff_max.0,
                    ..Backoff::default()
                },
                give_up_after: retry.give_up_after.0,
            },
            keep_awake: self.keep_awake.unwrap_or(true),
        }
    }

    /// Whether it names any channel, switched off or not.
    pub(super) fn names_channels(&self) -> bool {
        !self.channels.is_empty()
    }
}

type Found = (Vec<Step<'static>>, String, &'static str);

impl ChannelFile {
    fn kind(&self, name: &str) -> Option<ChannelKind> {
        self.kind.or_else(|| ChannelKind::named(name))
    }

    fn problems(&self, name: &str) -> Vec<Found> {
        use ChannelKind as K;
        let Some(kind) = self.kind(name) else {
            let what = format!("`{name}` does not say what it is");
            let hint = "add `kind:` desktop, slack, discord, ntfy, webhook, command or bell";
            return vec![(Vec::new(), what, hint)];
        };
        let mut found: Vec<Found> = Vec::new();
        let fields: [(&'static str, bool, &[K]); 5] = [
            (
                "url",
                self.url.is_some(),
                &[K::Slack, K::Discord, K::Ntfy, K::Webhook],
            ),
            ("token", self.token.is_some(), &[K::Ntfy]),
            ("secret", self.secret.is_some(), &[K::Webhook]),
            ("command", self.command.is_some(), &[K::Command]),
            ("timeout", self.timeout.is_some(), &[K::Command]),
        ];
        for (key, given, kinds) in fields {
            if given && !kinds.contains(&kind) {
                let what = format!("a channel of kind `{}` has no `{key}`", kind.word());
                found.push((vec![Key(key)], what, "remove it"));
            }
            let needed = matches!(key, "url" | "command") && kinds.contains(&kind);
            if needed && !given && self.enabled {
                let what = format!("a channel of kind `{}` needs `{key}`", kind.word());
                let hint = match key {
                    "url" => "add `url: { env: NAME }`; the daemon's environment has the address",
                    _ => "add `command: …`",
                };
                found.push((Vec::new(), what, hint));
            }
        }
        for (key, secret) in [
            ("url", &self.url),
            ("token", &self.token),
            ("secret", &self.secret),
        ] {
            if let Some((what, hint)) = secret.as_ref().and_then(|s| s.problem(key == "url")) {
                found.push((vec![Key(key)], what, hint));
            }
        }
        if self.timeout.is_some_and(|timeout| timeout.0 > HOOK_MAX) {
            let what = format!("a command may take {HOOK_MAX} at most");
            found.push((vec![Key("timeout")], what, "write `30s`, or `10m` at most"));
        }
        if let Some(levels) = &self.levels {
            if levels.is_empty() {
                let what = "a channel that is told nothing is none".to_owned();
                found.push((
                    vec![Key("levels")],
                    what,
                    "to switch it off: `enabled: false`",
                ));
            }
            for (at, level) in levels.iter().enumerate() {
                if levels[..at].contains(level) {
                    let what = "this level is there twice".to_owned();
                    found.push((vec![Key("levels"), Item(at)], what, "remove one"));
                }
            }
        }
        found
    }

    fn settled(self, name: ChannelName) -> Option<ChannelSpec> {
        if !self.enabled {
            return None;
        }
        let kind = self.kind(name.as_str())?;
        let url = self.url.and_then(SecretFile::settled);
        let way = match kind {
            ChannelKind::Desktop => Way::Desktop,
            ChannelKind::Bell => Way::Bell,
            ChannelKind::Slack => Way::Slack(url?),
            ChannelKind::Discord => Way::Discord(url?),
            ChannelKind::Ntfy => Way::Ntfy(url?, self.token.and_then(SecretFile::settled)),
            ChannelKind::Webhook => Way::Webhook(url?, self.secret.and_then(SecretFile::settled)),
            ChannelKind::Command => {
                let timeout = self.timeout.map_or(Millis::from_secs(30), |span| span.0);
                Way::Command(self.command?, timeout)
            }
        };
        let levels = match self.levels {
            Some(levels) => levels.into_iter().map(LevelFile::level).collect(),
            None => vec![Level::Urgent, Level::High, Level::Normal],
        };
        Some(ChannelSpec {
            name,
            way,
            levels,
            after: self.after.map(|span| span.0),
        })
    }
}

impl SecretFile {
    /// What is wrong with it; its text is never quoted.
    fn problem(&self, is_address: bool) -> Option<(String, &'static str)> {
        let hint = "write `{ env: NAME }` or `{ file: /an/absolute/path }`";
        match self {
            Self::Plain(text) if text.trim().is_empty() => Some(("it is empty".into(), hint)),
            Self::Plain(text) => {
                let text = text.trim();
                let http = text.starts_with("https://") || text.starts_with("http://");
                (is_address && !http).then(|| {
                    let what = "it is no address".to_owned();
                    (what, "write `https://…`, or better `{ env: NAME }`")
                })
            }
            Self::Elsewhere(Elsewhere {
                env: Some(name),
                file: None,
            }) => {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
                let good = !name.is_empty() && name.bytes().all(plain);
                (!good).then(|| ("it names no variable".into(), "write `{ env: SLACK_URL }`"))
            }
            Self::Elsewhere(Elsewhere {
                env: None,
                file: Some(path),
            }) => {
                let good = path.starts_with('/') && !path.contains('\0');
                (!good).then(|| ("it names no absolute path".into(), hint))
            }
            Self::Elsewhere(_) => {
                let what = "it must name a variable or a file, and only one".into();
                Some((what, hint))
            }
        }
    }

    fn settled(self) -> Option<Secret> {
        match self {
            Self::Plain(text) => Some(Secret::Plain(text.trim().to_owned())),
            Self::Elsewhere(place) => match (place.env, place.file) {
                (Some(name), None) => Some(Secret::Env(name)),
                (None, Some(path)) => Some(Secret::File(PathBuf::from(path))),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> NotifyFile {
        NotifyFile::parse(text, "notify.yaml").unwrap_or_else(|error| panic!("{error}"))
    }

    fn refused(text: &str) -> String {
        match NotifyFile::parse(text, "notify.yaml") {
            Ok(_) => panic!("{text} is taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn all_kinds_are_understood() {
        let notify = own(r#"
channels:
  desktop: {}
  bell: { levels: [urgent] }
  team: { kind: slack, url: { env: SLACK_URL }, levels: [urgent, high] }
  discord: { url: "https://discord.example/api/webhooks/1/x" }
  phone: { kind: ntfy, url: { file: /etc/topic }, token: { env: NTFY_TOKEN }, after: 10m }
  hook: { kind: webhook, url: { env: U }, secret: { env: S } }
  mine: { kind: command, command: "notify-send hello", timeout: 5s }
quietHours: { from: "22:00", to: "07:30", urgent: true }
digest: { singles: 5, within: 2m }
retry: { backoff: 10ms, backoffMax: 1s, giveUpAfter: 2h }
keepAwake: false
"#)
        .settled();
        let kinds: Vec<&str> = notify.channels.iter().map(|c| c.way.kind()).collect();
        assert_eq!(
            kinds,
            [
                "bell", "desktop", "discord", "webhook", "command", "ntfy", "slack"
            ]
        );
        let phone = &notify.channels[5];
        assert_eq!(phone.after, Some(Millis::from_mins(10)));
        assert_eq!(
            phone.way,
            Way::Ntfy(
                Secret::File("/etc/topic".into()),
                Some(Secret::Env("NTFY_TOKEN".into()))
            )
        );
        let quiet = notify.rules.quiet.unwrap();
        assert_eq!((quiet.from.parts(), quiet.to.parts()), ((22, 0), (7, 30)));
        assert!(quiet.urgent && !notify.keep_awake);
        assert_eq!(notify.rules.digest.singles_max, 5);
        assert_eq!(notify.retry.give_up_after, Millis::from_mins(120));
    }

    #[test]
    fn nothing_said_is_no_channel_and_a_machine_that_stays_awake() {
        let notify = Notify::default();
        assert_eq!(notify.channels, []);
        assert!(notify.keep_awake);
        assert_eq!(notify.rules, Rules::default());
    }

    #[test]
    fn a_persons_own_file_wins_channel_by_channel_and_key_by_key() {
        let project = own(
            "channels: { desktop: {}, team: { kind: slack, url: { env: A } } }\n\
                           digest: { singles: 1 }\nquietHours: { from: \"20:00\", to: \"08:00\" }",
        );
        let mine = own("channels: { desktop: { enabled: false }, \
                        team: { kind: slack, url: { env: B }, after: 5m } }\n\
                        quietHours: { from: \"23:00\", to: \"06:00\" }");
        let merged = project.under(mine).settled();
        let [team] = merged.channels.as_slice() else {
            panic!("{:?}", merged.channels)
        };
        assert_eq!(team.way, Way::Slack(Secret::Env("B".into())));
        assert_eq!(merged.rules.digest.singles_max, 1);
        assert_eq!(merged.rules.quiet.unwrap().from.parts(), (23, 0));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_place_and_hint_and_without_secrets() {
        for (text, words) in [
            (
                "channels: { team: {} }",
                "channels.team: `team` does not say what it is",
            ),
            (
                "channels: { slack: {} }",
                "channels.slack: a channel of kind `slack` needs `url`",
            ),
            (
                "channels: { desktop: { url: \"https://hush\" } }",
                "desktop.url: a channel of kind `desktop` has no `url`",
            ),
            (
                "channels: { slack: { url: hush } }",
                "slack.url: it is no address",
            ),
            (
                "channels: { slack: { url: { env: \"a b\" } } }",
                "slack.url: it names no variable",
            ),
            (
                "channels: { slack: { url: { file: relative } } }",
                "slack.url: it names no absolute path",
            ),
            (
                "channels: { slack: { url: { env: A, file: /b } } }",
                "only one",
            ),
            (
                "channels: { bell: { levels: [] } }",
                "bell.levels: a channel that is told nothing",
            ),
            (
                "channels: { bell: { levels: [loud] } }",
                "`loud` is not known here",
            ),
            (
                "channels: { command: { command: x, timeout: 1h } }",
                "command.timeout: a command may take",
            ),
            (
                "quietHours: { from: \"25:00\", to: \"07:00\" }",
                "quietHours.from: `25:00` is no time of day",
            ),
            (
                "quietHours: { from: \"9:00\", to: \"07:00\" }",
                "is no time of day",
            ),
            ("quietHours: { from: \"09:00\" }", "`to` is missing"),
            ("channel: {}", "unknown key `channel`"),
        ] {
            let said = refused(text);
            assert!(said.contains(words), "{text}\n{said}");
            assert!(said.contains("notify.yaml:1"), "{said}");
            assert!(!said.contains("hush"), "{said}");
        }
    }
}
