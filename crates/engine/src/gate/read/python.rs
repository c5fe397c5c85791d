//! pytest and unittest.

use woodward_store::TestCounts;

use super::{Failed, Reading, before, first_lines, section};

pub(super) fn read(lines: &[&str], reading: &mut Reading) {
    for (at, line) in lines.iter().enumerate() {
        if let Some(counts) = pytest_counts(line.trim()).or_else(|| unittest_counts(lines, at)) {
            reading.count(counts);
        } else if let Some((name, message)) = pytest_failed(line) {
            reading.fail(Failed {
                name: name.to_owned(),
                message: message.to_owned(),
                section: pytest_section(lines, name),
            });
        } else if let Some(name) = unittest_failed(line) {
            let section = section(lines, at + 2, |line| line.starts_with("-----"));
            reading.fail(Failed {
                name: name.to_owned(),
                message: section.lines().last().unwrap_or_default().to_owned(),
                section,
            });
        }
    }
}

/// `=== 3 failed, 12 passed, 1 skipped in 0.1s ===`, `12 passed in 0.1s`, `no tests ran in 0.01s`
fn pytest_counts(line: &str) -> Option<TestCounts> {
    let rest = line.trim_matches('=').trim();
    let (said, time) = rest.rsplit_once(" in ")?;
    if !time.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if said == "no tests ran" {
        return Some(TestCounts::default());
    }
    let known = [
        "passed",
        "failed",
        "skipped",
        "error",
        "errors",
        "deselected",
    ];
    let of = |word: &str| before(said, word);
    if !said.starts_with(|c: char| c.is_ascii_digit())
        || !known.into_iter().any(|w| of(w).is_some())
    {
        return None;
    }
    let sum = |words: &[&str]| words.iter().filter_map(|word| of(word)).sum();
    Some(TestCounts {
        passed: sum(&["passed", "xpassed"]),
        failed: sum(&["failed", "error", "errors"]),
        skipped: sum(&["skipped", "deselected", "xfailed"]),
    })
}

/// `FAILED tests/test_a.py::test_b - AssertionError: …`
fn pytest_failed(line: &str) -> Option<(&str, &str)> {
    let rest = line
        .strip_prefix("FAILED ")
        .or_else(|| line.strip_prefix("ERROR "))?;
    let (name, message) = rest.split_once(" - ").unwrap_or((rest, ""));
    name.contains(".py")
        .then_some((name.trim(), message.trim()))
}

/// The part of the output under the test's own heading.
fn pytest_section(lines: &[&str], name: &str) -> String {
    let short = name.rsplit("::").next().unwrap_or(name);
    let is_heading = |line: &str| {
        let inner = line.trim_matches('_').trim();
        line.starts_with("____") && inner.rsplit('.').next() == Some(short)
    };
    match lines.iter().position(|line| is_heading(line)) {
        Some(at) => section(lines, at + 1, |line| {
            line.starts_with("____") || line.starts_with("====")
        }),
        None => String::new(),
    }
}

/// `Ran 3 tests in 0.001s`, followed by `FAILED (failures=1, skipped=1)` or `OK`.
fn unittest_counts(lines: &[&str], at: usize) -> Option<TestCounts> {
    let rest = lines[at].strip_prefix("Ran ")?;
    let (count, _) = rest.split_once(" test")?;
    let ran: u32 = count.parse().ok()?;
    let verdict = lines.iter().skip(at + 1).find(|line| !line.is_empty())?;
    let of = |word: &str| -> u32 {
        let (_, rest) = verdict.split_once(word).unwrap_or_default();
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..digits].parse().unwrap_or(0)
    };
    let failed = of("failures=") + of("errors=");
    let skipped = of("skipped=");
    Some(TestCounts {
        passed: ran.saturating_sub(failed + skipped),
        failed,
        skipped,
    })
}

/// `FAIL: test_sum (test_cart.Cart.test_sum)`
fn unittest_failed(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("FAIL: ")
        .or_else(|| line.strip_prefix("ERROR: "))?;
    let (_, name) = rest.strip_suffix(')')?.split_once(" (")?;
    Some(first_lines(name, 1)).filter(|name| !name.is_empty())?;
    Some(name)
}
