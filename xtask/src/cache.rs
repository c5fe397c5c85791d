//! A build that outlives the clone: fresh clones of the same sources build nothing.
//!
//! Cargo takes a package for another one when its path differs and for a changed one when a file is
//! newer than its build. So the sources are copied to one place below the user's cache, only those
//! files that differ are written there, and tests run there. It must never delete anything outside
//! that place, and a run without it must give the same result.

use crate::output;
use crate::process::{Cmd, repository_root};
use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Builds that are kept: this one, and the one before (another branch, another toolchain).
const GENERATIONS_MAX: usize = 2;
/// Touched whenever a build is used.
const USED: &str = "used";

/// The copy of the sources, held until dropped.
pub(crate) struct Cache {
    sources: PathBuf,
    _lock: File,
}

impl Cache {
    /// The copy, up to date with this clone. `None` where there can be none, which is said.
    pub(crate) fn open() -> Result<Option<Self>> {
        let root = repository_root();
        if has_built_tests(root) {
            return Ok(None);
        }
        let (Some(directory), Some(files)) = (directory("build"), listed_files()) else {
            return Ok(None);
        };
        let key = key()?;
        match Self::open_in(&directory, &key, root, &files) {
            Ok(Some(cache)) => Ok(Some(cache)),
            Ok(None) => {
                output::narrate("the build cache is in use; building in this clone");
                Ok(None)
            }
            Err(error) => {
                output::narrate(&format!(
                    "no build cache: {error:#}; building in this clone"
                ));
                Ok(None)
            }
        }
    }

    /// Where the sources are.
    pub(crate) fn sources(&self) -> &Path {
        &self.sources
    }

    fn open_in(
        directory: &Path,
        key: &str,
        root: &Path,
        files: &[PathBuf],
    ) -> Result<Option<Self>> {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let lock = File::create(directory.join(".lock"))?;
        if lock.try_lock().is_err() {
            return Ok(None);
        }
        let generation = directory.join(key);
        let sources = generation.join("sources");
        fs::create_dir_all(&sources)?;
        fs::write(generation.join(USED), "")?;
        remove_old(directory, &generation)?;
        copy(root, files, &sources)?;
        Ok(Some(Self {
            sources,
            _lock: lock,
        }))
    }
}

/// Whether somebody builds tests in this clone: then its own build is the best one. Clippy only leaves
/// files with an extension.
pub(crate) fn has_built_tests(root: &Path) -> bool {
    let built = fs::read_dir(root.join("target/debug/deps"));
    let mut names = built.into_iter().flatten().flatten();
    names.any(|entry| {
        let name = entry.file_name();
        name.as_bytes().starts_with(b"e2e-") && !name.as_bytes().contains(&b'.')
    })
}

/// A directory of Woodward's own in the user's cache.
pub(crate) fn directory(name: &str) -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))?;
    Some(cache.join("woodward").join(name))
}

/// Names a build by what makes all of it useless: the toolchain and the dependencies.
fn key() -> Result<String> {
    let toolchain = Cmd::new("rustc").args(&["-vV"]).read()?;
    let lock = fs::read_to_string(repository_root().join("Cargo.lock"))?;
    Ok(format!("{:016x}", digest(&[&toolchain, &lock])))
}

