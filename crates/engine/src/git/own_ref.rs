//! Refs that are Woodward's alone, below `refs/woodward/`, written and deleted without a process.
//!
//! By git's own rules for loose refs: the lock file beside it first, then a rename. Whatever is not
//! plainly so (another backend, a held lock, a packed ref, a log) goes through git. A branch or any
//! other ref that somebody else may move is never written here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use woodward_core::CommitId;

use super::error::GitError;
use super::repo::Repo;
use super::worktree::check_branch;

const OURS: &str = "refs/woodward/";

impl Repo {
    /// Makes a ref of ours point to a commit, whatever it pointed to. It is on the disk then.
    pub(crate) async fn pin(&self, name: &str, commit: &CommitId) -> Result<(), GitError> {
        if let Some(file) = self.own_file(name) {
            let text = format!("{commit}\n");
            let written = tokio::task::spawn_blocking(move || write(&file, text.as_bytes()));
            if matches!(written.await, Ok(Ok(()))) {
                return Ok(());
            }
        }
        self.git(["update-ref", "--no-deref", name, commit.as_str()])
            .durable()
            .run()
            .await
            .map(|_| ())
    }

    /// Deletes a ref of ours, if it is there.
    pub(crate) async fn unpin(&self, name: &str) -> Result<(), GitError> {
        if let Some(file) = self.own_file(name)
            && !self.may_be_packed(name)
            && !self.common_dir().join("logs").join(name).exists()
            && delete(&file).is_ok()
        {
            return Ok(());
        }
        self.git(["update-ref", "--no-deref", "-d", name])
            .write()
            .run()
            .await
            .map(|_| ())
    }

    /// The file of a ref of ours, where git keeps refs in files.
    fn own_file(&self, name: &str) -> Option<PathBuf> {
        let plain = name.starts_with(OURS) && check_branch(name).is_ok();
        (plain && !self.is_reftable()).then(|| self.common_dir().join(name))
    }

    /// The names of the refs of ours directly below one, where git keeps refs in files and a look at
    /// them suffices. No process.
    pub(super) fn own_refs(&self, below: &str) -> Option<Vec<String>> {
        if self.is_reftable() || self.are_perhaps_packed(|name| name.starts_with(below.as_bytes()))
        {
            return None;
        }
        let loose = match fs::read_dir(self.common_dir().join(below)) {
            Ok(loose) => loose,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Vec::new()),
            Err(_) => return None,
        };
        let names = loose.map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_ref = |name: &String| !name.ends_with(".lock");
        let names: Option<Vec<String>> = names.collect();
        let names = names?.into_iter().filter(is_ref);
        Some(names.map(|name| format!("{below}/{name}")).collect())
    }

    /// Whether a ref is among the packed ones, or is perhaps just being packed.
    fn may_be_packed(&self, name: &str) -> bool {
        self.are_perhaps_packed(|packed| packed == name.as_bytes())
    }

    fn are_perhaps_packed(&self, is: impl Fn(&[u8]) -> bool) -> bool {
        if self.common_dir().join("packed-refs.lock").exists() {
            return true;
        }
        match fs::read(self.common_dir().join("packed-refs")) {
            Ok(packed) => {
                let lines = packed.split(|b| *b == b'\n');
                // An id, a space and a name.
                let mut names = lines.filter_map(|line| line.splitn(2, |b| *b == b' ').nth(1));
                names.any(is)
            }
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

/// The lock on a ref, as git takes it. It stays open until the end, which is the proof that somebody
/// holds it.
fn take_lock(file: &Path) -> io::Result<(File, PathBuf)> {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    let lock = PathBuf::from(name);
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&lock)?;
    Ok((opened, lock))
}

fn write(file: &Path, text: &[u8]) -> io::Result<()> {
    let parent = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(parent)?;
    let (mut opened, lock) = take_lock(file)?;
    let written = opened
        .write_all(text)
        .and_then(|()| opened.sync_all())
        .and_then(|()| fs::rename(&lock, file));
    if written.is_err() {
        let _ = fs::remove_file(&lock);
    }
    written
}

fn delete(file: &Path) -> io::Result<()> {
    if !file.exists() {
        return Ok(());
    }
    let (_opened, lock) = take_lock(file)?;
    let deleted = fs::remove_file(file);
    let unlocked = fs::remove_file(&lock);
    deleted.and(unlocked)
}
