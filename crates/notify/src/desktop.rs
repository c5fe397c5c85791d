//! This machine's desktop, by the system's own notifications.
//!
//! Without a desktop it says so at once; a notification service that hangs is waited for only so
//! long. At most one thread is ever lost to such a service.

use std::sync::Arc;
use std::time::Duration;

use notify_rust::{Notification, Timeout};
use tokio::sync::Semaphore;
use woodward_core::notice::Level;

use crate::{Message, SendError};

const PATIENCE: Duration = Duration::from_secs(5);

/// One call at a time: one that hangs is followed by none.
static TURN: std::sync::LazyLock<Arc<Semaphore>> =
    std::sync::LazyLock::new(|| Arc::new(Semaphore::new(1)));

/// Whether there seems to be a desktop: a session bus that the environment names, or a Mac.
pub fn is_here() -> bool {
    if cfg!(target_os = "macos") {
        return true;
    }
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    named("DBUS_SESSION_BUS_ADDRESS").is_some()
        || named("XDG_RUNTIME_DIR")
            .is_some_and(|dir| std::path::Path::new(&dir).join("bus").exists())
}

fn require_desktop() -> Result<(), SendError> {
    if is_here() {
        return Ok(());
    }
    Err(SendError::permanent(
        "there is no desktop here: neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR names a \
         session bus",
    ))
}

pub(crate) async fn send(message: &Message) -> Result<(), SendError> {
    require_desktop()?;
    let mut notification = Notification::new();
    notification
        .appname("Woodward")
        .summary(&message.title())
        .body(&escaped(&message.plain()))
        .timeout(match message.level() {
            // It stays until it was seen.
            Level::Urgent | Level::High => Timeout::Never,
            _ => Timeout::Default,
        });
    #[cfg(all(unix, not(target_os = "macos")))]
    notification.urgency(match message.level() {
        Level::Urgent => notify_rust::Urgency::Critical,
        Level::High | Level::Normal => notify_rust::Urgency::Normal,
        Level::Low => notify_rust::Urgency::Low,
    });
    bounded(move || notification.show().map(drop)).await
}

/// Whether somebody shows notifications here.
///
/// # Errors
/// What is missing.
pub(crate) async fn check() -> Result<(), SendError> {
    require_desktop()?;
    #[cfg(all(unix, not(target_os = "macos")))]
    bounded(|| notify_rust::get_server_information().map(drop)).await?;
    Ok(())
}

async fn bounded(
    call: impl FnOnce() -> notify_rust::error::Result<()> + Send + 'static,
) -> Result<(), SendError> {
    let silent = || {
        let seconds = PATIENCE.as_secs();
        SendError::transient(format!("the desktop gave no answer within {seconds} s"))
    };
    let asked = async {
        let turn = Arc::clone(&TURN).acquire_owned().await;
        tokio::task::spawn_blocking(move || {
            let called = call();
            drop(turn);
            called
        })
        .await
    };
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => Err(SendError::transient(format!(
            "the desktop's notifications: {error}"
        ))),
        Ok(Err(error)) => Err(SendError::transient(error.to_string())),
        Err(_) => Err(silent()),
    }
}

/// Desktops read a little markup.
fn escaped(text: &str) -> String {
    if cfg!(target_os = "macos") {
        return text.to_owned();
    }
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
