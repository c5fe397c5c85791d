//! What must hold of the file before SQLite touches it: a local file system, and one daemon.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{Result, StoreError};

/// The file systems on which SQLite's shared memory or its locks do not work, by the number that
/// `statfs` gives.
fn network_kind(magic: u64) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "nfs",
        0x517b => "smb",
        0xff53_4d42 => "cifs",
        0xfe53_4d42 => "smb2",
        0x0102_1997 => "9p",
        0x6573_5546 => "fuse",
        0x5346_414f | 0x6b41_4653 => "afs",
        0x7375_7245 => "coda",
        0x00c3_6400 => "ceph",
        0x0bd0_0bd0 => "lustre",
        0x4750_4653 => "gpfs",
        0x0116_1970 => "gfs2",
        0x7461_636f => "ocfs2",
        _ => return None,
    })
}

/// Refuses a database on a network file system.
pub(super) fn require_local(path: &Path) -> Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let stat = rustix::fs::statfs(directory)
        .map_err(|error| StoreError::Unavailable(format!("{}: {error}", directory.display())))?;
    // The field's type differs between platforms; the numbers above have 32 bits.
    let magic = (stat.f_type as i64).cast_unsigned() & 0xffff_ffff;
    match network_kind(magic) {
        Some(kind) => Err(StoreError::NetworkFileSystem {
            path: path.to_owned(),
            kind,
        }),
        None => Ok(()),
    }
}

/// Proof that this process is the only daemon on a database, for as long as it lives.
#[derive(Debug)]
pub(super) struct DaemonLock {
    _file: File,
}

impl DaemonLock {
    pub(super) fn acquire(database: &Path) -> Result<Self> {
        let path = lock_path(database);
        let unavailable =
            |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(unavailable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // Only for the message; the lock itself is the truth.
                let _ = file.read_to_string(&mut pid);
                let pid = pid.trim();
                return Err(StoreError::InUse {
                    path: database.to_owned(),
                    pid: if pid.is_empty() { "?" } else { pid }.to_owned(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(unavailable(error)),
        }
        file.set_len(0).map_err(unavailable)?;
        writeln!(file, "{}", std::process::id()).map_err(unavailable)?;
        Ok(Self { _file: file })
    }
}

fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_number() {
        assert_eq!(network_kind(0x6969), Some("nfs"));
        assert_eq!(network_kind(0x6573_5546), Some("fuse"));
        for local in [0xef53_u64, 0x9123_683e, 0x5846_5342, 0x0102_1994] {
            assert_eq!(network_kind(local), None, "{local:x}");
        }
    }

    #[test]
    fn a_missing_directory_is_named() {
        let refused = require_local(Path::new("/no/such/place/woodward.db")).expect_err("missing");
        assert!(refused.to_string().contains("/no/such/place"), "{refused}");
    }
}
