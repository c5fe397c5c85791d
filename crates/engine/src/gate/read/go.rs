//! `go test`. Without `-v` it tells only of what failed.

use woodward_store::TestCounts;

use super::{Failed, Reading, first_lines, section};

pub(super) fn read(lines: &[&str], reading: &mut Reading) {
    let mut counts = TestCounts::default();
    let (mut is_verbose, mut packages, mut empty) = (false, 0_u32, 0_u32);
    for (at, line) in lines.iter().enumerate() {
        let own = line.trim_start();
        if own.starts_with("--- PASS: ") {
            is_verbose = true;
            counts.passed += 1;
        } else if own.starts_with("--- SKIP: ") {
            is_verbose = true;
            counts.skipped += 1;
        } else if let Some(rest) = own.strip_prefix("--- FAIL: ") {
            counts.failed += 1;
            let name = rest.split_whitespace().next().unwrap_or(rest);
            let section = section(lines, at + 1, |line| {
                let line = line.trim_start();
                line.starts_with("--- ") || line.starts_with("FAIL") || line.starts_with("=== ")
            });
            reading.fail(Failed {
                name: name.to_owned(),
                message: first_lines(&section, 2),
                section,
            });
        } else if line.starts_with("ok  \t") || line.starts_with("FAIL\t") {
            packages += 1;
            empty += u32::from(line.ends_with("[no tests to run]"));
        } else if line.starts_with("?   \t") && line.ends_with("[no test files]") {
            packages += 1;
            empty += 1;
        }
    }
    if is_verbose || (packages > 0 && packages == empty) {
        reading.count(counts);
    }
}
