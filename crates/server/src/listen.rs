//! The daemon's socket: mode 0600, in a directory that only its owner can enter.
//!
//! A socket file that a killed daemon left is replaced; one that answers is not: its daemon lives.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use tokio::net::{UnixListener, UnixStream};
use woodward_engine::engine::Engine;

/// How long requests under way get to finish when the daemon stops.
const DRAIN: Duration = Duration::from_secs(2);

/// A bound socket. Its file goes with it.
#[derive(Debug)]
pub struct Bound {
    listener: UnixListener,
    path: PathBuf,
}

/// Binds the socket.
///
/// # Errors
/// When a daemon answers there already, or the directory can't be trusted.
pub async fn bind(path: &Path) -> io::Result<Bound> {
    let directory = path
        .parent()
        .ok_or_else(|| io::Error::other("the socket has no directory"))?;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    if std::fs::metadata(directory)?.uid() != own_uid() {
        return Err(io::Error::other(format!(
            "{} belongs to somebody else",
            directory.display()
        )));
    }
    if UnixStream::connect(path).await.is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("a daemon answers on {}", path.display()),
        ));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(Bound {
        listener,
        path: path.to_owned(),
    })
}

/// The user we run as, by the owner of our own process entry.
fn own_uid() -> u32 {
    std::fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid())
}

impl Bound {
    /// Serves until told to stop; requests that take longer than a moment are cut off.
    pub(crate) async fn serve(self, app: Router, engine: Engine) -> io::Result<()> {
        let path = self.path.clone();
        let waiting = engine.clone();
        let stopped = async move { waiting.stopped().await };
        let drained = async {
            engine.stopped().await;
            tokio::time::sleep(DRAIN).await;
        };
        let served = axum::serve(self.listener, app).with_graceful_shutdown(stopped);
        let result = tokio::select! {
            result = served => result,
            () = drained => Ok(()),
        };
        let _ = std::fs::remove_file(&path);
        result
    }
}
