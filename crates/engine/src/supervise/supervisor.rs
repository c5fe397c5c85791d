//! The supervisor itself: a small, detached, single-threaded process.
//!
//! It starts the agent, drains its output, watches limits and signals, and writes down the end. It
//! never talks to the daemon beyond its first [`Word`], and uses no asynchronous runtime: there is
//! one supervisor for each process that runs, so it must stay small.

mod watch;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, IntoRawFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::cgroup::Cgroup;
use super::directory::{Directory, Keep};
use super::environment;
use super::identity::Identity;
use super::output::Log;
use super::spawn;
use super::strays::Strays;
use super::{Cause, Error, Exit, Processes};
use watch::Watch;

/// How long to wait before the end is written once more, when the disk refused it.
const REWRITE_PAUSE: Duration = Duration::from_secs(1);

/// In place of a directory: orders come on the standard input, see [`super::Pool`].
pub(super) const ORDERS: &str = "-";

/// How long one that takes orders waits for the next.
const IDLE_MAX: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// The longest path.
const PATH_BYTES_MAX: usize = 4096;

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
    /// It ran and is over; what is next?
    Ended,
}

impl Word {
    fn text(&self) -> String {
        match self {
            Self::Started => "started\n".into(),
            Self::Already => "already\n".into(),
            Self::Forbidden => "forbidden\n".into(),
            Self::Failed(reason) => format!("failed {reason}\n"),
            Self::Ended => "ended\n".into(),
        }
    }

    /// `None` if the supervisor ended before it could finish a word.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('\n')? {
            "started" => Some(Self::Started),
            "already" => Some(Self::Already),
            "forbidden" => Some(Self::Forbidden),
            "ended" => Some(Self::Ended),
            other => Some(Self::Failed(other.strip_prefix("failed ")?.to_owned())),
        }
    }
}

/// Supervises the run in `dir` from start to end. Must be called first thing in a process of its
/// own, before any thread or file is opened: it closes whatever the process has inherited.
pub fn run(dir: &Path) -> ExitCode {
    let orders = dir == Path::new(ORDERS);
    // Before its standard input is taken away.
    let env = match orders {
        true => None,
        false => environment::decode(&mut std::io::stdin().lock()),
    };
    let done = detach(dir, orders).and_then(|signals| {
        if orders {
            obey(&signals);
            return Ok(());
        }
        let dir = std::path::absolute(dir).map_err(Error::io("find", dir))?;
        match supervise(&Directory::new(&dir), env, &signals, Manner::Alone)? {
            Word::Ended => {}
            word => say(&word),
        }
        Ok(())
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&refusal(&error));
            ExitCode::FAILURE
        }
    }
}

fn refusal(error: &Error) -> Word {
    Word::Failed(error.to_string().replace('\n', " "))
}

/// Runs what is in one directory after the other, as orders come on the standard input, until they end.
fn obey(signals: &SignalFd) {
    loop {
        let Some((dir, env)) = next_order() else {
            return;
        };
        let dir = Directory::new(&dir);
        let (word, last) = match supervise(&dir, Some(env), signals, Manner::Resident) {
            // One that could not end everything must not take it over into the next run.
            Ok(Word::Started) => (Word::Ended, true),
            Ok(word) => (word, false),
            Err(error) => (refusal(&error), true),
        };
        let told = rustix::io::write(std::io::stdout().as_fd(), word.text().as_bytes());
        if last || told.is_err() {
            return;
        }
    }
}

/// The next directory and the variables of what runs there; `None` when nobody wants anything any more.
fn next_order() -> Option<(PathBuf, BTreeMap<String, String>)> {
    use std::os::unix::ffi::OsStringExt as _;
    let stdin = std::io::stdin();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    if !matches!(poll(&mut waiting, Some(&IDLE_MAX)), Ok(ready) if ready > 0) {
        return None;
    }
    let mut stdin = stdin.lock();
    let mut length = [0; 4];
    stdin.read_exact(&mut length).ok()?;
    let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
    let mut path = vec![0; length.min(PATH_BYTES_MAX)];
    stdin.read_exact(&mut path).ok()?;
    let env = environment::decode(&mut stdin)?;
    Some((PathBuf::from(std::ffi::OsString::from_vec(path)), env))
}

/// How a supervisor works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// For one run, from the beginning of its process to the end.
    Alone,
    /// For one run after the other.
    Resident,
}

/// Cuts all ties with whoever started it, but for the pipes of one that takes orders.
fn detach(dir: &Path, orders: bool) -> Result<SignalFd, Error> {
    let failed = |what| Error::io(what, dir);
    close_inherited();
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(Error::io("open", "/dev/null"))?;
    if !orders {
        rustix::stdio::dup2_stdin(&null)
            .map_err(|error| failed("detach the supervisor of")(error.into()))?;
    }
    rustix::stdio::dup2_stderr(&null)
        .map_err(|error| failed("detach the supervisor of")(error.into()))?;
    // Fails only if it leads a group already, as when a person starts it from a terminal.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| failed("adopt the descendants of")(error.into()))?;
    hold_signals().map_err(|errno| failed("hold signals for")(errno.into()))
}

/// One run from start to end. [`Word::Ended`] when it ran and nothing of it is left, [`Word::Started`] when
/// something is that could not be ended.
fn supervise(
    dir: &Directory,
    env: Option<BTreeMap<String, String>>,
    signals: &SignalFd,
    manner: Manner,
) -> Result<Word, Error> {
    let failed = |what| Error::io(what, dir.path());
    let before = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
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
    let Some(mut launch) = dir.spec()? else {
        return Ok(Word::Failed("there is no spec.json".into()));
    };
    let Some(env) = env else {
        return Ok(Word::Failed(
            "the values of its variables did not arrive".into(),
        ));
    };
    launch.env = env;
    let own = Identity::of_self().map_err(failed("look at the supervisor of"))?;
    // To join a group takes the kernel many milliseconds: too long for what may end at once.
    let cgroup = match launch.repeatable {
        true => None,
        false => Cgroup::create(&own),
    };
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
    let cause = match spawn::spawn(&launch, cgroup.as_ref()) {
        Err(why) => {
            begun(manner);
            Cause::NotStarted(why)
        }
        Ok(agent) => {
            processes.agent = Identity::of(agent.pid).ok();
            // For people and for a later sweep; a run is not given up for want of it.
            let _ = dir.write_processes(&processes, Keep::ThisBoot);
            begun(manner);
            let watch = Watch::new(dir, &launch, agent, signals, &mut log, &mut strays);
            watch.until_gone(manner)
        }
    };
    if let Some(cgroup) = &cgroup {
        cgroup.remove();
    }
    if !launch.repeatable {
        log.sync();
    }
    let exit = end(cause, started_at_ms, &log, &strays, before);
    write_down(dir, &exit)?;
    drop(lock);
    Ok(match strays.refused() {
        0 => Word::Ended,
        _ => Word::Started,
    })
}

/// Tells whoever waits for the beginning of a run. One that waits for the end is told then.
fn begun(manner: Manner) {
    if manner == Manner::Alone {
        say(&Word::Started);
    }
}

fn end(
    cause: Cause,
    started_at_ms: u64,
    log: &Log,
    strays: &Strays,
    before: Option<Usage>,
) -> Exit {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
    let time = |usage: Option<Usage>| {
        usage.map_or(0, |usage| {
            usage.user_time().num_milliseconds() + usage.system_time().num_milliseconds()
        })
    };
    let cpu_ms = time(usage) - time(before);
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
