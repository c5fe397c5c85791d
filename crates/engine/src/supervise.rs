//! Processes that outlive the daemon: every agent and every gate has a supervisor of its own.
//!
//! A supervisor is this same program, started as a hidden subcommand that calls [`run`]. It is
//! detached from the daemon, owns one *run directory*, keeps the process's output and exit there,
//! and ends every descendant before it says that the run has ended. The daemon only looks at the
//! directory ([`look`], [`ended`]) and may die and come back at any moment.
//!
//! What a run directory holds:
//!
//! | file | written by | meaning |
//! |---|---|---|
//! | `spec.json` | [`launch`] | what to run; the first one counts. No values of variables |
//! | `lock` | supervisor | locked for its whole life; inherited by nobody |
//! | `stop` | [`stop`] | nothing may start here any more |
//! | `supervisor.json` | supervisor | who runs; there before the process is |
//! | `output/<offset>` | supervisor | what the process printed, see [`output`] |
//! | `exit.json` | supervisor | how it ended; nothing of it is left |
//!
//! A run that may be repeated has all but `stop` and the output in one file, `run.jsonl`, which is also
//! its lock.
//!
//! A probe that fails is an error, never "dead"; a process is only ever signalled under its full
//! [`Identity`]. Nothing here knows tasks, agents or the database.

mod brief;
mod cgroup;
mod control;
mod directory;
mod environment;
mod identity;
pub mod output;
mod pool;
mod spawn;
mod strays;
mod supervisor;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use control::{command, cwd, ended, is_of_earlier_boot, launch, look, stop, sweep, time_limit};
pub use identity::{Identity, probe};
pub use pool::Pool;
pub use supervisor::run;

/// The environment variable that every process of a run carries; stray descendants are found by it.
pub const MARK: &str = "WOODWARD_MARK";

/// What to run, and within which bounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program and its arguments. Never a shell unless it names one.
    pub command: Vec<String>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Its whole environment: nothing is inherited, and only [`MARK`] is added. Only the names are
    /// ever written to disk; the supervisor gets the values through a pipe.
    #[serde(with = "environment")]
    pub env: BTreeMap<String, String>,
    /// The file that is its standard input; nothing to read otherwise.
    pub stdin: Option<PathBuf>,
    /// The value of [`MARK`]: no other run may ever have the same.
    pub mark: String,
    /// How much of its output is kept on disk (at least 128 KiB).
    pub output_max_bytes: u64,
    /// How long it may run.
    pub time_limit_ms: Option<u64>,
    /// How long it may print nothing.
    pub stall_limit_ms: Option<u64>,
    /// How long it and whatever it leaves behind may take to end after SIGTERM.
    pub term_grace_ms: u64,
    /// A pipe with a token for each job that may run besides, shared by all that speak make's protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Jobs>,
    /// Whether it may simply be run again, as a gate may. Then nothing waits for the disk: a power cut
    /// (but no kill) may lose it. And nobody is looked for who does not descend from it.
    #[serde(default)]
    pub repeatable: bool,
}

/// A pipe of job tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jobs {
    /// The pipe.
    pub pipe: PathBuf,
    /// Whether make itself is told of it: that makes it run jobs side by side.
    pub make: bool,
}

/// How a supervisor is started: `exe args… <directory>` must call [`run`] with that directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable.
    pub exe: PathBuf,
    /// The arguments before the directory.
    pub args: Vec<OsString>,
}

/// What [`launch`] found or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launched {
    /// A supervisor was started by this call.
    Started,
    /// It runs already, or has run.
    Already,
    /// The directory was stopped before anything started; nothing will ever run there.
    Forbidden,
}

/// What a run directory says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing has started here yet.
    Absent,
    /// The supervisor lives.
    Running(Processes),
    /// The process and all its descendants are gone.
    Ended(Exit),
    /// The supervisor died without a word. Its descendants may live: [`sweep`] ends them.
    Lost,
    /// Stopped before anything started.
    Forbidden,
}

/// Who takes part in a run. What is not known yet is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processes {
    /// The supervisor.
    pub supervisor: Option<Identity>,
    /// The process that it supervises.
    pub agent: Option<Identity>,
    /// The control group of the agent and its descendants, where there is one.
    pub cgroup: Option<PathBuf>,
}

impl Processes {
    fn own_cgroup(&self) -> Option<cgroup::Cgroup> {
        cgroup::Cgroup::made_for(self.supervisor.as_ref()?, self.cgroup.as_deref()?)
    }
}

/// How a run ended, and what it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Why it ended.
    pub cause: Cause,
    /// When it started, in Unix milliseconds.
    pub started_at_ms: u64,
    /// When it ended, in Unix milliseconds.
    pub ended_at_ms: u64,
    /// Processor time of the process and all descendants.
    pub cpu_ms: u64,
    /// The largest resident memory of any one process.
    pub memory_peak_bytes: u64,
    /// How much it printed, kept or not.
    pub output_bytes: u64,
    /// How much of that was not kept.
    pub output_dropped_bytes: u64,
    /// Descendants that run as somebody else and could not be ended.
    pub left_behind: u32,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It exited by itself.
    Exited(i32),
    /// A signal ended it that Woodward did not send.
    Signalled(i32),
    /// It ran for longer than it may.
    TimedOut,
    /// It printed nothing for longer than it may.
    Stalled,
    /// It was asked to stop.
    Stopped,
    /// It never ran: no such program, no such directory.
    NotStarted(String),
}

/// Why a run could not be started, seen or stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The run directory, or the process table, could not be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A file of the run directory is not what it should be.
    #[error("{} is damaged: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// There is no command to run.
    #[error("the command to run in {} is empty", .0.display())]
    NoCommand(PathBuf),
    /// There is nothing by which its processes could be told from others.
    #[error("the run in {} has no mark", .0.display())]
    NoMark(PathBuf),
    /// The supervisor did not come up.
    #[error("the supervisor of {} did not start: {reason}", dir.display())]
    Supervisor {
        /// The run directory.
        dir: PathBuf,
        /// What it said, or what was seen.
        reason: String,
    },
    /// Processes are left that nothing could end in time.
    #[error("{count} processes of {} are still there after {}s", dir.display(), waited.as_secs())]
    Stubborn {
        /// The run directory.
        dir: PathBuf,
        /// How many.
        count: usize,
        /// For how long it was tried.
        waited: Duration,
    },
}

impl Error {
    fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
