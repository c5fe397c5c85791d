//! What the program printed, for later: its newest part. Nothing depends on it.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// How much a file holds before it becomes the old one; there are two.
const FILE_MAX: u64 = 8 << 20;

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    length: u64,
    max: u64,
}

impl Log {
    pub(super) fn open(dir: &Path) -> Self {
        Self::with_max(dir, FILE_MAX)
    }

    fn with_max(dir: &Path, max: u64) -> Self {
        let path = dir.join("terminal.log");
        let open = OpenOptions::new().create(true).append(true).open(&path);
        let file = open.ok();
        let length = file
            .as_ref()
            .and_then(|file| file.metadata().ok())
            .map_or(0, |meta| meta.len());
        Self {
            path,
            file,
            length,
            max,
        }
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        if self.length >= self.max {
            let old = self.path.with_extension("log.old");
            self.file = std::fs::rename(&self.path, old)
                .and_then(|()| File::create(&self.path))
                .ok();
            self.length = 0;
        }
        let Some(file) = &mut self.file else { return };
        self.length += bytes.len() as u64;
        // A full disk costs the story, not the conversation.
        if file.write_all(bytes).is_err() {
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_part_is_kept_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::with_max(dir.path(), 100);
        for n in 0..100 {
            log.append(format!("line {n:02}\n").as_bytes());
        }
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        let (new, old) = (read("terminal.log"), read("terminal.log.old"));
        assert!((old + &new).ends_with("line 98\nline 99\n"));
        assert!(new.len() <= 110);
    }
}
