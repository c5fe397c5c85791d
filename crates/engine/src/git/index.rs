//! A checkout's index, read (and, for a directory of ours, written) without a process.
//!
//! Only plain indexes are understood, versions 2 to 4 as `gitformat-index` describes them. Whatever
//! else there is (a split or sparse index, an unknown extension, a half-written file) is no index
//! here, and git is asked. A person's index is never written.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The largest index that is read.
const BYTES_MAX: u64 = 64 << 20;
/// What comes before the name of an entry, without the object's name and the flags.
const STAT_BYTES: usize = 40;
const NAME_MASK: u16 = 0x0fff;
const EXTENDED: u16 = 0x4000;
/// Assumed to be unchanged; a side of a conflict.
const ODD: u16 = 0x8000 | 0x3000;

/// What an index says about one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The path.
    pub(crate) path: Vec<u8>,
    /// Its content's name, in the first `width` bytes.
    blob: [u8; 32],
    width: usize,
    /// Whether there is more to it than mode and content: a conflict, a sparse checkout, a promise to
    /// add it later.
    pub(crate) odd: bool,
    /// What the file was like when it was seen to have this content.
    stat: [u32; 10],
}

impl Row {
    /// Its mode, as six octal digits.
    pub(crate) fn mode(&self) -> String {
        format!("{:06o}", self.stat[6])
    }

    /// Its content's name.
    pub(crate) fn blob(&self) -> String {
        let bytes = self.blob[..self.width].iter();
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether a repository of its own is there.
    pub(crate) const fn is_submodule(&self) -> bool {
        self.stat[6] == 0o160_000
    }
}

/// An index as it was read.
#[derive(Debug)]
pub(crate) struct Index {
    /// Its rows in git's order.
    pub(crate) rows: Vec<Row>,
    /// When it was written, in seconds.
    written: i64,
}

impl Index {
    /// The index of a checkout; `None` where it is not plain.
    pub(crate) fn load(checkout: &Path) -> Option<Self> {
        Self::load_file(&git_dir(checkout)?.join("index"))
    }

    /// The index in a file; `None` where it is not plain.
    pub(crate) fn load_file(index: &Path) -> Option<Self> {
        let mut file = File::open(index).ok()?;
        let meta = file
            .metadata()
            .ok()
            .filter(|meta| meta.len() <= BYTES_MAX)?;
        let mut bytes = Vec::new();
        file.by_ref().take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        // The width of object names is nowhere in it; only the right one adds up.
        let rows = parse(&bytes, 20).or_else(|| parse(&bytes, 32))?;
        Some(Self {
            rows,
            written: meta.mtime(),
        })
    }

    /// What it says about a path; there are several rows in a conflict.
    pub(crate) fn rows_of(&self, path: &[u8]) -> &[Row] {
        let start = self.rows.partition_point(|row| row.path.as_slice() < path);
        let rows = &self.rows[start..];
        let end = rows.partition_point(|row| row.path.as_slice() == path);
        &rows[..end]
    }

    /// Whether the file at `path` is certainly what its row says: nothing about it has changed since
    /// git saw that, and it was not written at that very moment.
    pub(crate) fn is_sure_of(&self, row: &Row, path: &Path) -> bool {
        let Ok(meta) = path.symlink_metadata() else {
            return false;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "git keeps the lower 32 bits"
        )]
        let low = |wide: i64| wide as u32;
        #[expect(clippy::cast_possible_truncation, reason = "the same")]
        let low_unsigned = |wide: u64| wide as u32;
        let [
            ctime,
            ctime_ns,
            mtime,
            mtime_ns,
            _dev,
            inode,
            mode,
            _uid,
            _gid,
            size,
        ] = row.stat;
        let same_kind = match mode {
            0o100_644 => meta.is_file() && meta.mode() & 0o100 == 0,
            0o100_755 => meta.is_file() && meta.mode() & 0o100 != 0,
            0o120_000 => meta.is_symlink(),
            _ => false,
        };
        same_kind
            && meta.mtime() < self.written
            // Git writes no size where it was not sure itself.
            && size != 0
            && size == low_unsigned(meta.size())
            && inode == low_unsigned(meta.ino())
            && (mtime, mtime_ns) == (low(meta.mtime()), low(meta.mtime_nsec()))
            && (ctime, ctime_ns) == (low(meta.ctime()), low(meta.ctime_nsec()))
    }
}

/// The git directory of a checkout.
fn git_dir(checkout: &Path) -> Option<PathBuf> {
    let dot_git = checkout.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = std::fs::read(&dot_git).ok()?;
    let path = text.trim_ascii_end().strip_prefix(b"gitdir: ")?;
    Some(checkout.join(super::os_path(path)))
}

