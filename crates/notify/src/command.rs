//! A command of the person's: the message as JSON on its standard input, the gist in variables.
//!
//! It gets a time limit, and when that is over its whole process group is ended. What it prints is
//! thrown away but for the end of its complaints.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::{Message, SendError};

/// The most of a command's complaints that is read.
const COMPLAINT_BYTES_MAX: u64 = 4_096;
/// How long they may still come after its end.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The most of them that is quoted.
const QUOTED_MAX: usize = 160;

/// A command and how it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Variables that it sees besides those about the message; nothing else is passed on.
    pub env: Vec<(String, String)>,
    /// How long it may take.
    pub patience: Duration,
}

pub(crate) async fn run(hook: &Hook, message: &Message) -> Result<(), SendError> {
    let (program, args) = hook
        .argv
        .split_first()
        .ok_or_else(|| SendError::permanent("the command is empty"))?;
    let mut child = Command::new(program)
        .args(args)
        .current_dir(&hook.directory)
        .env_clear()
        .envs(hook.env.iter().map(|(name, value)| (name, value)))
        .envs(variables(message))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| SendError::transient(format!("`{program}` can't be started: {error}")))?;
    let group = child.id();
    let ended = tokio::time::timeout(hook.patience, feed(&mut child, message)).await;
    let verdict = match ended {
        Ok(verdict) => verdict,
        Err(_) => Err(SendError::transient(format!(
            "`{program}` was not done within {} s and was ended",
            hook.patience.as_secs()
        ))),
    };
    if verdict.is_err() {
        end(group);
        let _ = child.wait().await;
    }
    verdict
}

async fn feed(child: &mut Child, message: &Message) -> Result<(), SendError> {
    let input = message.json().to_string().into_bytes();
    if let Some(mut stdin) = child.stdin.take() {
        // A command need not read what it does not care about.
        tokio::spawn(async move { stdin.write_all(&input).await });
    }
    let stderr = child.stderr.take();
    let mut complaint = tokio::spawn(async move {
        let mut text = Vec::new();
        if let Some(stderr) = stderr {
            let mut head = stderr.take(COMPLAINT_BYTES_MAX);
            let _ = head.read_to_end(&mut text).await;
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let status = child.wait().await;
    // A process that it left behind may hold the pipe open: the command's own end is what counts.
    let complaint = tokio::time::timeout(LAST_WORDS, &mut complaint).await;
    let complaint = complaint.ok().and_then(Result::ok).unwrap_or_default();
    let status = status.map_err(|error| SendError::transient(error.to_string()))?;
    if status.success() {
        return Ok(());
    }
    let line = complaint.lines().rev().find(|line| !line.trim().is_empty());
    let line: String = line
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control())
        .take(QUOTED_MAX)
        .collect();
    let what = match line.as_str() {
        "" => format!("the command ended with {status}"),
        line => format!("the command ended with {status}: {line}"),
    };
    Err(SendError::transient(what))
}

fn end(group: Option<u32>) {
    let pid = group
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// What most commands need, without reading JSON.
fn variables(message: &Message) -> Vec<(&'static str, String)> {
    let first = message.notices.first();
    let names: Vec<&str> = message
        .notices
        .iter()
        .filter_map(|notice| notice.name.as_deref())
        .collect();
    let plain = |text: String| text.replace('\0', "");
    vec![
        ("WOODWARD_DELIVERY", plain(message.id.clone())),
        ("WOODWARD_PROJECT", plain(message.project.clone())),
        ("WOODWARD_LEVEL", message.level().to_string()),
        ("WOODWARD_TITLE", plain(message.title())),
        ("WOODWARD_TEXT", plain(message.plain())),
        ("WOODWARD_COUNT", message.notices.len().to_string()),
        ("WOODWARD_TASK", plain(names.join(" "))),
        (
            "WOODWARD_REASON",
            first.map_or(String::new(), |notice| notice.reason.to_string()),
        ),
        (
            "WOODWARD_COMMAND",
            plain(first.and_then(|n| n.command.clone()).unwrap_or_default()),
        ),
    ]
}

/// Whether the program is there. A shell's text is not looked into.
pub(crate) fn check(hook: &Hook) -> Result<(), SendError> {
    let program = hook.argv.first().map_or("", String::as_str);
    let path = hook.env.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or("/usr/bin:/bin", |(_, path)| path.as_str());
    let found = if program.contains('/') {
        hook.directory.join(program).is_file()
    } else {
        std::env::split_paths(OsStr::new(path)).any(|dir| dir.join(program).is_file())
    };
    if found {
        Ok(())
    } else {
        Err(SendError::permanent(format!(
            "there is no program `{program}`"
        )))
    }
}
