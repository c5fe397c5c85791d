//! Copying what git does not keep (`.env`, `node_modules`, `target`) into a new worktree.
//!
//! By reflink where the file system can. Never outside the worktree, never over something that is
//! there, never through a symlink; bounded.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::ioctl_ficlone;

use super::error::{At, GitError};
use super::worktree::admin::unique;

const ENTRIES_MAX: usize = 1_000_000;
const DEPTH_MAX: usize = 100;

/// What was copied and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// The named files and directories that are in the worktree now.
    pub copied: Vec<PathBuf>,
    /// What was left out, and why.
    pub skipped: Vec<(PathBuf, Skip)>,
    /// How many files that were.
    pub files: usize,
    /// How many of them share their blocks with the original.
    pub reflinks: usize,
}

/// Why something was not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// There is nothing of that name.
    Missing,
    /// The worktree has one already.
    Exists,
    /// It is neither a file nor a directory nor a symlink.
    Special,
}

struct Copier {
    done: Copied,
    entries: usize,
    reflink: bool,
}

/// Copies named files and directories from a checkout to a worktree. A name may have `*` in its
/// parts (`.env*`, `packages/*/node_modules`).
pub async fn copy_ignored(from: &Path, to: &Path, names: &[String]) -> Result<Copied, GitError> {
    let (from, to, names) = (from.to_owned(), to.to_owned(), names.to_vec());
    let copied = tokio::task::spawn_blocking(move || copy_now(&from, &to, &names));
    copied.await.map_err(|lost| GitError::Unexpected {
        verb: "(copy)",
        what: lost.to_string(),
    })?
}

fn copy_now(from: &Path, to: &Path, names: &[String]) -> Result<Copied, GitError> {
    let mut copier = Copier {
        done: Copied::default(),
        entries: 0,
        reflink: true,
    };
    // All names are looked at before anything is copied.
    let wanted = names
        .iter()
        .map(|name| Ok((name, parts(name)?)))
        .collect::<Result<Vec<_>, GitError>>()?;
    for (name, parts) in wanted {
        let mut found = vec![PathBuf::new()];
        for part in &parts {
            found = found
                .iter()
                .flat_map(|dir| matching(from, dir, part))
                .collect();
        }
        if found.is_empty() {
            copier.done.skipped.push((name.into(), Skip::Missing));
        }
        for path in found {
            copier.one(from, to, path)?;
        }
    }
    Ok(copier.done)
}

/// The parts of a name that can only lead downwards.
fn parts(name: &str) -> Result<Vec<String>, GitError> {
    let refused = |why| {
        Err(GitError::Refused {
            path: name.into(),
            why,
        })
    };
    let mut parts = Vec::new();
    for component in Path::new(name).components() {
        match component {
            Component::Normal(part) if part == ".git" => {
                return refused("git's own files are not copied");
            }
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            Component::CurDir => {}
            _ => return refused("it must be below the checkout"),
        }
    }
    if parts.is_empty() {
        return refused("it names nothing");
    }
    Ok(parts)
}

fn matching(from: &Path, dir: &Path, part: &str) -> Vec<PathBuf> {
    // A symlinked directory may lead anywhere.
    if !dir.as_os_str().is_empty() && !is_real_dir(&from.join(dir)) {
        return Vec::new();
    }
    if !part.contains('*') {
        let path = dir.join(part);
        let there = fs::symlink_metadata(from.join(&path)).is_ok();
        return if there { vec![path] } else { Vec::new() };
    }
    let entries = fs::read_dir(from.join(dir)).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .map(|entry| entry.file_name())
        .filter(|name| name != ".git" && wild(part.as_bytes(), name.as_encoded_bytes()))
        .map(|name| dir.join(name))
        .collect();
    found.sort();
    found
}

/// Whether a name fits a pattern in which `*` stands for anything.
fn wild(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|at| wild(rest, &name[at..])),
        Some((first, rest)) => name.first() == Some(first) && wild(rest, &name[1..]),
    }
}

