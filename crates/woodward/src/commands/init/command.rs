//! Running one command of a trial: bounded in time and output, with progress, ended together with
//! its children when it takes too long or the person interrupts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use woodward_core::Millis;

use crate::session::Session;

/// How often the progress line moves.
const TICK: Duration = Duration::from_millis(100);
/// How much of what a command prints is read.
const OUTPUT_MAX: u64 = 16 * 1024 * 1024;

/// Kills a command's process group unless it has ended by itself.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        Self(pid.and_then(Pid::from_raw))
    }

    fn has_ended(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended meanwhile, which is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Where and how commands run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Environment<'a> {
    pub(super) directory: &'a Path,
    pub(super) variables: &'a BTreeMap<String, String>,
}

/// Runs a command to its end.
///
/// # Errors
/// When it can't be started or takes too long, in a few words.
pub(super) async fn run(
    argv: &[String],
    environment: Environment<'_>,
    limit: Duration,
) -> Result<(ExitStatus, String), String> {
    let Some((program, args)) = argv.split_first() else {
        return Err("the command is empty".into());
    };
    let mut child = Command::new(program)
        .args(args)
        .current_dir(environment.directory)
        .env_clear()
        .envs(environment.variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("could not be started: {error}"))?;
    let mut group = Group::of(&child);
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        let (out, err) = tokio::join!(printed(out), printed(err));
        child.wait().await.map(|status| (status, out + &err))
    };
    match tokio::time::timeout(limit, ended).await {
        Ok(ended) => {
            group.has_ended();
            ended.map_err(|error| error.to_string())
        }
        Err(_) => Err(format!(
            "timed out after {}",
            Millis::from_secs(limit.as_secs())
        )),
    }
}

/// A line that moves on a terminal and vanishes, a plain line otherwise.
pub(super) fn announce(session: &Session, line: &str) -> Option<ProgressBar> {
    if !session.out.may_animate() {
        session.out.say(line);
        return None;
    }
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})").ok()?;
    let bar = ProgressBar::new_spinner()
        .with_style(style)
        .with_message(line.to_owned());
    bar.enable_steady_tick(TICK);
    Some(bar)
}

/// What a command prints, up to a limit; the rest is read and dropped, so that it never has to wait.
async fn printed(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else {
        return String::new();
    };
    let mut bytes = Vec::new();
    let mut kept = (&mut from).take(OUTPUT_MAX);
    // What can't be read was not printed.
    let _ = kept.read_to_end(&mut bytes).await;
    let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&bytes).into_owned()
}
