//! Small files of the state directory, written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes a file so that after any crash it is the old or the new one, and durable once this returns.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_beside(path, bytes, true)?;
    sync_directory(path)
}

/// The same, readable by its owner only.
pub(crate) fn save_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(path, bytes, true, 0o600)?;
    sync_directory(path)
}

/// The same for JSON.
pub(crate) fn save_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    save(path, &serde_json::to_vec(value)?)
}

/// Whole or not at all, but not yet durable: for what can be found out again.
pub(crate) fn save_json_lazily(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_beside(path, &serde_json::to_vec(value)?, false)
}

fn write_beside(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    write_with_mode(path, bytes, durable, 0o666)
}

/// `mode` as far as the process's mask allows it.
fn write_with_mode(path: &Path, bytes: &[u8], durable: bool, mode: u32) -> io::Result<()> {
    let directory = path
        .parent()
        .ok_or_else(|| io::Error::other("a file has a directory"))?;
    fs::create_dir_all(directory)?;
    let beside = directory.join(format!(".{}.new", woodward_store::fresh_uuid()));
    let written = (|| {
        let mut new = File::options();
        let mut file = new.write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(bytes)?;
        if durable {
            file.sync_all()?;
        }
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        // Best effort: what is left over is a hidden file that nobody reads.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Reads JSON; `None` when the file is missing or makes no sense.
pub(crate) fn load_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The directories in a directory; none when it can't be read.
pub(crate) fn subdirectories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}
