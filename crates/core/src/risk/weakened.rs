//! Tests that a change removes or no longer runs, read from its patch.
//!
//! By the look of lines, for the usual languages: a hint for a person, nothing more.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use super::Signal;

/// Names that are shown of many.
const SHOWN: usize = 3;
const EXTENSIONS: &[&str] = &[
    "rs", "py", "js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "go", "java", "kt", "rb",
    "php", "cs", "swift", "c", "cc", "cpp", "ex", "exs",
];
/// What makes a test be left out, where a line begins with it or has it.
const SKIPS: &[&str] = &[
    "#[ignore",
    "@pytest.mark.skip",
    "@pytest.mark.xfail",
    "pytest.skip(",
    "@unittest.skip",
    "self.skipTest(",
    "it.skip(",
    "test.skip(",
    "describe.skip(",
    "it.todo(",
    "test.todo(",
    "xit(",
    "xtest(",
    "xdescribe(",
    "t.Skip(",
    "t.SkipNow(",
    "b.Skip(",
    "@Disabled",
    "@Ignore",
];

/// Whether a file may hold tests.
pub fn may_hold_tests(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.')
        .is_some_and(|(_, ext)| EXTENSIONS.contains(&ext))
}

/// Whether a file is one of tests, by its name and place.
pub(super) fn is_test_file(path: &str) -> bool {
    let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_place = |dir: &str| matches!(dir, "test" | "tests" | "__tests__" | "spec" | "specs");
    may_hold_tests(path)
        && (dirs.split('/').any(is_place)
            || stem.starts_with("test_")
            || ["_test", "_spec", ".test", ".spec", "Test", "Tests"]
                .iter()
                .any(|end| stem.ends_with(end)))
}

/// What a patch does to tests. A test that is moved is not removed.
pub fn weakened(patch: &str) -> Vec<Signal> {
    let mut removed: Vec<String> = Vec::new();
    let mut added: BTreeSet<String> = BTreeSet::new();
    let mut skipped: Vec<String> = Vec::new();
    let (mut was, mut path) = ("", "");
    // The last line of each side may say what the next one is.
    let (mut was_marked, mut is_marked) = (false, false);
    let mut in_hunk = false;
    for line in patch.lines() {
        if line.starts_with("diff --git ") {
            in_hunk = false;
        } else if !in_hunk && let Some(file) = line.strip_prefix("--- ") {
            path = file.strip_prefix("a/").unwrap_or(file);
            was = path;
        } else if !in_hunk && let Some(file) = line.strip_prefix("+++ b/") {
            path = file;
        } else if line.starts_with("@@ ") {
            in_hunk = true;
            (was_marked, is_marked) = (false, false);
        }
        if !in_hunk || !(may_hold_tests(path) || may_hold_tests(was)) {
            continue;
        }
        let (sign, text) = line.split_at_checked(1).unwrap_or_default();
        let text = text.trim();
        match sign {
            "-" => {
                if let Some(name) = test_name(text, was_marked) {
                    removed.push(name.to_string());
                }
                was_marked = marks(text, was_marked);
            }
            "+" => {
                if let Some(name) = test_name(text, is_marked) {
                    added.insert(name.to_string());
                }
                is_marked = marks(text, is_marked);
                if is_skip(text) {
                    skipped.push(path.to_string());
                }
            }
            _ => {
                was_marked = marks(text, was_marked);
                is_marked = marks(text, is_marked);
            }
        }
    }
    removed.retain(|name| !added.contains(name));
    let mut found = Vec::new();
    if !removed.is_empty() {
        found.push(Signal::TestsRemoved(shown(removed)));
    }
    if !skipped.is_empty() {
        found.push(Signal::TestsSkipped(shown(skipped)));
    }
    found
}

/// Whether a line says that the next function is a test.
fn marks(text: &str, already: bool) -> bool {
    let is_test = text.starts_with("#[")
        && text
            .trim_start_matches("#[")
            .split(['(', ']', ' '])
            .next()
            .is_some_and(|name| name == "test" || name.ends_with("::test") || name == "rstest");
    let is_java = text == "@Test" || text.starts_with("@Test(") || text == "@ParameterizedTest";
    // Other attributes and empty lines come between.
    is_test
        || is_java
        || (already && (text.is_empty() || text.starts_with("#[") || text.starts_with('@')))
}

