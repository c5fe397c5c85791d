//! The messages of the commits that Woodward makes, and who signs them.
//!
//! Pure: no git, no clock. Text may come from agents and is stripped of control characters.

use std::fmt::Write;

use woodward_core::Timestamp;

use super::door::Git;

const SUBJECT_MAX: usize = 200;
const BODY_MAX: usize = 64 << 10;
const VALUE_MAX: usize = 200;

/// Who a commit is by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
}

impl Signature {
    /// A signature; what git would refuse in one is taken out.
    pub fn new(name: &str, email: &str) -> Self {
        let clean = |text: &str, fallback: &str| {
            let kept: String = text
                .chars()
                .filter(|c| !c.is_control() && !matches!(c, '<' | '>'))
                .take(VALUE_MAX)
                .collect();
            let kept = kept.trim_matches(|c: char| c.is_whitespace() || ".,:;\"\\'".contains(c));
            if kept.is_empty() {
                fallback.to_owned()
            } else {
                kept.to_owned()
            }
        };
        Self {
            name: clean(name, "Woodward"),
            email: clean(email, "woodward@localhost"),
        }
    }
}

/// Where a commit comes from, as trailers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    /// The task's name.
    pub task: Option<String>,
    /// The run.
    pub run: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The landing.
    pub intent: Option<String>,
    /// Which of the commits that landed together, and how many they were.
    pub batch: Option<(usize, usize)>,
    /// Who else it is by.
    pub co_authors: Vec<Signature>,
}

impl Trailers {
    fn lines(&self) -> impl Iterator<Item = (&'static str, String)> {
        let batch = self
            .batch
            .map(|(number, count)| format!("{number}/{count}"));
        let all = [
            ("Woodward-Task", self.task.clone()),
            ("Woodward-Run", self.run.clone()),
            ("Woodward-Agent", self.agent.clone()),
            ("Woodward-Intent", self.intent.clone()),
            ("Woodward-Batch", batch),
        ];
        let co_authors = self.co_authors.iter().map(|who| {
            let value = format!("{} <{}>", who.name, who.email);
            ("Co-authored-by", Some(value))
        });
        let co_authors: Vec<_> = co_authors.collect();
        all.into_iter()
            .chain(co_authors)
            .filter_map(|(key, value)| {
                let plain: String = value
                    .as_ref()?
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(VALUE_MAX)
                    .collect();
                Some((key, plain.trim().to_owned()))
            })
    }
}

/// A commit message: the text, cleaned and bounded, and the trailers in a paragraph of their own (or
/// at the end of the trailers that the text already has).
pub fn compose(text: &str, trailers: &Trailers) -> String {
    let mut kept = String::new();
    for c in text.chars() {
        if kept.len() >= BODY_MAX {
            break;
        }
        match c {
            '\n' | '\t' => kept.push(c),
            c if c.is_control() => {}
            c => kept.push(c),
        }
    }
    let kept = kept.trim();
    let (subject, body) = kept.split_once('\n').unwrap_or((kept, ""));
    let subject: String = subject.trim_end().chars().take(SUBJECT_MAX).collect();
    let mut message = if subject.is_empty() {
        "(no message)".to_owned()
    } else {
        subject
    };
    let body = body.trim();
    if !body.is_empty() {
        message.push_str("\n\n");
        message.push_str(body);
    }
    let mut gap = if ends_with_trailers(body) {
        "\n"
    } else {
        "\n\n"
    };
    for (key, value) in trailers.lines() {
        let line = format!("{key}: {value}");
        if message.lines().any(|known| known == line) {
            continue;
        }
        write!(message, "{gap}{line}").expect("writing to a string succeeds");
        gap = "\n";
    }
    message.push('\n');
    message
}

/// Whether a line would be read as a trailer that only Woodward may write.
pub(crate) fn is_reserved_trailer(line: &str) -> bool {
    let line = line.trim_start().to_ascii_lowercase();
    line.starts_with("woodward-") || line.starts_with("co-authored-by:")
}

fn ends_with_trailers(body: &str) -> bool {
    let last = body.rsplit("\n\n").next().unwrap_or_default();
    let is_trailer = |line: &str| {
        line.split_once(": ").is_some_and(|(key, _)| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
    };
    !last.is_empty() && last.lines().all(is_trailer)
}

/// Who and when, for a commit whose name must come out the same each time.
pub(crate) fn signed(git: Git, author: (&Signature, &str), committer: (&Signature, &str)) -> Git {
    git.env("GIT_AUTHOR_NAME", &author.0.name)
        .env("GIT_AUTHOR_EMAIL", &author.0.email)
        .env("GIT_AUTHOR_DATE", author.1)
        .env("GIT_COMMITTER_NAME", &committer.0.name)
        .env("GIT_COMMITTER_EMAIL", &committer.0.email)
        .env("GIT_COMMITTER_DATE", committer.1)
        .config("i18n.commitEncoding=UTF-8")
}

/// A moment as git reads it.
pub(crate) fn git_date(at: Timestamp) -> String {
    format!("@{} +0000", at.0.div_euclid(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trailers() -> Trailers {
        Trailers {
            task: Some("fix\nlogin".into()),
            run: Some("r1".into()),
            ..Trailers::default()
        }
    }

    #[test]
    fn trailers_stand_in_a_paragraph_of_their_own() {
        assert_eq!(
            compose("Fix it\n\nBecause.\n", &trailers()),
            "Fix it\n\nBecause.\n\nWoodward-Task: fixlogin\nWoodward-Run: r1\n"
        );
    }

    #[test]
    fn trailers_join_those_that_are_there_and_are_not_doubled() {
        assert_eq!(
            compose(
                "Fix\n\nSigned-off-by: A <a@b>\nWoodward-Run: r1",
                &trailers()
            ),
            "Fix\n\nSigned-off-by: A <a@b>\nWoodward-Run: r1\nWoodward-Task: fixlogin\n"
        );
        // A subject that looks like a trailer is none.
        assert!(compose("engine: fix", &trailers()).starts_with("engine: fix\n\nWoodward"));
    }

    #[test]
    fn control_characters_and_floods_are_cut() {
        let message = compose(
            &format!("a\u{1b}[31m\r{}", "x".repeat(1 << 20)),
            &trailers(),
        );
        assert!(!message.contains('\u{1b}') && !message.contains('\r'));
        assert!(message.len() < BODY_MAX + 1_000);
        assert!(compose("  \n", &Trailers::default()).starts_with("(no message)"));
    }

    #[test]
    fn a_signature_is_never_empty() {
        assert_eq!(Signature::new("<>", "\n").name, "Woodward");
        assert_eq!(Signature::new("Ada <x>", "a@b").name, "Ada x");
    }
}
