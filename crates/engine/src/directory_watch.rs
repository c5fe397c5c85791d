//! Being told when something changes in a directory: one inotify instance for all that wait.
//!
//! An event is only a reason to look. The kernel may refuse to watch, and it drops events when there are
//! too many, so whoever waits here also looks once in a while.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

const BUFFER_BYTES: usize = 4096;

/// The directories that are watched.
#[derive(Debug)]
pub(crate) struct DirectoryWatcher {
    /// `None` where the kernel gives no instance.
    shared: Option<Arc<Shared>>,
}

#[derive(Debug)]
struct Shared {
    events: AsyncFd<OwnedFd>,
    watched: Mutex<HashMap<i32, Arc<Notify>>>,
}

/// A directory that is watched as long as this lives.
#[derive(Debug)]
pub(crate) struct DirectoryWatch {
    shared: Arc<Shared>,
    id: i32,
    changed: Arc<Notify>,
}

impl DirectoryWatcher {
    /// Must be called inside the runtime.
    pub(crate) fn new() -> Self {
        let opened = open();
        if let Err(error) = &opened {
            tracing::debug!(%error, "directories can't be watched; they are looked at instead");
        }
        Self {
            shared: opened.ok().map(Arc::new),
        }
    }

    /// Watches files that are written in or moved to a directory. `None` if the kernel refuses.
    pub(crate) fn watch(&self, directory: &Path) -> Option<DirectoryWatch> {
        self.watch_for(directory, WatchFlags::MOVED_TO | WatchFlags::CLOSE_WRITE)
    }

    /// Watches whether a directory or something in it is removed. `None` if the kernel refuses.
    pub(crate) fn watch_removal(&self, directory: &Path) -> Option<DirectoryWatch> {
        let moved = WatchFlags::MOVED_FROM | WatchFlags::MOVE_SELF;
        self.watch_for(
            directory,
            moved | WatchFlags::DELETE | WatchFlags::DELETE_SELF,
        )
    }

    fn watch_for(&self, directory: &Path, flags: WatchFlags) -> Option<DirectoryWatch> {
        let shared = Arc::clone(self.shared.as_ref()?);
        let flags = flags | WatchFlags::ONLYDIR;
        let mut watched = shared.lock();
        let id = inotify::add_watch(shared.events.get_ref(), directory, flags).ok()?;
        let changed = Arc::clone(watched.entry(id).or_default());
        drop(watched);
        Some(DirectoryWatch {
            shared,
            id,
            changed,
        })
    }

    /// Passes events on until the engine stops.
    pub(crate) async fn run(&self) {
        let Some(shared) = &self.shared else {
            return;
        };
        loop {
            let Ok(mut ready) = shared.events.readable().await else {
                return;
            };
            shared.pass_on();
            ready.clear_ready();
        }
    }
}

fn open() -> std::io::Result<Shared> {
    let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    #[expect(
        deprecated,
        reason = "its replacement is unsafe for the sake of types that lend a foreign descriptor; this one is owned"
    )]
    let events = AsyncFd::with_interest(events, Interest::READABLE)?;
    Ok(Shared {
        events,
        watched: Mutex::default(),
    })
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<i32, Arc<Notify>>> {
        self.watched.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Wakes whoever waits for what has happened.
    fn pass_on(&self) {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(self.events.get_ref(), &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(_) => return,
            };
            let watched = self.lock();
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                for changed in watched.values() {
                    changed.notify_one();
                }
            } else if let Some(changed) = watched.get(&event.wd()) {
                changed.notify_one();
            }
        }
    }
}

impl DirectoryWatch {
    /// Returns when something may have changed since the last call.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Drop for DirectoryWatch {
    fn drop(&mut self) {
        let mut watched = self.shared.lock();
        // The map has one, and this has one: nobody else waits for this directory.
        if Arc::strong_count(&self.changed) <= 2 {
            watched.remove(&self.id);
            // A directory that is gone is watched no longer anyway.
            let _ = inotify::remove_watch(self.shared.events.get_ref(), self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_file_that_is_moved_in_wakes_who_watches_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let watcher = Arc::new(DirectoryWatcher::new());
        let running = tokio::spawn({
            let watcher = Arc::clone(&watcher);
            async move { watcher.run().await }
        });
        let watch = watcher.watch(dir.path()).expect("the kernel watches");
        for name in ["one", "two"] {
            let draft = tempfile::NamedTempFile::new().unwrap();
            std::fs::copy(draft.path(), dir.path().join(name)).unwrap();
            let told = tokio::time::timeout(Duration::from_secs(20), watch.changed());
            told.await.expect("told");
        }
        drop(watch);
        let shared = watcher.shared.as_ref().unwrap();
        assert!(shared.lock().is_empty());
        running.abort();
    }
}
