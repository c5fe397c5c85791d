//! Bringing a database's schema forward.
//!
//! Migrations only ever go forward, each in one transaction, on real data. A database that a newer
//! binary has written is refused, untouched. A migration that was released is never edited: its
//! fixtures prove that it still runs.

use crate::error::{Result, StoreError};

/// One step forward.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) sql: &'static str,
}

macro_rules! migrations {
    ($folder:literal: $($version:literal $file:literal,)+) => {
        &[$(Migration {
            version: $version,
            sql: include_str!(concat!("../migrations/", $folder, "/", $file, ".sql")),
        },)+]
    };
}

pub(crate) const SQLITE: &[Migration] = migrations! { "sqlite":
    1 "0001_initial",
    2 "0002_archive",
    3 "0003_ledger",
    4 "0004_gate_cache",
    5 "0005_queue",
};

pub(crate) const POSTGRES: &[Migration] = migrations! { "postgres":
    1 "0001_initial",
    2 "0002_archive",
    3 "0003_ledger",
    4 "0004_gate_cache",
    5 "0005_queue",
};

/// The schema that this binary writes.
pub const SCHEMA_VERSION: i64 = SQLITE[SQLITE.len() - 1].version;

/// The migrations that a database at `found` still needs.
pub(crate) fn missing(all: &'static [Migration], found: i64) -> Result<&'static [Migration]> {
    let known = all.last().map_or(0, |last| last.version);
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    let done = all.partition_point(|migration| migration.version <= found);
    Ok(&all[done..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_have_the_same_versions_without_a_gap() {
        let versions = |all: &[Migration]| all.iter().map(|m| m.version).collect::<Vec<_>>();
        assert_eq!(versions(SQLITE), versions(POSTGRES));
        let expected: Vec<i64> = (1..).take(SQLITE.len()).collect();
        assert_eq!(versions(SQLITE), expected);
    }

    #[test]
    fn only_what_is_missing_runs() {
        assert_eq!(missing(SQLITE, 0).expect("old").len(), SQLITE.len());
        let newest = SQLITE.len() as i64;
        assert!(missing(SQLITE, newest).expect("current").is_empty());
        let refused = missing(SQLITE, newest + 1).expect_err("newer");
        assert!(refused.to_string().contains("schema"), "{refused}");
    }
}
