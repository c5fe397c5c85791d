//! Names that people type.
//!
//! A task's name becomes part of a branch, a directory and a command line, so the rule is stricter
//! than git's own (which accepts `a;id` and `$(id)`). A name that breaks it is refused with one that
//! would pass; nothing is silently rewritten.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{given}` can't be a name: {rule}")]
pub struct BadName {
    /// What was given, cut to a printable length.
    pub given: String,
    /// The rule it breaks.
    pub rule: &'static str,
    /// A name close to it that would pass, where there is one.
    pub suggestion: Option<String>,
}

const LENGTH_MAX: usize = 63;

fn broken_rule(text: &str) -> Option<&'static str> {
    let first = text.bytes().next()?;
    if text.len() > LENGTH_MAX {
        Some("it is longer than 63 characters")
    } else if !text
        .bytes()
        .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'))
    {
        Some("only a-z, 0-9, `-`, `_` and `.` are allowed")
    } else if !first.is_ascii_alphanumeric() {
        Some("it must start with a letter or a digit")
    } else if text.contains("..") {
        Some("`..` is not allowed")
    } else if text.ends_with(['.', '-']) {
        Some("it must not end with `.` or `-`")
    } else if text.ends_with(".lock") {
        Some("git reserves names that end with `.lock`")
    } else {
        None
    }
}

fn check(text: &str) -> Result<String, BadName> {
    let rule = if text.is_empty() {
        Some("it is empty")
    } else {
        broken_rule(text)
    };
    match rule {
        None => Ok(String::from(text)),
        Some(rule) => Err(BadName {
            given: text
                .chars()
                .map(|c| if c.is_control() { '\u{fffd}' } else { c })
                .take(80)
                .collect(),
            rule,
            suggestion: suggest(text),
        }),
    }
}

fn suggest(text: &str) -> Option<String> {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() == LENGTH_MAX {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    (!slug.is_empty() && broken_rule(slug).is_none()).then(|| String::from(slug))
}

macro_rules! name {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = BadName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                check(text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadName;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )+};
}

name! {
    /// What people type to mean a task. Unique among a project's open tasks.
    TaskName;
    /// What people type to mean a project.
    ProjectName;
    /// A gate, as `woodward.yaml` names it.
    GateName;
    /// An agent, as `woodward.yaml` names it.
    AgentName;
    /// A way to reach a person, as `notify.channels` names it.
    ChannelName;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_names_pass() {
        for name in ["auth-api", "e2e-tests", "fix_login", "v1.2", "a", "9lives"] {
            assert!(name.parse::<TaskName>().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_bad_name_is_refused_with_one_that_would_pass() {
        for (given, suggestion) in [
            ("Fix login", Some("fix-login")),
            ("feature/auth", Some("feature-auth")),
            ("--force", Some("force")),
            ("../../etc/passwd", Some("etc-passwd")),
            ("a..b", Some("a-b")),
            ("x.lock", Some("x-lock")),
            ("$(id)", Some("id")),
            ("grüße", Some("gr-e")),
            ("日本", None),
            ("", None),
            ("a\u{1b}[31m", Some("a-31m")),
        ] {
            let refused = given.parse::<TaskName>().expect_err(given);
            assert_eq!(refused.suggestion.as_deref(), suggestion, "{given}");
            assert!(!refused.given.contains('\u{1b}'));
        }
        assert!("a".repeat(64).parse::<TaskName>().is_err());
    }

    #[test]
    fn a_suggestion_always_passes() {
        for given in ["A".repeat(200), "é é é".into(), "-.-x-.-".into()] {
            let refused = given.parse::<TaskName>().expect_err("breaks the rule");
            if let Some(better) = refused.suggestion {
                assert!(better.parse::<TaskName>().is_ok(), "{better}");
            }
        }
    }
}
