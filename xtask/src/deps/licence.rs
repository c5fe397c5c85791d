//! Rule: every crate in the graph can be used under a licence from the list.
//!
//! It reads the expression a crate declares; it never reads licence texts.

use super::metadata::Metadata;
use super::rules::{HERE, LICENCES};

pub(super) fn examine(metadata: &Metadata) -> Vec<String> {
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let crate_id = format!("{} {}", package.name, package.version);
        let what = match package.licence.as_deref() {
            None => "declares no licence expression".to_owned(),
            Some(expression) => match is_satisfiable(expression, LICENCES) {
                Ok(true) => continue,
                Ok(false) => format!("is licensed {expression}, which the list does not satisfy"),
                Err(Malformed) => format!("has the unreadable licence expression {expression:?}"),
            },
        };
        findings.push(format!(
            "{crate_id} {what}; `cargo tree --invert {}` shows who needs it: replace it, or add \
             its licence to LICENCES in {HERE} if it may be shipped",
            package.name
        ));
    }
    findings
}

/// The text is no licence expression.
#[derive(Debug, PartialEq, Eq)]
struct Malformed;

/// Whether some choice among the alternatives uses only `allowed` licences.
///
/// SPDX expressions with `AND`, `OR`, `WITH` and parentheses, and the old `/` for `OR`.
fn is_satisfiable(expression: &str, allowed: &[&str]) -> Result<bool, Malformed> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut parser = Parser {
        words: spaced.split_whitespace().collect(),
        next: 0,
        allowed,
    };
    let verdict = parser.alternatives()?;
    if parser.peek().is_some() {
        return Err(Malformed);
    }
    Ok(verdict)
}

/// Recursive descent; `AND` binds tighter than `OR`.
struct Parser<'a> {
    words: Vec<&'a str>,
    next: usize,
    allowed: &'a [&'a str],
}

impl<'a> Parser<'a> {
    fn alternatives(&mut self) -> Result<bool, Malformed> {
        let mut verdict = self.conjunction()?;
        while self.takes("OR") {
            verdict |= self.conjunction()?;
        }
        Ok(verdict)
    }

    fn conjunction(&mut self) -> Result<bool, Malformed> {
        let mut verdict = self.single()?;
        while self.takes("AND") {
            verdict &= self.single()?;
        }
        Ok(verdict)
    }

    fn single(&mut self) -> Result<bool, Malformed> {
        if self.takes("(") {
            let verdict = self.alternatives()?;
            return if self.takes(")") {
                Ok(verdict)
            } else {
                Err(Malformed)
            };
        }
        let licence = self.name()?;
        if self.takes("WITH") {
            let exception = self.name()?;
            let both = format!("{licence} WITH {exception}");
            return Ok(self.allowed.contains(&both.as_str()));
        }
        Ok(self.allowed.contains(&licence))
    }

    fn name(&mut self) -> Result<&'a str, Malformed> {
        let word = self.peek().ok_or(Malformed)?;
        if ["AND", "OR", "WITH", "(", ")"].contains(&word) {
            return Err(Malformed);
        }
        self.next += 1;
        Ok(word)
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        self.next += usize::from(is_next);
        is_next
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::metadata::tests::{foreign, metadata};
    use super::*;

    #[test]
    fn expressions_are_evaluated_as_spdx_says() {
        for (expression, verdict) in [
            ("MIT", Ok(true)),
            ("GPL-3.0-only", Ok(false)),
            ("MIT OR GPL-3.0-only", Ok(true)),
            ("GPL-2.0/MIT", Ok(true)),
            ("GPL-2.0 / LGPL-2.1", Ok(false)),
            ("MIT AND GPL-3.0-only", Ok(false)),
            ("GPL-3.0-only OR MIT AND ISC", Ok(true)),
            ("MIT AND ISC OR GPL-3.0-only", Ok(true)),
            ("(MIT OR GPL-3.0-only) AND Unicode-3.0", Ok(true)),
            ("MIT AND (GPL-3.0-only OR LGPL-2.1)", Ok(false)),
            ("Apache-2.0 WITH LLVM-exception OR MIT", Ok(true)),
            ("Apache-2.0 WITH LLVM-exception", Ok(true)),
            ("MIT WITH LLVM-exception", Ok(false)),
            ("MITX", Ok(false)),
            ("", Err(Malformed)),
            ("MIT OR", Err(Malformed)),
            ("MIT ISC", Err(Malformed)),
            ("(MIT", Err(Malformed)),
            ("MIT)", Err(Malformed)),
            ("OR MIT", Err(Malformed)),
        ] {
            assert_eq!(
                is_satisfiable(expression, LICENCES),
                verdict,
                "{expression}"
            );
        }
    }

    #[test]
    fn a_crate_with_a_bad_licence_or_none_is_named() {
        let graph = metadata(&[
            foreign("good", Some("MIT/Apache-2.0")),
            foreign("copyleft", Some("AGPL-3.0-only")),
            foreign("silent", None),
            foreign("strange", Some("MIT OR")),
        ]);
        let findings = examine(&graph);
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[0].starts_with("copyleft 1.2.3 is licensed AGPL-3.0-only"));
        assert!(findings[1].starts_with("silent 1.2.3 declares no licence"));
        assert!(findings[2].starts_with("strange 1.2.3 has the unreadable licence"));
    }
}