/// Bytes that are taken from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// Up to a NUL, which is taken as well.
    fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|b| *b == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// How much of the path before is dropped, as version 4 writes it.
    fn dropped(&mut self) -> Option<usize> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 0x7f);
        }
        Some(value)
    }
}

fn parse(bytes: &[u8], width: usize) -> Option<Vec<Row>> {
    let body = bytes.len().checked_sub(width)?;
    let mut bytes = Bytes(&bytes[..body]);
    if bytes.take(4)? != b"DIRC" {
        return None;
    }
    let version = bytes.number()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = bytes.number()?;
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..count {
        let before = rows.last().map_or(&[][..], |row| row.path.as_slice());
        let row = row(&mut bytes, version, width, before)?;
        // Out of order (or twice, but for a conflict): not an index, or not of this width.
        if row.path.is_empty() || row.path.as_slice() < before {
            return None;
        }
        rows.push(row);
    }
    while !bytes.0.is_empty() {
        let name = bytes.take(4)?;
        // Only what has a capital may be left out; `link` and `sdir` change what the rows mean.
        if !name[0].is_ascii_uppercase() {
            return None;
        }
        let length = usize::try_from(bytes.number()?).ok()?;
        bytes.take(length)?;
    }
    Some(rows)
}

fn row(bytes: &mut Bytes<'_>, version: u32, width: usize, before: &[u8]) -> Option<Row> {
    let began = bytes.0.len();
    let mut stat = [0; 10];
    for number in &mut stat {
        *number = bytes.number()?;
    }
    let mut blob = [0; 32];
    blob.get_mut(..width)?.copy_from_slice(bytes.take(width)?);
    let flags = bytes.short()?;
    let extended = flags & EXTENDED != 0;
    let more = if extended && version > 2 {
        bytes.short()?
    } else {
        0
    };
    let path = if version == 4 {
        let kept = before.len().checked_sub(bytes.dropped()?)?;
        [&before[..kept], bytes.text()?].concat()
    } else {
        let path = bytes.text()?.to_vec();
        let used = began - bytes.0.len();
        // One NUL is taken; the others make its length a multiple of eight.
        let padding = bytes.take(used.next_multiple_of(8) - used)?;
        if padding.iter().any(|b| *b != 0) {
            return None;
        }
        path
    };
    let length = usize::from(flags & NAME_MASK);
    let fits = length == path.len() || length == usize::from(NAME_MASK) && path.len() > length;
    fits.then_some(Row {
        path,
        blob,
        width,
        odd: flags & ODD != 0 || more != 0 || (extended && version == 2),
        stat,
    })
}

/// An index with nothing but these paths, modes and contents, which git has yet to look at.
pub(crate) fn fresh(rows: &[(&[u8], &str, &str)]) -> Option<Vec<u8>> {
    let mut rows = rows.to_vec();
    rows.sort();
    let mut bytes = b"DIRC\0\0\0\x02".to_vec();
    bytes.extend(u32::try_from(rows.len()).ok()?.to_be_bytes());
    let mut width = 20;
    for (path, mode, blob) in rows {
        let began = bytes.len();
        bytes.extend([0; 24]);
        bytes.extend(u32::from_str_radix(mode, 8).ok()?.to_be_bytes());
        bytes.extend([0; STAT_BYTES - 28]);
        width = blob.len() / 2;
        for at in (0..blob.len()).step_by(2) {
            bytes.push(u8::from_str_radix(blob.get(at..at + 2)?, 16).ok()?);
        }
        let length = path.len().min(usize::from(NAME_MASK));
        bytes.extend(u16::try_from(length).ok()?.to_be_bytes());
        bytes.extend(path);
        bytes.push(0);
        let used = bytes.len() - began;
        bytes.resize(began + used.next_multiple_of(8), 0);
    }
    // Git checks no sum of an index that it reads, and none at all where it is zero.
    bytes.resize(bytes.len() + width, 0);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{fresh, parse};

    #[test]
    fn what_is_written_is_read_again() {
        for width in [20, 32] {
            let blob = "ab".repeat(width);
            let rows = [
                (&b"b/c"[..], "100755", blob.as_str()),
                (&b"a"[..], "120000", blob.as_str()),
            ];
            let bytes = fresh(&rows).unwrap();
            let read = parse(&bytes, width).unwrap();
            let paths: Vec<_> = read.iter().map(|row| row.path.as_slice()).collect();
            assert_eq!(paths, [&b"a"[..], b"b/c"]);
            assert_eq!(
                (read[1].mode(), read[1].blob()),
                ("100755".into(), blob.clone())
            );
            assert!(parse(&bytes, 52 - width).is_none());
            for cut in 0..bytes.len() {
                assert!(parse(&bytes[..cut], width).is_none(), "{cut}");
            }
        }
    }
}
