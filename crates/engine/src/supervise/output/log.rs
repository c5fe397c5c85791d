//! The writing side: a stream into segments, within a bound, whatever the disk does.
//!
//! Writing never fails for the caller: the agent's pipe must be drained even when the disk is full.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SEGMENT_MIN_BYTES: u64 = 64 * 1024;
const SEGMENTS_IN_LOG: u64 = 8;

/// A disk that fills and empties again makes short segments; there are never more than this.
const SEGMENTS_MAX: usize = 64;

/// How long nothing is written after the disk refused.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);

/// The output of one run.
#[derive(Debug)]
pub(in crate::supervise) struct Log {
    dir: PathBuf,
    segment_bytes: u64,
    max_bytes: u64,
    current: Option<File>,
    /// Offset and length of what is on disk, the current one last.
    segments: VecDeque<(u64, u64)>,
    offset: u64,
    dropped: u64,
    refused_until: Option<Instant>,
}

impl Log {
    /// A log that keeps at most `max_bytes`, but at least 128 KiB, in `dir`.
    pub(in crate::supervise) fn new(dir: &Path, max_bytes: u64) -> Self {
        let segment_bytes = (max_bytes / SEGMENTS_IN_LOG).max(SEGMENT_MIN_BYTES);
        Self {
            dir: dir.to_owned(),
            segment_bytes,
            max_bytes: max_bytes.max(2 * segment_bytes),
            current: None,
            segments: VecDeque::new(),
            offset: 0,
            dropped: 0,
            refused_until: None,
        }
    }

    /// How many bytes came, kept or not.
    pub(in crate::supervise) fn bytes(&self) -> u64 {
        self.offset
    }

