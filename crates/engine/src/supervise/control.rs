//! The daemon's side: start, look, wait, stop, clean up.
//!
//! Everything it knows comes from the run directory, so any process may do any of this, before and
//! after a restart, and twice. It never waits for a child: the supervisor is nobody's child for long.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use woodward_core::Millis;

use super::directory::Directory;
use super::environment;
use super::identity::{self, Identity};
use super::strays::Strays;
use super::supervisor::Word;
use super::{Error, Launch, Launched, Processes, Program, Seen};

/// How long a supervisor may take to start the agent: the disk may be slow.
const LAUNCH_MAX: Duration = Duration::from_secs(60);

/// How long beyond the grace a supervisor may take to end everything, before it is ended itself.
const STOP_MARGIN: Duration = Duration::from_secs(20);

/// How long a supervisor may take from making itself known to having started the agent.
const AGENT_MAX: Duration = Duration::from_secs(5);

/// The longest grace that makes sense; a longer one is shortened to it.
const GRACE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a clean-up may take.
const SWEEP_MAX: Duration = Duration::from_secs(30);

/// How many looks in a row must find nothing before a clean-up is over, and how many do if it was
/// never certain what they saw.
const SURE_LOOKS: u32 = 2;
const EMPTY_LOOKS: u32 = 20;

/// The pause between looks where there is no event to wait for.
const PAUSE: Duration = Duration::from_millis(5);
/// How often a run is looked at whose supervisor may outlive it, to supervise the next one.
const POOLED_LOOK: Duration = Duration::from_millis(20);

/// Starts a supervisor for `dir`, which runs what `launch` says. Of several calls for one directory
/// only one starts something, whoever makes them and whenever; what the first one asked for counts.
pub async fn launch(dir: &Path, launch: &Launch, program: &Program) -> Result<Launched, Error> {
    let dir = absolute(dir)?;
    let seen = prepare(&dir, launch).await?;
    match seen {
        Seen::Absent => start(&dir, &launch.env, program).await,
        Seen::Forbidden => Ok(Launched::Forbidden),
        Seen::Running(_) | Seen::Ended(_) | Seen::Lost => Ok(Launched::Already),
    }
}

/// Writes down what is to be run, if nothing was written or has run yet. What was there before, it says.
pub(super) async fn prepare(dir: &Directory, launch: &Launch) -> Result<Seen, Error> {
    if launch.command.is_empty() {
        return Err(Error::NoCommand(dir.path().to_owned()));
    }
    if launch.mark.is_empty() {
        return Err(Error::NoMark(dir.path().to_owned()));
    }
    let write = |dir: &Directory, launch: &Launch| {
        let seen = see(dir)?;
        if seen == Seen::Absent {
            dir.create(!launch.repeatable)?;
            dir.write_spec(launch)?;
        }
        Ok(seen)
    };
    if launch.repeatable {
        // Without waiting for the disk that takes no time.
        return write(dir, launch);
    }
    let (dir, launch) = (dir.clone(), launch.clone());
    blocking(move || write(&dir, &launch)).await
}

async fn start(
    dir: &Directory,
    env: &BTreeMap<String, String>,
    program: &Program,
) -> Result<Launched, Error> {
    let failed = |reason: String| Error::Supervisor {
        dir: dir.path().to_owned(),
        reason,
    };
    let mut child = tokio::process::Command::new(&program.exe)
        .args(&program.args)
        .arg(dir.path())
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(Error::io("run", &program.exe))?;
    let mut stdin = child.stdin.take().expect("its stdin is piped");
    let variables = environment::encode(env).map_err(|error| failed(error.to_string()))?;
    tokio::spawn(async move {
        // One that is gone says so by its silence; one that finds nothing to start reads nothing.
        let _ = stdin.write_all(&variables).await;
    });
    let stdout = child.stdout.take().expect("its stdout is piped");
    let mut said = String::new();
    match timeout(LAUNCH_MAX, stdout.take(4096).read_to_string(&mut said)).await {
        Ok(read) => read.map_err(Error::io("hear the supervisor of", dir.path()))?,
        Err(_) => return Err(failed(format!("no word in {}s", LAUNCH_MAX.as_secs()))),
    };
    match Word::parse(&said) {
        Some(Word::Started | Word::Ended) => Ok(Launched::Started),
        Some(Word::Already) => Ok(Launched::Already),
        Some(Word::Forbidden) => Ok(Launched::Forbidden),
        Some(Word::Failed(reason)) => Err(failed(reason)),
        // It was killed; whether before or after it started something, the directory says.
        None => match see(dir)? {
            Seen::Absent => Err(failed("it ended without a word".into())),
            Seen::Forbidden => Ok(Launched::Forbidden),
            Seen::Running(_) | Seen::Ended(_) | Seen::Lost => Ok(Launched::Started),
        },
    }
}

