//! The ways to reach a person: desktop, Slack, Discord, ntfy, any webhook, any command.
//!
//! One port: a [`Channel`] is given a [`Message`] and says whether it was taken. Everything here is
//! bounded in time and size, and nothing is tried twice: when to try again is the caller's
//! decision. No error, log line or `Debug` text ever holds an address or a key ([`Secret`]).
//! This crate knows no task, no database and no configuration file.

pub mod awake;
mod command;
pub mod desktop;
mod discord;
mod http;
mod message;
mod ntfy;
mod secret;
mod slack;
mod webhook;

use std::time::Duration;

use thiserror::Error;

pub use command::Hook;
pub use message::{Message, delivery_id};
pub use secret::{Secret, SecretError};
pub use webhook::sign;

/// The longest that an HTTP request takes, connecting included.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);

/// Why a message was not taken, by what the caller can do about it. It never names an address or a
/// key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// Trying again may help.
    #[error("{what}")]
    Transient {
        /// What went wrong.
        what: String,
        /// How long the receiver wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// Trying again will not help.
    #[error("{what}")]
    Permanent {
        /// What went wrong.
        what: String,
    },
}

impl SendError {
    /// Something that may pass.
    pub fn transient(what: impl Into<String>) -> Self {
        Self::Transient {
            what: what.into(),
            retry_after: None,
        }
    }

    /// Something that stays until a person changes it.
    pub fn permanent(what: impl Into<String>) -> Self {
        Self::Permanent { what: what.into() }
    }
}

impl From<SecretError> for SendError {
    fn from(error: SecretError) -> Self {
        // A variable or a file can be put right while the message waits.
        Self::transient(error.to_string())
    }
}

/// One way to reach a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// This machine's desktop.
    Desktop,
    /// A Slack incoming webhook.
    Slack {
        /// Its address.
        url: Secret,
    },
    /// A Discord webhook.
    Discord {
        /// Its address.
        url: Secret,
    },
    /// A topic of an ntfy server.
    Ntfy {
        /// The topic's address.
        url: Secret,
        /// An access token, if the topic needs one.
        token: Option<Secret>,
    },
    /// Any HTTP receiver; the request is signed.
    Webhook {
        /// Its address.
        url: Secret,
        /// What both sides know. Without one the request is not signed.
        secret: Option<Secret>,
    },
    /// A command of the person's.
    Command(Hook),
}

impl Channel {
    /// The one word for its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Slack { .. } => "slack",
            Self::Discord { .. } => "discord",
            Self::Ntfy { .. } => "ntfy",
            Self::Webhook { .. } => "webhook",
            Self::Command(_) => "command",
        }
    }

    /// Tells the person.
    ///
    /// # Errors
    /// When the message was not provably taken.
    pub async fn send(&self, message: &Message) -> Result<(), SendError> {
        match self {
            Self::Desktop => desktop::send(message).await,
            Self::Slack { url } => http::post(slack::request(url, message)?).await,
            Self::Discord { url } => http::post(discord::request(url, message)?).await,
            Self::Ntfy { url, token } => {
                http::post(ntfy::request(url, token.as_ref(), message)?).await
            }
            Self::Webhook { url, secret } => {
                http::post(webhook::request(url, secret.as_ref(), message)?).await
            }
            Self::Command(hook) => command::run(hook, message).await,
        }
    }

    /// Whether it could work here, as far as that can be seen without telling anybody anything.
    ///
    /// # Errors
    /// What is missing.
    pub async fn check(&self) -> Result<(), SendError> {
        let addressed = |url: &Secret| http::Address::parse(&url.load()?).map(drop);
        match self {
            Self::Desktop => desktop::check().await,
            Self::Slack { url } | Self::Discord { url } => addressed(url),
            Self::Ntfy { url, token: key } | Self::Webhook { url, secret: key } => {
                key.as_ref().map_or(Ok(()), |key| key.load().map(drop))?;
                addressed(url)
            }
            Self::Command(hook) => command::check(hook),
        }
    }
}
