//! Where tests put their files: in memory, where the machine has room for that.
//!
//! Tests make and delete hundreds of thousands of small files, and ext4 takes long to make a file
//! after many were deleted: on disk the end-to-end tests take half as long again. A machine without
//! room runs the same tests on its disk, and so do the tests with real agents everywhere: the sandboxes
//! of agents have a `/dev` of their own. It must never remove a directory of a run that goes on.

use crate::output;
use anyhow::{Context as _, Result};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A file system in memory that every user may write.
const MEMORY: &str = "/dev/shm";
/// What must be free there, and of the machine's memory.
const FREE_MIN_KIB: u64 = 8 << 20;
/// Followed by the number of the process: short, because sockets have short paths.
const PREFIX: &str = "ww-";
/// PostgreSQL runs as another user, who makes and removes a directory there: as in `/tmp`.
const MODE: u32 = 0o1777;

/// The place of one run. Dropped, it is removed.
pub(crate) struct Space(Option<PathBuf>);

impl Space {
    /// Makes it, and removes what killed runs left.
    pub(crate) fn new() -> Result<Self> {
        let memory = Path::new(MEMORY);
        if !has_room(&read("/proc/mounts"), &read("/proc/meminfo")) {
            output::narrate("tests use the disk: there is not enough room in memory");
            return Ok(Self(None));
        }
        remove_left(memory)?;
        let place = memory.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&place).with_context(|| format!("cannot create {}", place.display()))?;
        fs::set_permissions(&place, fs::Permissions::from_mode(MODE))?;
        Ok(Self(Some(place)))
    }

    /// The variable for the environment of tests and of their database server.
    pub(crate) fn variable(&self) -> Option<(OsString, OsString)> {
        let place = self.0.as_ref()?;
        Some(("TMPDIR".into(), place.into()))
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            // What can't be removed now is removed by the next run.
            let _ = fs::remove_dir_all(place);
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Whether programs can be started from there, and enough memory is free.
fn has_room(mounts: &str, meminfo: &str) -> bool {
    let mut mounted = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        (fields.next()? == MEMORY).then(|| (fields.next(), fields.next()))
    });
    let is_usable = mounted.any(|(kind, options)| {
        let is_executable = options.is_some_and(|all| !all.split(',').any(|one| one == "noexec"));
        kind == Some("tmpfs") && is_executable
    });
    let available = meminfo.lines().find_map(|line| {
        let rest = line.strip_prefix("MemAvailable:")?;
        rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    is_usable && available.is_some_and(|available| available >= FREE_MIN_KIB)
}

/// Removes the places of runs that are over.
fn remove_left(memory: &Path) -> Result<()> {
    for entry in fs::read_dir(memory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let process = name
            .strip_prefix(PREFIX)
            .and_then(|it| it.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // It may be another user's.
            let _ = fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const MOUNTS: &str = "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid 0 0\n";
    const MEMINFO: &str = "MemTotal: 24682416 kB\nMemAvailable:   20000000 kB\n";

    #[test]
    fn memory_is_used_only_where_there_is_room() {
        assert!(has_room(MOUNTS, MEMINFO));
        assert!(!has_room(&MOUNTS.replace("nosuid", "noexec"), MEMINFO));
        assert!(!has_room(&MOUNTS.replace("tmpfs rw", "ext4 rw"), MEMINFO));
        assert!(!has_room(MOUNTS, &MEMINFO.replace("20000000", "2000000")));
        assert!(!has_room("", ""));
    }

    #[test]
    fn only_what_ended_runs_left_is_removed() {
        let memory = Scratch::new("space");
        let own = format!("{PREFIX}{}", std::process::id());
        // No process has such a number.
        let names = [own.as_str(), "ww-4194399", "ww-other", "4194399"];
        for name in names {
            fs::create_dir(memory.join(name)).unwrap();
        }
        remove_left(&memory).unwrap();
        let left = names.map(|name| memory.join(name).exists());
        assert_eq!(left, [true, false, true, true]);
    }

    #[test]
    fn a_run_without_room_changes_no_variable() {
        assert_eq!(Space(None).variable(), None);
        let space = Space(Some("/nowhere/ww-1".into()));
        let expected = ("TMPDIR".into(), "/nowhere/ww-1".into());
        assert_eq!(space.variable(), Some(expected));
    }
}
