//! Keeping the machine from falling asleep while agents work.
//!
//! Where that is impossible (no login manager, no right) it says so and nothing else changes. The
//! display may go dark; only sleep is held off.

use std::time::Duration;

use thiserror::Error;

const PATIENCE: Duration = Duration::from_secs(5);

/// Sleep is held off as long as this lives.
pub struct Awake {
    _held: keepawake::KeepAwake,
    /// Whether also a person's own wish to sleep is held off, or only falling asleep when idle.
    pub fully: bool,
}

impl std::fmt::Debug for Awake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Awake").field("fully", &self.fully).finish()
    }
}

/// Sleep can't be held off here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("sleep can't be held off here: {0}")]
pub struct CannotStayAwake(String);

/// Holds sleep off.
///
/// # Errors
/// When this machine does not offer that.
pub async fn stay_awake(why: &str) -> Result<Awake, CannotStayAwake> {
    let why = why.to_owned();
    let asked = tokio::task::spawn_blocking(move || {
        // Not everybody may hold off a sleep that is asked for; nearly everybody may seem busy.
        hold(&why, true).or_else(|_| hold(&why, false))
    });
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(held)) => held,
        Ok(Err(error)) => Err(CannotStayAwake(error.to_string())),
        Err(_) => Err(CannotStayAwake(format!(
            "the login manager gave no answer within {} s",
            PATIENCE.as_secs()
        ))),
    }
}

fn hold(why: &str, fully: bool) -> Result<Awake, CannotStayAwake> {
    keepawake::Builder::default()
        .display(false)
        .idle(true)
        .sleep(fully)
        .reason(why)
        .app_name("Woodward")
        .app_reverse_domain("dev.woodward")
        .create()
        .map(|held| Awake { _held: held, fully })
        .map_err(|error| CannotStayAwake(error.to_string()))
}
