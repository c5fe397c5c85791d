//! Installations that appear whole: they are made in a draft beside their place, and renamed.
//!
//! One process installs into a directory at a time. It must never remove what is not a draft.

use crate::output;
use anyhow::{Context as _, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const PREFIX: &str = ".new-";

/// Waits until no other process installs into a directory. The lock ends with the process.
pub(crate) fn lock(directory: &Path, waiting: &str) -> Result<File> {
    let path = directory.join(".lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    if file.try_lock().is_err() {
        output::narrate(waiting);
        file.lock()?;
    }
    Ok(file)
}

/// Where something of that name is until it is whole: no other process writes there, not even what
/// a killed installation left running.
pub(crate) fn path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{PREFIX}{name}-{}", std::process::id()))
}

/// Removes what killed installations left.
pub(crate) fn remove_leftovers(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            // What another process still writes is removed by the next installation.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

/// Makes a link that is never seen half made.
pub(crate) fn link(directory: &Path, name: &str, target: &Path) -> Result<()> {
    let draft = path(directory, name);
    let _ = fs::remove_file(&draft);
    std::os::unix::fs::symlink(target, &draft)?;
    fs::rename(&draft, directory.join(name))
        .with_context(|| format!("cannot link {name} in {}", directory.display()))
}
