//! The files of a run directory: how they are named, written and read.
//!
//! A file that others wait for is either not there or complete, also after a power cut.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::brief::{self, Line};
use super::{Error, Exit, Launch, Processes};

/// One run directory.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    path: PathBuf,
}

/// Whether a file must survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Yes.
    Durable,
    /// Yes, and a file that is already there stays.
    First,
    /// It says something about processes, which do not survive either.
    ThisBoot,
}

impl Directory {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Makes the directory, for its owner only: the specification holds the agent's environment.
    pub(super) fn create(&self, durable: bool) -> Result<(), Error> {
        let missing: Vec<_> = self
            .path
            .ancestors()
            .take_while(|path| durable && !path.exists())
            .collect();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .map_err(Error::io("make", &self.path))?;
        missing
            .into_iter()
            .filter_map(Path::parent)
            .try_for_each(sync_directory)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn spec(&self) -> Result<Option<Launch>, Error> {
        if let Some(brief) = brief::read(&self.path)? {
            return Ok(brief.spec);
        }
        read(&self.path.join("spec.json"))
    }

    /// Writes the specification unless there is one: what a supervisor has read never changes.
    pub(super) fn write_spec(&self, launch: &Launch) -> Result<(), Error> {
        if self.spec()?.is_some() {
            return Ok(());
        }
        if launch.repeatable {
            if brief::read(&self.path)?.is_some_and(|brief| brief.spec.is_none()) {
                // A power cut has left it empty: it is of no use to anybody.
                let _ = std::fs::remove_file(brief::path(&self.path));
            }
            return brief::create(&self.path, launch, &draft(&self.path, "run"));
        }
        write(&self.path, "spec.json", launch, Keep::First)
    }

    pub(super) fn exit(&self) -> Result<Option<Exit>, Error> {
        if let Some(brief) = brief::read(&self.path)? {
            return Ok(brief.exit);
        }
        read(&self.path.join("exit.json"))
    }

    pub(super) fn write_exit(&self, exit: &Exit) -> Result<(), Error> {
        if self.is_brief() {
            return brief::append(&self.path, &Line::Exit(exit.clone()));
        }
        write(&self.path, "exit.json", exit, Keep::Durable)
    }

    /// Who takes part; `None` if no supervisor ever got so far that it could start something.
    pub(super) fn processes(&self) -> Result<Option<Processes>, Error> {
        if let Some(brief) = brief::read(&self.path)? {
            return Ok(brief.processes);
        }
        let path = self.path.join("supervisor.json");
        match read(&path) {
            // A power cut may have torn the later, not durable version: its processes are gone too.
            Err(Error::Damaged { .. }) => Ok(Some(Processes::default())),
            other => other,
        }
    }

    pub(super) fn write_processes(&self, processes: &Processes, keep: Keep) -> Result<(), Error> {
        if self.is_brief() {
            return brief::append(&self.path, &Line::Processes(processes.clone()));
        }
        write(&self.path, "supervisor.json", processes, keep)
    }

    pub(super) fn write_stop(&self, grace_ms: u64) -> Result<(), Error> {
        write(&self.path, "stop", &grace_ms, Keep::Durable)
    }

    /// Whether the run was asked to stop, and how many milliseconds it gets to do so.
    pub(super) fn stop(&self) -> Result<Option<u64>, Error> {
        read(&self.path.join("stop"))
    }

    pub(super) fn output(&self) -> PathBuf {
        self.path.join("output")
    }

    pub(super) fn is_brief(&self) -> bool {
        brief::path(&self.path).exists()
    }

    fn lock_file(&self) -> PathBuf {
        match self.is_brief() {
            true => brief::path(&self.path),
            false => self.path.join("lock"),
        }
    }

    /// Takes the lock if nobody has it. It is held until the file is closed, here and in any child
    /// that has not yet executed another program.
    pub(super) fn lock(&self) -> Result<Option<File>, Error> {
        let path = self.lock_file();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        match fcntl(&file, FcntlArg::F_OFD_SETLK(&whole_file())) {
            Ok(_) => Ok(Some(file)),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(None),
            Err(errno) => Err(Error::io("lock", path)(errno.into())),
        }
    }

    /// Whether somebody has the lock. Only asks: a probe that took the lock for a moment could turn
    /// a supervisor away that is just starting.
    pub(super) fn is_locked(&self) -> Result<bool, Error> {
        let path = self.lock_file();
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::io("open", path)(error)),
        };
        let mut lock = whole_file();
        fcntl(&file, FcntlArg::F_OFD_GETLK(&mut lock))
            .map_err(|errno| Error::io("look at the lock", path)(errno.into()))?;
        Ok(i32::from(lock.l_type) != libc::F_UNLCK)
    }
}

/// A lock of the open file, not of the process: it is neither lost when some other file descriptor
/// of the same file is closed, nor when a child is forked.
fn whole_file() -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|source| Error::Damaged {
            path: path.to_owned(),
            source,
        })
}

fn write<T: Serialize>(dir: &Path, name: &str, value: &T, keep: Keep) -> Result<(), Error> {
    let path = dir.join(name);
    let bytes = serde_json::to_vec(value).map_err(|source| Error::Damaged {
        path: path.clone(),
        source,
    })?;
    let draft = draft(dir, name);
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(&bytes)?;
            match keep {
                Keep::Durable | Keep::First => file.sync_all(),
                Keep::ThisBoot => Ok(()),
            }
        })
        .and_then(|()| match keep {
            Keep::Durable | Keep::ThisBoot => std::fs::rename(&draft, &path),
            Keep::First => match std::fs::hard_link(&draft, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                linked => linked,
            },
        });
    if written.is_err() || keep == Keep::First {
        // The draft is of no use any more; should it stay, it is in nobody's way.
        let _ = std::fs::remove_file(&draft);
    }
    written.map_err(Error::io("write", path))?;
    match keep {
        Keep::Durable | Keep::First => sync_directory(dir),
        Keep::ThisBoot => Ok(()),
    }
}

/// Two processes may write the same file at once, each its own draft.
fn draft(dir: &Path, name: &str) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    dir.join(format!(".{name}.{}.{number}", std::process::id()))
}

fn sync_directory(dir: &Path) -> Result<(), Error> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(Error::io("sync", dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_at_a_lock_does_not_take_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::new(dir.path());
        assert!(!dir.is_locked().unwrap());
        let held = dir.lock().unwrap();
        assert!(held.is_some());
        assert!(dir.is_locked().unwrap());
        assert!(dir.lock().unwrap().is_none());
        drop(held);
        assert!(!dir.is_locked().unwrap());
        assert!(dir.lock().unwrap().is_some());
    }

    #[test]
    fn a_torn_record_of_processes_still_says_that_something_ran() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("supervisor.json"), "").unwrap();
        let processes = Directory::new(dir.path()).processes().unwrap();
        assert_eq!(processes, Some(Processes::default()));
    }
}
