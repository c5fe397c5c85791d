//! Which process is meant: a process number alone is reused.
//!
//! The process table of `/proc`, and signals that reach exactly the process that was seen. Never
//! by name or by command line.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// One process, for all time: no two processes ever have the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The process number.
    pub pid: u32,
    /// When it started, in clock ticks since the machine came up.
    pub start: u64,
    /// Which time the machine was up.
    pub boot: String,
}

impl Identity {
    /// This process.
    pub fn of_self() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// The process that has this number now.
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self {
            pid,
            start: stat(pid)?.ok_or_else(gone)?.start,
            boot: boot()?,
        })
    }
}

/// Whether the process exists; one that has ended and waits to be reaped does not count.
pub fn probe(identity: &Identity) -> io::Result<bool> {
    if identity.boot != boot()? {
        return Ok(false);
    }
    Ok(stat(identity.pid)?.is_some_and(|now| now.start == identity.start && !now.ended()))
}

/// A handle on the process, or `None` if it is gone.
pub(super) fn open(pid: u32, start: u64) -> io::Result<Option<OwnedFd>> {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(None);
    };
    let handle = match pidfd_open(raw, PidfdFlags::NONBLOCK) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // The number may have passed to another process before the handle was opened, not after.
    Ok(stat(pid)?.filter(|now| now.start == start).map(|_| handle))
}

/// As [`open`], for a process of any boot.
pub(super) fn open_identity(identity: &Identity) -> io::Result<Option<OwnedFd>> {
    if identity.boot != boot()? {
        return Ok(None);
    }
    open(identity.pid, identity.start)
}

/// Sends a signal to exactly this process. False if it is gone.
pub(super) fn signal(pid: u32, start: u64, signal: Signal) -> io::Result<bool> {
    let Some(handle) = open(pid, start)? else {
        return Ok(false);
    };
    match pidfd_send_signal(&handle, signal) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) session: u32,
    pub(super) start: u64,
    pub(super) state: u8,
}

impl Process {
    /// It has exited and only waits to be reaped: nothing can be done to it.
    pub(super) fn ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// All processes that can be seen.
pub(super) fn table() -> io::Result<Vec<Process>> {
    let mut table = Vec::with_capacity(256);
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        table.extend(stat(pid)?);
    }
    Ok(table)
}

/// The process with this number, if there is one.
pub(super) fn stat(pid: u32) -> io::Result<Option<Process>> {
    match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(line) => parse(pid, &line).map(Some).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("/proc/{pid}/stat has an unknown form"),
            )
        }),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an error of a file in `/proc/<pid>` says that the process has ended.
pub(super) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// The name (second field) may hold spaces and brackets: the last bracket ends it.
fn parse(pid: u32, line: &[u8]) -> Option<Process> {
    let name_end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    // A process of another namespace has parents and groups with the number 0.
    let mut number = || fields.next()?.parse::<i64>().ok();
    let (parent, _group, session) = (number()?, number()?, number()?);
    let start = u64::try_from((0..16).map(|_| number()).last()??).ok()?;
    Some(Process {
        pid,
        parent: u32::try_from(parent).unwrap_or(0),
        session: u32::try_from(session).unwrap_or(0),
        start,
        state,
    })
}

pub(super) fn boot() -> io::Result<String> {
    Ok(std::fs::read_to_string(BOOT_ID)?.trim().to_owned())
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the process is gone")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_is_no_field() {
        let line = b"42 (a) Z (b) S 7 8 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 11 22 33\n";
        let process = parse(42, line).unwrap();
        assert_eq!((process.parent, process.session), (7, 9));
        assert_eq!(process.start, 98765);
        assert!(!process.ended());
    }

    #[test]
    fn another_start_or_boot_is_another_process() {
        let me = Identity::of_self().unwrap();
        assert!(probe(&me).unwrap());
        let start = Identity {
            start: me.start + 1,
            ..me.clone()
        };
        assert!(!probe(&start).unwrap());
        assert!(open_identity(&start).unwrap().is_none());
        let boot = Identity {
            boot: "another".into(),
            ..me
        };
        assert!(!probe(&boot).unwrap());
        assert!(open_identity(&boot).unwrap().is_none());
    }
}
