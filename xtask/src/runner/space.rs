//! Where tests put their files: in memory, where the machine has room for that.
//!
//! Tests make and delete hundreds of thousands of small files, and ext4 takes long to make a file
//! after many were deleted: on disk the end-to-end tests take half as long again. A machine without
//! room runs the same tests on its disk. It must never remove a directory of a run that goes on.

use crate::output;
use crate::process::Cmd;
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
/// Where it holds temporary files, and where homes of agents, by the variables that say so. An agent
/// may write below the first without asking, so the second is beside it.
const PARTS: [(&str, &str); 2] = [("TMPDIR", "tmp"), ("WOODWARD_TEST_HOMES", "homes")];
/// PostgreSQL runs as another user, who makes and removes a directory there: as in `/tmp`.
const MODE: u32 = 0o1777;

/// The place of one run. Dropped, it is removed.
pub(crate) struct Space(Option<PathBuf>);

impl Space {
    /// Makes it, and removes what killed runs left.
    pub(crate) fn new() -> Result<Self> {
        let memory = Path::new(MEMORY);
        remove_left(memory)?;
        let room = Room::of_this_machine();
        if !room.suffices() {
            output::narrate("tests use the disk: there is not enough room in memory");
            return Ok(Self(None));
        }
        let place = memory.join(format!("{PREFIX}{}", std::process::id()));
        for (_, part) in PARTS {
            let part = place.join(part);
            fs::create_dir_all(&part)
                .with_context(|| format!("cannot create {}", part.display()))?;
            fs::set_permissions(&part, fs::Permissions::from_mode(MODE))?;
        }
        Ok(Self(Some(place)))
    }

    /// The variables for the environment of tests and of their database server.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let places = self.0.iter();
        places
            .flat_map(|place| PARTS.map(|(name, part)| (name.into(), place.join(part).into())))
            .collect()
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

/// What this machine says of its memory.
struct Room {
    /// `/proc/mounts`
    mounts: String,
    /// `/proc/meminfo`
    memory: String,
    /// What `df` prints of [`MEMORY`]: containers often have 64 MB there.
    free: String,
}

impl Room {
    fn of_this_machine() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let df = Cmd::new("df").args(&["--output=avail", "-k", MEMORY]);
        Self {
            mounts: read("/proc/mounts"),
            memory: read("/proc/meminfo"),
            free: df.read().unwrap_or_default(),
        }
    }

    /// Whether programs can be started from there, and enough is free.
    fn suffices(&self) -> bool {
        self.is_executable()
            && self.available_kib() >= Some(FREE_MIN_KIB)
            && self.free_kib() >= Some(FREE_MIN_KIB)
    }

    fn is_executable(&self) -> bool {
        let mut mounted = self.mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            (fields.next()? == MEMORY).then(|| (fields.next(), fields.next()))
        });
        mounted.any(|(kind, options)| {
            let may_execute = |all: &str| all.split(',').all(|one| one != "noexec");
            kind == Some("tmpfs") && options.is_some_and(may_execute)
        })
    }

    fn available_kib(&self) -> Option<u64> {
        self.memory.lines().find_map(|line| {
            let rest = line.strip_prefix("MemAvailable:")?;
            rest.trim().strip_suffix(" kB")?.parse().ok()
        })
    }

    fn free_kib(&self) -> Option<u64> {
        self.free.lines().last()?.trim().parse().ok()
    }
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

    fn room() -> Room {
        Room {
            mounts: "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid 0 0\n".to_owned(),
            memory: "MemTotal: 24682416 kB\nMemAvailable:   20000000 kB\n".to_owned(),
            free: "   Avail\n12000000\n".to_owned(),
        }
    }

    #[test]
    fn memory_is_used_only_where_there_is_room() {
        assert!(room().suffices());
        let without = |change: fn(&mut Room)| {
            let mut room = room();
            change(&mut room);
            room.suffices()
        };
        assert!(!without(
            |room| room.mounts = room.mounts.replace("nosuid", "noexec")
        ));
        assert!(!without(
            |room| room.mounts = room.mounts.replace("tmpfs rw", "ext4 rw")
        ));
        assert!(!without(
            |room| room.memory = room.memory.replace("20000000", "2000000")
        ));
        assert!(!without(|room| room.free = "   Avail\n65536\n".to_owned()));
        assert!(!without(|room| room.mounts.clear()));
        assert!(!without(|room| room.memory.clear()));
        assert!(!without(|room| room.free.clear()));
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
        assert_eq!(Space(None).variables(), []);
        let space = Space(Some("/nowhere/ww-1".into()));
        let expected = [
            ("TMPDIR".into(), "/nowhere/ww-1/tmp".into()),
            ("WOODWARD_TEST_HOMES".into(), "/nowhere/ww-1/homes".into()),
        ];
        assert_eq!(space.variables(), expected);
    }
}