/// FNV-1a: short, and the same in every build.
fn digest(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// All files that git would add: `None` outside of a git clone.
fn listed_files() -> Option<Vec<PathBuf>> {
    let listed = Cmd::new("git")
        .args(&[
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ])
        .read()
        .ok()?;
    let files = listed.split('\0').filter(|name| !name.is_empty());
    let files = files.map(PathBuf::from);
    Some(
        files
            .filter(|file| repository_root().join(file).is_file())
            .collect(),
    )
}

/// Makes the copy equal, and leaves files alone that are equal: their age matters.
fn copy(root: &Path, files: &[PathBuf], sources: &Path) -> Result<()> {
    let wanted: BTreeSet<PathBuf> = files.iter().map(|file| sources.join(file)).collect();
    for path in present(sources)? {
        if !wanted.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    for file in files {
        let (from, to) = (root.join(file), sources.join(file));
        let content = fs::read(&from).with_context(|| format!("cannot read {}", from.display()))?;
        let mode = fs::metadata(&from)?.permissions().mode() & 0o777;
        let is_same = fs::read(&to).is_ok_and(|present| present == content)
            && fs::metadata(&to)?.permissions().mode() & 0o777 == mode;
        if is_same {
            continue;
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&to, content).with_context(|| format!("cannot write {}", to.display()))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// The files of the copy, without what was built from them.
fn present(sources: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut pending = vec![sources.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                files.push(path);
            } else if path != sources.join("target") {
                pending.push(path);
            }
        }
    }
    Ok(files)
}

/// Removes the builds that were used longest ago.
fn remove_old(directory: &Path, current: &Path) -> Result<()> {
    let mut others = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && path != current {
            let used = fs::metadata(path.join(USED)).and_then(|used| used.modified());
            others.push((used.ok(), path));
        }
    }
    others.sort();
    let excess = (others.len() + 1).saturating_sub(GENERATIONS_MAX);
    for (_, path) in others.into_iter().take(excess) {
        output::narrate(&format!("removing an old build: {}", path.display()));
        fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    /// A clone, and a place for its builds.
    struct Clone(Scratch);

    impl Clone {
        fn new(name: &str) -> Self {
            let scratch = Scratch::new(&format!("cache-{name}"));
            fs::create_dir_all(scratch.join("clone/src")).unwrap();
            fs::write(scratch.join("clone/src/a.rs"), "a").unwrap();
            fs::write(scratch.join("clone/b.toml"), "b").unwrap();
            Self(scratch)
        }

        fn open(&self, key: &str, files: &[&str]) -> Option<Cache> {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            Cache::open_in(&self.0.join("cache"), key, &self.0.join("clone"), &files).unwrap()
        }
    }

    #[test]
    fn a_clone_in_which_only_clippy_ran_has_no_tests() {
        let clone = Clone::new("tests");
        let root = clone.0.join("clone");
        let built = root.join("target/debug/deps");
        fs::create_dir_all(&built).unwrap();
        fs::write(built.join("e2e-0a1b.d"), "").unwrap();
        assert!(!has_built_tests(&root));
        fs::write(built.join("e2e-0a1b"), "").unwrap();
        assert!(has_built_tests(&root));
    }

    #[test]
    fn only_what_differs_is_written() {
        let clone = Clone::new("differs");
        let all = ["src/a.rs", "b.toml"];
        let sources = clone.open("k", &all).unwrap().sources.clone();
        let age = |file: &str| {
            fs::metadata(sources.join(file))
                .unwrap()
                .modified()
                .unwrap()
        };
        let (old_a, old_b) = (age("src/a.rs"), age("b.toml"));
        fs::create_dir(sources.join("target")).unwrap();
        fs::write(sources.join("target/built"), "").unwrap();
        fs::write(clone.0.join("clone/b.toml"), "changed").unwrap();
        drop(clone.open("k", &all).unwrap());
        assert_eq!(age("src/a.rs"), old_a);
        assert!(age("b.toml") > old_b);
        assert_eq!(
            fs::read_to_string(sources.join("b.toml")).unwrap(),
            "changed"
        );
        drop(clone.open("k", &["b.toml"]).unwrap());
        assert!(!sources.join("src/a.rs").exists());
        assert!(sources.join("target/built").exists());
    }

    #[test]
    fn one_run_uses_it_at_a_time() {
        let clone = Clone::new("lock");
        let first = clone.open("k", &["b.toml"]);
        assert!(clone.open("k", &["b.toml"]).is_none());
        drop(first);
        assert!(clone.open("k", &["b.toml"]).is_some());
    }

    #[test]
    fn two_builds_are_kept() {
        let clone = Clone::new("two");
        for key in ["one", "two", "one", "three"] {
            drop(clone.open(key, &["b.toml"]).unwrap());
        }
        let kept = ["one", "two", "three"].map(|key| clone.0.join("cache").join(key).exists());
        assert_eq!(kept, [true, false, true]);
    }

    #[test]
    fn the_key_tells_where_one_text_ends() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
    }
}
