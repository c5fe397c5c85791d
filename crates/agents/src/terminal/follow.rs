//! Following a file of JSON lines that another program appends to.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// How much is read at once, and how long a line may be.
const PIECE_MAX: u64 = 4 << 20;
const LINE_MAX: usize = 32 << 20;

/// A place in a file.
#[derive(Debug)]
pub(super) struct Follow {
    path: PathBuf,
    offset: u64,
    begun: Vec<u8>,
    /// The line that has begun is too long to be kept.
    skipping: bool,
}

impl Follow {
    /// From a byte on.
    pub(super) fn from(path: &Path, offset: u64) -> Self {
        Self {
            path: path.to_owned(),
            offset,
            begun: Vec::new(),
            skipping: false,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The lines that are whole since the last look. What is no JSON is left out.
    pub(super) fn next(&mut self) -> Vec<Value> {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.offset))?;
            file.take(PIECE_MAX).read_to_end(&mut bytes)
        });
        // It is not there yet, or not readable now: there is nothing new.
        let Ok(count) = read else { return Vec::new() };
        self.offset += count as u64;
        let mut values = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let whole = part.ends_with(b"\n");
            if !self.skipping {
                self.begun.extend_from_slice(part);
                if self.begun.len() > LINE_MAX {
                    self.skipping = true;
                    self.begun = Vec::new();
                }
            }
            if whole {
                let line = std::mem::take(&mut self.begun);
                if !std::mem::take(&mut self.skipping) {
                    values.extend(serde_json::from_slice::<Value>(&line));
                }
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn half_a_line_waits_for_its_other_half() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut follow = Follow::from(file.path(), 0);
        file.write_all(b"{\"a\":1}\nno json\n{\"b\"").unwrap();
        assert_eq!(follow.next(), [serde_json::json!({"a": 1})]);
        file.write_all(b":2}\n").unwrap();
        assert_eq!(follow.next(), [serde_json::json!({"b": 2})]);
        assert!(follow.next().is_empty());
    }
}
