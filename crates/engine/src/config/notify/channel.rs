//! Channels: the ways to reach a person, as they are written and what they mean.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use woodward_core::notice::Level;
use woodward_core::{ChannelName, Millis};
use woodward_notify::Secret;

use super::secret::SecretFile;
use crate::config::command::Command;
use crate::config::tree::{Step, Step::Item, Step::Key};
use crate::config::values::TimeSpan;

/// The longest that a hook may be let run.
const HOOK_MAX: Millis = Millis::from_mins(10);

/// A way to reach you.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Channel")]
pub(super) struct ChannelFile {
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

/// Where, what, and what to do about it.
pub(super) type Found = (Vec<Step<'static>>, String, &'static str);

impl ChannelFile {
    fn kind(&self, name: &str) -> Option<ChannelKind> {
        self.kind.or_else(|| ChannelKind::named(name))
    }

    pub(super) fn problems(&self, name: &str) -> Vec<Found> {
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

    pub(super) fn settled(self, name: ChannelName) -> Option<ChannelSpec> {
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
