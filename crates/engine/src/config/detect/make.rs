//! Make: targets with a conventional name, also beside other files.

use super::{Check, Detected, Files};

const NAMES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

pub(super) fn detect(files: &Files) -> Detected {
    let mut found = Detected::default();
    let Some(name) = files.first(&NAMES) else {
        return found;
    };
    let text = files.text(name);
    let checks = [
        (Check::Lint, &["lint"][..]),
        (Check::Types, &["typecheck", "type-check"][..]),
        (Check::Test, &["test", "check", "tests"][..]),
    ];
    for (check, targets) in checks {
        if let Some(target) = targets.iter().find(|target| has_target(text, target)) {
            let because = format!("the target {target} in the {name}");
            found.gate("make", check, format!("make {target}"), because);
        }
    }
    // Where nothing is tested, that it still builds is better than nothing.
    let build = ["build", "all"].iter().find(|it| has_target(text, it));
    if let Some(target) = build.filter(|_| !found.tests()) {
        let because = format!("the target {target} in the {name}");
        found.gate("make", Check::Build, format!("make {target}"), because);
    }
    found
}

/// Whether a makefile has a rule for a target, alone or among others.
fn has_target(text: &str, target: &str) -> bool {
    text.lines().any(|line| {
        let Some((targets, rest)) = line.split_once(':') else {
            return false;
        };
        let is_rule = !rest.starts_with('=') && !rest.starts_with(":=");
        let is_indented = line.starts_with([' ', '\t', '#', '.']);
        is_rule && !is_indented && targets.split_whitespace().any(|it| it == target)
    })
}
