//! Who is told, and what was told: what `notify` says.

use serde::{Deserialize, Serialize};
use woodward_core::notice::{Level, Reason};
use woodward_core::{ChannelName, Millis, Timestamp};

/// The ways to reach the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyView {
    /// The channels, by name.
    pub channels: Vec<ChannelView>,
    /// Where the person's own wishes are, or would be.
    pub own_file: String,
    /// What is wrong with that file, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_file_problem: Option<String>,
    /// The quiet hours, as `22:00-07:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<String>,
    /// Whether it is quiet now, and until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_until: Option<Timestamp>,
}

/// A way to reach the person. Addresses and keys are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelView {
    /// Its name.
    pub name: ChannelName,
    /// What it is.
    pub kind: String,
    /// What it is told.
    pub levels: Vec<Level>,
    /// Only what nobody has answered for so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Millis>,
    /// Why it can't work here, if that can be seen without telling anybody anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How many notices wait for it.
    pub waiting: u32,
    /// Why the newest of them was not taken, if a try failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<String>,
}

/// Which channels to try.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestChannels {
    /// This one; all of them otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
}

/// What trying a channel gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelTest {
    /// The channel.
    pub name: ChannelName,
    /// What it is.
    pub kind: String,
    /// Why it did not work; nothing when it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How long it took.
    pub took: Millis,
}

/// Something that the person was told, is told or will be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeView {
    /// When it was recorded.
    pub at: Timestamp,
    /// The channel; nothing for the notice itself, before it goes to any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<ChannelName>,
    /// How it stands: `pending`, `done` or `dropped`.
    pub state: String,
    /// When it is due, while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// What became of it, or why it waits.
    pub said: String,
    /// How often a try failed.
    pub tries: u32,
    /// The task, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Why the person is told.
    pub reason: Reason,
    /// How loudly.
    pub level: Level,
    /// What.
    pub text: String,
    /// What to type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}
