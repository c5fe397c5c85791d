//! The first start of a version of a program makes or alters the files that all its processes share.
//! Two that do so at once break each other (OpenCode and Goose have a database each), so those starts
//! go one after the other.
//!
//! Nothing is written into a program's own directory: it is only locked.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::catalog::Kind;
use crate::spec::Spec;

/// How often it is looked whether the one before has come up.
const PAUSE: Duration = Duration::from_millis(50);

/// The right to start, if it takes one; given back when dropped.
#[derive(Debug)]
pub(super) struct FirstStart {
    stamp: PathBuf,
    /// Which program it is, for the next starts; `None` if that can't be told.
    program: Option<String>,
    lock: Option<File>,
}

impl FirstStart {
    /// Waits for the turn. What can't be locked is started without.
    pub(super) async fn take(spec: &Spec) -> Self {
        let (place, database) = shared(spec);
        let mut turn = Self {
            stamp: spec.home.join("started"),
            program: spec.program.first().and_then(|name| identity(name)),
            lock: None,
        };
        if turn.is_known() && place.join(database).exists() {
            return turn;
        }
        let Some(lock) = open(&place) else {
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

    /// It is up: what it shares is as this program wants it.
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

/// The directory that a program's processes share, and what is in it once one came up.
fn shared(spec: &Spec) -> (PathBuf, &'static str) {
    let (name, database, own) = match spec.kind {
        Kind::OpenCode => ("opencode", "opencode.db", "config/data/opencode"),
        Kind::Goose => ("goose", "sessions/sessions.db", "config/data"),
        // It is not known to break: one after the other within a project is careful enough.
        _ => return (spec.home.clone(), ""),
    };
    let set = |name: &str| env::var_os(name).filter(|dir| !dir.is_empty());
    let root = set("GOOSE_PATH_ROOT").filter(|_| spec.kind == Kind::Goose);
    let place = if spec.own_config {
        spec.home.join(own)
    } else if let Some(root) = root {
        PathBuf::from(root).join("data")
    } else if let Some(data) = set("XDG_DATA_HOME") {
        PathBuf::from(data).join(name)
    } else if let Some(home) = set("HOME") {
        PathBuf::from(home).join(".local/share").join(name)
    } else {
        spec.home.clone()
    };
    (place, database)
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

    #[tokio::test]
    async fn first_starts_go_one_after_the_other_and_later_ones_at_once() {
        for (kind, database) in [
            (Kind::OpenCode, "config/data/opencode/opencode.db"),
            (Kind::Goose, "config/data/sessions/sessions.db"),
            (Kind::Copilot, "config/any"),
        ] {
            let home = tempfile::tempdir().expect("a directory");
            let program = home.path().join("program");
            fs::write(&program, "one").expect("written");
            let mut spec = spec(kind);
            spec.home = home.path().to_owned();
            spec.own_config = true;
            spec.program = vec![program.display().to_string()];
            let first = FirstStart::take(&spec).await;
            let soon = Duration::from_millis(200);
            let second = tokio::time::timeout(soon, FirstStart::take(&spec)).await;
            assert!(second.is_err(), "two of {kind:?} make the database at once");
            let database = home.path().join(database);
            fs::create_dir_all(database.parent().expect("a directory")).expect("made");
            fs::write(database, "").expect("written");
            first.came_up();
            let second = FirstStart::take(&spec).await;
            let third = FirstStart::take(&spec).await;
            assert!(second.lock.is_none() && third.lock.is_none(), "{kind:?}");
            // Another version alters it.
            fs::remove_file(&program).expect("removed");
            fs::write(&program, "two").expect("written");
            assert!(FirstStart::take(&spec).await.lock.is_some(), "{kind:?}");
        }
    }
}
