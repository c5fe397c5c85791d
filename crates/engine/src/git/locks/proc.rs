//! Other processes, as `/proc` shows them.
//!
//! Only looks and, for orphans of ours, signals; a process that can't be looked at is never said to
//! be elsewhere.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

/// The kernel reports start times in this many ticks a second, whatever its own clock is.
const TICKS: f64 = 100.0;
const PARENTS_MAX: usize = 64;

/// One process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pid: i32,
    parent: i32,
    name: String,
    /// Seconds after boot.
    pub(super) started: f64,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

impl Process {
    /// All processes that can be seen.
    pub(super) fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(Self::load)
            .collect()
    }

    fn load(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in parentheses and may itself contain some.
        let (head, tail) = stat.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = tail.split_whitespace().collect();
        // A zombie holds nothing.
        if fields.first() == Some(&"Z") {
            return None;
        }
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            name,
            started: fields.get(19)?.parse::<f64>().ok()? / TICKS,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }

    pub(super) fn is_git(&self) -> bool {
        self.name.starts_with("git")
    }

    pub(super) fn has_open(&self, device: u64, inode: u64) -> bool {
        let entries = fs::read_dir(self.file("fd"))
            .into_iter()
            .flatten()
            .flatten();
        entries
            .filter_map(|entry| fs::metadata(entry.path()).ok())
            .any(|meta| meta.dev() == device && meta.ino() == inode)
    }

    /// Whether its working directory, environment or arguments point into one of the places, or
    /// can't be read.
    pub(super) fn may_work_in(&self, places: &[PathBuf]) -> bool {
        let cwd = match fs::read_link(self.file("cwd")) {
            Ok(cwd) => cwd,
            // Not ours to look at. Any other failure: it has ended.
            Err(error) => return error.kind() == io::ErrorKind::PermissionDenied,
        };
        let mentions = |file: &str| {
            let text = fs::read(self.file(file)).unwrap_or_default();
            places
                .iter()
                .any(|place| contains(&text, place.as_os_str().as_bytes()))
        };
        places.iter().any(|place| cwd.starts_with(place))
            || mentions("cmdline")
            || mentions("environ")
    }

    fn carries(&self, setting: &str) -> bool {
        let environ = fs::read(self.file("environ")).unwrap_or_default();
        environ
            .split(|b| *b == 0)
            .any(|entry| entry == setting.as_bytes())
    }

    /// Sends a signal if it is still the process that carries `setting`.
    pub(super) fn signal(&self, signal: Signal, setting: &str) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        let same = Self::load(self.pid).is_some_and(|now| now.started == self.started);
        if same && self.carries(setting) {
            let _ = pidfd_send_signal(handle, signal);
        }
    }
}

/// Processes that carry `setting` in their environment and are not below this one.
pub(super) fn strangers_with(setting: &str) -> Vec<Process> {
    let all = Process::all();
    let me = getpid().as_raw_nonzero().get();
    let parent_of = |pid: i32| all.iter().find(|p| p.pid == pid).map(|p| p.parent);
    let below_me = |process: &Process| {
        let mut up = process.parent;
        for _ in 0..PARENTS_MAX {
            if up == me {
                return true;
            }
            match parent_of(up) {
                Some(next) => up = next,
                None => return false,
            }
        }
        false
    };
    all.iter()
        .filter(|process| process.pid != me && process.carries(setting) && !below_me(process))
        .cloned()
        .collect()
}

/// Seconds since boot, and the wall clock at the same moment.
pub(super) fn now_since_boot() -> (f64, f64) {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let uptime = text
        .split_whitespace()
        .next()
        .and_then(|t| t.parse().ok())
        .unwrap_or(0.0);
    let wall = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |t| t.as_secs_f64());
    (uptime, wall)
}

/// Whether `place` occurs in `text` as a whole path or the beginning of one.
fn contains(text: &[u8], place: &[u8]) -> bool {
    text.windows(place.len().max(1))
        .enumerate()
        .any(|(at, window)| {
            window == place && matches!(text.get(at + place.len()), None | Some(0 | b'/' | b'\n'))
        })
}
