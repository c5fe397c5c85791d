//! Patterns of paths: `*` and `?` stay inside one name, `**` spans directories.
//!
//! A pattern without a `/` is about the file's own name, wherever it is. Matching takes time in
//! proportion to the two lengths, whatever the pattern.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use thiserror::Error;

/// The longest pattern.
const BYTES_MAX: usize = 4096;

/// Why a text is no pattern of paths.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{given}` is not a valid path pattern: {reason}")]
pub struct InvalidPattern {
    /// What was given, printable and cut.
    pub given: String,
    /// What is wrong with it.
    pub reason: &'static str,
    /// What to write instead.
    pub advice: &'static str,
}

/// Refuses a pattern that can match no path of a repository, or that is written in the language of
/// another tool, so that it would match nothing silently.
///
/// # Errors
/// Says what is wrong and what to write instead.
pub fn validate(pattern: &str) -> Result<(), InvalidPattern> {
    let Some((reason, advice)) = defect(pattern) else {
        return Ok(());
    };
    let printable = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    Err(InvalidPattern {
        given: pattern.chars().map(printable).take(80).collect(),
        reason,
        advice,
    })
}

fn defect(pattern: &str) -> Option<(&'static str, &'static str)> {
    let inside = pattern.strip_prefix("./").unwrap_or(pattern);
    let inside = inside.strip_prefix('/').unwrap_or(inside);
    let directory = inside.strip_suffix('/').unwrap_or(inside);
    let components = || directory.split('/');
    Some(if pattern.trim().is_empty() {
        ("it is empty", "write a pattern such as `src/**`")
    } else if pattern.len() > BYTES_MAX {
        ("it is too long", "write at most 4096 bytes")
    } else if pattern.chars().any(char::is_control) {
        ("it contains control characters", "leave them out")
    } else if pattern.contains('\\') {
        ("it contains a backslash", "separate directories with `/`")
    } else if pattern.starts_with('!') {
        (
            "patterns can't be negated",
            "name the paths that are included",
        )
    } else if components().any(|part| part == "." || part == "..") {
        (
            "`.` and `..` are not allowed in it",
            "write it from the repository's root, such as `src/**`",
        )
    } else if pattern != "/" && components().any(str::is_empty) {
        ("it contains an empty name", "write a single `/`")
    } else if components().any(|part| part != "**" && part.contains("**")) {
        (
            "`**` must be a whole name",
            "write `src/**/*.rs`, or a single `*`",
        )
    } else if !is_balanced(pattern, '[', ']') {
        ("`[` and `]` do not match", "close the bracket")
    } else if pattern.contains(['{', '}']) {
        (
            "`{` and `}` are not supported",
            "give one pattern for each alternative",
        )
    } else {
        return None;
    })
}

/// Whether every opening bracket is closed and the other way round. Brackets stand for themselves:
/// directories such as `app/[id]` are common.
fn is_balanced(pattern: &str, open: char, close: char) -> bool {
    let mut depth = 0_u32;
    for c in pattern.chars() {
        if c == open {
            depth += 1;
        } else if c == close {
            match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            }
        }
    }
    depth == 0
}

/// Whether a path, written with `/` from the repository's root, matches.
pub fn matches(pattern: &str, path: &str) -> bool {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    if !pattern.contains('/') {
        let name = path.rsplit('/').next().unwrap_or(path);
        return pattern == "**" || name_matches(pattern, name);
    }
    let mut parts: Vec<&str> = pattern.trim_start_matches('/').split('/').collect();
    // A directory is everything in it.
    if let Some(last) = parts.last_mut()
        && last.is_empty()
    {
        *last = "**";
    }
    let names: Vec<&str> = path.split('/').collect();
    // reached[n]: whether the parts so far match the first n names.
    let mut reached = vec![false; names.len() + 1];
    reached[0] = true;
    for part in parts {
        let mut next = vec![false; names.len() + 1];
        if part == "**" {
            let mut any = false;
            for (at, reached) in reached.iter().enumerate() {
                any |= *reached;
                next[at] = any;
            }
        } else {
            for (at, name) in names.iter().enumerate() {
                next[at + 1] = reached[at] && name_matches(part, name);
            }
        }
        reached = next;
    }
    reached[names.len()]
}

/// Matches one name, going back only to the last `*`.
fn name_matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_people_expect() {
        for (pattern, path, expected) in [
            ("src/**", "src/a.rs", true),
            ("src/**", "src/a/b/c.rs", true),
            ("src/**", "lib/src/a.rs", false),
            ("**/src/*.rs", "lib/src/a.rs", true),
            ("**/src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/", "src/a/b.rs", true),
            ("/src/*.rs", "src/b.rs", true),
            ("*.rs", "deep/in/a.rs", true),
            ("*.rs", "a.rs.bak", false),
            ("Cargo.toml", "crates/x/Cargo.toml", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("src/**/test_*.py", "src/test_x.py", true),
            ("src/**/test_*.py", "src/a/b/test_x.py", true),
            ("src/**/test_*.py", "src/a/b/x_test.py", false),
            ("**", "anything/at/all", true),
            ("", "a", false),
            ("日*", "日本", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        }
    }

    #[test]
    fn patterns_that_can_match_nothing_are_refused() {
        for good in [
            "src/**",
            "/src/*.rs",
            "./docs/",
            "Cargo.toml",
            "**",
            "app/[id]/page.tsx",
            "a b/ü?.md",
            "/",
        ] {
            assert_eq!(validate(good), Ok(()), "{good}");
        }
        for (bad, reason) in [
            ("", "empty"),
            ("  ", "empty"),
            ("src/[a", "do not match"),
            ("src/a]", "do not match"),
            ("src/]a[", "do not match"),
            ("src/{a,b}.rs", "not supported"),
            ("../other/**", "not allowed"),
            ("src/./a", "not allowed"),
            ("src//a", "empty name"),
            ("src**", "whole name"),
            ("src/***", "whole name"),
            ("!src/**", "negated"),
            ("src\\a", "backslash"),
            ("src/\u{1b}[2J", "control"),
        ] {
            let refused = validate(bad).unwrap_err();
            assert!(refused.reason.contains(reason), "{bad}: {refused}");
            assert!(!refused.given.contains('\u{1b}'));
        }
        assert!(validate(&"a".repeat(5_000)).is_err());
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer() {
        let pattern = "*a".repeat(500);
        let name = "a".repeat(20_000) + "b";
        assert!(!matches(&pattern, &name));
    }
}