/// What there is in `dir` now.
pub fn look(dir: &Path) -> Result<Seen, Error> {
    see(&Directory::new(dir))
}

pub(super) fn see(dir: &Directory) -> Result<Seen, Error> {
    loop {
        if let Some(exit) = dir.exit()? {
            return Ok(Seen::Ended(exit));
        }
        let processes = dir.processes()?;
        if dir.is_locked()? {
            return Ok(Seen::Running(processes.unwrap_or_default()));
        }
        if let Some(exit) = dir.exit()? {
            return Ok(Seen::Ended(exit));
        }
        if processes.is_some() {
            return Ok(Seen::Lost);
        }
        let stopped = dir.stop()?.is_some();
        // A supervisor that came between the looks may live or be dead: only another look can tell.
        if dir.processes()?.is_none() {
            return Ok(if stopped {
                Seen::Forbidden
            } else {
                Seen::Absent
            });
        }
    }
}

/// Where the process of `dir` was started, if that is on record.
///
/// # Errors
/// When the directory can't be read.
pub fn cwd(dir: &Path) -> Result<Option<PathBuf>, Error> {
    let spec = Directory::new(dir).spec()?;
    Ok(spec.map(|launch| launch.cwd))
}

/// What runs or has run in `dir`: the program and its arguments.
pub fn command(dir: &Path) -> Result<Option<Vec<String>>, Error> {
    let spec = Directory::new(dir).spec()?;
    Ok(spec.map(|launch| launch.command))
}

/// How long what runs or has run in `dir` may run.
pub fn time_limit(dir: &Path) -> Result<Option<Millis>, Error> {
    let spec = Directory::new(dir).spec()?;
    Ok(spec.and_then(|launch| launch.time_limit_ms).map(Millis))
}

/// Whether what ran in `dir` began before this machine came up: then nothing of it can be alive.
pub fn is_of_earlier_boot(dir: &Path) -> Result<bool, Error> {
    let dir = Directory::new(dir);
    let Some(supervisor) = dir.processes()?.and_then(|known| known.supervisor) else {
        return Ok(false);
    };
    let now = Identity::of_self().map_err(Error::io("look at", dir.path()))?;
    Ok(supervisor.boot != now.boot)
}

/// Waits until the run in `dir` has ended, is lost, or can never start. Returns [`Seen::Absent`] at
/// once, because nothing may ever start. Needs no more than a file descriptor while it waits, and for
/// a run that may be repeated a look now and then.
pub async fn ended(dir: &Path) -> Result<Seen, Error> {
    let dir = Directory::new(dir);
    loop {
        match see(&dir)? {
            Seen::Running(Processes {
                supervisor: Some(supervisor),
                ..
            }) => {
                let exited = gone(&dir, &supervisor);
                if !dir.is_brief() {
                    exited.await?;
                } else if let Ok(exited) = timeout(POOLED_LOOK, exited).await {
                    exited?;
                }
            }
            Seen::Running(_) => sleep(PAUSE).await,
            seen => return Ok(seen),
        }
    }
}

/// Waits until the process has exited.
async fn gone(dir: &Directory, process: &Identity) -> Result<(), Error> {
    let failed = || Error::io("watch the supervisor of", dir.path());
    let handle = identity::open_identity(process).map_err(failed())?;
    let Some(handle) = handle else {
        // A child of it that has not executed yet may hold the lock for a moment longer.
        sleep(PAUSE).await;
        return Ok(());
    };
    #[expect(
        deprecated,
        reason = "its replacement is unsafe for the sake of types that lend a foreign descriptor; this one is owned"
    )]
    let handle = AsyncFd::with_interest(handle, Interest::READABLE).map_err(failed())?;
    // A process exits once: the readiness needs no clearing.
    let _ = handle.readable().await.map_err(failed())?;
    Ok(())
}

