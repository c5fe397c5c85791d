//! What a gate's output says: how many tests there were, and what failed. Pure.
//!
//! Output is data. What no known program printed is left alone: a number that is guessed would be
//! worse than none.

mod cargo;
mod complaints;
mod go;
mod javascript;
mod junit;
mod python;

pub(crate) use junit::read as junit;

use woodward_store::TestCounts;

/// The most failures that are told apart.
const FAILURES_MAX: usize = woodward_core::gate::FAILURES_MAX;
/// How much of one failure's own section of the output is kept.
const SECTION_MAX: usize = 2_000;

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Tests, where the output tells of them.
    pub(crate) tests: Option<TestCounts>,
    /// What failed, in the order of the output.
    pub(crate) failures: Vec<Failed>,
}

/// One thing that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failed {
    /// The test; or the file and the kind of complaint.
    pub(crate) name: String,
    /// What it said, as far as it tells one failure from another.
    pub(crate) message: String,
    /// Its own part of the output, bounded.
    pub(crate) section: String,
}

impl Reading {
    /// Adds counts to what is known.
    fn count(&mut self, more: TestCounts) {
        let all = self.tests.get_or_insert_default();
        all.passed = all.passed.saturating_add(more.passed);
        all.failed = all.failed.saturating_add(more.failed);
        all.skipped = all.skipped.saturating_add(more.skipped);
    }

    /// Adds a failure, once a name.
    fn fail(&mut self, failed: Failed) {
        match self.failures.iter().position(|it| it.name == failed.name) {
            Some(at) if self.failures[at].message.is_empty() => self.failures[at] = failed,
            None if self.failures.len() < FAILURES_MAX => self.failures.push(failed),
            _ => {}
        }
    }
}

/// Reads a gate's output. Tests that failed say more than what compilers and linters printed beside
/// them.
pub(crate) fn output(text: &str) -> Reading {
    let lines: Vec<&str> = text.lines().collect();
    let mut reading = Reading::default();
    for read in [cargo::read, python::read, javascript::read, go::read] {
        read(&lines, &mut reading);
    }
    if reading.failures.is_empty() {
        complaints::read(&lines, &mut reading);
    }
    reading
}

/// The number right before a word: `12 passed`.
fn before(line: &str, word: &str) -> Option<u32> {
    let mut last = None;
    for token in line.split([' ', ';', ',', '(', ')', '|']) {
        if token == word {
            return last;
        }
        if !token.is_empty() {
            last = token.parse().ok();
        }
    }
    None
}

