//! Patterns of paths: `*` and `?` stay inside one name, `**` spans directories.
//!
//! A pattern without a `/` is about the file's own name, wherever it is. Matching takes time in
//! proportion to the two lengths, whatever the pattern.

use alloc::vec;
use alloc::vec::Vec;

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
    fn a_hostile_pattern_takes_no_longer() {
        let pattern = "*a".repeat(500);
        let name = "a".repeat(20_000) + "b";
        assert!(!matches(&pattern, &name));
    }
}
