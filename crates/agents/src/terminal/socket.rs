//! Where clients attach: a socket in the run's directory, for its owner only.
//!
//! Run directories are deep and the path of a socket is short by law; so the directory is opened and
//! the socket named from there. It is where it belongs, however long the path is.

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

const NAME: &str = "attach.sock";

fn short(dir: &Path) -> io::Result<(File, PathBuf)> {
    let open = File::open(dir)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", open.as_raw_fd()));
    Ok((open, path))
}

/// Whether a run has a terminal to attach to, or had one when its host was killed.
pub fn is_there(dir: &Path) -> bool {
    std::fs::symlink_metadata(dir.join(NAME)).is_ok_and(|meta| meta.file_type().is_socket())
}

/// Listens. What an earlier host left is replaced: a run directory has one host.
pub(super) fn listen(dir: &Path) -> io::Result<UnixListener> {
    remove(dir);
    let (_open, path) = short(dir)?;
    let listener = UnixListener::bind(&path)?;
    // Whoever came in between is refused by `is_own`.
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Connects to a run's terminal.
pub(super) async fn connect(dir: &Path) -> io::Result<UnixStream> {
    let (_open, path) = short(dir)?;
    UnixStream::connect(&path).await
}

/// Whether it is us at the other end.
pub(super) fn is_own(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own)
}

/// Takes the socket away.
pub(super) fn remove(dir: &Path) {
    // It is not there most of the time.
    let _ = std::fs::remove_file(dir.join(NAME));
}
