//! Rule: our crates use each other in one direction only.

use super::metadata::{Metadata, Package};
use super::rules::{DIRECTION, DIRECTION_DEV, HERE};

pub(super) fn examine(metadata: &Metadata) -> Vec<String> {
    metadata
        .ours()
        .flat_map(|package| examine_package(metadata, package))
        .collect()
}

fn examine_package(metadata: &Metadata, package: &Package) -> Vec<String> {
    let name = &package.name;
    let Some((_, allowed)) = DIRECTION.iter().find(|(known, _)| known == name) else {
        return vec![format!(
            "the crate {name} has no row in the table of directions; \
             add one to DIRECTION in {HERE} that says which of our crates it may use"
        )];
    };
    package
        .dependencies
        .iter()
        .filter(|dependency| metadata.is_ours(&dependency.name))
        .filter(|dependency| {
            let target = dependency.name.as_str();
            // A crate's tests may use the crate itself, with a feature that only tests want.
            let is_allowed_in_tests =
                dependency.is_dev && (DIRECTION_DEV.contains(&target) || target == name);
            !allowed.contains(&target) && !is_allowed_in_tests
        })
        .map(|dependency| {
            let target = &dependency.name;
            let section = if dependency.is_dev {
                "dev-dependencies"
            } else {
                "dependencies"
            };
            let allowed = match allowed {
                [] => "none of our crates".to_owned(),
                some => format!("only {}", some.join(", ")),
            };
            format!(
                "{name} depends on {target}, against the direction: it may use {allowed}; \
                 remove {target} from the [{section}] of {name} and move what needs it to a \
                 crate that may use it"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::metadata::tests::{metadata, ours};
    use super::examine;

    #[test]
    fn the_allowed_direction_passes() {
        let workspace = metadata(&[
            ours("woodward-core", &[], &["woodward-sim"]),
            ours(
                "woodward-store",
                &["woodward-core"],
                &["woodward-testkit", "woodward-store"],
            ),
            ours("woodward-sim", &["woodward-core"], &[]),
            ours("woodward-testkit", &[], &[]),
            ours("woodward-api", &["woodward-core"], &[]),
            ours("woodward-engine", &["woodward-store", "woodward-api"], &[]),
        ]);
        assert_eq!(examine(&workspace), [""; 0]);
    }

    #[test]
    fn a_store_that_depends_on_the_engine_is_named() {
        let workspace = metadata(&[
            ours("woodward-store", &["woodward-engine"], &[]),
            ours("woodward-engine", &[], &[]),
        ]);
        let findings = examine(&workspace);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("woodward-store depends on woodward-engine"));
        assert!(findings[0].contains("only woodward-core"), "{findings:?}");
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        let workspace = metadata(&[
            ours("woodward-store", &["woodward-testkit"], &[]),
            ours("woodward-testkit", &[], &[]),
        ]);
        let findings = examine(&workspace);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("woodward-store depends on woodward-testkit"));
    }

    #[test]
    fn a_dev_dependency_against_the_direction_is_named() {
        let workspace = metadata(&[
            ours("woodward-testkit", &[], &["woodward-store"]),
            ours("woodward-store", &[], &[]),
        ]);
        let findings = examine(&workspace);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("[dev-dependencies]"), "{findings:?}");
    }

    #[test]
    fn an_unknown_crate_of_ours_is_named() {
        let findings = examine(&metadata(&[ours("woodward-utils", &[], &[])]));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("woodward-utils"), "{findings:?}");
        assert!(findings[0].contains("DIRECTION"), "{findings:?}");
    }
}
