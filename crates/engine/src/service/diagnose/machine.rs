//! This machine: git, the daemon, the database, the disk, the other workers.

use std::path::Path;

use woodward_api::Check;
use woodward_core::Millis;
use woodward_core::hint::NextCommand;

use super::{bad, good, note};
use crate::agent::price::{Prices, own_table};
use crate::clock;
use crate::config::OwnDaemon;
use crate::engine::Engine;
use crate::error::Result;
use crate::git::VERSION_MIN;
use crate::paths::own_config;

/// Less room than this is worth a word; less than a quarter of it is trouble.
const ROOM: u64 = 4 * 1024 * 1024 * 1024;
const FILES: u64 = 100_000;
/// A worker that was not heard of for so long may not come back.
const SILENT: Millis = Millis::from_mins(10);

impl Engine {
    pub(super) async fn machine(&self) -> Result<Vec<Check>> {
        let mut checks = Vec::new();
        let health = self.health();
        checks.push(good(
            "daemon",
            format!("{} (process {})", health.version, health.pid),
        ));
        checks.push(match self.inner.git.version().await {
            Ok(version) if version >= VERSION_MIN => {
                good("git", format!("{}.{}", version.0, version.1))
            }
            Ok((major, minor)) => bad(
                "git",
                format!("{major}.{minor} is too old"),
                format!("install git {}.{} or newer", VERSION_MIN.0, VERSION_MIN.1),
            ),
            Err(error) => bad(
                "git",
                error.to_string(),
                error
                    .hint()
                    .map_or_else(|| "install git".into(), String::from),
            ),
        });
        checks.push(good("database", health.database));
        let own = own_config(OwnDaemon::FILE);
        if let Err(problem) = OwnDaemon::load(&own) {
            checks.push(bad(
                "daemon.yaml",
                problem,
                "repair it; until then nothing in it counts",
            ));
        }
        if let Err(problem) = Prices::load(&own_table()) {
            checks.push(bad(
                "prices.json",
                problem,
                format!(
                    "repair it, then: {}; until then only the built-in prices count",
                    NextCommand::Restart
                ),
            ));
        }
        checks.push(room("disk", self.inner.options.paths.state()));
        let now = clock::now();
        for worker in self.inner.store.load_workers().await? {
            let silent = now.since(worker.seen_at);
            if worker.id != self.inner.worker && silent.0 > SILENT.0 {
                checks.push(note(
                    "worker",
                    format!("{} was last heard of {silent} ago", worker.host),
                    Some("what is addressed to it waits until its daemon runs again".into()),
                ));
            }
        }
        Ok(checks)
    }
}

/// How much room a file system has, in bytes and in files.
pub(super) fn room(name: &str, path: &Path) -> Check {
    let stat = match rustix::fs::statvfs(path) {
        Ok(stat) => stat,
        Err(error) => {
            return bad(
                name,
                format!("{}: {error}", path.display()),
                "see that the directory exists and is yours",
            );
        }
    };
    let bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
    // Some file systems have no fixed number of files.
    let files = if stat.f_files == 0 {
        u64::MAX
    } else {
        stat.f_favail
    };
    let found = format!("{:.1} GB free at {}", bytes as f64 / 1e9, path.display());
    if bytes < ROOM / 4 || files < FILES / 4 {
        bad(name, found, "free some space: work stops when it runs out")
    } else if bytes < ROOM || files < FILES {
        note(name, found, Some("free some space soon".into()))
    } else {
        good(name, found)
    }
}
