//! A tmux session for a run, on a socket of Woodward's own.
//!
//! Its one pane runs the attach client, so whatever happens to tmux happens to a client. It reads
//! no configuration of the person's and takes no key from the agent but ctrl-q.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;

/// How long tmux may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The session of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The server's socket.
    pub socket: PathBuf,
    /// The session's name, see [`Session::name`].
    pub name: String,
    /// What its pane runs: a client of the run, see [`super::attach`].
    pub client: Vec<String>,
}

impl Session {
    /// A name that tmux takes as it is: it replaces dots and colons by itself.
    pub fn name(wanted: &str) -> String {
        wanted
            .chars()
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => c,
                _ => '_',
            })
            .collect()
    }

    /// The session and nothing whose name only begins like it.
    fn target(&self) -> String {
        format!("={}:", self.name)
    }

    /// The command that joins it, for whoever has a terminal.
    pub fn join(&self, read_only: bool) -> std::process::Command {
        let mut command = std::process::Command::new("tmux");
        command
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null", "attach-session"])
            .args(["-t", &format!("={}", self.name)])
            // Inside another tmux one is asked not to; it is another server.
            .env_remove("TMUX");
        if read_only {
            command.arg("-r");
        }
        command
    }
}

/// Whether tmux can be used at all.
pub async fn is_installed() -> bool {
    let mut command = Command::new("tmux");
    command.arg("-V");
    run(command).await.is_ok_and(|out| out.status.success())
}

/// Opens the session, unless it is there.
///
/// # Errors
/// When tmux is not there or refuses.
pub async fn open(session: &Session) -> io::Result<()> {
    if is_there(session).await {
        return Ok(());
    }
    let mut command = tmux(&session.socket);
    command
        .args(["new-session", "-d", "-x", "160", "-y", "48"])
        .args(["-s", &session.name, "--"])
        .args(&session.client);
    let told = |command: &mut Command, words: &[&str]| {
        command.arg(";").args(words);
    };
    let target = session.target();
    for words in [
        &["set-option", "-s", "escape-time", "10"][..],
        &["set-option", "-g", "prefix", "None"],
        &["set-option", "-g", "status", "off"],
        &["set-option", "-g", "default-terminal", "screen-256color"],
        &["set-option", "-g", "window-size", "latest"],
        &["set-option", "-g", "set-titles", "on"],
        &["set-option", "-g", "set-titles-string", "#{pane_title}"],
        &["set-option", "-g", "history-limit", "100"],
        &["bind-key", "-n", "C-q", "detach-client"],
        // The pane's client says whether a person is there.
        &["set-hook", "-t", &target, "client-attached", NUDGE],
        &["set-hook", "-t", &target, "client-detached", NUDGE],
    ] {
        told(&mut command, words);
    }
    let out = run(command).await?;
    // Another one may have been faster.
    if out.status.success() || is_there(session).await {
        return Ok(());
    }
    Err(refused(&out))
}

/// Wakes the pane's client, which then asks tmux. The signal is one that harms nobody who does not
/// listen for it yet.
const NUDGE: &str = "run-shell -b 'kill -WINCH #{pane_pid} 2>/dev/null || true'";

/// Closes the session; the run goes on.
///
/// # Errors
/// When tmux can't be asked.
pub async fn close(session: &Session) -> io::Result<()> {
    let mut command = tmux(&session.socket);
    command.args(["kill-session", "-t", &format!("={}", session.name)]);
    // That it is not there is fine.
    run(command).await.map(|_| ())
}

/// Whether the session is there.
pub async fn is_there(session: &Session) -> bool {
    let mut command = tmux(&session.socket);
    command.args(["has-session", "-t", &format!("={}", session.name)]);
    run(command).await.is_ok_and(|out| out.status.success())
}

/// Whether somebody has joined the session of the pane that this process runs in.
pub(super) async fn is_looked_at() -> bool {
    let (Some(server), Some(pane)) = (std::env::var_os("TMUX"), std::env::var_os("TMUX_PANE"))
    else {
        return true;
    };
    let server = server.to_string_lossy().into_owned();
    let socket = server.split(',').next().unwrap_or_default();
    let mut command = tmux(Path::new(socket));
    command.args(["display-message", "-p", "-t"]).arg(pane);
    command.arg("#{session_attached}");
    run(command)
        .await
        .is_ok_and(|out| String::from_utf8_lossy(&out.stdout).trim() != "0")
}

fn tmux(socket: &Path) -> Command {
    let mut command = Command::new("tmux");
    command
        .arg("-S")
        .arg(socket)
        .args(["-f", "/dev/null"])
        .env_remove("TMUX");
    command
}

async fn run(mut command: Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(output) => output,
        Err(_) => Err(io::Error::other("tmux does not answer")),
    }
}

fn refused(out: &Output) -> io::Error {
    let said = String::from_utf8_lossy(&out.stderr);
    io::Error::other(format!("tmux refused: {}", said.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_nothing_that_tmux_reads_as_more() {
        assert_eq!(Session::name("fix-login.2:1=x"), "fix-login_2_1_x");
    }
}
