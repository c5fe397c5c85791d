//! What a line of code uses, by its words alone.

use crate::Language;

/// A name on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use<'a> {
    /// The name.
    pub name: &'a str,
    /// Whether it looks like a call.
    pub call: bool,
    /// Whether it is declared here rather than used.
    pub declared: bool,
}

/// Words after which a name is declared, not used.
const DECLARING: &[&str] = &[
    "fn",
    "def",
    "func",
    "function",
    "class",
    "struct",
    "enum",
    "union",
    "trait",
    "interface",
    "type",
    "mod",
    "let",
    "const",
    "static",
    "var",
];

/// The names that a line uses or declares. Comments and strings are left out where one line tells them apart.
pub fn uses(language: Language, line: &str) -> Vec<Use<'_>> {
    let code = code(language, line);
    let mut found = Vec::new();
    let mut before = "";
    let mut quoted = false;
    let mut rest = code;
    let mut offset = 0;
    while let Some(c) = rest.chars().next() {
        let at = offset;
        if c == '"' {
            quoted = !quoted;
        }
        if quoted || !is_start(c) {
            // Digits begin no name, and what follows them is part of the number.
            let skip = if c.is_ascii_digit() {
                rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())
            } else {
                c.len_utf8()
            };
            offset += skip;
            rest = &rest[skip..];
            continue;
        }
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let name = &code[at..at + end];
        offset += end;
        rest = &rest[end..];
        let next = rest.trim_start();
        let declared = DECLARING.contains(&before);
        let call = next.starts_with('(') || next.starts_with("::<") || next.starts_with('!');
        found.push(Use {
            name,
            call: call && !declared,
            declared,
        });
        before = name;
    }
    found
}

/// The line without its comment.
fn code(language: Language, line: &str) -> &str {
    let trimmed = line.trim_start();
    let mark = if language == Language::Python {
        "#"
    } else {
        "//"
    };
    if trimmed.starts_with('*') || trimmed.starts_with("/*") {
        return "";
    }
    let mut from = 0;
    while let Some(found) = line[from..].find(mark) {
        let at = from + found;
        // An odd number of quotes before it: it is in a string.
        if line[..at].matches('"').count().is_multiple_of(2) {
            return &line[..at];
        }
        from = at + mark.len();
    }
    line
}

fn is_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(language: Language, line: &str) -> Vec<&str> {
        let found = uses(language, line);
        let calls = found.into_iter().filter(|one| one.call);
        calls.map(|one| one.name).collect()
    }

    #[test]
    fn calls_are_told_from_declarations_comments_and_strings() {
        for (language, line, expected) in [
            (
                Language::Rust,
                "let x = cart.total(3) + sum::<u8>(y);",
                vec!["total", "sum"],
            ),
            (Language::Rust, "fn total(x: u32) {", vec![]),
            (Language::Rust, "// total(3)", vec![]),
            (
                Language::Rust,
                "let s = \"total(3) // \"; go(1)",
                vec!["go"],
            ),
            (
                Language::Python,
                "return total(cart)  # sum(1)",
                vec!["total"],
            ),
            (Language::Python, "def total(cart):", vec![]),
            (
                Language::Go,
                "func Total(c Cart) int { return Sum(c) }",
                vec!["Sum"],
            ),
            (Language::Tsx, "export function total(c) {", vec![]),
            (Language::Rust, "0xfff(a)", vec![]),
            (Language::Rust, "日本(1)", vec!["日本"]),
        ] {
            assert_eq!(called(language, line), expected, "{line}");
        }
    }

    #[test]
    fn names_without_a_call_are_uses_too() {
        let found = uses(Language::Rust, "let c: Cart = Cart { items };");
        assert_eq!(found.iter().filter(|one| one.name == "Cart").count(), 2);
    }
}