fn is_real_dir(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

impl Copier {
    fn one(&mut self, from: &Path, to: &Path, path: PathBuf) -> Result<(), GitError> {
        if fs::symlink_metadata(to.join(&path)).is_ok() {
            self.done.skipped.push((path, Skip::Exists));
            return Ok(());
        }
        let mut parent = to.to_owned();
        for part in path.parent().unwrap_or(Path::new("")).components() {
            parent.push(part);
            match fs::create_dir(&parent) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.at("create", &parent)?,
            }
            if !is_real_dir(&parent) {
                return Err(GitError::Refused {
                    path: parent,
                    why: "a symlink or a file is in the way",
                });
            }
        }
        // Aside first, so that half a copy is never taken for a whole one.
        let target = to.join(&path);
        let aside = target.with_file_name(unique(".woodward-copy"));
        match self.tree(&from.join(&path), &aside, 0) {
            Ok(true) => {
                fs::rename(&aside, &target).at("create", &target)?;
                self.done.copied.push(path);
            }
            Ok(false) => self.done.skipped.push((path, Skip::Special)),
            Err(error) => {
                discard(&aside);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Copies one file, symlink or directory with what is in it. Says whether it is one of those.
    fn tree(&mut self, from: &Path, to: &Path, depth: usize) -> Result<bool, GitError> {
        self.entries += 1;
        if self.entries > ENTRIES_MAX || depth > DEPTH_MAX {
            return Err(GitError::Limit {
                what: "files to copy into a worktree",
                limit: ENTRIES_MAX,
            });
        }
        let meta = fs::symlink_metadata(from).at("read", from)?;
        let kind = meta.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(from).at("read", from)?;
            symlink(target, to).at("create", to)?;
            self.done.files += 1;
        } else if kind.is_dir() {
            fs::create_dir(to).at("create", to)?;
            for entry in fs::read_dir(from).at("read", from)? {
                let name = entry.at("read", from)?.file_name();
                self.tree(&from.join(&name), &to.join(&name), depth + 1)?;
            }
            let dir = File::open(to).at("open", to)?;
            keep(&dir, &meta).at("write", to)?;
        } else if kind.is_file() {
            self.file(from, to, &meta)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn file(&mut self, from: &Path, to: &Path, meta: &fs::Metadata) -> Result<(), GitError> {
        let mut source = File::open(from).at("open", from)?;
        let mut open = OpenOptions::new();
        let mut target = open
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to)
            .at("create", to)?;
        if self.reflink && ioctl_ficlone(&target, &source).is_ok() {
            self.done.reflinks += 1;
        } else {
            // An empty file says nothing about what the file system can do.
            self.reflink &= meta.len() == 0;
            io::copy(&mut source, &mut target).at("copy", from)?;
        }
        keep(&target, meta).at("write", to)?;
        self.done.files += 1;
        Ok(())
    }
}

fn keep(target: &File, meta: &fs::Metadata) -> io::Result<()> {
    target.set_permissions(fs::Permissions::from_mode(
        meta.permissions().mode() & 0o7777,
    ))?;
    let times = FileTimes::new()
        .set_modified(meta.modified()?)
        .set_accessed(meta.accessed()?);
    target.set_times(times)
}

/// Takes back what a failed copy has made so far.
fn discard(aside: &Path) {
    let _ = if is_real_dir(aside) {
        fs::remove_dir_all(aside)
    } else {
        fs::remove_file(aside)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_downwards_only() {
        for bad in [
            "",
            ".",
            "/etc/passwd",
            "../x",
            "a/../../b",
            ".git",
            "a/.git/config",
        ] {
            assert!(parts(bad).is_err(), "{bad}");
        }
        assert_eq!(parts("./a/b").unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_star_stands_for_anything_in_one_part() {
        assert!(wild(b".env*", b".env.local") && wild(b"*", b"x") && wild(b"a*c", b"abbc"));
        assert!(!wild(b".env*", b"env") && !wild(b"a*c", b"abcd"));
    }
}
