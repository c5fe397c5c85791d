//! The agent program as a child process: lines out, lines in, its complaints kept.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::conversation::tail;
use crate::lines::{Line, Lines};
use crate::wire::RawLog;

const COMPLAINTS_KEPT: usize = 8 << 10;
/// The most complaints that wait for somebody who follows them.
const COMPLAINTS_WAITING: usize = 64;
/// How long a program that was told to end may take.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// How long the rest of the output of a program that is gone may pause.
const REST_PATIENCE: Duration = Duration::from_millis(500);
/// How long the complaints of a program that has ended may take to arrive.
const COMPLAINTS_PATIENCE: Duration = Duration::from_millis(500);

/// The most that waits for a program which does not read.
const BACKLOG_MAX: usize = 64 << 20;

/// A running program. It is killed when this is dropped; what it started is the supervisor's to end.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    /// What it has been told and has not read yet. Waiting for it to read could wait for ever: it may
    /// itself wait until somebody reads what it prints.
    backlog: Backlog,
    output: Lines<ChildStdout>,
    complaints: Arc<Mutex<String>>,
    /// The same, line by line, for whoever follows them.
    overheard: Option<mpsc::Receiver<String>>,
    is_gone: bool,
    /// Listens to its complaints.
    listener: Option<JoinHandle<()>>,
    raw: RawLog,
    /// Which of its lines are left out of the raw log.
    is_noise: fn(&str) -> bool,
}

/// How to start a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Start {
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// Variables besides the host's own.
    pub(crate) env: Vec<(String, OsString)>,
    /// Whether it gets a pipe to read from; otherwise there is nothing to read.
    pub(crate) fed: bool,
}

