//! What a process printed: segment files named by the offset of their first byte.
//!
//! Standard output and error are one stream. Its beginning and its newest part are kept; what lay
//! between is counted, not kept. Reading needs no supervisor and takes bounded memory.

mod log;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::Error;
pub(super) use log::Log;

/// A part of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where `bytes` start.
    pub offset: u64,
    /// Where to read on.
    pub next: u64,
    /// How many bytes between the asked offset and `offset` were not kept.
    pub dropped: u64,
    /// What was printed; empty at the end of what is there now.
    pub bytes: Vec<u8>,
}

/// Reads at most `limit` bytes of what the run in `dir` has printed, from `offset` on.
pub fn read(dir: &Path, offset: u64, limit: usize) -> Result<Chunk, Error> {
    let dir = dir.join("output");
    loop {
        let segments = segments(&dir)?;
        let Some(segment) = segments.iter().find(|segment| segment.end() > offset) else {
            return Ok(Chunk {
                offset,
                next: offset,
                dropped: 0,
                bytes: Vec::new(),
            });
        };
        let from = offset.max(segment.offset);
        // A segment that was dropped since the look is a gap now: look again.
        let Some(bytes) = segment.read(from, limit)? else {
            continue;
        };
        return Ok(Chunk {
            offset: from,
            next: from + bytes.len() as u64,
            dropped: from - offset,
            bytes,
        });
    }
}

/// The beginning and the end of what the run in `dir` has printed, with a note of what is left out
/// between. What is not UTF-8 is replaced.
pub fn head_and_tail(dir: &Path, head_bytes: usize, tail_bytes: usize) -> Result<String, Error> {
    let end = end(dir)?;
    let mut head = Vec::new();
    let mut next = 0;
    while head.len() < head_bytes {
        let chunk = read(dir, next, head_bytes - head.len())?;
        if chunk.dropped > 0 || chunk.bytes.is_empty() {
            break;
        }
        head.extend_from_slice(&chunk.bytes);
        next = chunk.next;
    }
    let mut tail = Vec::new();
    let mut tail_from = next.max(end.saturating_sub(tail_bytes as u64));
    let mut at = tail_from;
    while tail.len() < tail_bytes && at < end {
        let chunk = read(dir, at, tail_bytes - tail.len())?;
        if chunk.bytes.is_empty() {
            break;
        }
        if chunk.dropped > 0 {
            tail.clear();
            tail_from = chunk.offset;
        }
        tail.extend_from_slice(&chunk.bytes);
        at = chunk.next;
    }
    if tail_from == next {
        head.append(&mut tail);
        return Ok(String::from_utf8_lossy(&head).into_owned());
    }
    let (shown_head, shown_tail) = (without_cut_end(&head), without_cut_start(&tail));
    let cut = head.len() - shown_head.len() + tail.len() - shown_tail.len();
    Ok(format!(
        "{}\n… {} bytes left out …\n{}",
        String::from_utf8_lossy(shown_head),
        tail_from - next + cut as u64,
        String::from_utf8_lossy(shown_tail),
    ))
}

/// How much the run in `dir` has printed so far, as far as it was written.
pub fn end(dir: &Path) -> Result<u64, Error> {
    let segments = segments(&dir.join("output"))?;
    Ok(segments.last().map_or(0, Segment::end))
}

/// A character that a cut went through is left out, not shown as an unknown one.
fn without_cut_end(bytes: &[u8]) -> &[u8] {
    let start = bytes.len().saturating_sub(4);
    let last = bytes[start..]
        .iter()
        .rposition(|byte| *byte & 0b1100_0000 != 0b1000_0000)
        .map(|at| start + at);
    match last {
        Some(at) if std::str::from_utf8(&bytes[at..]).is_err() => &bytes[..at],
        _ => bytes,
    }
}

fn without_cut_start(bytes: &[u8]) -> &[u8] {
    let cut = bytes
        .iter()
        .take(3)
        .take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000)
        .count();
    &bytes[cut..]
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    offset: u64,
    length: u64,
    path: PathBuf,
}

impl Segment {
    fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// `None` if the segment is gone.
    fn read(&self, from: u64, limit: usize) -> Result<Option<Vec<u8>>, Error> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &self.path)(error)),
        };
        let limit = (self.end() - from).min(limit as u64);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from - self.offset))
            .and_then(|_| file.take(limit).read_to_end(&mut bytes))
            .map_err(Error::io("read", &self.path))?;
        Ok(Some(bytes))
    }
}

/// The segments by offset.
fn segments(dir: &Path) -> Result<Vec<Segment>, Error> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read", dir)(error)),
    };
    let mut segments = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::io("read", dir))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(offset) = name.and_then(|name| name.parse().ok()) else {
            continue;
        };
        match path.metadata() {
            Ok(metadata) => segments.push(Segment {
                offset,
                length: metadata.len(),
                path,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("read", path)(error)),
        }
    }
    segments.sort_by_key(|segment| segment.offset);
    Ok(segments)
}
