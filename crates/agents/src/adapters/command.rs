//! Any other program, from a row in the project's configuration: one process a turn.
//!
//! Nothing is known of it but its row. Lines that are no JSON are what it says, and its exit says how
//! its turn ended. Amp and Cursor are rows of our own ([`known`]), with a language that is known from
//! their documentation and was never tried.

mod known;
mod read;

use std::io;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

use self::known::Known;
use self::read::Reader;
use super::turns::{self, Speaker, Turn};
use crate::event::{Ending, Event};
use crate::program::Start;
use crate::spec::{SessionId, Spec};
use crate::wire::Wire;

/// How a program that Woodward does not know is fed and read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// How it is given its prompt.
    pub prompt: PromptBy,
    /// Arguments that resume a conversation; `{session}` stands for its id.
    pub resume: Vec<String>,
    /// Arguments that start a conversation with an id of ours; `{session}` stands for it.
    pub session: Vec<String>,
    /// Arguments that choose a model; `{model}` stands for it.
    pub model: Vec<String>,
    /// A line of its output that begins with this text names the conversation.
    pub session_line: Option<String>,
    /// Where the figures of its use are, in JSON lines that it prints.
    pub usage: Option<UsageAt>,
    /// A line of its output that begins with this text means that it waits for a person.
    pub waiting_line: Option<String>,
}

/// How a program is given its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptBy {
    /// On its standard input.
    #[default]
    Stdin,
    /// In a file that the variable WOODWARD_PROMPT_FILE names.
    File,
    /// As its last argument. Everybody on the machine can read it there.
    Argument,
}

/// Where figures of use are, as JSON pointers into a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageAt {
    /// Tokens read.
    pub input: Option<String>,
    /// Tokens written.
    pub output: Option<String>,
    /// US dollars.
    pub usd: Option<String>,
    /// Whether each figure is one step, to be added; otherwise the last one counts.
    pub per_step: bool,
}

pub(super) async fn converse(spec: &Spec, wire: &mut Wire) -> Option<Ending> {
    let known = known::of(spec);
    let row = known.row(spec);
    let (session, is_begun) = match &spec.session {
        SessionId::New(id) if !row.session.is_empty() => (Some(id.clone()), false),
        // It chooses its ids itself, or has none.
        SessionId::New(_) => (None, false),
        SessionId::Resume(id) => (Some(id.clone()), true),
    };
    if is_begun && row.resume.is_empty() {
        let note = String::from("its row in woodward.yaml has no `resume`");
        return Some(Ending::NoSuchSession { note });
    }
    let mut command = Command {
        spec,
        reader: Reader::new(row.clone(), known.speaks_stream_json(), session),
        known,
        row,
        is_begun,
        turns: 0,
    };
    turns::converse(&mut command, spec, wire).await
}

struct Command<'a> {
    spec: &'a Spec,
    known: Known,
    row: Row,
    reader: Reader,
    /// Whether there is a conversation to be resumed.
    is_begun: bool,
    turns: u32,
}

impl Command<'_> {
    fn argv(&self, prompt: &str) -> Vec<String> {
        let session = self.reader.session.as_deref().unwrap_or_default();
        let template = match (self.is_begun, session.is_empty()) {
            (_, true) => &[][..],
            (true, false) => &self.row.resume[..],
            (false, false) => &self.row.session[..],
        };
        let filled = |words: &[String], mark: &str, value: &str| {
            let words = words.iter().map(|word| word.replace(mark, value));
            words.collect::<Vec<_>>()
        };
        let mut argv = self.spec.program.clone();
        argv.extend(filled(template, "{session}", session));
        argv.extend(self.known.args(self.spec));
        if let Some(model) = &self.spec.model {
            argv.extend(filled(&self.row.model, "{model}", model));
        }
        argv.extend(self.spec.args.iter().cloned());
        if self.row.prompt == PromptBy::Argument {
            argv.push(prompt.to_owned());
        }
        argv
    }
}

impl Speaker for Command<'_> {
    fn start(&mut self, prompt: &str) -> io::Result<Turn> {
        let argv = self.argv(prompt);
        self.is_begun = true;
        self.reader.begin();
        let mut env = Vec::new();
        self.turns += 1;
        if self.row.prompt == PromptBy::File {
            // Beside the first one, and gone when that goes.
            let name = format!("prompt-{}.md", self.turns);
            let file = self.spec.prompt.with_file_name(name);
            crate::files::save(&file, prompt.as_bytes())?;
            env.push((String::from("WOODWARD_PROMPT_FILE"), file.into_os_string()));
        }
        let by_stdin = self.row.prompt == PromptBy::Stdin;
        Ok(Turn {
            start: Start {
                argv,
                env,
                // Only who may ask is listened to: many wait for the end of their input.
                fed: by_stdin || self.row.waiting_line.is_some(),
            },
            input: by_stdin.then(|| prompt.to_owned()),
        })
    }

    fn hear(&mut self, line: &str) -> Vec<Event> {
        self.reader.hear(line)
    }

    fn has_prompt(&mut self) -> bool {
        // It was its input from the start.
        true
    }

    fn ended(&mut self, status: Option<ExitStatus>, complaints: &str) -> (Vec<Event>, Ending) {
        self.reader.ended(status, complaints)
    }
}
