//! What is at a path of a checkout, compared with what commits have there.
//!
//! Git's own index says it for most files; the others are read through git's filters, so that line
//! ends and LFS files compare as git compares them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Change, Entry, git_at};
use crate::git::error::GitError;
use crate::git::os_path;
use crate::git::repo::Repo;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// No file: nothing, or a directory.
    Absent,
    /// Exactly what this entry says.
    Entry(Entry, Stamp),
    /// A file that differs from every entry in mode or content, or something that is no file.
    Odd,
}

/// Enough to notice that a file was written to in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let meta = fs::symlink_metadata(path).ok()?;
        Some(Self {
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

impl Seen {
    /// Whether it is what a commit has (`None`: no file).
    pub(super) fn is(&self, wanted: &Option<Entry>) -> bool {
        match (self, wanted) {
            // A submodule is a directory of its own.
            (Self::Absent, Some(entry)) => entry.is_submodule(),
            (Self::Absent, None) => true,
            (Self::Entry(seen, _), Some(wanted)) => seen == wanted,
            _ => false,
        }
    }

    /// Whether it is still as it was seen.
    pub(super) fn still(&self, path: &Path) -> bool {
        match self {
            Self::Entry(_, stamp) => Stamp::of(path) == Some(*stamp),
            Self::Absent => fs::symlink_metadata(path).map_or(true, |meta| meta.is_dir()),
            Self::Odd => false,
        }
    }
}

enum Glance {
    Done(Seen),
    /// A regular file whose content must be read.
    Read {
        executable: bool,
        stamp: Stamp,
    },
    /// A symlink with this target.
    Link {
        target: Vec<u8>,
        stamp: Stamp,
    },
}

impl Repo {
    /// Looks at all changed paths of a checkout.
    pub(super) async fn see(
        &self,
        checkout: &Path,
        changes: &[Change],
        staged: &HashMap<Vec<u8>, Option<Entry>>,
        unsure: &HashSet<Vec<u8>>,
    ) -> Result<HashMap<Vec<u8>, Seen>, GitError> {
        let going: HashSet<&[u8]> = changes
            .iter()
            .filter(|change| change.old.is_some() && change.new.is_none())
            .map(|change| change.path.as_slice())
            .collect();
        let mut seen = HashMap::new();
        let mut read = Vec::new();
        for change in changes {
            let path = checkout.join(os_path(&change.path));
            let index = staged.get(&change.path).unwrap_or(&change.old);
            if let (Some(entry), false, Some(stamp)) = (
                index,
                unsure.contains(change.path.as_slice()),
                Stamp::of(&path),
            ) {
                // Git knows that the file is what the index says.
                seen.insert(change.path.clone(), Seen::Entry(entry.clone(), stamp));
                continue;
            }
            match glance(checkout, change, &going) {
                Glance::Done(done) => {
                    seen.insert(change.path.clone(), done);
                }
                Glance::Read { executable, stamp } => read.push((change, executable, stamp)),
                Glance::Link { target, stamp } => {
                    let hash = git_at(self, checkout, &["hash-object", "--stdin", "--no-filters"]);
                    let blob = hash.stdin(target).text().await?;
                    let mode = "120000".into();
                    let entry = Entry { mode, blob };
                    seen.insert(change.path.clone(), Seen::Entry(entry, stamp));
                }
            }
        }
        if read.is_empty() {
            return Ok(seen);
        }
        let mode = git_at(
            self,
            checkout,
            &["config", "--type=bool", "--get", "core.fileMode"],
        );
        let modes_count = mode.accept(1).text().await? != "false";
        let paths: Vec<_> = read
            .iter()
            .map(|(change, _, _)| change.path.as_slice())
            .collect();
        let blobs = self.hash_files(checkout, &paths).await?;
        for ((change, executable, stamp), blob) in read.into_iter().zip(blobs) {
            let known = [&change.new, &change.old].into_iter().flatten();
            // Where the file system has no executable bit, the commit's own mode is as good.
            let fits = known.clone().find(|entry| {
                entry.blob == blob
                    && !entry.is_link()
                    && (!modes_count || entry.is_executable() == executable)
            });
            let found = fits.map_or(Seen::Odd, |entry| Seen::Entry(entry.clone(), stamp));
            seen.insert(change.path.clone(), found);
        }
        Ok(seen)
    }

    async fn hash_files(&self, checkout: &Path, paths: &[&[u8]]) -> Result<Vec<String>, GitError> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let input: Vec<u8> = paths.iter().flat_map(|path| quoted(path)).collect();
        let hash = git_at(self, checkout, &["hash-object", "--stdin-paths"]);
        let answer = hash.stdin(input).text().await?;
        let blobs: Vec<String> = answer.lines().map(str::to_owned).collect();
        if blobs.len() == paths.len() {
            Ok(blobs)
        } else {
            Err(GitError::Unexpected {
                verb: "hash-object",
                what: format!("{} answers to {} questions", blobs.len(), paths.len()),
            })
        }
    }
}

/// A path on a line of its own, in the quotes that git understands where it needs some.
fn quoted(path: &[u8]) -> Vec<u8> {
    let plain = path.first() != Some(&b'"') && !path.contains(&b'\n') && !path.contains(&b'\r');
    if plain {
        return [path, b"\n"].concat();
    }
    let mut line = vec![b'"'];
    for byte in path {
        line.extend_from_slice(format!("\\{byte:03o}").as_bytes());
    }
    line.extend_from_slice(b"\"\n");
    line
}

fn glance(checkout: &Path, change: &Change, going: &HashSet<&[u8]>) -> Glance {
    let mut entries = [&change.old, &change.new].into_iter().flatten();
    if entries.any(Entry::is_submodule) {
        return Glance::Done(Seen::Absent);
    }
    let relative = os_path(&change.path);
    // Nothing is written or read through a symlink that stands where a directory should be.
    for parent in relative
        .ancestors()
        .skip(1)
        .filter(|up| !up.as_os_str().is_empty())
    {
        match fs::symlink_metadata(checkout.join(parent)) {
            Ok(meta) if meta.is_dir() => {}
            // A file stands there that makes room, or that is in the place of what is to go.
            Ok(_) if change.new.is_none() || going.contains(parent.as_os_str().as_bytes()) => {
                return Glance::Done(Seen::Absent);
            }
            Ok(_) => return Glance::Done(Seen::Odd),
            Err(_) => {}
        }
    }
    let path = checkout.join(&relative);
    let (Ok(meta), Some(stamp)) = (fs::symlink_metadata(&path), Stamp::of(&path)) else {
        return Glance::Done(Seen::Absent);
    };
    if meta.is_file() {
        let executable = meta.mode() & 0o100 != 0;
        Glance::Read { executable, stamp }
    } else if meta.is_symlink() {
        match fs::read_link(&path) {
            Ok(target) => Glance::Link {
                target: target.as_os_str().as_bytes().to_vec(),
                stamp,
            },
            Err(_) => Glance::Done(Seen::Odd),
        }
    } else if meta.is_dir() && (change.new.is_none() || makes_room(checkout, &relative, going)) {
        Glance::Done(Seen::Absent)
    } else {
        Glance::Done(Seen::Odd)
    }
}

/// Whether a directory holds nothing but files that are going away.
fn makes_room(checkout: &Path, dir: &Path, going: &HashSet<&[u8]>) -> bool {
    let Ok(entries) = fs::read_dir(checkout.join(dir)) else {
        return false;
    };
    entries.flatten().all(|entry| {
        let path = dir.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => makes_room(checkout, &path, going),
            Ok(_) => going.contains(path.as_os_str().as_bytes()),
            Err(_) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn odd_paths_are_quoted_for_git() {
        assert_eq!(quoted(b"a b"), b"a b\n");
        assert_eq!(quoted(b"a\nb"), b"\"\\141\\012\\142\"\n");
        assert_eq!(quoted(b"\"x"), b"\"\\042\\170\"\n");
    }
}
