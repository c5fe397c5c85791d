//! A command as the file writes it: text for the shell, or a list of words that needs none.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::de::AS_WRITTEN;

/// Something to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Command {
    /// Text for `sh -c`.
    Shell(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

impl Command {
    /// The program and its arguments: text is run by `sh -c`.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Shell(text) => vec!["sh".to_owned(), "-c".to_owned(), text.clone()],
            Self::Argv(words) => words.clone(),
        }
    }

    /// The same with arguments after it. Text gets them after its last word, unless it says itself,
    /// with `$@`, where they belong; text of several lines has to.
    pub fn argv_with(&self, args: &[String]) -> Vec<String> {
        let mut argv = self.argv();
        if let Self::Shell(text) = self {
            let places = ["$@", "${@", "$*", "${*", "$1", "${1"];
            let is_placed = places.iter().any(|place| text.contains(place));
            let text = text.trim_end();
            if !is_placed && !text.contains('\n') {
                argv[2] = format!("{text} \"$@\"");
            }
            // The name by which the shell calls itself.
            argv.push("sh".to_owned());
        }
        argv.extend(args.iter().cloned());
        argv
    }

    /// The command as a person could type it.
    pub fn shown(&self) -> String {
        match self {
            Self::Shell(text) => text.clone(),
            Self::Argv(words) => {
                let quoted: Vec<_> = words.iter().map(|word| quoted(word)).collect();
                quoted.join(" ")
            }
        }
    }

    fn checked<E: de::Error>(self) -> Result<Self, E> {
        let (first, words): (_, &[String]) = match &self {
            Self::Shell(text) => (text, &[]),
            Self::Argv(words) => {
                let Some((first, words)) = words.split_first() else {
                    return Err(E::custom(
                        "the command is empty\nwrite what to run, such as `sh work.sh`",
                    ));
                };
                (first, words)
            }
        };
        if first.trim().is_empty() {
            return Err(E::custom(
                "the command is empty\nwrite what to run, such as `sh work.sh`",
            ));
        }
        if first.contains('\0') || words.iter().any(|word| word.contains('\0')) {
            return Err(E::custom("a command can't hold a NUL character"));
        }
        Ok(self)
    }
}

/// A word as the shell needs it to be written.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CommandVisitor;

        impl<'de> Visitor<'de> for CommandVisitor {
            type Value = Command;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command: text for the shell or a list of words")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Command, E> {
                Command::Shell(text.to_owned()).checked()
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Command, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = seq.next_element()? {
                    words.push(word);
                }
                Command::Argv(words).checked()
            }
        }

        deserializer.deserialize_newtype_struct(AS_WRITTEN, CommandVisitor)
    }
}

impl JsonSchema for Command {
    fn schema_name() -> Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "What to run: text for `sh -c`, or a list of words that needs no shell.",
            "anyOf": [
                { "type": "string", "minLength": 1 },
                { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_goes_through_the_shell_and_words_do_not() {
        let text = Command::Shell("cargo test && echo 'done'".into());
        assert_eq!(text.argv(), ["sh", "-c", "cargo test && echo 'done'"]);
        assert_eq!(text.shown(), "cargo test && echo 'done'");
        let words = Command::Argv(vec!["echo".into(), "it's".into(), "a b".into(), "".into()]);
        assert_eq!(words.argv(), ["echo", "it's", "a b", ""]);
        assert_eq!(words.shown(), r"echo 'it'\''s' 'a b' ''");
    }

    #[test]
    fn arguments_reach_the_command() {
        let said = |command: Command| {
            let argv = command.argv_with(&["a b".into(), "$c".into()]);
            let ran = std::process::Command::new(&argv[0])
                .args(&argv[1..])
                .output()
                .unwrap();
            String::from_utf8(ran.stdout).unwrap()
        };
        let text = |text: &str| said(Command::Shell(text.into()));
        assert_eq!(text("printf '%s.' x"), "x.a b.$c.");
        assert_eq!(text("true && printf '%s.' x "), "x.a b.$c.");
        assert_eq!(text("printf '%s.' \"$@\" x"), "a b.$c.x.");
        assert_eq!(text("printf '%s.' \"$@\"\necho"), "a b.$c.\n");
        let words = ["printf", "%s.", "x"].map(String::from).to_vec();
        assert_eq!(said(Command::Argv(words)), "x.a b.$c.");
    }
}
