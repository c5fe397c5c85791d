//! `cargo test` and `cargo nextest`.

use woodward_store::TestCounts;

use super::{Failed, Reading, before, first_lines, section};

pub(super) fn read(lines: &[&str], reading: &mut Reading) {
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim();
        if let Some(counts) = result(line).or_else(|| summary(line)) {
            reading.count(counts);
        } else if let Some(name) = failed(line).or_else(|| nextest_failed(line)) {
            reading.fail(Failed {
                name: name.to_owned(),
                ..Failed::default()
            });
        } else if let Some(name) = heading(line) {
            let section = section(lines, at + 1, |line| {
                line.starts_with("---- ") || line == "failures:"
            });
            reading.fail(Failed {
                name: name.to_owned(),
                message: message(&section),
                section,
            });
        }
    }
}

/// `test result: ok. 12 passed; 1 failed; 3 ignored; …`
fn result(line: &str) -> Option<TestCounts> {
    let rest = line.strip_prefix("test result: ")?;
    Some(TestCounts {
        passed: before(rest, "passed")?,
        failed: before(rest, "failed")?,
        skipped: before(rest, "ignored").unwrap_or(0),
    })
}

/// `Summary [ 0.1s] 12 tests run: 11 passed, 1 failed, 0 skipped`
fn summary(line: &str) -> Option<TestCounts> {
    let (_, rest) = line.strip_prefix("Summary [")?.split_once("run:")?;
    Some(TestCounts {
        passed: before(rest, "passed").unwrap_or(0),
        failed: before(rest, "failed").unwrap_or(0),
        skipped: before(rest, "skipped").unwrap_or(0),
    })
}

/// `test math::adds ... FAILED`
fn failed(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix("FAILED")?;
    Some(name.trim_end().strip_suffix("...")?.trim())
}

/// `FAIL [ 0.004s] shop cart::removes`
fn nextest_failed(line: &str) -> Option<&str> {
    let (_, name) = line.strip_prefix("FAIL [")?.split_once(']')?;
    Some(name.trim())
}

/// `---- math::divides stdout ----`
fn heading(line: &str) -> Option<&str> {
    let name = line.strip_prefix("---- ")?.strip_suffix(" ----")?;
    Some(name.strip_suffix(" stdout").unwrap_or(name))
}

/// What follows the place of a panic.
fn message(section: &str) -> String {
    let after = match section.split_once(" panicked at ") {
        Some((_, rest)) => rest.split_once('\n').map_or("", |(_, rest)| rest),
        None => section,
    };
    let upto = after.find("note: run with").unwrap_or(after.len());
    first_lines(&after[..upto], 3)
}
