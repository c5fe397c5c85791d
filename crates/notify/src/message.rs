//! What a person gets: one notice, or several as one.
//!
//! Texts come from agents; they are stripped of control characters and cut here, once for all
//! channels. Each channel escapes what its own language would take for more than text.

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use woodward_core::hint::NextCommand;
use woodward_core::notice::{Level, Notice};

/// The version of the JSON that webhooks and commands get.
const SCHEMA: u32 = 1;
/// The most characters of one text that are sent.
const TEXT_CHARS_MAX: usize = 600;
/// The most notices of a digest that are told in words.
const SHOWN_MAX: usize = 10;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The same id is the same message, however often it comes.
    pub id: String,
    /// The project's name.
    pub project: String,
    /// What is told, at least one; several are a digest.
    pub notices: Vec<Notice>,
    /// For how long nobody has answered, where that is why it comes.
    pub unanswered: Option<woodward_core::Millis>,
}

impl Message {
    /// How loud the loudest of it is.
    pub fn level(&self) -> Level {
        let levels = self.notices.iter().map(|notice| notice.level);
        levels.max().unwrap_or(Level::Low)
    }

    /// One line.
    pub fn title(&self) -> String {
        let title = match self.notices.as_slice() {
            [one] => one.title(),
            many => format!("{} things need a look", many.len()),
        };
        let title = clean(&format!("{}: {title}", self.project));
        match self.unanswered {
            Some(since) => format!("{title} (unanswered for {since})"),
            None => title,
        }
    }

    /// What follows it, each entry a line or two: what, and what to type.
    pub fn lines(&self) -> Vec<Line> {
        let single = self.notices.len() == 1;
        let mut lines: Vec<Line> = self
            .notices
            .iter()
            .take(SHOWN_MAX)
            .map(|notice| Line {
                text: if single {
                    body(notice)
                } else {
                    clean(&format!("{}: {}", notice.title(), notice.text))
                },
                command: notice.command.as_deref().map(clean),
            })
            .collect();
        if self.notices.len() > SHOWN_MAX {
            lines.push(Line {
                text: format!("and {} more", self.notices.len() - SHOWN_MAX),
                command: Some(NextCommand::Status.to_string()),
            });
        }
        lines
    }

    /// The lines as plain text.
    pub fn plain(&self) -> String {
        let line = |line: &Line| match &line.command {
            Some(command) => format!("{}\n→ {command}", line.text),
            None => line.text.clone(),
        };
        let lines: Vec<String> = self.lines().iter().map(line).collect();
        lines.join("\n")
    }

    /// All of it, for programs.
    pub fn json(&self) -> Value {
        let notices: Vec<Value> = self
            .notices
            .iter()
            .map(|notice| {
                json!({
                    "key": notice.key,
                    "task": notice.task,
                    "name": notice.name,
                    "reason": notice.reason,
                    "level": notice.level,
                    "title": clean(&notice.title()),
                    "text": notice.text,
                    "choices": notice.choices,
                    "command": notice.command,
                    "at": notice.at,
                })
            })
            .collect();
        json!({
            "schema": SCHEMA,
            "id": self.id,
            "project": self.project,
            "level": self.level(),
            "title": self.title(),
            "text": self.plain(),
            "unanswered_ms": self.unanswered,
            "notices": notices,
        })
    }
}

/// The name of a delivery of these entries: the same entries have the same name.
pub fn delivery_id<'a>(keys: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for key in keys {
        hash.update(key.as_bytes());
        hash.update([0]);
    }
    let digest = hash.finalize();
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// One entry of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What.
    pub text: String,
    /// What to type.
    pub command: Option<String>,
}

fn body(notice: &Notice) -> String {
    let mut text = clean(notice.text.as_str());
    for (number, choice) in (1..).zip(&notice.choices) {
        text.push_str(&format!("\n{number}. {}", clean(choice.as_str())));
    }
    cut(&text)
}

/// Text without control characters other than line ends, bounded.
fn clean(text: &str) -> String {
    let plain = |c: &char| *c == '\n' || !c.is_control();
    cut(&text.chars().filter(plain).collect::<String>())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use woodward_core::notice::Reason;
    use woodward_core::{Note, ProjectId, Timestamp};

    use super::*;

    pub(crate) fn notice(name: &str, reason: Reason, text: &str) -> Notice {
        Notice {
            key: format!("{name}/{reason}/1"),
            project: "018f0000-0000-7000-8000-000000000001"
                .parse::<ProjectId>()
                .unwrap(),
            task: None,
            name: Some(name.into()),
            reason,
            level: reason.level(),
            text: Note::from(text),
            choices: Vec::new(),
            command: Some(format!("woodward show {name}")),
            at: Timestamp(1_700_000_000_000),
        }
    }

    pub(crate) fn message(notices: Vec<Notice>) -> Message {
        Message {
            id: "d-1".into(),
            project: "till".into(),
            notices,
            unanswered: None,
        }
    }

    #[test]
    fn a_question_comes_with_its_choices_and_the_command() {
        let mut asks = notice("fix", Reason::Question, "Which?\u{1b}[31m");
        asks.choices = vec![Note::from("red"), Note::from("blue")];
        asks.command = Some("woodward answer fix".into());
        let message = message(vec![asks]);
        assert_eq!(message.title(), "till: fix asks you");
        assert_eq!(
            message.plain(),
            "Which?[31m\n1. red\n2. blue\n→ woodward answer fix"
        );
    }

    #[test]
    fn a_digest_names_each_and_is_bounded() {
        let many = (0..40)
            .map(|n| notice(&format!("t{n}"), Reason::Review, &"x".repeat(5_000)))
            .collect();
        let message = message(many);
        assert_eq!(message.title(), "till: 40 things need a look");
        let text = message.plain();
        assert!(text.contains("t9 is ready") && text.contains("and 30 more"));
        assert!(text.len() < 8_000, "{}", text.len());
        assert_eq!(message.json()["notices"].as_array().unwrap().len(), 40);
    }
}
