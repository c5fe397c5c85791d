//! jest, vitest and node's own runner.

use woodward_store::TestCounts;

use super::{Failed, Reading, before, first_lines, section};

pub(super) fn read(lines: &[&str], reading: &mut Reading) {
    let mut node = TestCounts::default();
    let mut is_node = false;
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim();
        if let Some(counts) = counts(line) {
            reading.count(counts);
        } else if line.starts_with("No tests found, exiting")
            || line.starts_with("No test files found, exiting")
        {
            reading.count(TestCounts::default());
        } else if let Some((what, count)) = node_count(line) {
            is_node = true;
            match what {
                "pass" => node.passed += count,
                "fail" => node.failed += count,
                "skipped" | "todo" => node.skipped += count,
                _ => {}
            }
        } else if let Some(name) = line.strip_prefix("● ").filter(|name| name.contains(" › ")) {
            let section = section(lines, at + 1, |line| {
                line.trim_start().starts_with("● ") || line.starts_with("Tests:")
            });
            reading.fail(Failed {
                name: name.to_owned(),
                message: first_lines(&section, 3),
                section,
            });
        } else if let Some(name) = line
            .strip_prefix("FAIL ")
            .filter(|name| name.contains(" > "))
        {
            let section = section(lines, at + 1, |line| {
                line.trim_start().starts_with("FAIL ") || line.starts_with("⎯⎯")
            });
            reading.fail(Failed {
                name: name.trim().to_owned(),
                message: first_lines(&section, 1),
                section,
            });
        } else if let Some(name) = tap(line) {
            let section = section(lines, at + 1, |line| line.trim() == "...");
            reading.fail(Failed {
                name: name.to_owned(),
                message: first_lines(&section, 4),
                section,
            });
        }
    }
    if is_node {
        reading.count(node);
    }
}

/// `Tests:       1 failed, 12 passed, 13 total`; vitest: `Tests  1 failed | 12 passed (13)`
fn counts(line: &str) -> Option<TestCounts> {
    let rest = line.strip_prefix("Tests")?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let of = |word| before(rest, word);
    let known = ["passed", "failed", "skipped", "todo"];
    known
        .into_iter()
        .any(|word| of(word).is_some())
        .then(|| TestCounts {
            passed: of("passed").unwrap_or(0),
            failed: of("failed").unwrap_or(0),
            skipped: of("skipped").unwrap_or(0) + of("todo").unwrap_or(0),
        })
}

/// `# pass 3` and `ℹ pass 3`
fn node_count(line: &str) -> Option<(&str, u32)> {
    let rest = line
        .strip_prefix("# ")
        .or_else(|| line.strip_prefix("ℹ "))?;
    let (what, count) = rest.split_once(' ')?;
    let known = ["tests", "pass", "fail", "skipped", "todo"].contains(&what);
    known.then_some((what, count.parse().ok()?))
}

/// `not ok 2 - removes an item`
fn tap(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("not ok ")?;
    let (number, name) = rest.split_once(" - ")?;
    number.bytes().all(|b| b.is_ascii_digit()).then_some(name)
}
