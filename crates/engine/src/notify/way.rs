//! A configured channel as something that can be used.

use std::time::Duration;

use woodward_notify::{Channel, Hook, Message, SendError};

use crate::config::{ChannelSpec, Config, Way};
use crate::engine::Inner;
use crate::project::Project;
use crate::run_env;

/// Sends a message by a channel.
pub(crate) async fn send(
    inner: &Inner,
    project: &Project,
    config: &Config,
    spec: &ChannelSpec,
    message: &Message,
) -> Result<(), SendError> {
    match channel(inner, project, config, spec) {
        Some(channel) => channel.send(message).await,
        None => {
            inner.tail.ring();
            Ok(())
        }
    }
}

/// Whether a channel could work here, without telling anybody anything.
pub(crate) async fn check(
    inner: &Inner,
    project: &Project,
    config: &Config,
    spec: &ChannelSpec,
) -> Result<(), SendError> {
    match channel(inner, project, config, spec) {
        Some(channel) => channel.check().await,
        None => Ok(()),
    }
}

/// The channel itself; the bell is not one, it is rung by those who wait for us.
fn channel(
    inner: &Inner,
    project: &Project,
    config: &Config,
    spec: &ChannelSpec,
) -> Option<Channel> {
    Some(match spec.way.clone() {
        Way::Desktop => Channel::Desktop,
        Way::Slack(url) => Channel::Slack { url },
        Way::Discord(url) => Channel::Discord { url },
        Way::Ntfy(url, token) => Channel::Ntfy { url, token },
        Way::Webhook(url, secret) => Channel::Webhook { url, secret },
        Way::Command(command, patience) => Channel::Command(Hook {
            argv: command.argv(),
            directory: project.root().to_owned(),
            env: run_env::of_project(inner, project, config)
                .into_iter()
                .collect(),
            patience: Duration::from_millis(patience.0),
        }),
        Way::Bell => return None,
    })
}
