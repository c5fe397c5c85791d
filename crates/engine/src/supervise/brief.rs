//! The one file of a run that may be repeated: its lines say what other runs keep in files of their own.
//!
//! A gate may take less time than its disk takes to make a file. Nothing here is synced: a power cut may
//! take lines away, which is as if the run had never come so far. Lines are only ever added; one that is
//! not whole says nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, Exit, Launch, Processes};

const NAME: &str = "run.jsonl";

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// What to run.
    Spec(Launch),
    /// Who takes part, as far as it is known.
    Processes(Processes),
    /// How it ended.
    Exit(Exit),
}

/// What all lines say.
#[derive(Clone, Debug, Default)]
pub(super) struct Brief {
    pub(super) spec: Option<Launch>,
    pub(super) processes: Option<Processes>,
    pub(super) exit: Option<Exit>,
}

pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// `None` if the run has no such file.
pub(super) fn read(dir: &Path) -> Result<Option<Brief>, Error> {
    let path = path(dir);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    Ok(Some(parse(&bytes)))
}

fn parse(bytes: &[u8]) -> Brief {
    let mut brief = Brief::default();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    for line in lines.filter_map(|line| line.strip_suffix(b"\n")) {
        match serde_json::from_slice(line) {
            // What a supervisor has read never changes.
            Ok(Line::Spec(spec)) => brief.spec = brief.spec.or(Some(spec)),
            Ok(Line::Processes(processes)) => brief.processes = Some(processes),
            Ok(Line::Exit(exit)) => brief.exit = Some(exit),
            Err(_) => {}
        }
    }
    brief
}

/// Makes the file with its first line, unless somebody else has just made it.
pub(super) fn create(dir: &Path, launch: &Launch, draft: &Path) -> Result<(), Error> {
    let path = path(dir);
    let line = encoded(&path, &Line::Spec(launch.clone()))?;
    let linked = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(draft)
        .and_then(|mut file| file.write_all(&line))
        .and_then(|()| match std::fs::hard_link(draft, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
    // Should it stay, it is in nobody's way.
    let _ = std::fs::remove_file(draft);
    linked.map_err(Error::io("write", path))
}

/// Adds a line.
pub(super) fn append(dir: &Path, line: &Line) -> Result<(), Error> {
    let path = path(dir);
    let bytes = encoded(&path, line)?;
    OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(&bytes))
        .map_err(Error::io("write", path))
}

/// A line, with an end of line also before it: the one before may have been cut off by a full disk.
fn encoded(path: &Path, line: &Line) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![b'\n'];
    serde_json::to_writer(&mut bytes, line).map_err(|source| Error::Damaged {
        path: path.to_owned(),
        source,
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_whole_says_nothing_and_hides_nothing() {
        let one = serde_json::to_string(&Line::Processes(Processes::default())).unwrap();
        let cut = &one[..one.len() - 3];
        assert!(parse(cut.as_bytes()).processes.is_none());
        assert!(parse(one.as_bytes()).processes.is_none());
        let later = format!("{cut}\n\n{one}\n\0\0\0");
        assert!(parse(later.as_bytes()).processes.is_some());
    }
}