impl Program {
    /// Starts it in the host's own directory.
    pub(crate) fn start(start: &Start, raw: &RawLog) -> std::io::Result<Self> {
        let (name, args) = start
            .argv
            .split_first()
            .ok_or_else(|| std::io::Error::other("there is no program to start"))?;
        let input = if start.fed {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        let mut child = Command::new(name)
            .args(args)
            .envs(start.env.iter().map(|(name, value)| (name, value)))
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child
            .stdout
            .take()
            .ok_or_else(|| std::io::Error::other("it has no output"))?;
        let complaints = Arc::<Mutex<String>>::default();
        let mut listener = None;
        let (overhears, overheard) = mpsc::channel(COMPLAINTS_WAITING);
        if let Some(errors) = child.stderr.take() {
            let (kept, raw) = (Arc::clone(&complaints), raw.clone());
            listener = Some(tokio::spawn(async move {
                let mut errors = Lines::new(errors);
                while let Some(line) = errors.next().await {
                    let Line::Whole(line) = line else { continue };
                    raw.overheard(&line);
                    // Nobody may follow them, or too slowly.
                    let _ = overhears.try_send(line.clone());
                    let mut kept = kept.lock().unwrap_or_else(|e| e.into_inner());
                    kept.push_str(&line);
                    kept.push('\n');
                    if kept.len() > 2 * COMPLAINTS_KEPT {
                        *kept = both_ends(&kept);
                    }
                }
            }));
        }
        Ok(Self {
            input: child.stdin.take(),
            backlog: Backlog::default(),
            output: Lines::new(output),
            child,
            complaints,
            overheard: Some(overheard),
            is_gone: false,
            listener,
            raw: raw.clone(),
            is_noise: |_| false,
        })
    }

    /// The next line it prints; `None` when it prints no more, or is gone and only what it started
    /// holds its output open. Safe to be dropped and called again.
    pub(crate) async fn line(&mut self) -> Option<Line> {
        let line = loop {
            if self.is_gone {
                let rest = tokio::time::timeout(REST_PATIENCE, self.output.next());
                break rest.await.ok().flatten();
            }
            tokio::select! {
                biased;
                line = self.output.next() => break line,
                _ = self.child.wait() => self.is_gone = true,
                written = self.backlog.write(&mut self.input), if !self.backlog.is_empty() => {
                    if written.is_err() {
                        // Who listens no more says why on its way out.
                        self.backlog.clear();
                        self.input = None;
                    }
                }
            }
        };
        if let Some(Line::Whole(text)) = &line
            && !(self.is_noise)(text)
        {
            self.raw.heard(text);
        }
        line
    }

    /// Gives it a line; what it does not read at once is written while its next lines are waited
    /// for. An error means that it listens no more.
    pub(crate) async fn feed(&mut self, line: &str) -> std::io::Result<()> {
        if self.input.is_none() {
            return Err(std::io::Error::other("it listens no more"));
        }
        if self.backlog.len() > BACKLOG_MAX {
            return Err(std::io::Error::other("it does not read what it is told"));
        }
        self.raw.said(line);
        self.backlog.add(line);
        tokio::select! {
            biased;
            written = self.backlog.write(&mut self.input) => written,
            () = std::future::ready(()) => Ok(()),
        }
    }

    /// Gives it all that it will ever get, however slowly it reads.
    pub(crate) fn feed_all(&mut self, text: String) {
        self.raw.said(&text);
        self.backlog.bytes.extend_from_slice(text.as_bytes());
        self.close_input();
    }

    /// Says that nothing more will come after what it has been told.
    pub(crate) fn close_input(&mut self) {
        let backlog = std::mem::take(&mut self.backlog);
        if let Some(mut input) = self.input.take()
            && !backlog.is_empty()
        {
            tokio::spawn(async move {
                // Who does not read it to the end has a reason.
                let _ = input.write_all(backlog.rest()).await;
            });
        }
    }

    /// Its complaints as they come. Given away once; those that nobody takes in time are left out.
    pub(crate) fn follow_complaints(&mut self) -> Option<mpsc::Receiver<String>> {
        self.overheard.take()
    }

    /// Leaves such lines out of the raw log.
    pub(crate) fn omit_from_raw_log(&mut self, is_noise: fn(&str) -> bool) {
        self.is_noise = is_noise;
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = self.pid().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // It may be gone already.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Waits until it has ended, and ends it if that takes too long.
    pub(crate) async fn end(&mut self) -> Option<ExitStatus> {
        self.close_input();
        let status = self.ended().await;
        // Its last complaint says why it is gone. What it started may hold the pipe for longer.
        if let Some(listener) = self.listener.take() {
            let _ = tokio::time::timeout(COMPLAINTS_PATIENCE, listener).await;
        }
        status
    }

    async fn ended(&mut self) -> Option<ExitStatus> {
        if let Ok(status) = tokio::time::timeout(END_PATIENCE, self.child.wait()).await {
            return status.ok();
        }
        self.signal(rustix::process::Signal::TERM);
        if let Ok(status) = tokio::time::timeout(END_PATIENCE, self.child.wait()).await {
            return status.ok();
        }
        let _ = self.child.kill().await;
        None
    }

    /// The first line and the end of what it printed as errors and warnings.
    pub(crate) fn complaints(&self) -> String {
        let kept = self.complaints.lock().unwrap_or_else(|e| e.into_inner());
        both_ends(kept.trim())
    }
}

/// Bytes on their way into a pipe.
#[derive(Debug, Default)]
struct Backlog {
    bytes: Vec<u8>,
    /// How many of them are in the pipe.
    written: usize,
}

impl Backlog {
    fn add(&mut self, line: &str) {
        self.bytes.drain(..self.written);
        self.written = 0;
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.push(b'\n');
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    fn len(&self) -> usize {
        self.rest().len()
    }

    fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    fn clear(&mut self) {
        self.bytes = Vec::new();
        self.written = 0;
    }

    /// Writes until nothing is left. Safe to be dropped and called again.
    async fn write(&mut self, input: &mut Option<ChildStdin>) -> std::io::Result<()> {
        while !self.is_empty() {
            let Some(input) = input else {
                return Err(std::io::Error::other("it listens no more"));
            };
            self.written += input.write(&self.bytes[self.written..]).await?;
        }
        self.clear();
        Ok(())
    }
}

/// The first complaint often says what is wrong, in front of pages of help.
fn both_ends(complaints: &str) -> String {
    let end = tail(complaints, COMPLAINTS_KEPT);
    if end.len() == complaints.len() {
        return complaints.to_owned();
    }
    let first = complaints.lines().next().unwrap_or_default();
    let cut = first.char_indices().map(|(at, _)| at).find(|at| *at >= 500);
    format!("{}\n{end}", &first[..cut.unwrap_or(first.len())])
}
