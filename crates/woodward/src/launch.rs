//! Starting and stopping the daemon from the command line.
//!
//! The daemon is this same program, started with `up --foreground --detached`. It makes itself a
//! session of its own, so that closing a terminal never ends it.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use woodward_api::{Code, Health, Problem};
use woodward_core::hint::NextCommand;

use crate::daemon::ONE_ARENA;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::render::text;
use crate::session::Session;

/// How long a daemon may take to be ready.
const START_MAX: Duration = Duration::from_secs(60);
/// How long a daemon may take to end.
const STOP_MAX: Duration = Duration::from_secs(30);
/// How long another one may take to be ready after ours gave way to it.
const RIVAL_MAX: Duration = Duration::from_secs(3);
/// How long one probe may take.
const PROBE: Duration = Duration::from_secs(2);
/// Between two probes.
const PAUSE: Duration = Duration::from_millis(20);
/// How much of the daemon's log a failure shows.
const LOG_LINES_SHOWN: usize = 8;
const LOG_TAIL_BYTES: u64 = 8 << 10;

/// Starts the daemon and waits until it is ready.
pub(crate) async fn start(session: &Session) -> Outcome<Health> {
    if std::env::var_os(woodward_engine::supervise::MARK).is_some_and(|mark| !mark.is_empty()) {
        return Err(Failure::failed(
            "an agent can't start the daemon: it would end with the agent",
        ));
    }
    session.out.detail("the daemon is started");
    let mut child = spawn(session)?;
    let latest = Instant::now() + START_MAX;
    let mut deadline = latest;
    let mut ended = None;
    loop {
        if let Ok(health) = session.client().health(PROBE).await
            && health.ready
        {
            return Ok(health);
        }
        if ended.is_none()
            && let Ok(Some(status)) = child.try_wait()
        {
            // Two commands may start one each: the second gives way to the first.
            ended = Some(status);
            deadline = deadline.min(Instant::now() + RIVAL_MAX);
        }
        if ended.is_some() && is_held(session) {
            // Whoever was first is on its way.
            deadline = deadline.max(Instant::now() + RIVAL_MAX).min(latest);
        }
        if Instant::now() >= deadline {
            let message = match ended {
                Some(status) => format!("the daemon ended while starting ({status})"),
                None => format!("the daemon is not ready after {} s", START_MAX.as_secs()),
            };
            return Err(with_log(session, message));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn spawn(session: &Session) -> Outcome<std::process::Child> {
    let state = session.paths().state();
    let log = session.paths().daemon_log();
    let unusable = |path: &Path, error: std::io::Error| {
        Failure::failed(format!(
            "the daemon can't be started: {}: {error}",
            path.display()
        ))
        .hint("name another place for its state: WOODWARD_STATE_DIR=<directory>")
    };
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state)
        .map_err(|error| unusable(state, error))?;
    let log_file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log)
        .map_err(|error| unusable(&log, error))?;
    let second = log_file
        .try_clone()
        .map_err(|error| unusable(&log, error))?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("this program can't find itself: {error}")))?;
    Command::new(&program)
        .args(["up", "--foreground", "--detached"])
        .env(ONE_ARENA.0, ONE_ARENA.1)
        // The daemon serves many projects: it must hold no directory of one of them.
        .current_dir(state)
        .stdin(Stdio::null())
        .stdout(log_file)
        .stderr(second)
        .spawn()
        .map_err(|error| unusable(&program, error))
}

fn with_log(session: &Session, message: String) -> Failure {
    let log = session.paths().daemon_log();
    let mut message = message;
    for line in tail(&log).unwrap_or_default() {
        message.push_str("\n  | ");
        message.push_str(&line);
    }
    Failure::new(
        Exit::Unreachable,
        Problem::new(Code::Unavailable, message)
            .hint(format!("its log: {}", log.display()))
            .hint(NextCommand::UpForeground.purpose("see it run")),
    )
}

/// The last lines of a file.
fn tail(path: &Path) -> std::io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    let clean = text::clean(&String::from_utf8_lossy(&bytes));
    let lines: Vec<&str> = clean.lines().collect();
    let from = lines.len().saturating_sub(LOG_LINES_SHOWN);
    Ok(lines[from..]
        .iter()
        .map(|line| text::cut(line, 200))
        .collect())
}

/// Whether a daemon holds the state directory. One that ends stops listening before it lets go.
fn is_held(session: &Session) -> bool {
    let Ok(lock) = File::open(session.paths().daemon_lock()) else {
        return false;
    };
    let tried = flock(&lock, FlockOperation::NonBlockingLockShared);
    matches!(tried, Err(Errno::WOULDBLOCK))
}

/// Waits until nobody listens any more and the next daemon could start.
pub(crate) async fn until_gone(session: &Session) -> Outcome {
    let deadline = Instant::now() + STOP_MAX;
    while session.client().health(PROBE).await.is_ok() || is_held(session) {
        if Instant::now() >= deadline {
            let message = format!(
                "the daemon still runs {} s after it was told to end",
                STOP_MAX.as_secs()
            );
            return Err(with_log(session, message));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_log_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("daemon.log");
        assert!(tail(&log).is_err());
        let lines: Vec<String> = (0..5_000).map(|n| format!("line \u{1b}[31m{n}")).collect();
        std::fs::write(&log, lines.join("\n")).unwrap();
        let shown = tail(&log).unwrap();
        assert_eq!(shown.len(), LOG_LINES_SHOWN);
        assert_eq!(shown.last().map(String::as_str), Some("line 4999"));
    }
}
