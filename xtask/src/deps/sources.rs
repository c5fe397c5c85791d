//! Rule: the core is built without the standard library, so it can't reach the world at all.

/// One source file of the core.
pub(crate) struct Source {
    /// Its path in the repository.
    pub(crate) path: String,
    pub(crate) text: String,
}

const ROOT: &str = "crates/core/src/lib.rs";

pub(super) fn examine(sources: &[Source]) -> Vec<String> {
    let mut findings: Vec<String> = sources.iter().flat_map(examine_file).collect();
    let is_bare = |source: &Source| {
        let mut lines = source.text.lines();
        source.path == ROOT && lines.any(|line| line.trim() == "#![no_std]")
    };
    if !sources.iter().any(is_bare) {
        findings.push(format!(
            "{ROOT} lacks `#![no_std]`, so woodward-core could reach files, clocks and the \
             network; add it below the module's header"
        ));
    }
    findings
}

fn examine_file(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let mut line_before = "";
    for (number, line) in (1..).zip(source.text.lines().map(str::trim)) {
        let is_comment = line.starts_with("//");
        let links_std = !is_comment && line.contains("extern crate std");
        let is_for_tests = [line_before, line]
            .iter()
            .any(|line| line.starts_with("#[cfg(test)]"));
        if links_std && !is_for_tests {
            findings.push(format!(
                "{}:{number} links the standard library into woodward-core; remove it, or put \
                 `#[cfg(test)]` on the line above if only tests need it",
                source.path
            ));
        }
        if !line.is_empty() && !is_comment {
            line_before = line;
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::{ROOT, Source, examine};

    fn core(text: &str) -> Vec<String> {
        examine(&[Source {
            path: ROOT.to_owned(),
            text: text.to_owned(),
        }])
    }

    #[test]
    fn a_bare_core_with_std_in_tests_passes() {
        let text = "//! Like `extern crate std;`, but not.\n#![no_std]\n\n#[cfg(test)]\nextern crate std;\n";
        assert_eq!(core(text), [""; 0]);
    }

    #[test]
    fn a_core_with_the_standard_library_is_named() {
        let findings = core("//! #![no_std]\npub mod a;\n");
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("lacks `#![no_std]`"), "{findings:?}");
    }

    #[test]
    fn std_linked_outside_tests_is_named_with_its_line() {
        for text in [
            "#![no_std]\nextern crate std;\n",
            "#![no_std]\n#[cfg(test)]\nmod tests;\n extern crate std as s;\n",
        ] {
            let findings = core(text);
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].contains("lib.rs:"), "{findings:?}");
        }
    }
}
