//! Finds PostgreSQL's programs on this machine.
//!
//! A missing program is an error, never a reason to skip a test.

use super::error::PgError;
use std::fs;
use std::path::{Path, PathBuf};

/// Where Debian and its derivatives keep one directory a major version.
const VERSIONS_DIR: &str = "/usr/lib/postgresql";

/// They must come from one directory, so that their versions agree.
const NEEDED: [&str; 4] = ["initdb", "postgres", "psql", "pgbench"];

/// The directory that holds one version's programs.
#[derive(Debug)]
pub(crate) struct Binaries {
    directory: PathBuf,
}

impl Binaries {
    /// The newest packaged version that is complete, else the first complete directory of PATH.
    pub(crate) fn find() -> Result<Self, PgError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut candidates = packaged_newest_first(Path::new(VERSIONS_DIR));
        candidates.extend(std::env::split_paths(&path));
        Self::find_in(&candidates)
    }

    fn find_in(candidates: &[PathBuf]) -> Result<Self, PgError> {
        candidates
            .iter()
            .find(|directory| NEEDED.iter().all(|name| directory.join(name).is_file()))
            .map(|directory| Self {
                directory: directory.clone(),
            })
            .ok_or_else(|| PgError::MissingBinaries {
                needed: NEEDED.join(", "),
                searched: std::iter::once(format!("{VERSIONS_DIR}/*/bin"))
                    .chain(candidates.iter().map(|c| c.display().to_string()))
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }

    /// The path of one program.
    pub(crate) fn path(&self, program: &str) -> PathBuf {
        self.directory.join(program)
    }
}

fn packaged_newest_first(versions: &Path) -> Vec<PathBuf> {
    // An absent directory only means another kind of system; PATH is asked next.
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(versions)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, directory)| directory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::name::random_name;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            let path = std::env::temp_dir().join(random_name("ww-bin-"));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn version(&self, version: &str, programs: &[&str]) {
            let bin = self.0.join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            for program in programs {
                fs::write(bin.join(program), "").unwrap();
            }
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn the_newest_complete_version_wins_by_number_not_by_spelling() {
        let scratch = Scratch::new();
        scratch.version("9", &NEEDED);
        scratch.version("15", &NEEDED);
        scratch.version("17", &["psql"]);
        let found = Binaries::find_in(&packaged_newest_first(&scratch.0)).unwrap();
        assert_eq!(found.path("psql"), scratch.0.join("15/bin/psql"));
    }

    #[test]
    fn a_missing_program_is_an_error_that_names_the_set_up_command() {
        let scratch = Scratch::new();
        scratch.version("15", &["initdb", "postgres", "psql"]);
        let error = Binaries::find_in(&packaged_newest_first(&scratch.0)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`cargo xtask setup`"), "{text}");
        assert!(text.contains("pgbench"), "{text}");
    }
}
