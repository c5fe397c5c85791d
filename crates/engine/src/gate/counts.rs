//! How many tests a gate's output says there were, for the usual runners.
//!
//! For people only: no verdict follows from it here.

/// Tests that passed, and how many ran.
pub(crate) fn tests(output: &str) -> Option<(u32, u32)> {
    let mut passed = 0;
    let mut total = 0;
    let mut seen = false;
    for line in output.lines() {
        let line = line.trim();
        if let Some((ok, failed)) = cargo(line)
            .or_else(|| nextest(line))
            .or_else(|| pytest(line))
            .or_else(|| jest(line))
        {
            seen = true;
            passed += ok;
            total += ok + failed;
        }
    }
    if !seen {
        let count = |start: &str| {
            let lines = output
                .lines()
                .filter(|line| line.trim_start().starts_with(start));
            u32::try_from(lines.count()).unwrap_or(u32::MAX)
        };
        let (ok, failed) = (count("--- PASS: "), count("--- FAIL: "));
        seen = ok + failed > 0;
        (passed, total) = (ok, ok + failed);
    }
    seen.then_some((passed, total))
}

/// The number right before a word: `12 passed`.
fn before(line: &str, word: &str) -> Option<u32> {
    let mut last = None;
    for token in line.split([' ', ';', ',', '(', ')']) {
        if token == word {
            return last;
        }
        if !token.is_empty() {
            last = token.parse().ok();
        }
    }
    None
}

/// `test result: ok. 12 passed; 1 failed; …`
fn cargo(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("test result: ")?;
    Some((before(rest, "passed")?, before(rest, "failed")?))
}

/// `Summary [ 0.1s] 12 tests run: 11 passed, 1 failed, 0 skipped`
fn nextest(line: &str) -> Option<(u32, u32)> {
    let (_, rest) = line.strip_prefix("Summary [")?.split_once("run:")?;
    Some((
        before(rest, "passed").unwrap_or(0),
        before(rest, "failed").unwrap_or(0),
    ))
}

/// `=== 3 failed, 12 passed in 0.1s ===` and `12 passed in 0.1s`
fn pytest(line: &str) -> Option<(u32, u32)> {
    let rest = line.trim_matches('=').trim();
    if !rest.contains(" in ") || !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (passed, failed) = (before(rest, "passed"), before(rest, "failed"));
    (passed.is_some() || failed.is_some()).then(|| (passed.unwrap_or(0), failed.unwrap_or(0)))
}

/// `Tests:       1 failed, 12 passed, 13 total`; vitest: `Tests  1 failed | 12 passed (13)`
fn jest(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("Tests")?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let (passed, failed) = (before(rest, "passed"), before(rest, "failed"));
    (passed.is_some() || failed.is_some()).then(|| (passed.unwrap_or(0), failed.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::tests;

    #[test]
    fn the_usual_runners_are_understood() {
        for (output, counted) in [
            (
                "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
                 test result: FAILED. 3 passed; 2 failed; 0 ignored\n",
                Some((15, 17)),
            ),
            (
                "     Summary [   0.2s] 4 tests run: 3 passed, 1 failed, 0 skipped",
                Some((3, 4)),
            ),
            ("===== 2 failed, 5 passed in 0.12s =====", Some((5, 7))),
            ("5 passed in 0.12s", Some((5, 5))),
            ("Tests:       1 failed, 12 passed, 13 total", Some((12, 13))),
            (" Tests  12 passed (12)", Some((12, 12))),
            (
                "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL",
                Some((1, 2)),
            ),
            ("Tests are good for you", None),
            ("all is well", None),
            ("", None),
        ] {
            assert_eq!(tests(output), counted, "{output}");
        }
    }
}