/// Lines from `start` on, up to the first that is an end; bounded.
fn section(lines: &[&str], start: usize, is_end: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    for line in lines.iter().skip(start) {
        if is_end(line) || text.len() + line.len() > SECTION_MAX {
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text.trim().to_owned()
}

/// The first lines of a text that say something.
fn first_lines(text: &str, count: usize) -> String {
    let said = text.lines().map(str::trim).filter(|line| !line.is_empty());
    said.take(count).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passed, failed and skipped; names of failures.
    #[track_caller]
    fn reads(text: &str, counts: Option<(u32, u32, u32)>, failures: &[&str]) -> Reading {
        let reading = output(text);
        let known = reading.tests.map(|t| (t.passed, t.failed, t.skipped));
        assert_eq!(known, counts, "{text}");
        let names: Vec<&str> = reading.failures.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, failures, "{text}");
        reading
    }

    #[test]
    fn cargo_test() {
        let text = "\
running 2 tests
test math::adds ... ok
test math::divides ... FAILED

failures:

---- math::divides stdout ----

thread 'math::divides' panicked at src/lib.rs:20:9:
assertion `left == right` failed
  left: 2
 right: 3
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


failures:
    math::divides

test result: FAILED. 1 passed; 1 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s

test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";
        let reading = reads(text, Some((5, 1, 3)), &["math::divides"]);
        let failed = &reading.failures[0];
        assert_eq!(
            failed.message,
            "assertion `left == right` failed\nleft: 2\nright: 3"
        );
        assert!(
            failed.section.starts_with("thread 'math::divides'"),
            "{failed:?}"
        );
        assert!(!failed.section.contains("failures:"), "{failed:?}");
        reads(
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured",
            Some((0, 0, 0)),
            &[],
        );
    }

    #[test]
    fn nextest() {
        let text = "\
        PASS [   0.005s] shop cart::adds
        FAIL [   0.004s] shop cart::removes
     Summary [   0.2s] 4 tests run: 3 passed, 1 failed, 2 skipped
        FAIL [   0.004s] shop cart::removes
";
        reads(text, Some((3, 1, 2)), &["shop cart::removes"]);
    }

    #[test]
    fn pytest() {
        let text = "\
=================================== FAILURES ===================================
___________________________________ test_sum ___________________________________

    def test_sum():
>       assert total([1, 2]) == 4
E       assert 3 == 4

tests/test_cart.py:5: AssertionError
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_sum - assert 3 == 4
ERROR tests/test_api.py - ModuleNotFoundError: No module named 'api'
============ 1 failed, 5 passed, 2 skipped, 1 error in 0.12s ============
";
        let reading = reads(
            text,
            Some((5, 2, 2)),
            &["tests/test_cart.py::test_sum", "tests/test_api.py"],
        );
        assert_eq!(reading.failures[0].message, "assert 3 == 4");
        assert!(reading.failures[0].section.contains("def test_sum"));
        reads("5 passed in 0.12s", Some((5, 0, 0)), &[]);
        reads(
            "============ no tests ran in 0.01s ============",
            Some((0, 0, 0)),
            &[],
        );
        reads(
            "collected 0 items\n\n===== 3 deselected in 0.01s =====",
            Some((0, 0, 3)),
            &[],
        );
    }

    #[test]
    fn unittest() {
        let text = "\
FAIL: test_sum (test_cart.Cart.test_sum)
----------------------------------------------------------------------
Traceback (most recent call last):
  File \"test_cart.py\", line 6, in test_sum
AssertionError: 3 != 4

----------------------------------------------------------------------
Ran 3 tests in 0.001s

FAILED (failures=1, skipped=1)
";
        let reading = reads(text, Some((1, 1, 1)), &["test_cart.Cart.test_sum"]);
        assert_eq!(reading.failures[0].message, "AssertionError: 3 != 4");
        reads("Ran 2 tests in 0.001s\n\nOK", Some((2, 0, 0)), &[]);
        reads(
            "Ran 0 tests in 0.000s\n\nNO TESTS RAN",
            Some((0, 0, 0)),
            &[],
        );
    }

    #[test]
    fn jest_and_vitest() {
        let jest = "\
  ● cart › removes an item

    expect(received).toBe(expected) // Object.is equality

    Expected: 0
    Received: 1

Tests:       1 failed, 1 skipped, 12 passed, 14 total
";
        let reading = reads(jest, Some((12, 1, 1)), &["cart › removes an item"]);
        assert!(reading.failures[0].message.contains("Expected: 0"));
        reads("No tests found, exiting with code 1", Some((0, 0, 0)), &[]);
        let vitest = "\
 FAIL  src/cart.test.ts > cart > removes an item
AssertionError: expected 1 to be +0 // Object.is equality

 Test Files  1 failed | 2 passed (3)
      Tests  1 failed | 12 passed | 2 skipped (15)
";
        let reading = reads(
            vitest,
            Some((12, 1, 2)),
            &["src/cart.test.ts > cart > removes an item"],
        );
        assert_eq!(
            reading.failures[0].message,
            "AssertionError: expected 1 to be +0 // Object.is equality"
        );
        reads(
            "No test files found, exiting with code 1",
            Some((0, 0, 0)),
            &[],
        );
        reads(" Tests  12 passed (12)", Some((12, 0, 0)), &[]);
    }

    #[test]
    fn node_test() {
        let tap = "\
not ok 2 - removes an item
  ---
  error: 'Expected values to be strictly equal'
  ...
# tests 3
# pass 1
# fail 1
# skipped 1
";
        let reading = reads(tap, Some((1, 1, 1)), &["removes an item"]);
        assert!(reading.failures[0].section.contains("strictly equal"));
        reads("ℹ tests 3\nℹ pass 3\nℹ fail 0", Some((3, 0, 0)), &[]);
    }

    #[test]
    fn go_test() {
        let text = "\
=== RUN   TestAdd
--- PASS: TestAdd (0.00s)
=== RUN   TestRemove
    cart_test.go:12: got 1, want 0
--- FAIL: TestRemove (0.00s)
--- SKIP: TestSlow (0.00s)
FAIL
FAIL	example.org/shop	0.003s
";
        reads(text, Some((1, 1, 1)), &["TestRemove"]);
        let quiet = "\
--- FAIL: TestRemove (0.00s)
    cart_test.go:12: got 1, want 0
FAIL
FAIL	example.org/shop	0.003s
ok  	example.org/shop/api	0.002s
";
        let reading = reads(quiet, None, &["TestRemove"]);
        assert_eq!(
            reading.failures[0].message,
            "cart_test.go:12: got 1, want 0"
        );
        reads(
            "?   	example.org/shop	[no test files]",
            Some((0, 0, 0)),
            &[],
        );
        reads(
            "ok  	example.org/shop	0.002s [no tests to run]",
            Some((0, 0, 0)),
            &[],
        );
    }

    #[test]
    fn compilers_and_linters() {
        let rustc = "\
error[E0425]: cannot find value `totl` in this scope
 --> src/cart.rs:12:5
  |
12 |     totl
   |     ^^^^ help: a local variable with a similar name exists: `total`

error: could not compile `shop` (lib) due to 1 previous error
";
        let reading = reads(rustc, None, &["src/cart.rs: error[E0425]"]);
        assert_eq!(
            reading.failures[0].message,
            "cannot find value `totl` in this scope"
        );
        reads(
            "src/cart.ts(3,5): error TS2304: Cannot find name 'totl'.",
            None,
            &["src/cart.ts: error TS2304"],
        );
        reads(
            "cart.py:3: error: Name \"totl\" is not defined  [name-defined]\n\
             cart.c:4:2: error: unknown type name 'foo'",
            None,
            &["cart.py: error", "cart.c: error"],
        );
        reads(
            "/home/ada/shop/src/cart.js\n  3:5  error  'totl' is not defined  no-undef\n",
            None,
            &["/home/ada/shop/src/cart.js: error no-undef"],
        );
    }

    #[test]
    fn ordinary_words_are_not_results() {
        reads("Tests are good for you\nall is well", None, &[]);
        reads("", None, &[]);
        reads("test result: pending", None, &[]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut text = String::new();
        for n in 0..500 {
            text.push_str(&format!("test t{n} ... FAILED\n"));
        }
        text.push_str("---- t0 stdout ----\n");
        text.push_str(&"a long line that says little\n".repeat(1_000));
        let reading = output(&text);
        assert_eq!(reading.failures.len(), FAILURES_MAX);
        assert!(
            reading
                .failures
                .iter()
                .all(|f| f.section.len() <= SECTION_MAX)
        );
    }
}
