//! That a run waits for a person: no limit of a run counts that time.
//!
//! Whoever waits holds a shared lock on a file of the run directory, which ends with its process, and
//! adds how long it took when it is over. The supervisor looks at it when a limit is reached.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

fn file(dir: &Path) -> PathBuf {
    dir.join("waiting")
}

/// A wait for a person. It is over when this is dropped.
#[derive(Debug)]
pub struct Waiting {
    file: File,
    since: Instant,
}

impl Waiting {
    /// The run of this directory waits for a person from now on.
    pub fn begin(dir: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(file(dir))?;
        file.lock_shared()?;
        Ok(Self {
            file,
            since: Instant::now(),
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // In one piece: others may add theirs at the same time. Where it can't be written, the time
        // counts, as it did before.
        let line = format!("{}\n", self.since.elapsed().as_millis());
        let _ = self.file.write_all(line.as_bytes());
    }
}

/// How long a run has waited for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Whether it waits at this moment.
    pub now: bool,
    /// All waits that are over.
    pub total: Duration,
    /// How long ago the last of them was over, if there was one.
    pub ended_ago: Option<Duration>,
}

impl Waited {
    /// Looks at a run directory. What can't be read says that nobody waits.
    pub fn load(dir: &Path) -> Self {
        Self::try_load(&file(dir)).unwrap_or_default()
    }

    fn try_load(file: &Path) -> io::Result<Self> {
        let open = File::open(file)?;
        let now = match open.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        let text = io::read_to_string(&open)?;
        let waits = text.lines().filter_map(|line| line.parse::<u64>().ok());
        let total = waits.fold(0, u64::saturating_add);
        let changed = open.metadata()?.modified()?;
        let ago = SystemTime::now().duration_since(changed);
        Ok(Self {
            now,
            total: Duration::from_millis(total),
            // A clock that was set back says nothing: it is given its time.
            ended_ago: Some(ago.unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_seen_while_it_lasts_and_counted_after_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Waited::load(dir.path()), Waited::default());
        let one = Waiting::begin(dir.path()).unwrap();
        let two = Waiting::begin(dir.path()).unwrap();
        assert!(Waited::load(dir.path()).now);
        drop(one);
        assert!(Waited::load(dir.path()).now, "another one still waits");
        drop(two);
        std::fs::write(file(dir.path()), "40\nnoise\n2\n").unwrap();
        let waited = Waited::load(dir.path());
        assert_eq!((waited.now, waited.total.as_millis()), (false, 42));
        assert!(waited.ended_ago.is_some());
    }
}
