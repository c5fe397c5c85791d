//! Which conflicts need nobody's mind: those in files that a command can write anew.

use alloc::string::String;
use alloc::vec::Vec;

use crate::reaction::pattern;

/// The rules, by their places, whose commands resolve a merge that conflicts in these files: each rule is
/// the patterns of the files that its command writes, and of several that name a file the first counts.
/// `None` when a file is named by none: then somebody must look at the merge anyway.
pub fn plan<'a>(
    rules: impl Iterator<Item = &'a [String]> + Clone,
    conflicted: &[String],
) -> Option<Vec<usize>> {
    let mut wanted = Vec::new();
    for file in conflicted {
        let names = |patterns: &[String]| patterns.iter().any(|it| pattern::matches(it, file));
        wanted.push(rules.clone().position(names)?);
    }
    wanted.sort_unstable();
    wanted.dedup();
    (!wanted.is_empty()).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::vec;

    fn planned(conflicted: &[&str]) -> Option<Vec<usize>> {
        let list = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let rules = [
            list(&["Cargo.lock"]),
            list(&["web/package-lock.json", "web/gen/**"]),
            list(&["*.lock"]),
        ];
        plan(rules.iter().map(Vec::as_slice), &list(conflicted))
    }

    #[test]
    fn only_if_every_conflict_is_in_a_named_file() {
        assert_eq!(planned(&["Cargo.lock"]), Some(vec![0]));
        assert_eq!(planned(&["Cargo.lock", "src/main.rs"]), None);
        assert_eq!(planned(&[]), None);
    }

    #[test]
    fn each_command_runs_once_and_in_the_order_of_the_rules() {
        let files = ["web/gen/b.ts", "tools/Cargo.lock", "web/gen/a.ts", "x.lock"];
        assert_eq!(planned(&files), Some(vec![0, 1, 2]));
    }
}
