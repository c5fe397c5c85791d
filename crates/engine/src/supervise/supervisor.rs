//! The supervisor itself: a small, detached, single-threaded process.
//!
//! It starts the agent, drains its output, watches limits and signals, and writes down the end. It
//! never talks to the daemon beyond its first [`Word`], and uses no asynchronous runtime: there is
//! one supervisor for each process that runs, so it must stay small.

mod watch;

use std::fs::File;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use rustix::fs::OFlags;
use rustix::pipe::{PipeFlags, pipe_with};

use super::cgroup::Cgroup;
use super::directory::{Directory, Keep};
use super::enter::{self, ENTER};
use super::identity::Identity;
use super::output::Log;
use super::strays::Strays;
use super::{Cause, Error, Exit, Launch, Processes};
use watch::Watch;

/// How long to wait before the end is written once more, when the disk refused it.
const REWRITE_PAUSE: Duration = Duration::from_secs(1);

/// The one thing a supervisor tells whoever started it, on its standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The agent runs, or failed to.
    Started,
    /// Another supervisor has, or had, this directory.
    Already,
    /// The run was stopped before it began.
    Forbidden,
    /// Nothing was started.
    Failed(String),
}

impl Word {
    fn text(&self) -> String {
        match self {
            Self::Started => "started\n".into(),
            Self::Already => "already\n".into(),
            Self::Forbidden => "forbidden\n".into(),
            Self::Failed(reason) => format!("failed {reason}\n"),
        }
    }

    /// `None` if the supervisor ended before it could finish a word.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('\n')? {
            "started" => Some(Self::Started),
            "already" => Some(Self::Already),
            "forbidden" => Some(Self::Forbidden),
            other => Some(Self::Failed(other.strip_prefix("failed ")?.to_owned())),
        }
    }
}

/// Supervises the run in `dir` from start to end. Must be called first thing in a process of its
/// own, before any thread or file is opened: it closes whatever the process has inherited, and a
/// forked child of it comes back here to become the agent.
pub fn run(dir: &Path) -> ExitCode {
    if let Some(dir) = std::env::var_os(ENTER) {
        return enter::enter(&dir);
    }
    match supervise(dir) {
        Ok(Word::Started) => ExitCode::SUCCESS,
        Ok(word) => {
            say(&word);
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&Word::Failed(error.to_string().replace('\n', " ")));
            ExitCode::FAILURE
        }
    }
}

fn supervise(dir: &Path) -> Result<Word, Error> {
    let failed = |what| Error::io(what, dir);
    close_inherited();
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(Error::io("open", "/dev/null"))?;
    rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stderr(&null))
        .map_err(|error| failed("detach the supervisor of")(error.into()))?;
    // Fails only if it leads a group already, as when a person starts it from a terminal.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| failed("adopt the descendants of")(error.into()))?;
    let signals = hold_signals().map_err(|errno| failed("hold signals for")(errno.into()))?;
    let dir = Directory::new(&std::path::absolute(dir).map_err(failed("find"))?);
    // A worktree or mount must not stay in use because a daemon was started in it.
    std::env::set_current_dir("/").map_err(Error::io("enter", "/"))?;

    // First the lock, then the look: whoever stops a run writes first and looks at the lock then.
    let Some(lock) = dir.lock()? else {
        return Ok(Word::Already);
    };
    if dir.exit()?.is_some() || dir.processes()?.is_some() {
        return Ok(Word::Already);
    }
    if dir.stop()?.is_some() {
        return Ok(Word::Forbidden);
    }
    let Some(launch) = dir.spec()? else {
        return Ok(Word::Failed("there is no spec.json".into()));
    };
    let own = Identity::of_self().map_err(failed("look at the supervisor of"))?;
    let cgroup = Cgroup::create(&own);
    let mut processes = Processes {
        supervisor: Some(own),
        agent: None,
        cgroup: cgroup.as_ref().map(|cgroup| cgroup.path().to_owned()),
    };
    if let Err(error) = dir.write_processes(&processes, Keep::Durable) {
        if let Some(cgroup) = &cgroup {
            cgroup.remove();
        }
        return Err(error);
    }

    // From here on the run has begun, and has an end that is written down.
    let started_at_ms = unix_ms();
    let mut log = Log::new(&dir.output(), launch.output_max_bytes);
    let mut strays = Strays::of_supervisor(&launch.mark, cgroup.clone());
    let cause = match spawn(&dir, &launch) {
        Err(error) => {
            say(&Word::Started);
            Cause::NotStarted(format!("cannot start a child: {error}"))
        }
        Ok(agent) => {
            processes.agent = Identity::of(agent.pid).ok();
            // For people and for a later sweep; a run is not given up for want of it.
            let _ = dir.write_processes(&processes, Keep::ThisBoot);
            say(&Word::Started);
            Watch::new(&dir, &launch, agent, &signals, &mut log, &mut strays).until_gone()
        }
    };
    if let Some(cgroup) = &cgroup {
        cgroup.remove();
    }
    log.sync();
    let exit = end(cause, started_at_ms, &log, &strays);
    write_down(&dir, &exit)?;
    drop(lock);
    Ok(Word::Started)
}

