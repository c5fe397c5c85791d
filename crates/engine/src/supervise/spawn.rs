//! Starting the agent: what must be so for it is made so in the supervisor, for a moment.
//!
//! Between fork and exec nothing safe can be done, and a program in between would cost as much again
//! as the supervisor. The supervisor has one thread, so it may itself join the agent's control group,
//! go to its directory and open what it inherits, and take all that back when the agent has started.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::SigSet;
use rustix::fs::{Access, Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use super::cgroup::Cgroup;
use super::{Jobs, Launch, MARK};

/// The agent's process.
pub(super) struct Agent {
    pub(super) pid: u32,
    /// What it prints.
    pub(super) output: OwnedFd,
}

/// Starts the agent in its control group, if there is one; otherwise says in words why not.
pub(super) fn spawn(launch: &Launch, cgroup: Option<&Cgroup>) -> Result<Agent, String> {
    // The group is a second net; a machine that forbids it has the first one.
    let joined = cgroup.filter(|cgroup| cgroup.enter().is_ok());
    let agent = at_place(launch);
    // A worktree or mount must not stay in use because of us.
    let _ = std::env::set_current_dir("/");
    if let Some(cgroup) = joined {
        // Where that fails the group can't be killed at once, see `Cgroup::kill`.
        let _ = cgroup.leave();
    }
    agent
}

fn at_place(launch: &Launch) -> Result<Agent, String> {
    let Some((program, args)) = launch.command.split_first() else {
        return Err("the command is empty".into());
    };
    std::env::set_current_dir(&launch.cwd)
        .map_err(|error| format!("cannot enter {}: {error}", launch.cwd.display()))?;
    let stdin = match &launch.stdin {
        None => None,
        Some(path) => Some(
            File::open(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?,
        ),
    };
    let failed = |error: std::io::Error| format!("cannot start a child: {error}");
    let (output, output_end) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    rustix::fs::fcntl_getfl(&output)
        .and_then(|flags| rustix::fs::fcntl_setfl(&output, flags | OFlags::NONBLOCK))
        .map_err(|error| failed(error.into()))?;
    let tokens = launch.jobs.as_ref().and_then(Tokens::open);
    let start = |program: &Path| -> std::io::Result<u32> {
        let mut command = Command::new(program);
        command
            .arg0(&launch.command[0])
            .args(args)
            .env_clear()
            .envs(&launch.env)
            .envs(tokens.iter().flat_map(Tokens::env))
            .env(MARK, &launch.mark)
            .process_group(0)
            .stdin(match &stdin {
                None => Stdio::null(),
                Some(file) => file.try_clone()?.into(),
            })
            .stdout(output_end.try_clone()?)
            .stderr(output_end.try_clone()?);
        // A child inherits which signals are held back, and the agent must hear all of them. One that
        // comes in this moment ends the supervisor: the run is lost then, and swept.
        let held = SigSet::thread_get_mask()?;
        SigSet::empty().thread_set_mask()?;
        let spawned = command.spawn();
        held.thread_set_mask()?;
        Ok(spawned?.id())
    };
    // By its full name the child shares our memory until it has started, which costs the least. What
    // can't be started so, as a script that names no interpreter, may still be startable by its name.
    let found = find(program, launch.env.get("PATH").map(String::as_str));
    let pid = match found.map(|file| start(&file)) {
        Some(Ok(pid)) => pid,
        Some(Err(_)) | None => {
            start(Path::new(program)).map_err(|error| format!("cannot run {program}: {error}"))?
        }
    };
    Ok(Agent { pid, output })
}

/// The file that a program's name means on the search path of its environment.
fn find(program: &str, path: Option<&str>) -> Option<PathBuf> {
    if program.is_empty() || program.contains('/') {
        return None;
    }
    let executable =
        |file: &PathBuf| file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok();
    std::env::split_paths(path?)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(program))
        .find(executable)
}

/// The two ends of the pipe of job tokens as the agent inherits them.
struct Tokens<'a> {
    jobs: &'a Jobs,
    read: OwnedFd,
    write: OwnedFd,
}

impl<'a> Tokens<'a> {
    /// A pipe that can't be opened is no reason not to run: then everybody uses as many jobs as they
    /// like.
    fn open(jobs: &'a Jobs) -> Option<Self> {
        let open = || rustix::fs::open(&jobs.pipe, OFlags::RDWR, Mode::empty()).ok();
        Some(Self {
            jobs,
            read: open()?,
            write: open()?,
        })
    }

    /// Says where it is, as make does.
    fn env(&self) -> Vec<(&'static str, String)> {
        let (read, write) = (self.read.as_raw_fd(), self.write.as_raw_fd());
        let told = format!("-j --jobserver-fds={read},{write} --jobserver-auth={read},{write}");
        let mut env = vec![("CARGO_MAKEFLAGS", told.clone())];
        if self.jobs.make {
            env.push(("MAKEFLAGS", told));
        }
        env
    }
}
