//! What changed, as text and as numbers.
//!
//! No external diff and no text conversion of anybody's configuration is run. What is printed is
//! bounded.

use std::collections::{HashMap, HashSet};
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use woodward_core::{CommitId, TreeId};

use super::error::GitError;
use super::repo::Repo;
use super::worktree::Worktree;

const FILES_MAX: usize = 20_000;

/// A patch, perhaps cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The text, as git prints it.
    pub text: Vec<u8>,
    /// Whether there is more than this.
    pub cut: bool,
}

/// How much of one file changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Its path now.
    pub path: String,
    /// Its path before, when it was renamed.
    pub was: Option<String>,
    /// Lines added and removed; `None` for a binary file.
    pub lines: Option<(u64, u64)>,
    /// What is there now; `None` if the file is gone.
    pub now: Option<FileObject>,
    /// What was there before; `None` if the file is new.
    pub before: Option<FileObject>,
}

/// A file's content and mode, as a tree names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileObject {
    /// Its mode, in octal digits, as git prints it.
    pub mode: String,
    /// The name of its content.
    pub id: String,
}

impl FileObject {
    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.mode == "120000"
    }

    /// Whether it is a commit of another repository.
    pub fn is_submodule(&self) -> bool {
        self.mode == "160000"
    }

    /// Whether it is an ordinary file.
    pub fn is_file(&self) -> bool {
        self.mode.starts_with("100")
    }

    fn parse(mode: &[u8], id: &[u8]) -> Option<Self> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let is_there = mode.iter().any(|digit| *digit != b'0');
        is_there.then(|| Self {
            mode: text(mode),
            id: text(id),
        })
    }
}

