//! The daemon's log: one JSON object a line, in files of bounded size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use woodward_engine::paths::Paths;

/// Sets what is logged, as in `WOODWARD_LOG=debug`.
const FILTER: &str = "WOODWARD_LOG";
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const FILES_KEPT: u32 = 3;

/// Starts to log: into the file when detached, to stderr for people otherwise.
pub(super) fn start(paths: &Paths, detached: bool) -> io::Result<()> {
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter);
    if detached {
        let file = Rotating::open(paths.daemon_log(), FILE_BYTES_MAX)?;
        log.json().with_writer(Mutex::new(file)).init();
    } else {
        log.with_writer(Stderr).init();
    }
    Ok(())
}

/// Standard error, the narration of a daemon in the foreground.
struct Stderr;

impl<'a> MakeWriter<'a> for Stderr {
    type Writer = io::Stderr;

    fn make_writer(&'a self) -> io::Stderr {
        io::stderr()
    }
}

/// A file that is put aside when it is full: `daemon.log.1` is the one before, and so on.
struct Rotating {
    path: PathBuf,
    file: File,
    written: u64,
    bytes_max: u64,
}

impl Rotating {
    fn open(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let file = open(&path)?;
        let written = file.metadata()?.len();
        Ok(Self {
            path,
            file,
            written,
            bytes_max,
        })
    }

    fn aside(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..FILES_KEPT).rev() {
            match fs::rename(self.aside(number), self.aside(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.aside(1))?;
        self.file = open(&self.path)?;
        self.written = 0;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

impl Write for Rotating {
    /// A log that can't be put aside grows: losing lines would be worse.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.written >= self.bytes_max && self.rotate().is_err() {
            self.written = 0;
        }
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_is_put_aside_and_old_ones_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let mut log = Rotating::open(path.clone(), 10).unwrap();
        for number in 0..8 {
            writeln!(log, "line {number} of some").unwrap();
        }
        let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(text("daemon.log"), "line 7 of some\n");
        assert_eq!(text("daemon.log.1"), "line 6 of some\n");
        assert_eq!(text("daemon.log.3"), "line 4 of some\n");
        assert!(!dir.path().join("daemon.log.4").exists());
    }
}
