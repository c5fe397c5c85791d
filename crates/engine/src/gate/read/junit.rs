//! Reports in JUnit's XML form, which many runners write beside their output.

use roxmltree::{Document, Node};
use woodward_store::TestCounts;

use super::{Failed, Reading, SECTION_MAX, first_lines};

/// Adds what a report says. What is not such a report says nothing.
pub(crate) fn read(xml: &str, reading: &mut Reading) -> bool {
    let Ok(document) = Document::parse(xml) else {
        return false;
    };
    let mut counts = TestCounts::default();
    let mut seen = false;
    for suite in named(document.root(), "testsuite") {
        seen = true;
        for case in suite.children().filter(|it| it.has_tag_name("testcase")) {
            let child = |name| case.children().find(|it| it.has_tag_name(name));
            if let Some(failure) = child("failure").or_else(|| child("error")) {
                counts.failed += 1;
                reading.fail(failed(case, failure));
            } else if child("skipped").is_some() {
                counts.skipped += 1;
            } else {
                counts.passed += 1;
            }
        }
    }
    if seen {
        reading.count(counts);
    }
    seen
}

fn named<'a>(root: Node<'a, 'a>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    root.descendants().filter(move |it| it.has_tag_name(name))
}

fn failed(case: Node<'_, '_>, failure: Node<'_, '_>) -> Failed {
    let attribute = |node: Node<'_, '_>, name| node.attribute(name).unwrap_or_default().to_owned();
    let class = attribute(case, "classname");
    let name = attribute(case, "name");
    let text = failure.text().unwrap_or_default().trim();
    let mut cut = text.len().min(SECTION_MAX);
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    let said = attribute(failure, "message");
    Failed {
        name: if class.is_empty() {
            name
        } else {
            format!("{class}::{name}")
        },
        message: first_lines(if said.is_empty() { text } else { &said }, 3),
        section: text[..cut].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_counted_by_its_cases() {
        let xml = r#"<?xml version="1.0"?>
<testsuites><testsuite name="cart" tests="4" failures="9">
  <testcase classname="cart" name="adds"/>
  <testcase classname="cart" name="removes"><failure message="1 != 0">at line 3 &amp; on</failure></testcase>
  <testcase classname="cart" name="later"><skipped/></testcase>
  <testcase name="crashes"><error>boom</error></testcase>
</testsuite></testsuites>"#;
        let mut reading = Reading::default();
        assert!(read(xml, &mut reading));
        let counts = TestCounts {
            passed: 1,
            failed: 2,
            skipped: 1,
        };
        assert_eq!(reading.tests, Some(counts));
        let failed = &reading.failures[0];
        assert_eq!(
            (&*failed.name, &*failed.message, &*failed.section),
            ("cart::removes", "1 != 0", "at line 3 & on")
        );
        assert_eq!(reading.failures[1].name, "crashes");
    }

    #[test]
    fn what_is_no_report_says_nothing() {
        for text in ["", "not xml", "<html/>", "<testsuite>"] {
            let mut reading = Reading::default();
            assert!(!read(text, &mut reading), "{text}");
            assert_eq!(reading, Reading::default());
        }
    }
}
