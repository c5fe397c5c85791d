//! Caches the person's git configuration until one of its files changes.
//!
//! Every task that commits or lands needs it, and reading it starts a git process. The cache must never
//! return a configuration of which a file has changed since, nor keep one whose files are not all known.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::error::GitError;
use super::person::{PersonConfig, PersonListing};
use super::repo::Repo;

/// Maximum age of a cached configuration: git may be built with another system-wide file than ours.
const AGE_MAX: Duration = Duration::from_secs(5);

/// The configuration as it was last read.
#[derive(Debug, Default)]
pub(crate) struct PersonCache {
    entry: Mutex<Option<Entry>>,
}

#[derive(Clone, Debug)]
struct Entry {
    config: PersonConfig,
    read_at: Instant,
    /// The fingerprints from before it was read.
    files: Vec<(PathBuf, Option<Fingerprint>)>,
}

/// Differs whenever the content of a file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Fingerprint {
    /// `None` if there is no such file.
    fn of(file: &Path) -> Option<Self> {
        let meta = std::fs::metadata(file).ok()?;
        Some(Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

impl Repo {
    /// The person's configuration, with what it includes for this repository.
    pub async fn person_config(&self) -> Result<PersonConfig, GitError> {
        if let Some(config) = self.place.person.load() {
            return Ok(config);
        }
        // Taken before reading, so that a concurrent change invalidates what is read.
        let files: Vec<_> = usual_files().into_iter().map(fingerprinted).collect();
        let read_at = Instant::now();
        let list = [
            "config",
            "--list",
            "--includes",
            "--show-scope",
            "--show-origin",
            "-z",
        ];
        let answer = self.git(list).run().await?;
        let listing = PersonListing::parse(answer.fields());
        self.place.person.save(&listing, files, read_at);
        Ok(listing.config)
    }
}

impl PersonCache {
    fn load(&self) -> Option<PersonConfig> {
        let entry = self.entry.lock().unwrap_or_else(|e| e.into_inner());
        let entry = entry.as_ref()?;
        entry.is_current().then(|| entry.config.clone())
    }

    /// Keeps a configuration if all files that it came from are among the fingerprinted ones.
    fn save(
        &self,
        listing: &PersonListing,
        files: Vec<(PathBuf, Option<Fingerprint>)>,
        read_at: Instant,
    ) {
        let is_watched = |file: &PathBuf| files.iter().any(|(watched, _)| watched == file);
        let is_complete = !listing.has_includes && listing.files.iter().all(is_watched);
        let entry = is_complete.then(|| Entry {
            config: listing.config.clone(),
            read_at,
            files,
        });
        *self.entry.lock().unwrap_or_else(|e| e.into_inner()) = entry;
    }
}

impl Entry {
    fn is_current(&self) -> bool {
        let is_unchanged = |(file, then): &(PathBuf, _)| Fingerprint::of(file) == *then;
        self.read_at.elapsed() < AGE_MAX && self.files.iter().all(is_unchanged)
    }
}

fn fingerprinted(file: PathBuf) -> (PathBuf, Option<Fingerprint>) {
    let fingerprint = Fingerprint::of(&file);
    (file, fingerprint)
}

/// The files in which git looks for system-wide and personal configuration.
fn usual_files() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let system =
        variable("GIT_CONFIG_SYSTEM").map_or_else(|| "/etc/gitconfig".into(), PathBuf::from);
    let mut files = vec![system];
    if let Some(global) = variable("GIT_CONFIG_GLOBAL") {
        files.push(global.into());
        return files;
    }
    let home = variable("HOME").map(PathBuf::from);
    let below_home = home.as_ref().map(|home| home.join(".config"));
    if let Some(config) = variable("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or(below_home)
    {
        files.push(config.join("git/config"));
    }
    files.extend(home.map(|home| home.join(".gitconfig")));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(file: &Path, has_includes: bool) -> PersonListing {
        PersonListing {
            config: PersonConfig::default(),
            files: vec![file.to_owned()],
            has_includes,
        }
    }

    #[test]
    fn a_configuration_is_cached_until_one_of_its_files_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (file, absent) = (dir.path().join("config"), dir.path().join("absent"));
        std::fs::write(&file, "a").unwrap();
        let watched = || vec![fingerprinted(file.clone()), fingerprinted(absent.clone())];
        let cache = PersonCache::default();
        cache.save(&listing(&file, false), watched(), Instant::now());
        assert!(cache.load().is_some());
        std::fs::write(&absent, "").unwrap();
        assert!(cache.load().is_none(), "a file appeared");
        cache.save(&listing(&file, false), watched(), Instant::now());
        assert!(cache.load().is_some());
        std::fs::write(&file, "ab").unwrap();
        assert!(cache.load().is_none(), "a file was changed");
    }

    #[test]
    fn a_configuration_with_unwatched_files_is_not_cached() {
        let file = Path::new("/no/such/file");
        let watched = || vec![fingerprinted(file.to_owned())];
        let cache = PersonCache::default();
        cache.save(&listing(file, true), watched(), Instant::now());
        assert!(cache.load().is_none(), "it includes others");
        let elsewhere = listing(Path::new("/opt/etc/gitconfig"), false);
        cache.save(&elsewhere, watched(), Instant::now());
        assert!(cache.load().is_none(), "one of its files is not watched");
    }
}