/// The side of a comparison that is newer.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a> {
    /// A commit.
    Commit(&'a CommitId),
    /// What is in a worktree, committed or not.
    Worktree(&'a Worktree),
}

impl Repo {
    pub(super) async fn side(&self, side: Side<'_>) -> Result<String, GitError> {
        Ok(match side {
            Side::Commit(commit) => commit.to_string(),
            Side::Worktree(worktree) => self.tree_of_worktree(worktree).await?.to_string(),
        })
    }

    /// The patch from `base` to the other side, at most `limit` bytes of it.
    pub async fn diff(
        &self,
        base: &CommitId,
        side: Side<'_>,
        limit: usize,
    ) -> Result<Patch, GitError> {
        let newer = self.side(side).await?;
        let git = self.git([
            "diff-tree",
            "-p",
            "-r",
            "-M",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
        ]);
        let answer = git
            .arg(base.as_str())
            .arg(newer)
            .cut_at(limit)
            .run()
            .await?;
        Ok(Patch {
            text: answer.stdout,
            cut: answer.cut,
        })
    }

    /// The same for some files only, moved ones not told apart.
    pub(crate) async fn diff_of(
        &self,
        base: &CommitId,
        side: Side<'_>,
        paths: &[&str],
        limit: usize,
    ) -> Result<Patch, GitError> {
        if paths.is_empty() {
            return Ok(Patch {
                text: Vec::new(),
                cut: false,
            });
        }
        let newer = self.side(side).await?;
        let mut git = self
            .git([
                "diff-tree",
                "-p",
                "-r",
                "--no-renames",
                "--no-color",
                "--no-ext-diff",
                "--no-textconv",
            ])
            .env("GIT_LITERAL_PATHSPECS", "1")
            .arg(base.as_str())
            .arg(newer)
            .arg("--");
        for path in paths {
            git = git.arg(path);
        }
        let answer = git.cut_at(limit).run().await?;
        Ok(Patch {
            text: answer.stdout,
            cut: answer.cut,
        })
    }

    /// How much of which files changed from `base` to the other side.
    pub async fn numstat(
        &self,
        base: &CommitId,
        side: Side<'_>,
    ) -> Result<Vec<FileStat>, GitError> {
        let newer = self.side(side).await?;
        let git = self.git([
            "diff-tree",
            "-r",
            "-M",
            "--raw",
            "--no-abbrev",
            "--numstat",
            "-z",
            "--no-ext-diff",
            "--no-textconv",
        ]);
        let answer = git.arg(base.as_str()).arg(newer).run().await?;
        let mut fields = answer.fields();
        let mut files = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // First come the objects of all files, then their numbers.
        let mut objects = HashMap::new();
        while let Some(field) = fields.next() {
            if files.len() == FILES_MAX {
                break;
            }
            if let Some(raw) = field.strip_prefix(b":") {
                let mut parts = raw.split(|b| *b == b' ');
                let mut part = || parts.next().unwrap_or_default();
                let (old_mode, mode, old_id, id) = (part(), part(), part(), part());
                let has_two_paths = matches!(part().first(), Some(b'R' | b'C'));
                if has_two_paths {
                    fields.next();
                }
                let path = fields.next().map(text).unwrap_or_default();
                let before = FileObject::parse(old_mode, old_id);
                objects.insert(path, (before, FileObject::parse(mode, id)));
                continue;
            }
            let mut parts = field.splitn(3, |b| *b == b'\t');
            let (added, removed) = (number(parts.next()), number(parts.next()));
            let path = parts.next().unwrap_or_default();
            // A rename has an empty path here and its two paths in the next fields.
            let (was, path) = if path.is_empty() {
                let was = fields.next().map(text);
                (was, fields.next().map(text).unwrap_or_default())
            } else {
                (None, text(path))
            };
            let lines = added.zip(removed);
            let (before, now) = objects.remove(&path).unwrap_or_default();
            files.push(FileStat {
                path,
                was,
                lines,
                now,
                before,
            });
        }
        Ok(files)
    }
}

impl Repo {
    /// The sizes of blobs by their names, in bytes. Those that were just written are read from their
    /// own files; one process is asked for all others.
    pub(crate) async fn blob_sizes(&self, ids: &[&str]) -> Result<HashMap<String, u64>, GitError> {
        let mut sizes = HashMap::new();
        let mut packed = HashSet::new();
        for id in ids {
            match self.loose_blob_size(id) {
                Some(size) => drop(sizes.insert((*id).to_owned(), size)),
                None => drop(packed.insert(*id)),
            }
        }
        if packed.is_empty() {
            return Ok(sizes);
        }
        let mut asked = packed.into_iter().collect::<Vec<_>>().join("\n");
        asked.push('\n');
        let git = self.git(["cat-file", "--batch-check=%(objectname) %(objectsize)"]);
        let answer = git.stdin(asked).run().await?;
        for line in String::from_utf8_lossy(&answer.stdout).lines() {
            if let Some((id, size)) = line.split_once(' ')
                && let Ok(size) = size.parse()
            {
                sizes.insert(id.to_owned(), size);
            }
        }
        Ok(sizes)
    }

    /// The size in the header of a blob that has a file of its own.
    fn loose_blob_size(&self, id: &str) -> Option<u64> {
        let (dir, name) = (id.get(..2)?, id.get(2..)?);
        let path = self.common_dir().join("objects").join(dir).join(name);
        let mut header = Vec::new();
        let file = std::fs::File::open(path).ok()?;
        let read = ZlibDecoder::new(file).take(32).read_to_end(&mut header);
        read.ok()?;
        let size = header.strip_prefix(b"blob ")?;
        let end = size.iter().position(|byte| *byte == 0)?;
        number(size.get(..end))
    }

    /// The files of a tree: path, and a line that changes with mode, content or path.
    pub async fn list_tree(&self, tree: &TreeId) -> Result<Vec<(String, String)>, GitError> {
        let git = self.git(["ls-tree", "-r", "-z", "--full-tree"]);
        let answer = git.arg(tree.as_str()).run().await?;
        let entry = |field: &[u8]| {
            let line = String::from_utf8_lossy(field).into_owned();
            let path = line
                .split_once('\t')
                .map_or("", |(_, path)| path)
                .to_owned();
            (path, line)
        };
        Ok(answer.fields().map(entry).collect())
    }
}

fn number(field: Option<&[u8]>) -> Option<u64> {
    std::str::from_utf8(field?).ok()?.parse().ok()
}
