//! A private directory for the temporary files of one agent program.
//!
//! A sandboxed program may write here and nowhere else among temporary files: a repository or a
//! configuration below `/tmp` is not writable because of where it lies. The directory is removed when
//! the program has ended. It must never be shared between runs.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::files::fresh_uuid;

/// The directory. Dropping this removes it.
#[derive(Debug)]
pub(crate) struct PrivateTmp {
    path: PathBuf,
}

impl PrivateTmp {
    /// Creates an empty directory that only this user can enter.
    pub(crate) fn create() -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir())
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let named = |error: io::Error| {
            let parent = parent.display();
            let text = format!("no directory for temporary files can be made in {parent}: {error}");
            io::Error::new(error.kind(), text)
        };
        // Short: programs put sockets there, whose paths are limited to about 100 bytes.
        let id = fresh_uuid().simple().to_string();
        let path = parent
            .canonicalize()
            .map_err(named)?
            .join(format!("woodward-{}", &id[..12]));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(named)?;
        Ok(Self { path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateTmp {
    fn drop(&mut self) {
        // What is left over are temporary files among others.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_private_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        let private = PrivateTmp::create_in(parent.path()).unwrap();
        let path = private.path().to_owned();
        std::fs::write(path.join("file"), "x").unwrap();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(private);
        assert!(!path.exists());
    }

    #[test]
    fn a_missing_parent_is_an_error_that_names_it() {
        let error = PrivateTmp::create_in(Path::new("/nowhere/tmp")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/tmp"), "{error}");
    }
}
