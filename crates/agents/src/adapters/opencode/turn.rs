//! The first start of a version of OpenCode makes or alters the database that all its processes
//! share. Two that do so at once break each other, so those starts go one after the other.
//!
//! Nothing is written into OpenCode's own directory: it is only locked.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::spec::Spec;

/// How often it is looked whether the one before has come up.
const PAUSE: Duration = Duration::from_millis(50);

/// The right to start, if it takes one; given back when dropped.
#[derive(Debug)]
pub(super) struct Turn {
    stamp: PathBuf,
    /// Which program it is, for the next starts; `None` if that can't be told.
    program: Option<String>,
    lock: Option<File>,
}

impl Turn {
    /// Waits for the turn. What can't be locked is started without.
    pub(super) async fn take(spec: &Spec) -> Self {
        let data = data_dir(spec);
        let mut turn = Self {
            stamp: spec.home.join("started"),
            program: spec.program.first().and_then(|name| identity(name)),
            lock: None,
        };
        let has_database = data
            .as_ref()
            .is_some_and(|dir| dir.join("opencode.db").exists());
        if has_database && turn.is_known() {
            return turn;
        }
        let Some(lock) = data.and_then(|dir| open(&dir)) else {
            return turn;
        };
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            tokio::time::sleep(PAUSE).await;
        }
        turn.lock = Some(lock);
        turn
    }

    fn is_known(&self) -> bool {
        let known = fs::read_to_string(&self.stamp).ok();
        self.program.is_some() && known == self.program
    }

    /// It is up: the database is as this program wants it.
    pub(super) fn came_up(self) {
        if let (false, Some(program)) = (self.is_known(), &self.program) {
            // Not known at worst: then the next start takes a turn, too.
            let _ = fs::create_dir_all(self.stamp.parent().unwrap_or(Path::new(".")));
            let _ = fs::write(&self.stamp, program);
        }
    }
}

fn open(dir: &Path) -> Option<File> {
    fs::create_dir_all(dir).ok()?;
    File::open(dir).ok()
}

/// Where OpenCode keeps its database.
fn data_dir(spec: &Spec) -> Option<PathBuf> {
    let data = if spec.own_config {
        spec.home.join("config/data")
    } else {
        match env::var_os("XDG_DATA_HOME").filter(|dir| !dir.is_empty()) {
            Some(dir) => PathBuf::from(dir),
            None => PathBuf::from(env::var_os("HOME")?).join(".local/share"),
        }
    };
    Some(data.join("opencode"))
}

/// What changes when a program is replaced. Its date would not do: packages bring their own.
fn identity(name: &str) -> Option<String> {
    let path = if name.contains('/') {
        PathBuf::from(name)
    } else {
        let path = env::var_os("PATH")?;
        let mut places = env::split_paths(&path).map(|dir| dir.join(name));
        places.find(|file| file.is_file())?
    };
    let file = fs::metadata(&path).ok()?;
    Some(format!(
        "{} {} {}.{}",
        path.display(),
        file.ino(),
        file.ctime(),
        file.ctime_nsec()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::tests::spec;
    use crate::catalog::Kind;

    #[tokio::test]
    async fn first_starts_go_one_after_the_other_and_later_ones_at_once() {
        let home = tempfile::tempdir().expect("a directory");
        let program = home.path().join("opencode");
        fs::write(&program, "one").expect("written");
        let mut spec = spec(Kind::OpenCode);
        spec.home = home.path().to_owned();
        spec.own_config = true;
        spec.program = vec![program.display().to_string()];
        let first = Turn::take(&spec).await;
        let soon = Duration::from_millis(200);
        let second = tokio::time::timeout(soon, Turn::take(&spec)).await;
        assert!(second.is_err(), "two make the database at once");
        fs::write(home.path().join("config/data/opencode/opencode.db"), "").expect("written");
        first.came_up();
        let second = Turn::take(&spec).await;
        let third = Turn::take(&spec).await;
        assert!(second.lock.is_none() && third.lock.is_none());
        // Another version alters it.
        fs::remove_file(&program).expect("removed");
        fs::write(&program, "two").expect("written");
        assert!(Turn::take(&spec).await.lock.is_some());
    }
}