/// Ends the run in `dir` and every process of it: asks, waits for `grace`, kills. From the moment it
/// begins, nothing can start in `dir` any more, also if nothing ever did.
pub async fn stop(dir: &Path, grace: Duration) -> Result<Seen, Error> {
    let dir = absolute(dir)?;
    let grace = grace.min(GRACE_MAX);
    let seen = {
        let dir = dir.clone();
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        blocking(move || {
            if let ended @ Seen::Ended(_) = see(&dir)? {
                return Ok(ended);
            }
            dir.create(true)?;
            dir.write_stop(grace_ms)?;
            see(&dir)
        })
        .await?
    };
    if !matches!(seen, Seen::Running(_)) {
        return finish(&dir, seen).await;
    }
    let deadline = Instant::now() + grace + STOP_MARGIN;
    // It holds signals back from before it makes itself known, but for the moment in which it starts the
    // agent: a child inherits what is held back. So the agent must be known, or have had its time.
    let known_by = Instant::now() + AGENT_MAX;
    let supervisor = loop {
        match see(&dir)? {
            Seen::Running(Processes {
                supervisor: Some(supervisor),
                agent,
                ..
            }) if agent.is_some() || Instant::now() >= known_by => break supervisor,
            Seen::Running(_) if Instant::now() < deadline => sleep(PAUSE).await,
            seen => return finish(&dir, seen).await,
        }
    };
    send(&dir, &supervisor, Signal::TERM)?;
    // One that somebody has stopped would not hear it.
    send(&dir, &supervisor, Signal::CONT)?;
    if let Ok(seen) = timeout_at(deadline, ended(dir.path())).await {
        return finish(&dir, seen?).await;
    }
    // A supervisor of the pool may have ended this run and begun another one.
    match see(&dir)? {
        Seen::Running(_) => send(&dir, &supervisor, Signal::KILL)?,
        seen => return finish(&dir, seen).await,
    }
    match timeout(STOP_MARGIN, ended(dir.path())).await {
        Ok(seen) => finish(&dir, seen?).await,
        Err(_) => Err(Error::Stubborn {
            dir: dir.path().to_owned(),
            count: 1,
            waited: grace + STOP_MARGIN * 2,
        }),
    }
}

async fn finish(dir: &Directory, seen: Seen) -> Result<Seen, Error> {
    if seen == Seen::Lost {
        sweep(dir.path()).await?;
    }
    Ok(seen)
}

fn send(dir: &Directory, process: &Identity, signal: Signal) -> Result<(), Error> {
    let failed = || Error::io("signal the supervisor of", dir.path());
    if let Some(handle) = identity::open_identity(process).map_err(failed())? {
        match pidfd_send_signal(&handle, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(failed()(error.into())),
        }
    }
    Ok(())
}

/// Ends whatever the lost supervisor of `dir` has left behind, and returns how many processes that
/// were. Does nothing unless the run is [`Seen::Lost`].
pub async fn sweep(dir: &Path) -> Result<usize, Error> {
    let dir = absolute(dir)?;
    let begun = Instant::now();
    if see(&dir)? != Seen::Lost {
        return Ok(0);
    }
    let Some(processes) = dir.processes()? else {
        return Ok(0);
    };
    let boot = identity::boot().map_err(Error::io("look at", dir.path()))?;
    if processes
        .supervisor
        .as_ref()
        .is_some_and(|supervisor| supervisor.boot != boot)
    {
        // Nothing survives the machine, and the control group's name may mean another one now.
        return Ok(0);
    }
    let Some(launch) = dir.spec()? else {
        return Ok(0);
    };
    let cgroup = processes.own_cgroup();
    let agent = processes.agent.filter(|agent| agent.boot == boot);
    let mut strays = Strays::of_lost(&launch.mark, agent, cgroup.clone());
    let (mut ended, mut sure, mut empty) = (0, 0, 0);
    // One empty look may have missed a process that was being forked behind its back. On a machine
    // where others start programs all the time, looks are never sure: then many of them must do.
    while sure < SURE_LOOKS && empty < EMPTY_LOOKS {
        let path = dir.path().to_owned();
        let (found, again);
        (strays, (found, again)) = blocking(move || {
            let found = strays
                .kill()
                .map_err(Error::io("end the processes of", path))?;
            Ok((strays, found))
        })
        .await?;
        ended += found;
        sure = if again { 0 } else { sure + 1 };
        empty = if found > 0 { 0 } else { empty + 1 };
        if begun.elapsed() > SWEEP_MAX {
            return Err(Error::Stubborn {
                dir: dir.path().to_owned(),
                count: found,
                waited: begun.elapsed(),
            });
        }
        sleep(PAUSE).await;
    }
    if let Some(cgroup) = cgroup {
        cgroup.remove();
    }
    Ok(ended)
}

pub(super) fn absolute(dir: &Path) -> Result<Directory, Error> {
    std::path::absolute(dir)
        .map(|path| Directory::new(&path))
        .map_err(Error::io("find", dir))
}

/// Disk writes that are waited for, away from the thread that serves everybody.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
