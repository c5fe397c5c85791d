//! Who is told, and how: the section `notify` of `woodward.yaml`, and a person's own file of the same
//! shape.
//!
//! A project says what its people share; addresses and habits are a person's own, so a person's file
//! wins, channel by channel and key by key. Nothing here reads a secret.

mod channel;
mod secret;
#[cfg(test)]
mod tests;
mod when;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use woodward_core::ChannelName;
use woodward_core::notice::Rules;

use self::channel::ChannelFile;
pub use self::channel::{ChannelSpec, Way};
pub use self::when::Retry;
use self::when::{DigestFile, QuietFile, RetryFile};
use super::error::{ConfigError, Problem};
use super::file::Named;
use super::tree::{Node, Step, Step::Key};

/// The most channels.
const CHANNELS_MAX: usize = 32;

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
        let settled = |(name, channel): (Named<ChannelName>, ChannelFile)| channel.settled(name.0);
        Notify {
            channels: self.channels.into_iter().filter_map(settled).collect(),
            rules: Rules {
                quiet: self.quiet_hours.map(|quiet| quiet.settled()),
                digest: self.digest.unwrap_or_default().settled(),
            },
            retry: self.retry.unwrap_or_default().settled(),
            keep_awake: self.keep_awake.unwrap_or(true),
        }
    }

    /// Whether it names any channel, switched off or not.
    pub(super) fn names_channels(&self) -> bool {
        !self.channels.is_empty()
    }
}