    /// How many of them were not kept.
    pub(in crate::supervise) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes what the process printed.
    pub(in crate::supervise) fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self
                .refused_until
                .is_some_and(|until| Instant::now() < until)
            {
                self.lose(bytes.len());
                return;
            }
            match self.write(bytes) {
                Ok(written) => {
                    self.refused_until = None;
                    bytes = &bytes[written..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // What is lost is a gap between segments, so the next byte needs a new one.
                    self.current = None;
                    self.refused_until = Some(Instant::now() + REFUSED_PAUSE);
                }
            }
        }
    }

    /// Brings what was kept to the disk, as far as the disk takes it.
    pub(in crate::supervise) fn sync(&self) {
        for (offset, _) in &self.segments {
            // What cannot be synced is still there to be read unless the machine fails too.
            let _ = File::open(self.path(*offset)).and_then(|file| file.sync_data());
        }
        let _ = File::open(&self.dir).and_then(|dir| dir.sync_all());
    }

    fn lose(&mut self, bytes: usize) {
        self.offset += bytes as u64;
        self.dropped += bytes as u64;
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let full = self
            .segments
            .back()
            .is_none_or(|(_, length)| *length >= self.segment_bytes);
        if full || self.current.is_none() {
            self.begin_segment()?;
        }
        let (Some(file), Some((_, length))) = (&mut self.current, self.segments.back_mut()) else {
            unreachable!("a segment was just begun");
        };
        let room = usize::try_from(self.segment_bytes - *length).unwrap_or(usize::MAX);
        let written = file.write(&bytes[..bytes.len().min(room)])?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        *length += written as u64;
        self.offset += written as u64;
        Ok(written)
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        self.current = None;
        self.make_room()?;
        let path = self.path(self.offset);
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600);
        let file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(&self.dir)?;
                options.open(&path)?
            }
            other => other?,
        };
        self.current = Some(file);
        // A write into it that failed has left an empty segment of the same name.
        if self.segments.back().map(|(offset, _)| *offset) != Some(self.offset) {
            self.segments.push_back((self.offset, 0));
        }
        Ok(())
    }

    /// Drops segments, oldest first but never the very first, until one more fits.
    fn make_room(&mut self) -> io::Result<()> {
        let mut total: u64 = self.segments.iter().map(|(_, length)| length).sum();
        while self.segments.len() > 1
            && (total + self.segment_bytes > self.max_bytes || self.segments.len() >= SEGMENTS_MAX)
        {
            let (offset, length) = self.segments[1];
            match std::fs::remove_file(self.path(offset)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            self.segments.remove(1);
            total -= length;
            self.dropped += length;
        }
        Ok(())
    }

    fn path(&self, offset: u64) -> PathBuf {
        self.dir.join(format!("{offset:020}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{end, head_and_tail, read};
    use super::*;

    const KIB: u64 = 1024;

    fn on_disk(dir: &Path) -> u64 {
        std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum()
    }

    #[test]
    fn a_flood_keeps_its_beginning_and_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("output");
        let mut log = Log::new(&output, 1024 * KIB);
        let mut expected_end = 0;
        for line in 0..400_000_u32 {
            let text = format!("line {line:06}\n");
            log.append(text.as_bytes());
            expected_end += text.len() as u64;
            if line % 50_000 == 0 {
                assert!(on_disk(&output) <= 1024 * KIB);
            }
        }
        assert_eq!(log.bytes(), expected_end);
        assert_eq!(end(dir.path()).unwrap(), expected_end);
        assert_eq!(on_disk(&output), expected_end - log.dropped());
        assert!(on_disk(&output) > 800 * KIB);

        let text = head_and_tail(dir.path(), 12, 12).unwrap();
        let left_out = expected_end - 24;
        assert_eq!(
            text,
            format!("line 000000\n\n… {left_out} bytes left out …\nline 399999\n")
        );
    }

    #[test]
    fn a_reader_is_told_what_it_missed() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::new(&dir.path().join("output"), 0);
        for byte in [b'a', b'b', b'c', b'd'] {
            log.append(&vec![byte; SEGMENT_MIN_BYTES as usize]);
        }
        assert_eq!(log.dropped(), 2 * SEGMENT_MIN_BYTES);
        let mut at = 0;
        let mut seen = Vec::new();
        let mut dropped = 0;
        loop {
            let chunk = read(dir.path(), at, 10_000).unwrap();
            if chunk.bytes.is_empty() {
                break;
            }
            dropped += chunk.dropped;
            seen.extend(chunk.bytes);
            at = chunk.next;
        }
        assert_eq!(at, log.bytes());
        assert_eq!(dropped, log.dropped());
        assert_eq!(seen.len() as u64, log.bytes() - log.dropped());
        assert_eq!((seen[0], seen[seen.len() - 1]), (b'a', b'd'));
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_leaves_a_gap() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("output");
        let mut log = Log::new(&output, 0);
        log.append(b"before");
        // A directory in the place of the next segment: it cannot be opened for writing.
        log.current = None;
        log.segments[0].1 = SEGMENT_MIN_BYTES;
        log.offset = SEGMENT_MIN_BYTES;
        let obstacle = log.path(log.offset);
        std::fs::create_dir(&obstacle).unwrap();
        log.append(b"lost");
        assert_eq!(log.dropped(), 4);
        log.append(b"also lost");
        assert_eq!(log.dropped(), 13);
        std::fs::remove_dir(&obstacle).unwrap();
        log.refused_until = None;
        log.append(b"after");
        assert_eq!(log.dropped(), 13);
        let chunk = read(dir.path(), SEGMENT_MIN_BYTES, 100).unwrap();
        assert_eq!((chunk.dropped, chunk.bytes.as_slice()), (13, &b"after"[..]));
    }

    #[test]
    fn a_character_is_never_cut_in_two() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::new(&dir.path().join("output"), 0);
        log.append("äöüÄÖÜ".as_bytes());
        let text = head_and_tail(dir.path(), 3, 3).unwrap();
        assert_eq!(text, "ä\n… 8 bytes left out …\nÜ");
        assert_eq!(head_and_tail(dir.path(), 6, 6).unwrap(), "äöüÄÖÜ");
        assert_eq!(head_and_tail(dir.path(), 100, 100).unwrap(), "äöüÄÖÜ");
    }
}