/// The name of the test that begins with a line.
fn test_name(text: &str, is_marked: bool) -> Option<&str> {
    let upto = |rest: &'_ str| -> usize {
        rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len())
    };
    if let Some(rest) = text
        .strip_prefix("def ")
        .or_else(|| text.strip_prefix("async def "))
    {
        return rest.starts_with("test").then(|| &rest[..upto(rest)]);
    }
    if let Some(rest) = text.strip_prefix("func ") {
        return rest.starts_with("Test").then(|| &rest[..upto(rest)]);
    }
    for start in ["it(", "test(", "it.each(", "test.each("] {
        if let Some(rest) = text.strip_prefix(start) {
            let quote = rest
                .chars()
                .next()
                .filter(|c| matches!(c, '"' | '\'' | '`'))?;
            let name = &rest[1..];
            return name.find(quote).map(|end| &name[..end]);
        }
    }
    if is_marked {
        let (_, rest) = text
            .split_once("fn ")
            .or_else(|| text.split_once("void "))?;
        return Some(&rest[..upto(rest)]);
    }
    None
}

fn is_skip(text: &str) -> bool {
    let is_comment = text.starts_with("//") || (text.starts_with('#') && !text.starts_with("#["));
    !is_comment
        && SKIPS.iter().any(|skip| {
            text.find(skip).is_some_and(|at| {
                // `exit(` is not `xit(`, and a text about it is not it.
                let before = text[..at].chars().next_back();
                !before.is_some_and(|c| {
                    c.is_alphanumeric() || matches!(c, '_' | '.' | '"' | '\'' | '`')
                })
            })
        })
}

fn shown(mut names: Vec<String>) -> String {
    names.dedup();
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let names = names.join(", ");
    if more == 0 {
        names
    } else {
        format!("{names} and {more} more")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn patch(path: &str, lines: &str) -> String {
        format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,9 +1,9 @@\n{lines}"
        )
    }

    #[test]
    fn removed_tests_are_named_in_every_language() {
        for (path, lines, name) in [
            (
                "src/a.rs",
                "-    #[test]\n-    fn adds() {\n-    }\n",
                "adds",
            ),
            (
                "src/a.rs",
                "     #[tokio::test]\n-    async fn adds() {\n",
                "adds",
            ),
            (
                "test_a.py",
                "-def test_adds():\n-    assert 1\n",
                "test_adds",
            ),
            ("a.test.ts", "-  it('adds', () => {\n", "adds"),
            ("a_test.go", "-func TestAdds(t *testing.T) {\n", "TestAdds"),
            ("A.java", "-    @Test\n-    void adds() {\n", "adds"),
        ] {
            assert_eq!(
                weakened(&patch(path, lines)),
                [Signal::TestsRemoved(name.into())],
                "{lines}"
            );
        }
    }

    #[test]
    fn a_test_that_moves_or_changes_is_not_removed() {
        let moved = "-    #[test]\n-    fn adds() {\n+    #[test]\n+    fn adds() -> R {\n";
        assert_eq!(weakened(&patch("src/a.rs", moved)), vec![]);
        let plain = "-    fn adds() {\n-    let x = test(1);\n";
        assert_eq!(weakened(&patch("src/a.rs", plain)), vec![]);
    }

    #[test]
    fn skipped_tests_are_pointed_out() {
        for (path, line) in [
            ("src/a.rs", "+    #[ignore = \"slow\"]\n"),
            ("test_a.py", "+@pytest.mark.skip(reason='x')\n"),
            ("a.test.ts", "+  it.skip('adds', () => {\n"),
            ("a.test.ts", "+  xit('adds', () => {\n"),
            ("a_test.go", "+\tt.Skip(\"later\")\n"),
        ] {
            assert_eq!(
                weakened(&patch(path, line)),
                [Signal::TestsSkipped(path.into())],
                "{line}"
            );
        }
        for line in [
            "+    process.exit(1);\n",
            "+ // it.skip( is bad\n",
            "+ say(\"it.skip(\")\n",
        ] {
            assert_eq!(weakened(&patch("a.ts", line)), vec![], "{line}");
        }
        assert_eq!(weakened(&patch("notes.md", "+ #[ignore]\n")), vec![]);
    }

    #[test]
    fn a_deleted_file_takes_its_tests_with_it() {
        let patch = "diff --git a/tests/a.rs b/tests/a.rs\ndeleted file mode 100644\n\
                     --- a/tests/a.rs\n+++ /dev/null\n@@ -1,4 +0,0 @@\n-#[test]\n-fn one() {}\n\
                     -#[test]\n-fn two() {}\n-#[test]\n-fn three() {}\n-#[test]\n-fn four() {}\n";
        assert_eq!(
            weakened(patch),
            [Signal::TestsRemoved("one, two, three and 1 more".into())]
        );
    }
}
