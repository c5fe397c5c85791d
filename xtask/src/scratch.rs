//! A directory for one test of the xtask, removed with everything in it.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The directory.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new one; `name` is the test's own.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ww-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}
