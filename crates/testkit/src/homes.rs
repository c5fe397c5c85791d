//! Where tests put the homes of agents: not below the directory for temporary files, where agents may
//! write without asking.

use std::path::PathBuf;

use tempfile::TempDir;

/// Names a directory in memory; `cargo xtask test` sets it.
const VARIABLE: &str = "WOODWARD_TEST_HOMES";

/// A directory for one test. A test run by hand gets it below `on_disk`, its `CARGO_TARGET_TMPDIR`.
///
/// # Panics
/// When it can't be made.
pub fn directory(on_disk: &str) -> TempDir {
    let homes = std::env::var_os(VARIABLE).map_or_else(|| on_disk.into(), PathBuf::from);
    tempfile::tempdir_in(&homes)
        .unwrap_or_else(|error| panic!("no directory in {}: {error}", homes.display()))
}
