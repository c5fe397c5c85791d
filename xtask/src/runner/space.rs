//! Where tests put their files: in memory, where the machine has room for that, or on the disk.
//!
//! Tests make and delete hundreds of thousands of small files, and ext4 takes long to make a file
//! after many were deleted: on disk the end-to-end tests take half as long again. Nothing that a run or
//! its agent programs leave outlives it. It must never remove a directory of a run that goes on.

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
/// A directory on the disk that every user may write. Not `/tmp`, where agents may write without asking.
const DISK: &str = "/var/tmp";
/// Followed by the number of the process: short, because sockets have short paths.
const PREFIX: &str = "wwt-";
/// The directory for temporary files and that for homes of agents, by the variables that name them. An
/// agent may write below the first without asking, so the second is beside it.
const PARTS: [(&str, &str); 2] = [("TMPDIR", "tmp"), ("WOODWARD_TEST_HOMES", "homes")];
/// The names of what a failed torture leaves there begin with this (`torture/src/stage.rs`).
const EVIDENCE: &str = "torture-";
/// PostgreSQL runs as another user, who makes and removes a directory there: as in `/tmp`.
const MODE: u32 = 0o1777;

/// The directories of one run. Dropped, they are removed.
pub(crate) struct Space {
    /// `None` where there is not enough room in memory.
    memory: Option<PathBuf>,
    disk: PathBuf,
}

impl Space {
    /// Makes them, and removes what killed runs left.
    pub(crate) fn new() -> Result<Self> {
        let name = format!("{PREFIX}{}", std::process::id());
        remove_left(Path::new(DISK))?;
        let space = Self {
            memory: memory_has_room()?.then(|| Path::new(MEMORY).join(&name)),
            disk: Path::new(DISK).join(&name),
        };
        let directories = space.directories();
        for part in directories.flat_map(|directory| PARTS.map(|(_, part)| directory.join(part))) {
            fs::create_dir_all(&part)
                .with_context(|| format!("cannot create {}", part.display()))?;
            fs::set_permissions(&part, fs::Permissions::from_mode(MODE))?;
        }
        Ok(space)
    }

    /// All its directories.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &Path> {
        self.memory.iter().chain([&self.disk]).map(PathBuf::as_path)
    }

    /// Copies what a failed torture has left for people to read into a directory, and says so.
    pub(crate) fn keep_evidence(&self, directory: &Path) -> Result<()> {
        let (_, temporary) = PARTS[0];
        for files in self.directories() {
            for entry in fs::read_dir(files.join(temporary))? {
                let entry = entry?;
                if !entry.file_name().to_string_lossy().starts_with(EVIDENCE) {
                    continue;
                }
                fs::create_dir_all(directory)?;
                let path = entry.path();
                let copy = Cmd::new("cp").args(&["-r", "--"]).args(&[&path, directory]);
                // Without it, there is still the result of the test.
                output::narrate(&match copy.run_quietly() {
                    Ok(_) => format!("{} was copied into {}", path.display(), directory.display()),
                    Err(error) => format!("{} is lost: {error:#}", path.display()),
                });
            }
        }
        Ok(())
    }

    /// The variables for the environment of a test, or of the database server, which may use memory or
    /// must use the disk.
    pub(crate) fn variables(&self, may_use_memory: bool) -> Vec<(OsString, OsString)> {
        let directory = match &self.memory {
            Some(memory) if may_use_memory => memory,
            _ => &self.disk,
        };
        let variable = |(name, part): (&str, &str)| (name.into(), directory.join(part).into());
        PARTS.map(variable).into()
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        for directory in self.directories() {
            // What can't be removed now is removed by the next run.
            let _ = fs::remove_dir_all(directory);
        }
    }
}

/// Whether tests can use memory, from which it removes what killed runs left.
fn memory_has_room() -> Result<bool> {
    let memory = Path::new(MEMORY);
    if memory.exists() {
        remove_left(memory)?;
    }
    let has_room = Room::of_this_machine().suffices();
    if !has_room {
        output::narrate("tests use the disk: there is not enough room in memory");
    }
    Ok(has_room)
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

/// Removes the directories of runs that are over.
fn remove_left(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
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
        let names = [own.as_str(), "wwt-4194399", "wwt-other", "ww-4194399"];
        for name in names {
            fs::create_dir(memory.join(name)).unwrap();
        }
        remove_left(&memory).unwrap();
        let left = names.map(|name| memory.join(name).exists());
        assert_eq!(left, [true, false, true, true]);
    }

    #[test]
    fn variables_name_directories_in_memory_only_for_those_who_may_use_it() {
        let mut space = Space {
            memory: Some("/nowhere/memory".into()),
            disk: "/nowhere/disk".into(),
        };
        let expected = |directory: &str| {
            let part = |part: &str| format!("{directory}/{part}").into();
            [
                ("TMPDIR".into(), part("tmp")),
                ("WOODWARD_TEST_HOMES".into(), part("homes")),
            ]
        };
        assert_eq!(space.variables(true), expected("/nowhere/memory"));
        assert_eq!(space.variables(false), expected("/nowhere/disk"));
        space.memory = None;
        assert_eq!(space.variables(true), expected("/nowhere/disk"));
    }

    #[test]
    fn what_a_failed_torture_leaves_is_kept_and_nothing_else() {
        let scratch = Scratch::new("evidence");
        let space = Space {
            memory: Some(scratch.join("memory")),
            disk: scratch.join("disk"),
        };
        let others = ["memory/tmp/.tmpX", "memory/tmp/ww-pg-1", "disk/tmp"];
        for path in others.iter().chain(&["memory/tmp/torture-a1/state"]) {
            fs::create_dir_all(scratch.join(path)).unwrap();
        }
        fs::write(scratch.join("memory/tmp/torture-a1/state/daemon.log"), "x").unwrap();
        let kept = scratch.join("kept");
        space.keep_evidence(&kept).unwrap();
        assert!(kept.join("torture-a1/state/daemon.log").is_file());
        assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    }

    #[test]
    fn a_space_is_removed_with_all_its_directories() {
        let scratch = Scratch::new("spaces");
        let (memory, disk) = (scratch.join("memory"), scratch.join("disk"));
        let space = Space {
            memory: Some(memory.clone()),
            disk: disk.clone(),
        };
        fs::create_dir_all(memory.join("homes/1")).unwrap();
        fs::create_dir_all(disk.join("tmp/1")).unwrap();
        drop(space);
        assert!(!memory.exists() && !disk.exists());
    }
}
