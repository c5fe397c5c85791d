//! The last step before the agent: the forked child of the supervisor becomes it.
//!
//! The supervisor starts this program once more instead of the agent, because between fork and exec
//! nothing safe can be done. Here the child joins its control group, takes its directory and its
//! standard input, and executes the agent. Standard output and error are in place already; standard
//! input is a pipe on which a failure is reported, and which closes when the agent starts.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use nix::sys::signal::SigSet;
use rustix::fs::{Mode, OFlags};

use super::directory::Directory;
use super::{Jobs, Launch, MARK};

/// Set in the environment of the supervisor's child, and of nothing else: the run directory.
pub(super) const ENTER: &str = "WOODWARD_SUPERVISE_ENTER";

/// Becomes the agent; returns only if that failed.
pub(super) fn enter(dir: &OsStr) -> ExitCode {
    let report = std::io::stdin().as_fd().try_clone_to_owned();
    let why = become_agent(&Directory::new(Path::new(dir)));
    if let Ok(report) = report {
        // Without a supervisor to tell there is nobody to tell.
        let _ = rustix::io::write(&report, why.as_bytes());
    }
    ExitCode::from(127)
}

fn become_agent(dir: &Directory) -> String {
    let launch = match dir.spec() {
        Ok(Some(launch)) => launch,
        Ok(None) => return "its specification is gone".into(),
        Err(error) => return error.to_string(),
    };
    // The supervisor holds signals back to read them one by one; the agent must hear them.
    if let Err(error) = SigSet::empty().thread_set_mask() {
        return format!("cannot reset signals: {error}");
    }
    if let Ok(Some(processes)) = dir.processes()
        && let Some(cgroup) = processes.own_cgroup()
    {
        // The group is a second net; a machine that forbids it has the first one.
        let _ = cgroup.enter();
    }
    execute(&launch)
}

/// Opens the pipe of job tokens so that the program inherits it, and says where it is, as make does. A
/// pipe that can't be opened is no reason not to run: then everybody uses as many jobs as they like.
fn job_tokens(jobs: &Jobs) -> Vec<(&'static str, String)> {
    let open = || rustix::fs::open(&jobs.pipe, OFlags::RDWR, Mode::empty());
    let (Ok(read), Ok(write)) = (open(), open()) else {
        return Vec::new();
    };
    let (read, write) = (read.into_raw_fd(), write.into_raw_fd());
    let told = format!("-j --jobserver-fds={read},{write} --jobserver-auth={read},{write}");
    let mut env = vec![("CARGO_MAKEFLAGS", told.clone())];
    if jobs.make {
        env.push(("MAKEFLAGS", told));
    }
    env
}

fn execute(launch: &Launch) -> String {
    let Some((program, args)) = launch.command.split_first() else {
        return "the command is empty".into();
    };
    if let Err(error) = std::env::set_current_dir(&launch.cwd) {
        return format!("cannot enter {}: {error}", launch.cwd.display());
    }
    let stdin = match &launch.stdin {
        None => Stdio::null(),
        Some(path) => match File::open(path) {
            Ok(file) => file.into(),
            Err(error) => return format!("cannot read {}: {error}", path.display()),
        },
    };
    let error = Command::new(program)
        .args(args)
        .env_clear()
        .envs(&launch.env)
        .envs(launch.jobs.iter().flat_map(job_tokens))
        .env_remove(ENTER)
        .env(MARK, &launch.mark)
        .stdin(stdin)
        .exec();
    format!("cannot run {program}: {error}")
}
