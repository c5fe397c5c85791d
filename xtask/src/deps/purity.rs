//! Rule: the core, and the simulation that runs it, contain nothing that can touch the world.

use super::metadata::{Dependency, Metadata};
use super::rules::{CORE_CLOSURE, FIXED, HERE};
use super::tree::Tree;

const CORE: &str = "woodward-core";

pub(super) fn examine(metadata: &Metadata, core_tree: &Tree) -> Vec<String> {
    let mut findings: Vec<String> = FIXED
        .iter()
        .flat_map(|(name, allowed)| examine_declared(metadata, name, allowed))
        .collect();
    findings.extend(examine_linked(core_tree));
    findings.extend(examine_list(metadata));
    findings
}

/// The core's list is exact: a row that nobody uses would let the crate back in unseen.
fn examine_list(metadata: &Metadata) -> Vec<String> {
    let listed = FIXED.iter().filter(|(name, _)| *name == CORE);
    let mut findings = Vec::new();
    for core in metadata.ours().filter(|package| package.name == CORE) {
        for dependency in listed.clone().flat_map(|(_, allowed)| *allowed) {
            let is_used = |d: &Dependency| !d.is_dev && d.name == *dependency;
            if !core.dependencies.iter().any(is_used) {
                findings.push(format!(
                    "{CORE} no longer depends on {dependency}; take {dependency} off its row of \
                     FIXED in {HERE}"
                ));
            }
        }
    }
    findings
}

/// Of what the manifest declares, build-dependencies included: a build script can touch the world too.
fn examine_declared(metadata: &Metadata, name: &str, allowed: &[&str]) -> Vec<String> {
    let declared: Vec<&str> = metadata
        .ours()
        .filter(|package| package.name == name)
        .flat_map(|package| &package.dependencies)
        .filter(|dependency| !dependency.is_dev && !metadata.is_ours(&dependency.name))
        .map(|dependency| dependency.name.as_str())
        .collect();
    declared
        .iter()
        .filter(|dependency| !allowed.contains(dependency))
        .map(|dependency| refusal(&[name, dependency], "FIXED"))
        .collect()
}

/// Of what is linked in through others. Below a refused crate nothing more is reported.
fn examine_linked(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for path in &tree.paths {
        let [_, above @ .., last] = path.as_slice() else {
            continue;
        };
        let is_allowed = |name: &String| CORE_CLOSURE.contains(&name.as_str());
        let came_through_another = !above.is_empty();
        if came_through_another && above.iter().all(is_allowed) && !is_allowed(last) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            findings.push(refusal(&path, "CORE_CLOSURE"));
        }
    }
    findings.dedup();
    findings
}

fn refusal(path: &[&str], table: &str) -> String {
    let [ours, declared, ..] = path else {
        unreachable!("a refused crate is at least one step from ours: {path:?}");
    };
    let refused = path[path.len() - 1];
    let culprit = if declared == &refused {
        refused.to_owned()
    } else {
        format!("{declared}, or the feature of it that brings {refused},")
    };
    let way = path.join(" -> ");
    format!(
        "{ours} depends on {refused} ({way}), which is not known to touch nothing; remove \
         {culprit} from {ours}'s Cargo.toml and let the caller pass in what it provided, or, if \
         it can touch nothing, add {refused} to {table} in {HERE}"
    )
}

#[cfg(test)]
mod tests {
    use super::super::metadata::tests::{foreign, metadata, ours};
    use super::super::tree::Tree;
    use super::examine;

    const CORE_LIST: [&str; 3] = ["serde", "thiserror", "uuid"];

    fn tree(text: &str) -> Tree {
        Tree::parse(text).unwrap()
    }

    #[test]
    fn the_allowed_lists_pass() {
        let workspace = metadata(&[
            ours("woodward-core", &CORE_LIST, &["proptest"]),
            ours("woodward-sim", &["woodward-core", "clap"], &[]),
        ]);
        let linked = tree("0woodward-core v0\n1serde v1\n2serde_core v1\n1uuid v1\n");
        assert_eq!(examine(&workspace, &linked), [""; 0]);
    }

    #[test]
    fn a_core_that_depends_on_tokio_is_named_once() {
        let workspace = metadata(&[
            ours(
                "woodward-core",
                &["serde", "thiserror", "tokio", "uuid"],
                &[],
            ),
            foreign("tokio"),
        ]);
        let linked = tree("0woodward-core v0\n1serde v1\n1tokio v1\n2mio v1\n3libc v0\n");
        let findings = examine(&workspace, &linked);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(
            findings[0].contains("woodward-core -> tokio"),
            "{findings:?}"
        );
        assert!(findings[0].contains("remove tokio"), "{findings:?}");
    }

    #[test]
    fn a_core_that_gets_tokio_through_another_crate_is_shown_the_way() {
        let workspace = metadata(&[ours("woodward-core", &CORE_LIST, &[])]);
        let linked = tree("0woodward-core v0\n1uuid v1\n2tokio v1\n3mio v1\n");
        let findings = examine(&workspace, &linked);
        assert_eq!(findings.len(), 1, "{findings:?}");
        let way = "woodward-core -> uuid -> tokio";
        assert!(findings[0].contains(way), "{findings:?}");
        assert!(findings[0].contains("remove uuid"), "{findings:?}");
    }

    #[test]
    fn a_row_that_the_core_no_longer_needs_is_named() {
        let workspace = metadata(&[ours("woodward-core", &["serde", "uuid"], &["thiserror"])]);
        let findings = examine(&workspace, &tree("0woodward-core v0\n"));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("take thiserror off"), "{findings:?}");
    }

    #[test]
    fn a_simulation_with_a_random_source_is_named() {
        let workspace = metadata(&[ours("woodward-sim", &["rand"], &["insta"])]);
        let findings = examine(&workspace, &tree("0woodward-core v0\n"));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("woodward-sim -> rand"), "{findings:?}");
    }
}