/// The agent, or what is about to become it.
struct Agent {
    pid: u32,
    /// What it prints.
    output: OwnedFd,
    /// Why it could not become the agent.
    report: OwnedFd,
}

/// Starts this program once more, as the child that becomes the agent.
fn spawn(dir: &Directory, launch: &Launch) -> std::io::Result<Agent> {
    let (output, output_end) = pipe_with(PipeFlags::CLOEXEC)?;
    let (report, report_end) = pipe_with(PipeFlags::CLOEXEC)?;
    for reading in [&output, &report] {
        let flags = rustix::fs::fcntl_getfl(reading)?;
        rustix::fs::fcntl_setfl(reading, flags | OFlags::NONBLOCK)?;
    }
    let mut args = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = args.next() {
        command.arg0(name);
    }
    // Its environment has the mark from the start, so that it is found even if the supervisor dies
    // now: until it has executed, it shares the lock.
    let child = command
        .args(args)
        .env(ENTER, dir.path())
        .env(super::MARK, &launch.mark)
        .process_group(0)
        .stdin(Stdio::from(report_end))
        .stdout(Stdio::from(output_end.try_clone()?))
        .stderr(Stdio::from(output_end))
        .spawn()?;
    Ok(Agent {
        pid: child.id(),
        output,
        report,
    })
}

fn end(cause: Cause, started_at_ms: u64, log: &Log, strays: &Strays) -> Exit {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
    let cpu_ms = usage.map_or(0, |usage| {
        usage.user_time().num_milliseconds() + usage.system_time().num_milliseconds()
    });
    let memory_peak_kib = usage.map_or(0, |usage| usage.max_rss());
    Exit {
        cause,
        started_at_ms,
        ended_at_ms: unix_ms(),
        cpu_ms: u64::try_from(cpu_ms).unwrap_or(0),
        memory_peak_bytes: u64::try_from(memory_peak_kib).unwrap_or(0) * 1024,
        output_bytes: log.bytes(),
        output_dropped_bytes: log.dropped(),
        left_behind: u32::try_from(strays.refused()).unwrap_or(u32::MAX),
    }
}

/// Writes the end down. A full disk is waited for: an exit code must not be lost.
fn write_down(dir: &Directory, exit: &Exit) -> Result<(), Error> {
    loop {
        match dir.write_exit(exit) {
            Err(_) if dir.path().exists() => std::thread::sleep(REWRITE_PAUSE),
            written => return written,
        }
    }
}

/// Says a word and closes the line: whoever started the supervisor reads until its end.
fn say(word: &Word) {
    // Nobody may be listening any more; that changes nothing here.
    let _ = rustix::io::write(std::io::stdout().as_fd(), word.text().as_bytes());
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

/// Signals are read one by one, none interrupts. Terminal signals are read and forgotten.
fn hold_signals() -> nix::Result<SignalFd> {
    let held = SigSet::from_iter([
        Signal::SIGCHLD,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
    ]);
    held.thread_block()?;
    SignalFd::with_flags(&held, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Closes every file but the standard ones: what a careless ancestor left open must not be held
/// open for as long as the agent runs.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        // The directory's own is closed already.
        let _ = nix::unistd::close(fd.into_raw_fd());
    }
}

fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
