//! Names and numbers that two test processes do not share.
//!
//! Not for secrets: it guards against collisions, not against people.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// `prefix` followed by 16 random hexadecimal digits; valid as an SQL name and a file name.
pub(crate) fn random_name(prefix: &str) -> String {
    format!("{prefix}{:016x}", random_number())
}

/// A number that the next call, here or in another process, will not repeat.
pub(crate) fn random_number() -> u64 {
    // The standard library seeds each RandomState differently; hashing a constant
    // yields that seed's randomness without a dependency.
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use super::random_name;
    use std::collections::BTreeSet;

    #[test]
    fn a_thousand_names_are_all_different() {
        let names: BTreeSet<_> = (0..1000).map(|_| random_name("t_")).collect();
        assert_eq!(names.len(), 1000);
    }
}
